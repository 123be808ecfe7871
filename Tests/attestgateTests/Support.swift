import Foundation
import attestgate

/// The program run in this process: what it printed and how it ended.
struct Run {
    let code: ExitCode
    let output: String
    let errors: String
    let bytes: [UInt8]

    /// Runs `arguments` with standard input from `input`.
    init(_ arguments: [String], input: [UInt8] = []) {
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("attestgate-input-\(UUID().uuidString)")
        _ = FileManager.default.createFile(atPath: file.path, contents: Data(input))
        let descriptor = open(file.path, O_RDONLY)
        defer {
            close(descriptor)
            unlink(file.path)
        }
        let output = TextOutput()
        let errors = TextOutput()
        let console = Console(
            output: output, errors: errors, input: descriptor, isColoured: false)
        code = CommandLineTool.run(arguments, console: console)
        self.output = output.text
        self.errors = errors.text
        bytes = output.bytes
    }

    init(_ arguments: String...) {
        self.init(arguments)
    }

    /// The output as a JSON object.
    var json: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [String: Any] ?? [:]
    }

    func text(_ name: String) -> String { json[name] as? String ?? "" }
}

/// A directory for one test.
final class Scratch {
    let path: String

    init() {
        path =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("attestgate-tests-\(UUID().uuidString)").path
        try? FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// A path in it.
    func file(_ name: String) -> String { path + "/" + name }

    /// Writes a file in it. - Returns: Its path.
    func write(_ name: String, _ bytes: [UInt8]) -> String {
        _ = FileManager.default.createFile(atPath: file(name), contents: Data(bytes))
        return file(name)
    }

    func write(_ name: String, _ text: String) -> String { write(name, Array(text.utf8)) }
}

/// Real objects, beside the package; absent elsewhere.
enum SharedVectors {
    static let directory: String = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { url.deleteLastPathComponent() }
        for candidate in [url, url.deletingLastPathComponent()] {
            let path = candidate.appendingPathComponent("shared/vectors").path
            if FileManager.default.fileExists(atPath: path) { return path }
        }
        return ""
    }()

    static var isPresent: Bool { !directory.isEmpty }

    /// Every vector of a kind, `attestation` or `assertion`.
    static func all(_ kind: String) -> [(name: String, members: [String: Any])] {
        let folder = directory + "/" + kind
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(".json") }.sorted().compactMap { name in
            let data = FileManager.default.contents(atPath: folder + "/" + name) ?? Data()
            let object = try? JSONSerialization.jsonObject(with: data)
            return (object as? [String: Any]).map { (name, $0) }
        }
    }
}

/// A server that gives one prepared answer a connection, in order, and keeps what it was asked.
final class ScriptedServer: @unchecked Sendable {
    let port: UInt16
    private let listener: Int32
    private let lock = NSLock()
    private var kept: [String] = []

    /// Starts; each answer is written in the pieces it has.
    init(_ answers: [[String]]) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                _ = bind(listener, raw, length)
                _ = getsockname(listener, raw, &length)
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        listen(listener, 8)
        let thread = Thread { self.serve(answers) }
        thread.start()
    }

    convenience init(_ answers: String...) {
        self.init(answers.map { [$0] })
    }

    /// The requests so far, each whole.
    var requests: [String] { lock.withLock { kept } }

    /// The request at `index`; empty when there are fewer.
    func request(_ index: Int) -> String {
        let requests = requests
        return index < requests.count ? requests[index] : ""
    }

    private func serve(_ answers: [[String]]) {
        for pieces in answers {
            let connection = accept(listener, nil, nil)
            var one: Int32 = 1
            setsockopt(
                connection, Int32(IPPROTO_TCP), TCP_NODELAY, &one,
                socklen_t(MemoryLayout<Int32>.size))
            let request = ScriptedServer.read(connection)
            lock.withLock { kept.append(request) }
            for piece in pieces {
                _ = piece.withCString { send(connection, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
            }
            close(connection)
        }
        close(listener)
    }

    private static func read(_ connection: Int32) -> String {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65536)
        var countWanted: Int?
        while countWanted.map({ bytes.count < $0 }) ?? true {
            let count = recv(connection, &piece, piece.count, 0)
            guard count > 0 else { break }
            bytes += piece[..<count]
            guard countWanted == nil else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            guard let end = text.range(of: "\r\n\r\n") else { continue }
            let head = text[..<end.upperBound].lowercased()
            let length = head.firstMatch(of: /content-length: (\d+)/).flatMap { Int($0.1) } ?? 0
            countWanted = head.utf8.count + length
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
