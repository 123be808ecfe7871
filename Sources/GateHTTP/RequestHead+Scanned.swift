extension RequestHead {
    /// The head whose first line and fields have been scanned to the end of `scanned`.
    init(
        _ line: RequestLineScanner, _ section: FieldScanner, _ scanned: [UInt8],
        version: HTTPVersion, framing: Framing
    ) throws(MessageError) {
        var bytes = scanned
        let facts = section.facts
        guard let authority = facts.host else { throw .hostMissing }
        guard let method = Method(bytes, line.method) else { throw .methodUnknown }
        guard facts.expectation != .unknown else { throw .expectationUnknown }
        let target = OriginForm(line, &bytes, isOptions: method == .options)
        let hostEnd = authority.lowerBound + facts.hostNameCount
        self.init(
            bytes: bytes, fields: section.fields, knownMethod: method, form: target.form,
            version: version, framing: framing, isPersistent: facts.isPersistent(version),
            expectsContinue: facts.expectation == .continue && version != .http10
                && framing != .none && framing != .length(0),
            wantsUpgrade: facts.hasUpgrade, methodRange: HeadRange(line.method),
            targetRange: HeadRange(line.target),
            pathAndQueryRange: HeadRange(target.pathAndQuery), pathRange: HeadRange(target.path),
            authorityRange: HeadRange(authority),
            hostRange: HeadRange(authority.lowerBound..<hostEnd))
    }
}

/// The origin-form of a target, as ranges of a head's bytes.
private struct OriginForm {
    var form: TargetForm
    var pathAndQuery: Range<Int>
    var path: Range<Int>

    /// The form of `line`'s target. Where an absolute-form target has no path, the missing `/` (RFC
    /// 9112 §3.2.1), or for `OPTIONS` without a query the `*` (§3.2.4), is written behind the head
    /// in `bytes`.
    init(_ line: RequestLineScanner, _ bytes: inout [UInt8], isOptions: Bool) {
        form = line.form
        pathAndQuery = line.pathStart..<line.target.upperBound
        var question = line.questionMark
        if form == .absolute, pathAndQuery.isEmpty || question == pathAndQuery.lowerBound {
            let rest = Array(bytes[pathAndQuery])
            let start = bytes.count
            if rest.isEmpty, isOptions {
                form = .asterisk
                bytes.append(Octet.asterisk)
            } else {
                bytes.append(Octet.slash)
            }
            bytes.append(contentsOf: rest)
            pathAndQuery = start..<bytes.count
            question = rest.isEmpty ? nil : start + 1
        }
        path = pathAndQuery.lowerBound..<(question ?? pathAndQuery.upperBound)
    }
}
