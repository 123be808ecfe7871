import Testing
import attestgate

private let file = OptionSpecification("file", letter: "f", value: "FILE", help: "a file")
private let loud = OptionSpecification("loud", letter: "l", help: "a switch")
private let name = OptionSpecification(
    "name", value: "NAME", isRepeatable: true, help: "names")
private let kind = OptionSpecification(
    "kind", value: "KIND", choices: ["open", "closed"], help: "a kind")
private let left = OptionSpecification("left", value: "N", help: "one way")
private let right = OptionSpecification("right", value: "N", help: "the other")

private let table = [
    CommandSpecification(
        "serve", summary: "serve", operands: [OperandSpecification("PLACE", help: "where")],
        optional: [file, loud, name, kind]
    ) { (_, _) throws(CommandError) in .done },
    CommandSpecification(
        "look", "closely", summary: "look", required: [file], exactlyOneOf: [[left, right]]
    ) { (_, _) throws(CommandError) in .done },
    CommandSpecification("look", "away", summary: "do not") { (_, _) throws(CommandError) in .done
    },
]

private func parse(_ arguments: String...) throws -> ParsedArguments {
    guard case .command(_, let parsed) = try CommandLineParser(table).parse(arguments) else {
        throw CommandError.notHeld("no command")
    }
    return parsed
}

private func fault(_ arguments: String...) -> String {
    do {
        _ = try CommandLineParser(table).parse(arguments)
        return "no fault"
    } catch {
        return error.description.split(separator: "\n").first.map(String.init) ?? ""
    }
}

@Suite("Command line: what is taken")
struct ParserTests {
    @Test("an option's value may be the next argument, or follow = or the letter")
    func valueForms() throws {
        #expect(try parse("serve", "x", "--file", "a")[file] == "a")
        #expect(try parse("serve", "--file=a=b", "x")[file] == "a=b")
        #expect(try parse("serve", "-f", "a", "x")[file] == "a")
        #expect(try parse("serve", "-fa", "x")[file] == "a")
        #expect(try parse("serve", "x", "--file=")[file] == "")
    }

    @Test("a switch is there or not")
    func switches() throws {
        #expect(try parse("serve", "x", "-l").has(loud))
        #expect(try parse("serve", "x", "--loud").has(loud))
        #expect(try !parse("serve", "x").has(loud))
    }

    @Test("a repeatable option keeps every value in order")
    func repeatable() throws {
        #expect(try parse("serve", "x", "--name", "a", "--name=b").all(name) == ["a", "b"])
    }

    @Test("a lone dash is an operand, and -- ends the options")
    func dashes() throws {
        #expect(try parse("serve", "-").operands == ["-"])
        #expect(try parse("serve", "--loud", "--", "--file").operands == ["--file"])
    }

    @Test("a value may begin with one dash, as base64url can")
    func dashedValue() throws {
        #expect(try parse("serve", "x", "--file", "-Abc")[file] == "-Abc")
    }

    @Test("commands of two words are found, and each knows its options")
    func twoWords() throws {
        let parsed = try parse("look", "closely", "--file", "a", "--left", "1")
        #expect(parsed.command == "look closely")
        #expect(parsed[left] == "1")
    }

    @Test("help is given for all commands, for a group and for one")
    func help() throws {
        let parser = CommandLineParser(table)
        for (arguments, words) in [
            (["--help"], []), (["-h"], []), (["help"], []), (["look", "--help"], ["look"]),
            (["look", "away", "--help"], ["look", "away"]), (["help", "look"], ["look"]),
            (["serve", "-h"], ["serve"]), (["serve", "x", "y", "--help"], ["serve"]),
        ] {
            guard case .help(let found) = try parser.parse(arguments) else {
                Issue.record("\(arguments) is not help")
                continue
            }
            #expect(found == words)
        }
    }
}

@Suite("Command line: what is refused")
struct ParserFaultTests {
    @Test("an unknown command is named, with the nearest one")
    func unknownCommand() {
        #expect(fault("serv") == "unknown command \"serv\"; did you mean \"serve\"?")
        #expect(fault("sevre") == "unknown command \"sevre\"; did you mean \"serve\"?")
        #expect(
            fault("look", "awya")
                == "unknown command \"awya\" after \"look\"; did you mean \"away\"?")
        #expect(fault("quux") == "unknown command \"quux\"")
        #expect(fault("help", "quux") == "unknown command \"quux\"")
    }

    @Test("a group alone says what may follow")
    func groupAlone() {
        #expect(fault("look") == "expected one of closely, away after \"look\"")
    }

    @Test("an unknown option is named, with the nearest one of its command")
    func unknownOption() {
        #expect(
            fault("serve", "x", "--flie", "a")
                == "unknown option \"--flie\"; did you mean \"--file\"?")
        #expect(fault("serve", "x", "-z") == "unknown option \"-z\"")
        #expect(fault("look", "away", "--file", "a") == "unknown option \"--file\"")
    }

    @Test("a missing value is told, also where another option follows")
    func missingValue() {
        #expect(fault("serve", "x", "--file") == "--file needs a value: --file FILE")
        #expect(fault("serve", "--file", "--loud", "x") == "--file needs a value: --file FILE")
    }

    @Test("a switch takes no value")
    func switchValue() {
        #expect(fault("serve", "x", "--loud=yes") == "--loud takes no value")
        #expect(fault("serve", "x", "-lx") == "--loud takes no value")
    }

    @Test("an option is given once unless it may be repeated")
    func twice() {
        #expect(fault("serve", "x", "-f", "a", "--file", "b") == "--file given twice")
    }

    @Test("a value outside its choices is told with all of them")
    func choices() {
        #expect(
            fault("serve", "x", "--kind", "opne")
                == "--kind: unknown value \"opne\"; did you mean \"open\"?; one of open, closed")
    }

    @Test("operands are neither missing nor too many")
    func operands() {
        #expect(fault("serve") == "PLACE is missing")
        #expect(fault("serve", "x", "y") == "unexpected argument \"y\"")
    }

    @Test("required options are there, and of a set exactly one")
    func required() {
        #expect(fault("look", "closely", "--left", "1") == "--file FILE is missing")
        #expect(fault("look", "closely", "-f", "a") == "--left N or --right N is missing")
        #expect(
            fault("look", "closely", "-f", "a", "--left", "1", "--right", "2")
                == "--left and --right exclude each other; give one")
    }

    @Test("a usage error ends with 2 and says where help is")
    func exitCode() {
        let run = Run("verify", "attestation")
        #expect(run.code == .usage)
        #expect(run.output == "")
        #expect(
            run.errors == """
                attestgate: FILE is missing
                see attestgate verify attestation --help

                """)
        #expect(Run().code == .usage)
    }
}
