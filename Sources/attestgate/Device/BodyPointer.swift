internal import AppAttestWire

/// Where a challenge is put into a JSON body: a JSON pointer (RFC 6901) to a member that is not
/// there yet.
struct BodyPointer: Equatable {
    /// Why a challenge cannot be put there.
    enum Fault: Error, CustomStringConvertible {
        /// The body is no JSON object.
        case notAnObject
        /// The body has the pointer's first member.
        case taken(String)

        var description: String {
            switch self {
            case .notAnObject: return "the body is no JSON object"
            case .taken(let name): return "the body has a member \"\(name)\" already"
            }
        }
    }

    private let names: [String]

    /// The pointer that `text` is, `/name/name` of printable ASCII; nil when it is none.
    init?(_ text: String) {
        guard text.hasPrefix("/"), text.utf8.allSatisfy({ 0x20...0x7e ~= $0 }) else { return nil }
        var names: [String] = []
        for part in text.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let pieces = part.split(separator: "~", omittingEmptySubsequences: false)
            guard pieces.dropFirst().allSatisfy({ $0.first == "0" || $0.first == "1" }) else {
                return nil
            }
            let rest = pieces.dropFirst().map { ($0.first == "0" ? "~" : "/") + $0.dropFirst() }
            names.append(pieces[0] + rest.joined())
        }
        guard names.count <= JSONMembers.depthMax else { return nil }
        self.names = names
    }

    /// `body`, an object or nothing, with `value` in front of its other members.
    func insert(_ value: String, into body: [UInt8]) throws(Fault) -> [UInt8] {
        let text = body.isEmpty ? Array("{}".utf8) : body
        let found: [JSONMember?]
        do throws(JSONError) {
            found = try JSONMembers.scan(text, named: [names[0]])
        } catch {
            // Which rule of JSON it broke does not matter here.
            throw .notAnObject
        }
        guard found[0] == nil, let brace = text.firstIndex(of: UInt8(ascii: "{")) else {
            throw .taken(names[0])
        }
        let rest = text[(brace + 1)...]
        let isEmpty = rest.first { ![0x20, 0x09, 0x0a, 0x0d].contains($0) } == UInt8(ascii: "}")
        let start = names.map { "\(BodyPointer.quoted($0)):" }.joined(separator: "{")
        let end = String(repeating: "}", count: names.count - 1)
        let member = start + BodyPointer.quoted(value) + end + (isEmpty ? "" : ",")
        return Array(text[...brace]) + Array(member.utf8) + Array(rest)
    }

    /// `text`, printable ASCII, as a string of JSON.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text {
            if character == "\"" || character == "\\" { quoted.append("\\") }
            quoted.append(character)
        }
        return quoted + "\""
    }
}
