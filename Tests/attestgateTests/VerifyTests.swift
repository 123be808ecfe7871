import AppAttest
import AppAttestDevice
import Foundation
import GateBytes
import GateCrypto
import Testing
import attestgate

/// A device of its own in a scratch directory, made by the command.
private struct Bench {
    let scratch = Scratch()
    let keyID: String
    let publicKey: String
    static let appID = "TEAM123456.com.example.app"

    init(shape: String = "ios27") {
        let run = Run(
            "device", "new", "--app-id", Self.appID, "--shape", shape, "--state",
            scratch.file("state"), "--json")
        keyID = run.text("keyID")
        publicKey = run.text("publicKey")
    }

    var state: String { scratch.file("state") }

    func attest(_ arguments: String...) -> Run {
        Run(["device", "attest", "--state", state] + arguments)
    }

    func verify(_ object: String, _ arguments: String...) -> Run {
        Run(
            [
                "verify", "attestation", "-", "--app-id", Self.appID, "--key-id", keyID, "--root",
                state + ".root.pem",
            ] + arguments, input: Array(object.utf8))
    }
}

private let challenge = Base64.encode(Array("a challenge".utf8))

@Suite("Verify: attestations of the simulated device")
struct VerifyAttestationTests {
    @Test(
        "an attestation passes every step, and its key and system are printed",
        arguments: DeviceShape.allCases.map(\.rawValue))
    func good(_ shape: String) {
        let bench = Bench(shape: shape)
        let object = bench.attest("--challenge", challenge).output
        let run = bench.verify(object, "--challenge", challenge)
        #expect(run.code == .done)
        #expect(run.output.contains("\nverified\n"))
        #expect(run.output.contains(bench.keyID))
        #expect(run.output.contains(bench.publicKey))
        #expect(!run.output.contains("failed"))
        for step in AttestationStep.allCases { #expect(run.output.contains(step.rawValue)) }
    }

    @Test("JSON has the verdict, every step and the key")
    func json() throws {
        let bench = Bench()
        let object = bench.attest("--challenge", challenge).output
        let run = bench.verify(object, "--challenge", challenge, "--json")
        #expect(run.json["verified"] as? Bool == true)
        #expect(run.text("publicKey") == bench.publicKey)
        #expect(run.text("bundleVersion") == "1314")
        #expect(run.text("validationCategory") == "development")
        let steps = try #require(run.json["steps"] as? [[String: String]])
        #expect(steps.count == AttestationStep.allCases.count)
        #expect(steps.allSatisfy { $0["result"] == "passed" })
    }

    @Test("another challenge fails at the nonce alone, with 1")
    func nonce() {
        let bench = Bench()
        let object = bench.attest("--challenge", challenge).output
        let run = bench.verify(object, "--challenge", "AAAA")
        #expect(run.code == .notHeld)
        #expect(run.output.contains("failed  nonce_mismatch: "))
        #expect(run.output.components(separatedBy: "failed").count == 2)
        #expect(run.output.contains("\nnot verified\n"))
        #expect(!run.output.contains("hint"))
    }

    @Test("where the app hashed something else, the hint says what")
    func hints() {
        let bench = Bench()
        let raw = Array("a challenge".utf8)
        let unhashed = bench.attest("--client-data-hash", Base64.encode(raw)).output
        #expect(
            bench.verify(unhashed, "--challenge", challenge).output
                .contains("hint: the challenge itself, not hashed, would have matched"))
        let text = bench.attest("--challenge-text", challenge).output
        #expect(
            bench.verify(text, "--challenge", challenge).output
                .contains("hint: the hash of the challenge as base64 text would have matched"))
    }

    @Test("the environment is production unless told otherwise")
    func environment() {
        let bench = Bench()
        let object = bench.attest("--challenge", challenge).output
        let run = bench.verify(
            object, "--challenge", challenge, "--environment", "development", "--json")
        #expect(run.code == .notHeld)
        #expect(run.text("reason") == "aaguid_mismatch")
    }

    @Test("with several failures the reason is the first, and each has its row")
    func severalFailures() throws {
        let bench = Bench()
        let object = bench.attest("--challenge", challenge).output
        let run = bench.verify(
            object, "--challenge", "AAAA", "--environment", "development", "--json")
        #expect(run.text("reason") == "nonce_mismatch")
        let steps = try #require(run.json["steps"] as? [[String: String]])
        #expect(steps.compactMap { $0["reason"] } == ["nonce_mismatch", "aaguid_mismatch"])
    }

    @Test("without --root only Apple's is trusted")
    func root() {
        let bench = Bench()
        let object = bench.attest("--challenge", challenge).output
        let run = Run(
            [
                "verify", "attestation", "-", "--app-id", Bench.appID, "--key-id", bench.keyID,
                "--challenge", challenge, "--json",
            ], input: Array(object.utf8))
        #expect(run.code == .notHeld)
        #expect(run.text("reason") == "certificate_chain")
    }

    @Test("a root that is none is refused before anything is verified")
    func badRoot() {
        let bench = Bench()
        let path = bench.scratch.write("bad.pem", "nothing")
        let run = Run(
            "verify", "attestation", "-", "--app-id", Bench.appID, "--key-id", bench.keyID,
            "--challenge", challenge, "--root", path)
        #expect(run.code == .usage)
        #expect(run.errors.hasPrefix("attestgate: \(path): expected one certificate in PEM\n"))
    }

    @Test("a time outside the leaf's life fails the dates, and only then is --at recommended")
    func time() {
        let bench = Bench()
        let object = bench.attest("--challenge", challenge).output
        let run = bench.verify(
            object, "--challenge", challenge, "--at", "2019-01-01T00:00:00Z", "--json")
        #expect(run.text("reason") == "certificate_not_yet_valid")
        #expect(run.json["hint"] == nil)
    }

    @Test("arguments that are not what they should be are usage errors that say what is expected")
    func faults() {
        let bench = Bench()
        func errors(_ arguments: String...) -> String {
            let run = Run(["verify", "attestation", "-"] + arguments)
            #expect(run.code == .usage)
            return run.errors.split(separator: "\n").first.map(String.init) ?? ""
        }
        let app = ["--app-id", Bench.appID]
        #expect(
            Run(["verify", "attestation", "-", "--key-id", "AAAA", "--challenge", "AAAA"] + app)
                .errors.hasPrefix(
                    "attestgate: --key-id: expected base64 of 32 bytes, got \"AAAA\"\n"))
        #expect(
            errors("--key-id", bench.keyID, "--challenge", "A", "--app-id", "a.b")
                == "attestgate: --challenge: expected base64, got \"A\"")
        #expect(
            errors("--key-id", bench.keyID, "--challenge", "AAAA", "--app-id", "nodot")
                == "attestgate: --app-id: expected PREFIX.bundle.identifier, got \"nodot\"")
        #expect(
            errors(
                "--key-id", bench.keyID, "--challenge", "AAAA", "--app-id", "a.b", "--at",
                "soon")
                == "attestgate: --at: expected a time such as 2026-10-09T07:25:51Z, got \"soon\""
        )
    }

    @Test("an object cut off anywhere, or empty, is judged and never trusted")
    func cut() throws {
        let bench = Bench()
        let object = try #require(
            Base64.decode(
                bench.attest("--challenge", challenge).output.trimmingCharacters(
                    in: .whitespacesAndNewlines)))
        for count in stride(from: 0, to: object.count, by: 97) {
            let run = Run(
                [
                    "verify", "attestation", "-", "--app-id", Bench.appID, "--key-id", bench.keyID,
                    "--challenge", challenge, "--root", bench.state + ".root.pem", "--json",
                ],
                input: Array(object[..<count]))
            #expect(run.code == .notHeld)
            #expect(run.text("reason") == "attestation_malformed")
        }
    }
}

