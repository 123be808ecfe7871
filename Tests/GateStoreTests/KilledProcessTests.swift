import Foundation
import GateBytes
import GateSimulation
import GateStore
import Testing

/// The directory a worker process is to write to: set only in processes these tests start.
private let workerDirectory = ProcessInfo.processInfo.environment["GATE_STORE_WORKER"]

@Suite("Store: a process killed under load") struct KilledProcessTests {
    /// Admits without end, and prints each counter once it is acknowledged, until it is killed.
    @Test("worker of the test beside it", .enabled(if: workerDirectory != nil))
    func worker() throws {
        let store = try Store.open(
            storage: FileStorage(directory: workerDirectory ?? ""),
            options: options(segmentBytes: 16384, writer: .thread))
        let enrolled = Reply<EnrolOutcome>()
        store.enrol(
            newKey(1), challenge: challenge(number: 0), keysPerAccount: 0, now: noon,
            reply: enrolled.call)
        _ = enrolled.wait()
        var counter = store.key(bytes32(1))?.signCounter ?? 0
        while true {
            let replies = Reply<AdmitOutcome>()
            for number in counter + 1...counter + 8 {
                store.admit(
                    challenge: challenge(number: Int(number)), keyID: bytes32(1), counter: number,
                    now: noon
                ) { outcome in
                    if case .admitted = outcome {
                        // One write each: a line is in the pipe whole or not at all.
                        FileHandle.standardError.write(Data("acknowledged \(number)\n".utf8))
                    }
                    replies.call(outcome)
                }
            }
            guard replies.waitFor({ $0.count == 8 }), store.isReady else { return }
            counter += 8
        }
    }

    @Test(
        "what a killed process acknowledged is there, and its replay is refused",
        .enabled(if: workerDirectory == nil), .timeLimit(.minutes(3)))
    func killed() throws {
        let directory = TemporaryDirectory()
        var acknowledged = 0
        for round in 0..<8 {
            let before = acknowledged
            acknowledged = max(
                acknowledged, try lifeOfWorker(directory.store, acknowledging: 40 + round * 7))
            #expect(acknowledged > before)
            let store = try Store.open(
                storage: FileStorage(directory: directory.store),
                options: options(segmentBytes: 16384))
            let counter = try #require(store.key(bytes32(1))?.signCounter)
            #expect(counter >= acknowledged)
            for number in 0...acknowledged {
                #expect(store.isSpent(challenge(number: number)))
            }
            #expect(
                store.admitNow(challenge(number: acknowledged), 1, counter + 1) == .challengeSpent)
            #expect(store.admitNow(challenge(0xbb), 1, counter) == .counterNotGreater)
            #expect(!store.isSpent(challenge(number: Int(counter) + 1)))
            store.close()
        }
    }

    /// Starts a worker, kills it once it has acknowledged so many admits, and gives the last
    /// counter it acknowledged.
    private func lifeOfWorker(_ path: String, acknowledging count: Int) throws -> Int {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        var arguments = Array(CommandLine.arguments.dropFirst())
        while let index = arguments.firstIndex(of: "--filter"), index + 1 < arguments.count {
            arguments.removeSubrange(index...index + 1)
        }
        process.arguments = arguments + ["--filter", "KilledProcessTests"]
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["GATE_STORE_WORKER": path]
        ) { $1 }
        let pipe = Pipe()
        process.standardError = pipe
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        var text = Data()
        var lines = 0
        while lines < count {
            let part = pipe.fileHandleForReading.availableData
            guard !part.isEmpty else { break }
            text.append(part)
            lines = text.split(separator: 10).count { $0.starts(with: Array("acknowledged ".utf8)) }
        }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        text.append(pipe.fileHandleForReading.readDataToEndOfFile())
        let counters = String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap {
            $0.hasPrefix("acknowledged ") ? Int($0.dropFirst(13)) : nil
        }
        if counters.isEmpty { print(String(decoding: text, as: UTF8.self)) }
        return counters.max() ?? 0
    }
}
