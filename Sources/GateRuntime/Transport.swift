package import GateBytes

/// A connection's bytes, whatever carries them: a plain ``Socket``, or an encrypted stream over
/// one. Non-blocking, edge-triggered, on one loop for life.
package protocol Transport: AnyObject {
    /// Registers with the loop: `handler` hears of readiness from now on. A second call hands the
    /// connection to another handler; what was ready before is not reported again.
    func register(_ handler: any EventHandler) throws(SystemError)
    /// Reads what is there into `buffer`, ``Socket/readBytes`` or more at a time.
    func read(into buffer: inout ByteBuffer) throws(SystemError) -> Transfer
    /// Whether the last read took all there was, so that the next bytes, or the end, bring an event
    /// of their own.
    var isExhausted: Bool { get }
    /// Writes what fits of `bytes[range]`.
    func write(_ bytes: [UInt8], _ range: Range<Int>) throws(SystemError) -> Transfer
    /// Whether nothing has come and the peer has not closed: what a pooled connection must be.
    var isQuiet: Bool { get }
    /// Closes our side for writing; the peer reads an end of stream.
    func shutdownWrites()
    /// Makes ``close()`` drop the connection with a reset, so that the peer cannot take a cut-off
    /// message for a whole one.
    func resetOnClose()
    /// Ends the registration and closes. Safe to call twice.
    func close()
}
