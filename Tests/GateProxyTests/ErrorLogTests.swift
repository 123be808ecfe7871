import Foundation
import GateConfig
import GateProxy
import GateRuntime
import Testing

@Suite("The error log: bounded, whatever clients bring about")
struct ErrorLogTests {
    private let clock = ManualClock()
    private let path = NSTemporaryDirectory() + "attestgate-errors-\(UUID().uuidString)"

    /// The lines that `write` leaves behind.
    private func lines(_ write: (ErrorLog) -> Void) throws -> [String] {
        defer { try? FileManager.default.removeItem(atPath: path) }
        let writer = try LineWriter.file(path) { _ in }
        write(ErrorLog(level: .info, writer: writer, hasPriorities: true, clock: clock))
        writer.flush()
        let text = try String(contentsOfFile: path, encoding: .utf8)
        return text.split(separator: "\n").map(String.init)
    }

    @Test("a message is written once a second; how often it came is said with its own priority")
    func repeated() throws {
        let written = try lines { log in
            for _ in 0..<5 { log.write(.error, "disk") }
            log.write(.debug, "not kept")
            clock.advance(.seconds(1))
            log.write(.info, "on")
        }
        #expect(written == ["<3>disk", "<3>disk (4 times more)", "<6>on"])
    }

    @Test("so many different messages are written in a second; the others are counted")
    func different() throws {
        let written = try lines { log in
            for number in 0..<(ErrorLog.messagesMax + 7) { log.write(.warn, "client \(number)") }
            clock.advance(.seconds(1))
            log.write(.info, "on")
        }
        #expect(written.count == ErrorLog.messagesMax + 2)
        #expect(written.suffix(2) == ["<4>7 other messages left out", "<6>on"])
    }
}
