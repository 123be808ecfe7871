internal import AppAttestDevice
internal import AppAttestWire
internal import GateBytes

/// `attestgate device request`: signs a request and sends it.
enum DeviceRequestCommand {
    private static let data = OptionSpecification(
        "data", letter: "d", value: "DATA", help: "the body: text, @FILE, or @- for standard input")
    private static let binding = OptionSpecification(
        "binding", value: "NAME", choices: Proof.Binding.allCases.map(\.rawValue),
        help: "how the request is signed, as the route's bind says (default client_data)")
    private static let pointer = OptionSpecification(
        "challenge-pointer", value: "POINTER",
        help: "with --binding body: put the challenge there, /name; without, none is signed")
    private static let inline = OptionSpecification(
        "inline", help: "bring the key's attestation along, for a route with inline_enroll on")
    private static let noKeyID = OptionSpecification(
        "no-key-id", help: "leave the key ID out, for a host with key_id account")
    private static let assertionField = OptionSpecification(
        "assertion-field", value: "NAME",
        help: "the field of the assertion (default \(DefaultFieldNames.assertion))")
    private static let purpose = OptionSpecification(
        "purpose", value: "NAME",
        help: "the purpose of the route (default request; with --inline, attestation)")
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
            data, DeviceOptions.header, binding, pointer, inline, noKeyID, assertionField, purpose,
            challenge, counter, fresh, curl,
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
        private let style: ProofStyle
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
            style = try Self.style(arguments)
            purpose =
                arguments[DeviceRequestCommand.purpose]
                ?? (style.isInline ? "attestation" : "request")
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
            let remembered = given == nil && style.needsChallenge ? takeRemembered() : nil
            var first = given ?? remembered
            if first == nil, style.needsChallenge {
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
        private mutating func sign(_ challenge: Challenge?) throws(CommandError) -> HTTPRequest {
            var request = unsigned
            if let pointer = style.pointer, let challenge {
                do throws(BodyPointer.Fault) {
                    request.body = try pointer.insert(challenge.byValue, into: request.body)
                } catch {
                    throw arguments.fault("--challenge-pointer: \(error)")
                }
            }
            request = Proof.sign(
                request, by: &state.device, style, challenge: challenge, counter: counter)
            try state.save(arguments.statePath)
            return request
        }

        private static func style(_ arguments: ParsedArguments) throws(CommandError) -> ProofStyle {
            var style = ProofStyle()
            if let name = arguments[DeviceRequestCommand.binding],
                let binding = Proof.Binding(rawValue: name)
            {
                style.binding = binding
            }
            style.pointer = try arguments.resolved(
                DeviceRequestCommand.pointer, expected: "a JSON pointer, /name"
            ) { BodyPointer($0) }
            style.isInline = arguments.has(DeviceRequestCommand.inline)
            style.hasKeyID = !arguments.has(DeviceRequestCommand.noKeyID)
            if let name = arguments[DeviceRequestCommand.assertionField] {
                style.assertionField = name
            }
            if style.pointer != nil, style.binding != .body {
                throw arguments.fault("--challenge-pointer goes with --binding body alone")
            }
            if style.isInline, style.binding == .envelope || !style.needsChallenge {
                throw arguments.fault(
                    "--inline needs a challenge, and does not go with --binding envelope")
            }
            return style
        }

        /// The challenge of the last answer, where it is this client's; it is used once.
        private mutating func takeRemembered() -> Challenge? {
            guard let next = state.nextChallenge, next.origin == url.origin,
                next.purpose == purpose,
                next.client == DeviceState.NextChallenge.client(client.fields)
            else { return nil }
            state.nextChallenge = nil
            // The last answer's challenge is for the route, not for an attestation.
            guard !style.isInline else { return nil }
            return arguments.has(DeviceRequestCommand.fresh) ? nil : Challenge(byValue: next.text)
        }

        private mutating func remember(_ response: HTTPResponse) throws(CommandError) {
            guard !style.isInline, let next = response.nextChallenge else { return }
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
