internal import AppAttestDevice

/// Options that the commands of the simulated device share.
enum DeviceOptions {
    static let state = OptionSpecification(
        "state", value: "FILE", help: "the device (default \(DeviceState.defaultPath))")
    static let header = OptionSpecification(
        "header", letter: "H", value: "LINE", isRepeatable: true,
        help: "a field to send, 'X-Account-Id: alice'")
    static let connect = OptionSpecification(
        "connect", value: "ADDRESS",
        help: "connect to host:port or unix:/path in place of the URL's host")
    static let enroll = OptionSpecification(
        "enroll", value: "PATH",
        help: "the prefix of the enrolment endpoints (default as enrolled, else \(defaultPrefix))")
    static let include = OptionSpecification(
        "include", letter: "i", help: "print the head of the answer as well")
    static let verbose = OptionSpecification(
        "verbose", letter: "v", help: "print both heads on standard error")

    /// The prefix of the shipped configuration.
    static let defaultPrefix = "/v1/app-attest"
}

extension ParsedArguments {
    /// The path of the state.
    var statePath: String { self[DeviceOptions.state] ?? DeviceState.defaultPath }

    /// The URL operand at `index`.
    func url(_ index: Int) throws(CommandError) -> WebAddress {
        do throws(WebAddress.Fault) {
            return try WebAddress(operands[index])
        } catch {
            switch error {
            case .malformed:
                throw fault("expected http://host[:port]/path, got \"\(operands[index])\"")
            case .secure:
                throw fault("https is not available in this version; use http")
            }
        }
    }

    /// A client of the gate at `url`.
    func client(_ url: WebAddress) throws(CommandError) -> GateClient {
        var fields: [HTTPField] = []
        for line in all(DeviceOptions.header) {
            guard let field = HTTPField(line: line) else {
                throw fault("--header: expected 'Name: value', got \"\(line)\"")
            }
            fields.append(field)
        }
        let endpoint = try resolved(
            DeviceOptions.connect, expected: "host:port or unix:/path"
        ) { Endpoint($0) }
        return GateClient(
            endpoint ?? .tcp(url.host, port: url.port), authority: url.authority, fields: fields)
    }

    /// The prefix of the enrolment endpoints, without a slash at its end.
    func prefix(_ known: String?) throws(CommandError) -> String {
        var prefix = self[DeviceOptions.enroll] ?? known ?? DeviceOptions.defaultPrefix
        while prefix.hasSuffix("/") { prefix.removeLast() }
        guard prefix.hasPrefix("/"), prefix.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw fault("--enroll: expected a path such as \(DeviceOptions.defaultPrefix)")
        }
        return prefix
    }
}

extension Console {
    /// Prints an exchange as curl does: the body on standard output, heads where asked for.
    func printExchange(
        _ request: HTTPRequest, _ response: HTTPResponse, _ arguments: ParsedArguments
    ) {
        if arguments.has(SharedOptions.json) {
            return printJSON(response)
        }
        let status = "HTTP/1.1 \(response.status) \(response.reason)"
        let head = [status] + response.fields.map { "\($0.name): \($0.value)" }
        if arguments.has(DeviceOptions.verbose) {
            // It was sent, so it can be written.
            let sent = (try? request.head()) ?? []
            for line in String(decoding: sent, as: UTF8.self).split(separator: "\r\n") {
                errors.write("> \(line)\n")
            }
            errors.write(head.map { "< \($0.printable)\n" }.joined())
        }
        if arguments.has(DeviceOptions.include) {
            output.write(head.map { "\($0)\r\n" }.joined() + "\r\n")
        }
        output.write(response.body)
        if let last = response.body.last, last != 0x0a { output.write("\n") }
    }
}