@Suite("Verify: assertions of the simulated device")
struct VerifyAssertionTests {
    private func verify(
        _ bench: Bench, _ object: String, _ arguments: String..., appID: String = Bench.appID
    ) -> Run {
        Run(
            [
                "verify", "assertion", "-", "--app-id", appID, "--public-key",
                bench.publicKey, "--json",
            ] + arguments, input: Array(object.utf8))
    }

    @Test("an assertion passes, and tells its counter")
    func good() {
        let bench = Bench()
        let object = Run("device", "assert", "--state", bench.state, "--client-data", "AAAA").output
        let run = verify(bench, object, "--client-data", "AAAA")
        #expect(run.code == .done)
        #expect(run.json["signCounter"] as? Int == 1)
        #expect(run.text("bundleVersion") == "1314")
    }

    @Test("each failure has its reason")
    func reasons() {
        let bench = Bench()
        let object = Run("device", "assert", "--state", bench.state, "--client-data", "AAAA").output
        #expect(
            verify(bench, object, "--client-data", "AAAB").text("reason") == "signature_invalid")
        #expect(
            verify(bench, object, "--client-data", "AAAA", "--previous-counter", "1")
                .text("reason") == "counter_not_greater")
        #expect(
            verify(bench, object, "--client-data", "AAAA", appID: "a.b").text("reason")
                == "rp_id_mismatch")
        #expect(verify(bench, "", "--client-data", "AAAA").text("reason") == "assertion_malformed")
        #expect(verify(bench, object, "--client-data", "AAAB").code == .notHeld)
    }

    @Test("where the app signed something else, the hint says what")
    func hints() {
        let bench = Bench()
        let data = Array("client data".utf8)
        func object(_ hash: [UInt8]) -> String {
            Run(
                "device", "assert", "--state", bench.state, "--client-data-hash",
                Base64.encode(hash)
            ).output
        }
        func hint(_ hash: [UInt8]) -> String {
            verify(bench, object(hash), "--client-data", Base64.encode(data)).text("hint")
        }
        #expect(hint(data) == "the client data itself, not hashed, would have matched")
        #expect(
            hint(SHA256.hash(SHA256.hash(data).array).array)
                == "the client data hash hashed once more would have matched")
        #expect(
            hint(SHA256.hash(Array(Base64.encode(data).utf8)).array)
                == "the hash of the client data as base64 text would have matched")
        #expect(hint(SHA256.hash(data).array) == "")
    }
}

