internal import GateBytes

/// The methods a host's routes name, one bit each. GET implies HEAD.
struct MethodTable: Sendable {
    private var names: [[UInt8]] = []

    /// The bits of a method a route names, added when it is new. There are fewer registered methods
    /// than bits; one beyond them would share none.
    mutating func mask(of method: String) -> UInt64 {
        let own = add(Array(method.utf8))
        return method == "GET" ? own | add(Array("HEAD".utf8)) : own
    }

    private mutating func add(_ name: [UInt8]) -> UInt64 {
        if let index = names.firstIndex(of: name) { return 1 << UInt64(index) }
        guard names.count < 64 else { return 0 }
        names.append(name)
        return 1 << UInt64(names.count - 1)
    }

    /// The bit of the method `bytes[range]`; 0 when no route names it.
    func bit(_ bytes: [UInt8], _ range: Range<Int>) -> UInt64 {
        for (index, name) in names.enumerated() where name.count == range.count {
            var offset = 0
            while offset < name.count, name[offset] == bytes[range.lowerBound + offset] {
                offset += 1
            }
            if offset == name.count { return 1 << UInt64(index) }
        }
        return 0
    }

    /// The names of the bits in `mask`, in file order.
    func names(of mask: UInt64) -> [String] {
        names.enumerated().filter { mask >> UInt64($0.offset) & 1 == 1 }
            .map { String(decoding: $0.element, as: UTF8.self) }
    }
}
