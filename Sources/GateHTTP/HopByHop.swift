/// Fields that end at this hop: those that always do, and those that `Connection` names (RFC 9110
/// §7.6.1, threat T07).
package enum HopByHop {
    /// Marks the lines of `head` that must not be forwarded (``FieldLine/isHopByHop``). Throws
    /// ``MessageError/connectionNamesProtectedField`` where `Connection` names one of `protected`,
    /// compared folded.
    package static func mark(
        _ head: inout RequestHead, protected: [FieldName]
    ) throws(MessageError) {
        try mark(&head.fields, head.bytes, protected: protected)
    }

    /// Marks the lines of a response that must not be forwarded.
    package static func mark(_ head: inout ResponseHead) {
        // Nothing is protected, so nothing can be thrown.
        try? mark(&head.fields, head.bytes, protected: [])
    }

    private static func mark(
        _ fields: inout [FieldLine], _ bytes: [UInt8], protected: [FieldName]
    ) throws(MessageError) {
        for index in fields.indices {
            if fields[index].kind.isHopByHop { fields[index].isHopByHop = true }
            guard fields[index].kind == .connection else { continue }
            var options = TokenList(fields[index].value)
            while let option = options.next(bytes) {
                for name in protected where name.matchesFolded(bytes, option) {
                    throw .connectionNamesProtectedField
                }
                markNamed(option, &fields, bytes)
            }
        }
    }

    private static func markNamed(
        _ option: Range<Int>, _ fields: inout [FieldLine], _ bytes: [UInt8]
    ) {
        let signature = FieldName.signature(bytes, option)
        for index in fields.indices where fields[index].signature == signature {
            let name = fields[index].name
            guard name.count == option.count else { continue }
            var isSame = true
            for offset in 0..<name.count
            where Octet.lowercased(bytes[name.lowerBound + offset])
                != Octet.lowercased(bytes[option.lowerBound + offset])
            {
                isSame = false
                break
            }
            if isSame { fields[index].isHopByHop = true }
        }
    }
}
