import Foundation
import GateBytes
import Testing
import attestgate

@Suite("Input: instants")
struct RFC3339Tests {
    @Test(
        "an instant is read to the second",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-10-09T07:25:51Z", 1_791_530_751),
            ("2000-02-29T23:59:59z", 951_868_799), ("2026-10-09 09:25:51+02:00", 1_791_530_751),
            ("2026-10-08t23:55:51.999-07:30", 1_791_530_751), ("1969-12-31T23:59:59Z", -1),
            ("0000-01-01T00:00:00Z", -62_167_219_200), ("9999-12-31T23:59:59Z", 253_402_300_799),
            ("2016-12-31T23:59:60Z", 1_483_228_800), ("2100-03-01T00:00:00Z", 4_107_542_400),
        ])
    func good(_ text: String, _ seconds: Int64) {
        #expect(RFC3339.seconds(text) == seconds)
    }

    @Test("every day of 400 years is the day after the one before it")
    func days() {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: 0) ?? .current
        var expected = RFC3339.seconds("1900-01-01T00:00:00Z") ?? 0
        #expect(expected == -2_208_988_800)
        for year in 1900..<2300 {
            for month in 1...12 {
                for day in 1...31 {
                    let text = String(format: "%04d-%02d-%02dT00:00:00Z", year, month, day)
                    guard let seconds = RFC3339.seconds(text) else { continue }
                    #expect(seconds == expected)
                    expected = seconds + 86_400
                }
            }
        }
        #expect(expected == RFC3339.seconds("2300-01-01T00:00:00Z"))
    }

    @Test(
        "anything else is not an instant",
        arguments: [
            "", "2026", "2026-10-09", "2026-10-09T07:25:51", "2026-10-09T07:25Z",
            "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z", "2026-04-00T00:00:00Z",
            "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+01:60", "2026-01-01T00:00:00Z ", " 2026-01-01T00:00:00Z",
            "26-01-01T00:00:00Z", "2026-1-01T00:00:00Z", "२०२६-01-01T00:00:00Z",
            "+026-01-01T00:00:00Z",
        ])
    func bad(_ text: String) {
        #expect(RFC3339.seconds(text) == nil)
    }

    @Test("every beginning of an instant is none")
    func cut() {
        let text = "2026-10-09T07:25:51.25+02:00"
        for count in 0..<text.count { #expect(RFC3339.seconds(String(text.prefix(count))) == nil) }
    }
}

@Suite("Input: objects in files")
struct InputFileTests {
    private let object: [UInt8] = [0xa2, 0x00, 0xff, 0x3e, 0x0a]

    @Test("raw bytes are taken as they are")
    func raw() {
        #expect(InputFile.object(object) == object)
        #expect(InputFile.object([]) == [])
    }

    @Test("base64 text is decoded, in either alphabet, with or without padding, wrapped or not")
    func text() {
        for text in ["ogD/Pgo=", "ogD/Pgo", "ogD_Pgo", "ogD/Pgo=\n", " og D/\r\nPg\to=\n\n"] {
            #expect(InputFile.object(Array(text.utf8)) == object, "\(text)")
        }
    }

    @Test("text that is not base64 stays what it is")
    func other() {
        let text = Array("not base64!".utf8)
        #expect(InputFile.object(text) == text)
    }

    @Test("a file and standard input are read alike")
    func sources() {
        let scratch = Scratch()
        let bytes = Array(repeating: UInt8(0xa0), count: 40)
        let path = scratch.write("object", bytes)
        let fromFile = Run("inspect", path)
        #expect(fromFile.code == .done)
        #expect(Run(["inspect", "-"], input: bytes).output == fromFile.output)
        #expect(
            Run(["inspect", "-"], input: Array(Base64.encode(bytes).utf8)).output == fromFile.output
        )
    }

    @Test("a file that is not there ends with 3 and says so")
    func missing() {
        let run = Run("inspect", "/nonexistent/object")
        #expect(run.code == .environment)
        #expect(run.errors == "attestgate: /nonexistent/object: open: No such file or directory\n")
    }

    @Test("a file over 1 MiB is not read to its end")
    func tooLarge() {
        let run = Run(["inspect", "-"], input: Array(repeating: 0, count: (1 << 20) + 1))
        #expect(run.code == .environment)
        #expect(run.errors == "attestgate: standard input: expected at most 1048576 bytes\n")
    }
}
