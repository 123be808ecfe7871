import Testing

/// Words that say nothing, with what to write instead.
private let bannedVerbs = [
    "get": "a noun", "handle": "the verb of what is done", "process": "the verb of what is done",
    "validate": "parse or verify",
]
private let bannedNouns = [
    "Helper": "a name for what it does", "Manager": "the thing itself",
    "Util": "a name for what it does", "Utils": "a name for what it does",
]

/// Names of others that hold a banned word.
private let allowedNames: Set = [
    // systemd's own word for who starts services.
    "ServiceManager"
]

/// Declarations of `@unchecked Sendable`, each with why the compiler cannot see that it is safe.
private let uncheckedSendable: [String: String] = [
    "Sources/GateLock/Lock.swift": "the value is only reached under the mutex",
    "Sources/GateRuntime/EventLoop.swift": "a loop-bound box traps off its loop",
]

@Suite("Tidy: words")
struct WordTests {
    @Test("a declaration is not named for a banned word")
    func bannedNames() {
        let verb = /\bfunc\s+(get|handle|process|validate)(?:[A-Z(<]|\b)/
        let noun = /\b(?:struct|class|enum|protocol|actor|typealias)\s+\w*(Helper|Manager|Utils?)\b/
        var faults: [String] = []
        for file in Repository.swiftFiles {
            for (number, line) in file.code.enumerated()
            where !allowedNames.contains(where: line.contains) {
                let place = "\(file.path):\(number + 1)"
                if line.contains("func "), let match = line.firstMatch(of: verb) {
                    let instead = bannedVerbs[String(match.1)] ?? ""
                    faults.append("\(place): \"\(match.1)\"; write \(instead)")
                }
                let isSuspect = bannedNouns.keys.contains { line.contains($0) }
                if isSuspect, let match = line.firstMatch(of: noun) {
                    let instead = bannedNouns[String(match.1)] ?? ""
                    faults.append("\(place): \"\(match.1)\"; write \(instead)")
                }
            }
        }
        #expect(faults == [])
    }

    @Test("a note on work left says when it is due, and nothing else of the kind lands")
    func notesOnWorkLeft() {
        let later = "TO" + "DO"
        let banned = ["FIX" + "ME", "XX" + "X:", "HA" + "CK"]
        var faults: [String] = []
        for file in Repository.files where !file.path.hasPrefix("Tests/TidyTests/") {
            for (number, line) in file.lines.enumerated() {
                let place = "\(file.path):\(number + 1)"
                for word in banned where line.contains(word) { faults.append("\(place): \(word)") }
                guard line.contains(later) else { continue }
                let states = ["when ", "once ", "until ", "after "]
                    .contains { line.contains("\(later): \($0)") }
                if !states { faults.append("\(place): \(later) without \"when\"") }
            }
        }
        #expect(faults == [])
    }

    @Test("nothing in Sources can trap by force: no force unwrap, forced try or forced cast")
    func noForce() {
        let force = /\btry!|\bas!|[A-Za-z0-9_)\]}">]!(?!=)/
        let trap = /\b(?:fatalError|unsafeBitCast)\s*\(/
        var faults: [String] = []
        for file in Repository.sources {
            for (number, line) in file.code.enumerated() {
                let isSuspect =
                    line.contains("!") || line.contains("fatalError")
                    || line.contains("unsafeBitCast")
                guard isSuspect else { continue }
                if line.firstMatch(of: force) != nil || line.firstMatch(of: trap) != nil {
                    let text = line.drop { $0 == " " }
                    faults.append("\(file.path):\(number + 1): \(text)")
                }
            }
        }
        #expect(faults == [])
    }

    @Test("a swallowed error carries its reason on the line or above it")
    func swallowedErrors() {
        var faults: [String] = []
        for file in Repository.sources {
            let code = file.code
            for (number, line) in code.enumerated() where line.contains("try?") {
                let isExplained =
                    file.lines[number].contains("//")
                    || (number > 0 && file.lines[number - 1].contains("//"))
                if !isExplained { faults.append("\(file.path):\(number + 1)") }
            }
        }
        #expect(faults == [])
    }

    @Test("state is owned: no global variable, no unchecked Sendable outside the list")
    func ownedState() {
        var globals: [String] = []
        var unchecked: [Finding] = []
        let global = /^(?:private |fileprivate |package |public |internal )?var\b/
        for file in Repository.sources {
            for (number, line) in file.code.enumerated() {
                if line.firstMatch(of: global) != nil {
                    globals.append("\(file.path):\(number + 1)")
                }
                if line.contains("nonisolated(unsafe)"), line.contains("var ") {
                    globals.append("\(file.path):\(number + 1)")
                }
                if line.contains("@unchecked Sendable") {
                    unchecked.append(Finding(place: file.path, fault: "@unchecked Sendable"))
                }
            }
        }
        #expect(globals == [])
        #expect(differences(unchecked, exceptions: uncheckedSendable) == [])
    }

    @Test("tests wait for events, never for time")
    func noSleeps() {
        let pattern = /\b(?:u|nano)?sleep\(|Task\.sleep|\.sleep\(|Event\(\)\.wait\(/
        let faults = Repository.files.filter { $0.path.hasPrefix("Tests/") }
            .filter { !$0.path.hasPrefix("Tests/TidyTests/") && !$0.path.hasSuffix(".md") }
            // The one place that lets time pass, by name, for what must not happen meanwhile.
            .filter { $0.path != "Tests/EndToEnd/gate.py" }
            .flatMap { file in
                file.lines.enumerated()
                    .filter { $0.element.contains("sleep") || $0.element.contains("Event().wait") }
                    .filter { $0.element.firstMatch(of: pattern) != nil }
                    .map { "\(file.path):\($0.offset + 1)" }
            }
        #expect(faults == [])
    }

    @Test("no file names somebody's machine")
    func noPrivateMachines() {
        let pattern = try? Regex("(?:^|[\\s\"'`(=:])/(?:root|home|Users)/[A-Za-z]")
        var faults: [String] = []
        for file in Repository.files where !file.path.hasPrefix("Tests/TidyTests/") {
            for (number, line) in file.lines.enumerated() {
                let isSuspect = ["root/", "home/", "Users/"].contains { line.contains($0) }
                if isSuspect, let pattern, line.firstMatch(of: pattern) != nil {
                    faults.append("\(file.path):\(number + 1): \(line)")
                }
            }
        }
        #expect(pattern != nil)
        #expect(faults == [])
    }

    @Test("the map in Sources/README.md names every module")
    func mapIsComplete() {
        let map = Repository.files.first { $0.path == "Sources/README.md" }
        let text = map?.lines.joined(separator: "\n") ?? ""
        #expect(Repository.directories(in: "Sources").filter { !text.contains($0) } == [])
    }
}
