/// Completion for bash, made of the table. The script is static: it never runs the program.
package enum Completion {
    /// The script; to be read by `source`, or installed as
    /// `/usr/share/bash-completion/completions/attestgate`.
    package static func bash(_ table: [CommandSpecification]) -> String {
        var firsts: [String] = []
        for command in table where !firsts.contains(command.words[0]) {
            firsts.append(command.words[0])
        }
        var text = """
            # bash completion for attestgate
            _attestgate() {
                local word="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
                local command="${COMP_WORDS[1]}" words="" files=""
                if [ "$COMP_CWORD" -eq 1 ]; then
                    words="\((firsts + ["help"]).joined(separator: " ")) --help --version"
                else
                    case "$command" in

            """
        for first in firsts {
            let commands = table.filter { $0.words[0] == first }
            text += "        \(first))\n"
            if commands[0].words.count == 1 {
                text += arms(commands[0], indent: "            ")
            } else {
                let seconds = commands.map { $0.words[1] }.joined(separator: " ")
                text +=
                    "            if [ \"$COMP_CWORD\" -eq 2 ]; then words=\"\(seconds) --help\"; "
                text += "else case \"${COMP_WORDS[2]}\" in\n"
                for command in commands {
                    text += "            \(command.words[1]))\n"
                    text += arms(command, indent: "                ")
                    text += "                ;;\n"
                }
                text += "            esac; fi\n"
            }
            text += "            ;;\n"
        }
        text += """
                    esac
                fi
                if [ -n "$files" ]; then
                    COMPREPLY=($(compgen -f -- "$word"))
                else
                    COMPREPLY=($(compgen -W "$words" -- "$word"))
                    [ -z "${word##-*}" ] || COMPREPLY+=($(compgen -f -- "$word"))
                fi
            }
            complete -o filenames -F _attestgate attestgate

            """
        return text
    }

    /// Sets `words`, or `files`, by the word before the one to complete.
    private static func arms(_ command: CommandSpecification, indent: String) -> String {
        var text = indent + "words=\"\(command.options.map(\.flag).joined(separator: " "))\"\n"
        var cases = ""
        for option in command.options {
            guard let value = option.value else { continue }
            let names = option.letter.map { "-\($0)|\(option.flag)" } ?? option.flag
            if !option.choices.isEmpty {
                cases += indent + "\(names)) words=\"\(option.choices.joined(separator: " "))\";;\n"
            } else if value == "FILE" {
                cases += indent + "\(names)) files=1;;\n"
            }
        }
        if !cases.isEmpty {
            text += indent + "case \"$previous\" in\n" + cases + indent + "esac\n"
        }
        return text
    }
}
