internal import GateBytes

/// The framing of a chunked body, octet by octet (RFC 9112 §7.1, threat T04).
///
///     chunk = 1*8HEXDIG [ ";" *( visible ASCII / SP / HTAB ) ] CRLF data CRLF
///     body  = *chunk 1*8"0" [ ";" … ] CRLF section
///
/// Extensions are read and forgotten. The trailer section is ``FieldScanner``'s.
struct ChunkScanner: Sendable {
    /// What stands at the next octet.
    enum Step: Equatable, Sendable {
        /// `count` bytes of data.
        case data(Int)
        case framing
        case trailers
    }

    private enum State: UInt8 {
        case size
        case `extension`
        case sizeEnd
        case data
        case dataEnd
        case dataLineFeed
        case trailers
    }

    private var state = State.size
    private var digits = 0
    private var left = 0
    private var lineExtensionBytes = 0
    private var bodyExtensionBytes = 0

    /// What stands at the next octet.
    var step: Step {
        switch state {
        case .data: return .data(left)
        case .trailers: return .trailers
        default: return .framing
        }
    }

    /// Takes framing out of `buffer` up to data or trailers; false when the buffer ran out before.
    mutating func takeFraming(_ buffer: inout ByteBuffer) throws(MessageError) -> Bool {
        let bytes = buffer.storage
        var index = buffer.readable.lowerBound
        let end = buffer.readable.upperBound
        while index < end, state != .data, state != .trailers {
            try take(bytes[index])
            index += 1
        }
        buffer.consume(index - buffer.readable.lowerBound)
        return state == .data || state == .trailers
    }

    private mutating func take(_ byte: UInt8) throws(MessageError) {
        switch state {
        case .size: try takeSize(byte)
        case .extension: try takeExtension(byte)
        case .sizeEnd:
            guard byte == Octet.lineFeed else { throw .lineEndInvalid }
            state = left > 0 ? .data : .trailers
        case .dataEnd:
            guard byte == Octet.carriageReturn else { throw .chunkDataInvalid }
            state = .dataLineFeed
        case .dataLineFeed:
            guard byte == Octet.lineFeed else { throw .chunkDataInvalid }
            state = .size
            digits = 0
        case .data, .trailers: preconditionFailure("data and trailers are no framing")
        }
    }

    /// Notes that `count` bytes of data were taken.
    mutating func tookData(_ count: Int) {
        precondition(state == .data && count <= left)
        left -= count
        if left == 0 { state = .dataEnd }
    }

    private mutating func takeSize(_ byte: UInt8) throws(MessageError) {
        if let value = Octet.hexadecimal(byte) {
            guard digits < Bounds.chunkSizeDigitsMax else { throw .chunkSizeInvalid }
            digits += 1
            left = left << 4 | value
            return
        }
        guard digits > 0 else { throw .chunkSizeInvalid }
        switch byte {
        case Octet.carriageReturn: state = .sizeEnd
        case Octet.semicolon:
            state = .extension
            lineExtensionBytes = 0
            try countExtension()
        case Octet.lineFeed: throw .lineEndInvalid
        default: throw .chunkSizeInvalid
        }
    }

    private mutating func takeExtension(_ byte: UInt8) throws(MessageError) {
        if byte == Octet.carriageReturn {
            state = .sizeEnd
            return
        }
        guard Octet.isChunkExtension(byte) else {
            throw byte == Octet.lineFeed ? .lineEndInvalid : .chunkExtensionInvalid
        }
        try countExtension()
    }

    private mutating func countExtension() throws(MessageError) {
        lineExtensionBytes += 1
        bodyExtensionBytes += 1
        guard lineExtensionBytes <= Bounds.chunkExtensionLineBytesMax,
            bodyExtensionBytes <= Bounds.chunkExtensionBodyBytesMax
        else { throw .chunkExtensionTooLong }
    }
}