@Suite("Verify: receipts of the simulated device")
struct VerifyReceiptTests {
    private func receipt(_ bench: Bench) -> String {
        let object = bench.attest("--challenge", challenge).output
        return bench.verify(object, "--challenge", challenge, "--json").text("receipt")
    }

    private func verify(
        _ bench: Bench, _ receipt: String, _ arguments: String..., appID: String = Bench.appID
    ) -> Run {
        Run(
            [
                "verify", "receipt", "-", "--app-id", appID, "--root", bench.state + ".root.pem",
            ] + arguments, input: Array(receipt.utf8))
    }

    @Test("a receipt that just arrived passes, and its fields are printed")
    func good() {
        let bench = Bench()
        let run = verify(
            bench, receipt(bench), "--public-key", bench.publicKey, "--environment", "production")
        #expect(run.code == .done)
        #expect(run.output.contains("\nverified\n"))
        #expect(!run.output.contains("failed"))
        for step in ReceiptStep.allCases { #expect(run.output.contains(step.rawValue)) }
        #expect(run.output.contains(bench.publicKey))
        let json = verify(bench, receipt(bench), "--json")
        #expect(json.text("kind") == "ATTEST")
        #expect(json.text("appID") == Bench.appID)
        #expect(json.text("creationTime").hasSuffix("Z"))
    }

    @Test("each failure is named by its step, under the one reason")
    func failures() throws {
        let bench = Bench()
        let other = Bench()
        let receipt = receipt(bench)
        func failed(_ run: Run) -> [String] {
            #expect(run.code == .notHeld)
            #expect(run.text("reason") == "receipt_invalid")
            let steps = run.json["steps"] as? [[String: String]] ?? []
            return steps.filter { $0["result"] == "failed" }.compactMap { $0["step"] }
        }
        #expect(failed(verify(bench, receipt, "--json", appID: "a.b")) == ["app_id"])
        #expect(
            failed(verify(bench, receipt, "--json", "--public-key", other.publicKey))
                == ["public_key"])
        #expect(
            failed(verify(bench, receipt, "--json", "--environment", "development"))
                == ["environment"])
        #expect(failed(verify(other, receipt, "--json")) == ["chain"])
        #expect(
            failed(verify(bench, receipt, "--json", "--at", "2031-01-01T00:00:00Z"))
                == ["freshness"])
        #expect(failed(verify(bench, "", "--json")) == ["structure"])
        let apple = Run(
            ["verify", "receipt", "-", "--app-id", Bench.appID, "--json"],
            input: Array(receipt.utf8))
        #expect(failed(apple) == ["chain"])
    }
}

