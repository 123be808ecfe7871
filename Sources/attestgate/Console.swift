internal import Glibc

/// Where a command prints: a descriptor, or memory for tests and for what is put together first.
///
/// Writes whole pieces at once and keeps nothing back, so that order holds between the two streams.
package final class TextOutput {
    private let descriptor: Int32?
    /// What was written to memory.
    package private(set) var bytes: [UInt8] = []

    /// Output to memory.
    package init() {
        descriptor = nil
    }

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// What was written to memory, as text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Writes `text`.
    package func write(_ text: String) {
        write(Array(text.utf8))
    }

    /// Writes `bytes`.
    package func write(_ bytes: [UInt8]) {
        guard let descriptor else {
            self.bytes += bytes
            return
        }
        // Whoever read it may have gone; there is no one left to tell.
        _ = FileAccess.writeAll(bytes, descriptor)
    }
}

/// What a command has in place of a terminal: two outputs, standard input, and whether to use
/// colour.
package struct Console {
    /// How a piece of text is shown.
    package enum Style: String, Sendable {
        case bad = "31"
        case faint = "2"
        case good = "32"
        case heading = "1"
    }

    /// Standard output: what was asked for.
    package let output: TextOutput
    /// Standard error: what went wrong, and progress.
    package let errors: TextOutput
    /// Standard input, for operands that are `-`.
    let input: Int32
    private let isColoured: Bool

    /// A console over `output` and `errors`.
    package init(output: TextOutput, errors: TextOutput, input: Int32, isColoured: Bool) {
        self.output = output
        self.errors = errors
        self.input = input
        self.isColoured = isColoured
    }

    /// The process's own; in colour on a terminal, unless `NO_COLOR` is set to anything.
    static var standard: Console {
        let wish = unsafe getenv("NO_COLOR").map { unsafe String(cString: $0) } ?? ""
        return Console(
            output: TextOutput(descriptor: STDOUT_FILENO),
            errors: TextOutput(descriptor: STDERR_FILENO), input: STDIN_FILENO,
            isColoured: wish.isEmpty && isatty(STDOUT_FILENO) == 1)
    }

    /// Prints `line` and a line feed on standard output.
    package func print(_ line: String = "") {
        output.write(line + "\n")
    }

    /// Prints `attestgate: text` on standard error.
    package func report(_ text: String) {
        errors.write("attestgate: \(text)\n")
    }

    /// `text` in `style` where there is colour.
    package func styled(_ text: String, _ style: Style) -> String {
        isColoured ? "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m" : text
    }
}

extension String {
    /// The text with every control character as `\u{…}`: what a file or a peer says must not move
    /// the cursor of whoever reads it.
    package var printable: String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar.value {
            case 0..<0x20, 0x7f..<0xa0, 0x2028, 0x2029, 0x202a...0x202e, 0x2066...0x2069:
                text += "\\u{\(String(scalar.value, radix: 16))}"
            default:
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
