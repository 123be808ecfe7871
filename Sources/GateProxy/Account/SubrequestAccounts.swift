// `account subrequest`: an upstream is asked who the client is, as nginx's auth_request does.
//
//   GET target, with the client's own fields and without its body
//     2xx and the field ──► the account        401, 403, 2xx without ──► none
//     anything else, nothing in time ──► not known now
//
// Sent are the fields that would pass upstream, without those of the proof, of the body, of
// conditions and ranges; and the gate's `X-Original-Method` and `X-Original-URI`.
//
// Kept is only a good answer, for `cache`, under a hash over the host and every field that was
// sent, but for those that differ with each request by their meaning: request id, trace, and the
// original method and target. So whatever may tell one client from another – any credential,
// cookie, address – keeps their answers apart.

internal import GateBytes
internal import GateConfig
internal import GateCrypto
internal import GateHTTP
internal import GateRuntime

/// The accounts of `account subrequest`.
final class SubrequestAccounts: Sendable {
    let settings: SubrequestAccount
    /// The good answers that count for a while; nil where each request asks.
    let memory: AccountMemory?
    private let field: FieldName

    init(_ settings: SubrequestAccount) {
        self.settings = settings
        memory = settings.cache.map { AccountMemory(life: $0) }
        field = FieldName(parsing: settings.field) ?? FieldName("X-Account")
    }

    /// What an answer comes to.
    enum Outcome: Equatable {
        case absent
        case account([UInt8])
        case unknown(String)
    }

    /// What `outcome` says of the account.
    func read(_ outcome: InternalCall.Outcome) -> Outcome {
        switch outcome {
        case .failure(.answerTooLong(status: 401, _)), .failure(.answerTooLong(status: 403, _)):
            return .absent
        case .failure(let failure):
            return .unknown("\(failure)")
        case .success(let answer):
            switch answer.status {
            case 401, 403: return .absent
            case 200..<300: return read(answer.head)
            default: return .unknown("answered \(answer.status)")
            }
        }
    }

    private func read(_ head: ResponseHead) -> Outcome {
        let values = head.fields.values(of: field, in: head.bytes)
        guard let value = values.first, values.contains(where: { !$0.isEmpty }) else {
            return .absent
        }
        let account = Array(head.bytes[value])
        guard values.count == 1, AccountReader.isAccount(account) else {
            return .unknown("its \(settings.field) is no account")
        }
        return .account(account)
    }
}

/// What a service is asked for one request.
struct AccountQuestion {
    /// The fields, in order.
    let fields: [(name: [UInt8], value: [UInt8])]
    /// What stands for all that may matter of it.
    let key: Bytes32

    private static let unsent = names([
        "accept-encoding", "content-disposition", "content-encoding", "content-language",
        "content-length",
        "content-location", "content-md5", "content-range", "content-type", "content-digest",
        "digest", "expect", "host", "idempotency-key", "if-match", "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "range", "repr-digest", "via",
        "x-http-method", "x-http-method-override", "x-method-override",
    ])
    private static let perRequest = names([
        "traceparent", "tracestate", "x-original-method", "x-original-uri", "x-request-id",
    ])

    private static func names(_ names: [String]) -> Set<[UInt8]> {
        Set(names.map { Array($0.utf8) })
    }

    /// The question for `head`.
    init(
        _ head: RequestHead, _ host: HostFields, _ context: UpstreamContext, setFields: SetFields
    ) {
        var collector = FieldCollector()
        UpstreamHead.collect(head, host, context, setFields: setFields, into: &collector)
        collector.field("X-Original-Method", Array(head.bytes[head.method]))
        collector.field("X-Original-URI", Array(head.bytes[head.pathAndQuery]))
        var kept: [(name: [UInt8], value: [UInt8])] = []
        var hasher = SHA256Hasher()
        AccountQuestion.add(Array(head.bytes[head.authority]), to: &hasher)
        for field in collector.fields {
            let name = field.name.map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 }
            guard !AccountQuestion.unsent.contains(name) else { continue }
            kept.append(field)
            guard !AccountQuestion.perRequest.contains(name) else { continue }
            AccountQuestion.add(name, to: &hasher)
            AccountQuestion.add(field.value, to: &hasher)
        }
        fields = kept
        key = hasher.finish()
    }

    /// Each part after its length, so that none can pass for two.
    private static func add(_ part: [UInt8], to hasher: inout SHA256Hasher) {
        var count: [UInt8] = []
        count.append(bigEndian: UInt32(truncatingIfNeeded: part.count))
        hasher.update(count)
        hasher.update(part)
    }
}

/// Fields as they would be written, in a list.
struct FieldCollector: FieldWriter {
    private(set) var fields: [(name: [UInt8], value: [UInt8])] = []

    mutating func field(_ source: [UInt8], name: Range<Int>, value: Range<Int>) {
        fields.append((Array(source[name]), Array(source[value])))
    }

    mutating func field(_ name: StaticString, _ value: [UInt8], _ range: Range<Int>?) {
        let name = name.withUTF8Buffer { unsafe Array($0) }
        fields.append((name, Array(value[range ?? 0..<value.count])))
    }
}
