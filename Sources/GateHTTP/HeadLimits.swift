/// What one head may cost; kept while reading, not after.
package struct HeadLimits: Equatable, Sendable {
    /// Field lines.
    package var headerFields: Int
    /// Bytes of the whole head, first line and line ends included.
    package var headerSize: Int
    /// Bytes of one field line without its line end.
    package var fieldSize: Int
    /// Bytes of a request target.
    package var targetSize: Int

    /// Limits with the defaults of `proxy.conf`: 100 fields, 48 KiB, 32 KiB a field, a target of 8
    /// KiB.
    package init(
        headerFields: Int = 100, headerSize: Int = 48 * 1024, fieldSize: Int = 32 * 1024,
        targetSize: Int = 8 * 1024
    ) {
        self.headerFields = headerFields
        self.headerSize = headerSize
        self.fieldSize = fieldSize
        self.targetSize = targetSize
    }
}

/// The versions of HTTP that the gate speaks.
package enum HTTPVersion: UInt8, Sendable {
    case http10
    case http11
    case http2
}
