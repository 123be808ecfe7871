internal import GateBytes
internal import GateHTTP

/// A small HTTP/1.1 client for the commands: one request, one connection, the whole answer.
///
/// It reads while it sends, so that an early refusal is seen although the rest of a body is never
/// taken. Answers go through the same strict decoder as a gate's upstream.
package struct HTTPClient {
    private let endpoint: Endpoint
    private let milliseconds: Int32

    /// The most bytes of an answer's body.
    private static let bodyBytesMax = 64 << 20

    /// A client that connects to `endpoint`, and gives up when nothing moves for `timeout`.
    package init(_ endpoint: Endpoint, timeout: Duration = .seconds(30)) {
        self.endpoint = endpoint
        milliseconds = Int32(clamping: timeout.components.seconds * 1000)
    }

    /// Sends `request` and reads the answer.
    package func send(_ request: HTTPRequest) throws(HTTPClientError) -> HTTPResponse {
        let bytes = try request.head() + request.body
        let socket = try ClientSocket.connect(endpoint, milliseconds: milliseconds)
        var reader = ResponseReader(
            isHead: request.method == "HEAD", bodyBytesMax: Self.bodyBytesMax)
        var sent = 0
        while true {
            let isSending = sent < bytes.count
            guard let ready = socket.wait(writing: isSending, milliseconds: milliseconds) else {
                throw .timeout
            }
            if ready.isReadable {
                guard let piece = socket.receive() else { return try reader.close() }
                if let response = try reader.receive(piece) { return response }
            }
            if ready.isWritable, isSending {
                // A peer that takes no more may still have answered.
                sent = socket.send(bytes, from: sent).map { sent + $0 } ?? bytes.count
            }
        }
    }
}

/// Puts an answer together.
private struct ResponseReader {
    private var decoder: ResponseDecoder
    private var buffer = ByteBuffer()
    private var head: ResponseHead?
    private var body: [UInt8] = []
    private let bodyBytesMax: Int

    init(isHead: Bool, bodyBytesMax: Int) {
        decoder = ResponseDecoder(requestMethodIsHead: isHead, limits: HeadLimits())
        self.bodyBytesMax = bodyBytesMax
    }

    /// Takes bytes. - Returns: The answer, once it is complete.
    mutating func receive(_ bytes: [UInt8]) throws(HTTPClientError) -> HTTPResponse? {
        buffer.append(bytes)
        while true {
            switch try next() {
            case .body(let range):
                guard body.count + range.count <= bodyBytesMax else { throw .tooLong }
                body += buffer.storage[range]
            case .end: return response()
            case .head(let head): self.head = head
            case .interim: break
            case .needMore: return nil
            }
        }
    }

    private mutating func next() throws(HTTPClientError) -> ResponseEvent {
        do throws(MessageError) {
            return try decoder.next(&buffer)
        } catch {
            throw .malformed("\(error)")
        }
    }

    /// The connection has ended.
    mutating func close() throws(HTTPClientError) -> HTTPResponse {
        do throws(MessageError) {
            guard try decoder.close(), let response = response() else { throw .bodyTruncated }
            return response
        } catch {
            throw .closed
        }
    }

    private func response() -> HTTPResponse? {
        head.map { head in
            HTTPResponse(
                status: head.status, reason: head.text(head.reason),
                fields: head.fields.map { HTTPField(head.text($0.name), head.text($0.value)) },
                body: body)
        }
    }
}
