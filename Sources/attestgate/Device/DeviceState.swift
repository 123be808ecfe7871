internal import AppAttestDevice
internal import GateBytes
internal import GateCrypto

/// A simulated device in one file: its private root, its key, and what a client remembers of a
/// gate.
///
/// Lines of `name value`, the first one naming the format. It holds private keys and is made 0600.
/// Nobody trusts them but a gate whose configuration names the root.
struct DeviceState {
    /// The device with its root.
    var device: Device
    /// The prefix of the enrolment endpoints, once it has enrolled there.
    var enrolPath: String?
    /// The challenge that came with the last answer.
    var nextChallenge: NextChallenge?

    /// A challenge that came with an answer, and for whom it is good.
    struct NextChallenge: Equatable {
        /// `http://host:port`.
        let origin: String
        /// The purpose of the route that was asked.
        let purpose: String
        /// What the client said of itself, since a challenge is one account's: a hash of the
        /// fields.
        let client: String
        /// The challenge by value.
        let text: String

        /// The hash of `fields`.
        static func client(_ fields: [HTTPField]) -> String {
            let text = fields.map { "\($0.name.lowercased()): \($0.value)\n" }.joined()
            return Base64.encodeURL(SHA256.hash(Array(text.utf8)).array)
        }
    }

    /// The file that commands use where none is named.
    static let defaultPath = "attestgate-device.state"

    private static let firstLine = "attestgate-device 1"
    private static let bytesMax = 1 << 20

    /// The state in the file at `path`.
    static func load(_ path: String) throws(CommandError) -> DeviceState {
        guard FileAccess.exists(path) else {
            throw .environment("\(path): no such file; make a device with attestgate device new")
        }
        let bytes = try FileAccess.read(path, bytesMax: bytesMax)
        guard let state = DeviceState(text: String(decoding: bytes, as: UTF8.self)) else {
            throw .environment("\(path): not the state of a device, or one of another version")
        }
        return state
    }

    /// Writes the state to `path`, whole or not at all.
    func save(_ path: String, isReplacing: Bool = true) throws(CommandError) {
        try FileAccess.write(Array(text.utf8), to: path, isReplacing: isReplacing)
    }

    /// A device that remembers nothing yet.
    init(_ device: Device) {
        self.device = device
    }

    /// The state that `text` is; nil when it is none.
    init?(text: String) {
        let lines = text.split(separator: "\n")
        guard lines.first == DeviceState.firstLine[...],
            let root = DeviceRoot(exported: text), let device = Device(exported: text, root: root)
        else { return nil }
        self.device = device
        for line in lines {
            let parts = line.split(separator: " ").map(String.init)
            switch (parts[0], parts.count) {
            case ("client.enroll", 2): enrolPath = parts[1]
            case ("client.next-challenge", 5):
                nextChallenge = NextChallenge(
                    origin: parts[1], purpose: parts[2], client: parts[3], text: parts[4])
            default: break
            }
        }
    }

    /// The state as text.
    var text: String {
        var text = DeviceState.firstLine + "\n" + device.root.exported() + device.exported()
        if let enrolPath { text += "client.enroll \(enrolPath)\n" }
        if let next = nextChallenge {
            text +=
                "client.next-challenge \(next.origin) \(next.purpose) \(next.client) \(next.text)\n"
        }
        return text
    }
}
