import GateConfig

/// A `proxy.conf` out of any bytes: never a trap; either a configuration or at least one error; and
/// the report can be printed.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var source = MemoryConfigurationSource([:])
    source.files["proxy.conf"] = Array(UnsafeBufferPointer(start: data, count: count))
    let report = ConfigurationLoader.load(path: "proxy.conf", source: source)
    precondition((report.configuration == nil) == (report.errorCount > 0))
    precondition(!report.render().isEmpty)
    return 0
}
