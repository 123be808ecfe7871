internal import AppAttestDevice
internal import AppAttestWire
internal import GateCrypto
internal import Glibc

/// The demo's story: an honest device, and everything that someone with its traffic could try.
struct DemoScenario {
    private let upstream: DemoUpstream
    /// Alice at the gate, and at its host whose challenges expire at once.
    private let alice: GateClient
    private let aliceBriefly: GateClient
    private let mallory: GateClient
    /// Alice's device.
    private(set) var device: Device
    private var report: DemoReport
    private let log: DemoLog

    private static let purpose = "request"
    private static let target = "/v1/orders?express=1"
    private static let body = Array(#"{"item":"tea","count":2}"#.utf8)

    init(
        _ configuration: DemoConfiguration, device: Device, upstream: DemoUpstream,
        report: DemoReport
    ) {
        func client(_ host: String, _ account: String) -> GateClient {
            GateClient(
                .tcp("127.0.0.1", port: configuration.port),
                authority: "\(host):\(configuration.port)",
                fields: [
                    HTTPField(DemoConfiguration.accountField, account),
                    HTTPField("Content-Type", "application/json"),
                ])
        }
        self.device = device
        self.upstream = upstream
        self.report = report
        log = DemoLog(path: configuration.accessLogPath)
        alice = client(DemoConfiguration.host, "alice")
        aliceBriefly = client(DemoConfiguration.briefHost, "alice")
        mallory = client(DemoConfiguration.host, "mallory")
    }

    /// Runs everything. - Returns: What came of it.
    mutating func run() throws(CommandError) -> DemoReport {
        let brief = try aliceBriefly.challenge(
            prefix: DemoConfiguration.prefix, purpose: Self.purpose)
        let briefEnd = Now.milliseconds + DemoConfiguration.briefSeconds * 1000
        report.heading("the honest device")
        try enrol()
        let last = try requests()
        report.heading("attacks, one change off a good request")
        try replay(last)
        try changed("body changed", "body_mismatch") { request in
            request.body = Array(#"{"item":"tea","count":9}"#.utf8)
        }
        try changed("path changed", "target_mismatch") { request in
            request.target = "/v1/orders/42?express=1"
        }
        try changed("query changed", "target_mismatch") { request in
            request.target = "/v1/orders?express=0"
        }
        try staleCounter()
        try foreignKey()
        try unknownKey()
        try noProof()
        try expired(brief, end: briefEnd)
        report.heading("the honest device again")
        try requestAgain()
        return report
    }

    private mutating func enrol() throws(CommandError) {
        let challenge = try alice.challenge(
            prefix: DemoConfiguration.prefix, purpose: "attestation")
        let before = upstream.count
        let (_, response) = try alice.enrol(
            device, prefix: DemoConfiguration.prefix, challenge: challenge)
        let expected = DemoStep.Answer(status: 201, code: nil, reason: nil)
        note(
            .request, "attest the key and enrol it", expected, response, before,
            isForwarded: false)
    }

    /// Two good requests. - Returns: The second, for whoever wants to send it again.
    private mutating func requests() throws(CommandError) -> HTTPRequest {
        let first = sign(try challenge(alice), device: &device)
        let response = try sendGood("sign with a challenge asked for", first)
        guard let next = response.nextChallenge else {
            throw .notHeld("the answer to a verified request brought no challenge")
        }
        let second = sign(next, device: &device)
        _ = try sendGood("sign with the last answer's challenge", second)
        return second
    }

    private mutating func requestAgain() throws(CommandError) {
        _ = try sendGood("sign the next request", sign(try challenge(alice), device: &device))
    }

    private mutating func replay(_ request: HTTPRequest) throws(CommandError) {
        try attack(
            "replay of the same request", 401, "challenge_required", "challenge_spent", alice,
            request)
    }

    /// Signs one request and sends another.
    private mutating func changed(
        _ name: String, _ reason: String, _ change: (inout HTTPRequest) -> Void
    ) throws(CommandError) {
        var request = sign(try challenge(alice), device: &device)
        change(&request)
        try attack(name, 403, "rejected", reason, alice, request)
    }

    private mutating func staleCounter() throws(CommandError) {
        var old = device
        let request = sign(try challenge(alice), device: &old, counter: 1)
        try attack(
            "stale counter", 401, "challenge_required", "counter_not_greater", alice,
            request)
    }

    private mutating func foreignKey() throws(CommandError) {
        let request = sign(try challenge(mallory), device: &device, client: mallory)
        try attack(
            "another account's key", 401, "enrollment_required", "key_foreign", mallory, request)
    }

    private mutating func unknownKey() throws(CommandError) {
        var other = Device(
            root: device.root, appID: device.appID, isProduction: device.isProduction,
            shape: device.shape)
        let request = sign(try challenge(alice), device: &other)
        try attack(
            "unknown key", 401, "enrollment_required", "key_unknown", alice,
            request)
    }

    private mutating func noProof() throws(CommandError) {
        let request = alice.request("POST", Self.target, body: Self.body)
        try attack("no proof", 401, "proof_required", "proof_absent", alice, request)
    }

    private mutating func expired(_ challenge: Challenge, end: Int64) throws(CommandError) {
        // The gate's clock is this one, and the challenge was issued before its life was counted
        // here.
        while Now.milliseconds < end { usleep(10_000) }
        let request = sign(challenge, device: &device, client: aliceBriefly)
        try attack(
            "expired challenge", 401, "challenge_required", "challenge_expired",
            aliceBriefly, request)
    }
}

extension DemoScenario {
    private func challenge(_ client: GateClient) throws(CommandError) -> Challenge {
        try client.challenge(prefix: DemoConfiguration.prefix, purpose: Self.purpose)
    }

    /// The demo's order, signed.
    private func sign(
        _ challenge: Challenge, device: inout Device, client: GateClient? = nil,
        counter: UInt32? = nil
    ) -> HTTPRequest {
        Proof.sign(
            (client ?? alice).request("POST", Self.target, body: Self.body), by: &device,
            ProofStyle(), challenge: challenge, counter: counter)
    }

    /// Sends a request that must pass, and looks at what reached the service.
    private mutating func sendGood(
        _ name: String, _ request: HTTPRequest
    ) throws(CommandError) -> HTTPResponse {
        let before = upstream.count
        let response = try alice.send(request)
        note(
            .request, name, DemoStep.Answer(status: 200, code: nil, reason: nil), response, before,
            isForwarded: true, fault: fault(request))
        return response
    }

    private mutating func attack(
        _ name: String, _ status: Int, _ code: String, _ reason: String, _ client: GateClient,
        _ request: HTTPRequest
    ) throws(CommandError) {
        let before = upstream.count
        let response = try client.send(request)
        note(
            .attack, name, DemoStep.Answer(status: status, code: code, reason: reason), response,
            before, isForwarded: false)
    }

    private mutating func note(
        _ kind: DemoStep.Kind, _ name: String, _ expected: DemoStep.Answer,
        _ response: HTTPResponse, _ before: Int, isForwarded: Bool, fault: String? = nil
    ) {
        let reason = response.fields.value("X-Request-Id").flatMap { log.reason($0) }
        // A line without a reason is what a good request has; a line that never comes is a fault.
        let missing = reason == nil ? "the access log has no line of it" : nil
        let answer = DemoStep.Answer(
            status: response.status, code: response.code,
            reason: reason == "" ? nil : reason)
        report.add(
            DemoStep(
                kind: kind, name: name,
                expected: expected, answer: answer, isForwardingExpected: isForwarded,
                wasForwarded: upstream.count > before, fault: fault ?? missing))
    }

    /// What the service should have seen of `request` and did not; nil for nothing.
    private func fault(_ request: HTTPRequest) -> String? {
        guard let seen = upstream.last else { return "the service saw nothing" }
        guard seen.method == request.method, seen.target == request.target,
            seen.body == request.body
        else { return "the service saw another request" }
        let wanted = [
            ("App-Attest-Verdict", "verified"), ("App-Attest-Account", "alice"),
            ("App-Attest-Counter", "\(device.signCounter)"),
        ]
        for (name, value) in wanted where seen.fields.value(name) != value {
            return "the service saw \(name): \(seen.fields.value(name) ?? "(none)"), not \(value)"
        }
        let proof = seen.fields.first { field in
            DefaultFieldNames.proof.contains { $0.lowercased() == field.name.lowercased() }
        }
        return proof.map { "the service saw the proof field \($0.name)" }
    }
}
