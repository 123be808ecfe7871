import AppAttestWire
import GateBytes

/// A JSON pointer into any bytes: never a trap; a text is judged alike with a pointer and without;
/// and what a pointer of one name finds is that member.
///
/// The first byte says how long the name is, which follows; then comes the text.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSONPointer(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    guard let first = bytes.first else { return 0 }
    let length = min(Int(first & 15), bytes.count - 1)
    let name = Array(bytes[1..<(1 + length)])
    let text = Array(bytes[(1 + length)...])
    let pointed = attempt { () throws(JSONError) in
        try JSONMembers.value(of: text, at: [name])
    }
    _ = attempt { () throws(JSONError) in
        try JSONMembers.value(of: text, at: [name, Array("0".utf8), name])
    }
    let member = attempt { () throws(JSONError) in
        try JSONMembers.scan(text, named: [name])[0]
    }
    // An array has no members, and may have the element.
    if case .failure(.notAnObject) = member { return 0 }
    precondition(pointed == member)
    return 0
}

private func attempt(
    _ body: () throws(JSONError) -> JSONMember?
) -> Result<JSONMember?, JSONError> {
    do throws(JSONError) {
        return .success(try body())
    } catch {
        return .failure(error)
    }
}
