import Foundation
import Testing
import attestgate

@Suite("Command line: the table")
struct TableTests {
    @Test("no command and no option stands there twice")
    func unique() {
        let names = CommandTable.commands.map(\.name)
        #expect(Set(names).count == names.count)
        for command in CommandTable.commands {
            let options = command.options.map(\.name)
            #expect(Set(options).count == options.count, "\(command.name)")
            let letters = command.options.compactMap(\.letter)
            #expect(Set(letters).count == letters.count, "\(command.name)")
        }
    }

    @Test("a word is a command or a group, never both")
    func groups() {
        for command in CommandTable.commands where command.words.count == 1 {
            let sharing = CommandTable.commands.filter { $0.words[0] == command.words[0] }
            #expect(sharing.count == 1, "\(command.name)")
        }
    }

    @Test("the commands of this version are there")
    func commands() {
        #expect(
            CommandTable.commands.map(\.name) == [
                "run", "check", "demo", "device new", "device enrol", "device request",
                "device attest", "device assert", "verify attestation", "verify assertion",
                "verify receipt", "inspect", "version", "completion",
            ])
    }

    @Test("every command that prints data has --json")
    func json() {
        for command in CommandTable.commands where !["run", "completion"].contains(command.name) {
            #expect(command.options.contains { $0.name == "json" }, "\(command.name)")
        }
    }

    @Test("--help of each command names its usage, its operands and all of its options")
    func help() {
        for command in CommandTable.commands {
            let run = Run(command.words + ["--help"])
            #expect(run.code == .done)
            #expect(run.output.hasPrefix("usage: attestgate \(command.name)"))
            #expect(run.output.contains(command.summary))
            for operand in command.operands {
                #expect(run.output.contains(operand.help.prefix(30)))
            }
            for option in command.options { #expect(run.output.contains(option.flag)) }
            for line in run.output.split(separator: "\n") { #expect(line.count <= 92, "\(line)") }
        }
    }

    @Test("--help alone lists every command")
    func list() {
        let run = Run("--help")
        #expect(run.code == .done)
        for command in CommandTable.commands { #expect(run.output.contains(command.summary)) }
    }

    @Test("the completion script is one that bash reads, and completes commands and options")
    func completion() throws {
        let scratch = Scratch()
        let script = scratch.write("completion", Run("completion").bytes)
        func complete(_ words: String...) throws -> [String] {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/bin/bash")
            let list = (["attestgate"] + words).map { "'\($0)'" }.joined(separator: " ")
            process.arguments = [
                "-c",
                "source '\(script)'; COMP_WORDS=(\(list)); COMP_CWORD=\(words.count); _attestgate; "
                    + "printf '%s\\n' \"${COMPREPLY[@]}\"",
            ]
            let pipe = Pipe()
            process.standardOutput = pipe
            try process.run()
            let data = pipe.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
            return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        #expect(try complete("ver") == ["verify", "version"])
        #expect(try complete("verify", "as") == ["assertion"])
        #expect(try complete("device", "new", "--sh") == ["--shape"])
        #expect(try complete("device", "new", "--shape", "mac") == ["macos27"])
        for command in CommandTable.commands {
            let words = command.words + ["--"]
            let known = try complete(words[0], words[1], words.count > 2 ? words[2] : "--")
            for option in command.options where command.words.count == 2 {
                #expect(known.contains(option.flag), "\(command.name) \(option.flag)")
            }
        }
    }

    @Test("version prints all five versions, in text and in JSON")
    func version() {
        #expect(Run("version").output.hasPrefix("attestgate 0."))
        #expect(Run("--version").output == Run("version").output)
        let json = Run("version", "--json").json
        #expect(json.keys.sorted() == ["commit", "nghttp2", "openssl", "swift", "version"])
        #expect((json["openssl"] as? String)?.hasPrefix("OpenSSL 3") == true)
        #expect((json["nghttp2"] as? String)?.hasPrefix("1.") == true)
    }

    @Test("what a file says cannot move the cursor")
    func printable() {
        #expect("a\u{1b}[2Jb\r\u{9b}\u{202e}é".printable == "a\\u{1b}[2Jb\\u{d}\\u{9b}\\u{202e}é")
    }
}
