/// Chunk framing of our own making (RFC 9112 §7.1): sizes in lower-case hexadecimal, no extensions,
/// no trailers.
package enum ChunkedWriter {
    /// Appends what stands before a chunk of `count` bytes; none of it for an empty one, which
    /// would end the body.
    package static func appendStart(ofChunk count: Int, to bytes: inout [UInt8]) {
        precondition(count >= 0)
        guard count > 0 else { return }
        var shift = (Int.bitWidth - count.leadingZeroBitCount - 1) / 4 * 4
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: count >> shift & 15)
            bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            shift -= 4
        }
        appendEnd(ofChunk: count, to: &bytes)
    }

    /// Appends what stands after a chunk of `count` bytes.
    package static func appendEnd(ofChunk count: Int, to bytes: inout [UInt8]) {
        guard count > 0 else { return }
        bytes.append(Octet.carriageReturn)
        bytes.append(Octet.lineFeed)
    }

    /// Appends the chunk `data[range]`; nothing when it is empty.
    package static func append(_ data: [UInt8], _ range: Range<Int>, to bytes: inout [UInt8]) {
        appendStart(ofChunk: range.count, to: &bytes)
        bytes.append(contentsOf: data[range])
        appendEnd(ofChunk: range.count, to: &bytes)
    }

    /// Appends the last chunk and the end of the body.
    package static func appendLast(to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "0"))
        for _ in 0..<2 {
            bytes.append(Octet.carriageReturn)
            bytes.append(Octet.lineFeed)
        }
    }
}
