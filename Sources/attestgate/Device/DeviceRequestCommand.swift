internal import AppAttestDevice
internal import GateBytes

/// `attestgate device request`: signs a request and sends it.
enum DeviceRequestCommand {
    private static let data = OptionSpecification(
        "data", letter: "d", value: "DATA", help: "the body: text, @FILE, or @- for standard input")
    private static let binding = OptionSpecification(
        "binding", value: "NAME", choices: Proof.Binding.allCases.map(\.rawValue),
        help: "how the request is signed, as the route's bind says (default client_data)")
    private static let purpose = OptionSpecification(
        "purpose", value: "NAME", help: "the purpose of the route (default request)")
    private static let challenge = OptionSpecification(
        "challenge", value: "TEXT",
        help: "sign this challenge, by value (id.mac), and do not try again")
    private static let counter = OptionSpecification(
        "counter", value: "N", help: "sign with this counter instead of the next")
    private static let fresh = OptionSpecification(
        "fresh", help: "ask for a challenge even where the last answer brought one")
    private static let curl = OptionSpecification(
        "curl", help: "do not send the request; print the curl command that would")

    static let specification = CommandSpecification(
        "device", "request", summary: "sign a request and send it, as an app does",
        operands: [
            OperandSpecification("METHOD", help: "GET, POST, …"),
            OperandSpecification(
                "URL", help: "http://host:port/path?query; its bytes are signed as is"),
        ],
        optional: [
            data, DeviceOptions.header, binding, purpose, challenge, counter, fresh, curl,
            DeviceOptions.state, DeviceOptions.enroll, DeviceOptions.connect,
            DeviceOptions.include, DeviceOptions.verbose, SharedOptions.json,
        ],
        notes: [
            "Uses the challenge that came with the last answer, or asks for one. Where a gate says "
                + "challenge_required to a challenge of an earlier answer, the request is signed "
                + "and sent once more.",
            "Exit code 0 for an answer below 400, 1 for the others.",
        ]
    ) { (arguments, console) throws(CommandError) in
        var exchange = try Exchange(arguments, console: console)
        return try exchange.run()
    }

    /// One run of the command.
    private struct Exchange {
        private let arguments: ParsedArguments
        private let console: Console
        private let url: WebAddress
        private let client: GateClient
        private let prefix: String
        private let binding: Proof.Binding
        private let purpose: String
        private let given: Challenge?
        private let counter: UInt32?
        private let unsigned: HTTPRequest
        private var state: DeviceState

        init(_ arguments: ParsedArguments, console: Console) throws(CommandError) {
            self.arguments = arguments
            self.console = console
            state = try DeviceState.load(arguments.statePath)
            url = try arguments.url(1)
            client = try arguments.client(url)
            prefix = try arguments.prefix(state.enrolPath)
            binding =
                arguments[DeviceRequestCommand.binding].flatMap(Proof.Binding.init(rawValue:))
                ?? .clientData
            purpose = arguments[DeviceRequestCommand.purpose] ?? "request"
            given = try arguments.resolved(
                DeviceRequestCommand.challenge, expected: "a challenge by value, id.mac"
            ) { Challenge(byValue: $0) }
            counter = try arguments.resolved(
                DeviceRequestCommand.counter, expected: "a number below 2^32"
            ) { UInt32($0) }
            let method = arguments.operands[0]
            guard method.wholeMatch(of: /[A-Za-z][A-Za-z0-9-]*/) != nil else {
                throw arguments.fault("\"\(method.printable)\" is no METHOD; write GET, POST, …")
            }
            let body = try Self.body(arguments[DeviceRequestCommand.data], console)
            unsigned = client.request(method, url.target, body: body)
        }

        mutating func run() throws(CommandError) -> ExitCode {
            let remembered = given == nil ? takeRemembered() : nil
            let first: Challenge
            if let challenge = given ?? remembered {
                first = challenge
            } else {
                first = try client.challenge(prefix: prefix, purpose: purpose)
            }
            var request = try sign(first)
            if arguments.has(DeviceRequestCommand.curl) {
                console.print(
                    CurlLine.text(request, url: url, connect: arguments[DeviceOptions.connect]))
                return .done
            }
            var response = try client.send(request)
            if response.code == "challenge_required", remembered != nil,
                let next = response.nextChallenge
            {
                request = try sign(next)
                response = try client.send(request)
            }
            try remember(response)
            console.printExchange(request, response, arguments)
            return response.status < 400 ? .done : .notHeld
        }

        /// Signs, and keeps the counter before anything is sent: a value that may have been seen is
        /// never used again.
        private mutating func sign(_ challenge: Challenge) throws(CommandError) -> HTTPRequest {
            var request = unsigned
            request.fields += Proof.fields(
                Proof.Subject(request), by: &state.device, binding: binding, challenge: challenge,
                counter: counter)
            try state.save(arguments.statePath)
            return request
        }

        /// The challenge of the last answer, where it is this client's; it is used once.
        private mutating func takeRemembered() -> Challenge? {
            guard let next = state.nextChallenge, next.origin == url.origin,
                next.purpose == purpose,
                next.client == DeviceState.NextChallenge.client(client.fields)
            else { return nil }
            state.nextChallenge = nil
            return arguments.has(DeviceRequestCommand.fresh) ? nil : Challenge(byValue: next.text)
        }

        private mutating func remember(_ response: HTTPResponse) throws(CommandError) {
            guard let next = response.nextChallenge else { return }
            state.nextChallenge = DeviceState.NextChallenge(
                origin: url.origin, purpose: purpose,
                client: DeviceState.NextChallenge.client(client.fields), text: next.byValue)
            try state.save(arguments.statePath)
        }

        private static func body(
            _ text: String?, _ console: Console
        ) throws(CommandError) -> [UInt8] {
            guard let text else { return [] }
            guard text.hasPrefix("@") else { return Array(text.utf8) }
            return try InputFile.bytes(String(text.dropFirst()), console: console)
        }
    }
}

/// A request as a curl command.
enum CurlLine {
    /// The command for a shell; a body that is no text comes from standard input by `base64 -d`.
    static func text(_ request: HTTPRequest, url: WebAddress, connect: String?) -> String {
        var words = ["curl", "-sS", "-X", request.method]
        for field in request.fields { words += ["-H", quoted("\(field.name): \(field.value)")] }
        if let connect {
            words +=
                connect.hasPrefix("unix:")
                ? ["--unix-socket", quoted(String(connect.dropFirst(5)))]
                : ["--connect-to", quoted("\(url.host):\(url.port):\(connect)")]
        }
        var input = ""
        if !request.body.isEmpty {
            if !request.body.contains(0), let text = String(validating: request.body, as: UTF8.self)
            {
                // Not --data-binary, which takes what begins with @ for the name of a file.
                words += ["--data-raw", quoted(text)]
            } else {
                input = "printf %s \(quoted(Base64.encode(request.body))) | base64 -d | "
                words += ["--data-binary", "@-"]
            }
        }
        // curl must not tidy the target: it is signed as it stands.
        words += ["--path-as-is", "--globoff", quoted(url.origin + request.target)]
        return input + words.joined(separator: " ")
    }

    /// `text` as one word of a POSIX shell.
    static func quoted(_ text: String) -> String {
        let plain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x2b, 0x2d...0x3a, 0x40...0x5a, 0x5f, 0x61...0x7a: return true
            default: return false
            }
        }
        if plain, !text.isEmpty { return text }
        var quoted = "'"
        for character in text { quoted += character == "'" ? "'\\''" : String(character) }
        return quoted + "'"
    }
}