@Suite("Verify: real objects", .enabled(if: SharedVectors.isPresent))
struct RealObjectTests {
    @Test("every real attestation verifies at its time, and not today")
    func attestations() throws {
        let vectors = SharedVectors.all("attestation")
        #expect(vectors.count >= 25)
        for (name, members) in vectors {
            func text(_ key: String) -> String { members[key] as? String ?? "" }
            let object = Array(text("attestation").utf8)
            let arguments = [
                "verify", "attestation", "-", "--app-id", text("appId"), "--key-id", text("keyId"),
                "--client-data-hash", text("clientDataHash"), "--environment", text("environment"),
                "--json",
            ]
            let run = Run(arguments + ["--at", text("validAt")], input: object)
            #expect(run.code == .done, "\(name): \(run.output)")
            let today = Run(arguments + ["--at", "2031-01-01T00:00:00Z"], input: object)
            #expect(today.text("reason") == "certificate_expired", "\(name)")
            let inspection = Run(["inspect", "-", "--json"], input: object)
            #expect(inspection.text("kind") == "attestation", "\(name)")
        }
    }

    @Test("every real receipt verifies at its time, and today the hint says what is missing")
    func receipts() throws {
        let vectors = SharedVectors.all("receipt")
        #expect(vectors.count >= 11)
        for (name, members) in vectors {
            func text(_ key: String) -> String { members[key] as? String ?? "" }
            let object = Array(text("receipt").utf8)
            let arguments = [
                "verify", "receipt", "-", "--app-id", text("appId"), "--public-key",
                text("publicKeyX963"), "--environment", "development", "--json",
            ]
            let run = Run(arguments + ["--at", text("validAt")], input: object)
            #expect(run.code == .done, "\(name): \(run.output) \(run.errors)")
            #expect(run.json["riskMetric"] as? Int == Int(text("riskMetric")), "\(name)")
            let today = Run(arguments, input: object)
            #expect(today.text("reason") == "receipt_invalid", "\(name)")
            #expect(today.text("hint") == "give the time the receipt arrived with --at")
            let inspection = Run(["inspect", "-"], input: object)
            #expect(inspection.output.hasPrefix("receipt, "), "\(name)")
            #expect(inspection.output.contains(text("notBefore")), "\(name)")
        }
    }

    @Test("every real assertion verifies, and not again")
    func assertions() {
        let vectors = SharedVectors.all("assertion")
        #expect(vectors.count >= 15)
        for (name, members) in vectors {
            func text(_ key: String) -> String { members[key] as? String ?? "" }
            let object = Array(text("assertion").utf8)
            let arguments = [
                "verify", "assertion", "-", "--app-id", text("appId"), "--public-key",
                text("publicKeyX963"), "--client-data-hash", text("clientDataHash"), "--json",
            ]
            let run = Run(arguments, input: object)
            #expect(run.code == .done, "\(name): \(run.output) \(run.errors)")
            let counter = run.json["signCounter"] as? Int ?? 0
            let again = Run(arguments + ["--previous-counter", "\(counter)"], input: object)
            #expect(again.text("reason") == "counter_not_greater", "\(name)")
        }
    }
}
