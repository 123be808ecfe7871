import GateBytes
import GateConfig
import Testing

/// Loads `text` as `proxy.conf`, with more files and variables beside it.
func load(
    _ text: String, files: [String: String] = [:], variables: [String: String] = [:],
    credentials: [String: String] = [:], unresolvable: Set<String> = [],
    unwritable: Set<String> = []
) -> ConfigurationReport {
    var all = files
    all["proxy.conf"] = text
    let source = MemoryConfigurationSource(
        all, variables: variables, credentials: credentials, unresolvable: unresolvable,
        unwritable: unwritable)
    return ConfigurationLoader.load(path: "proxy.conf", source: source)
}

/// A configuration around the inside of one host and one route block.
func hostText(_ host: String, listener: String = "", upstream: String = "", app: String = "")
    -> String
{
    """
    listener public {
        address 127.0.0.1:8080
        \(listener)
    }
    app shop {
        app_id ABCDE12345.com.example.shop
        environment production
        \(app)
    }
    upstream orders {
        server 127.0.0.1:9000
        \(upstream)
    }
    host api.example.com {
        listener public
        app shop
        upstream orders
    \(host)
    }
    """
}

/// The first lines of all faults: place and message.
func heads(_ report: ConfigurationReport) -> [String] {
    report.diagnostics.map { $0.render().split(separator: "\n").first.map(String.init) ?? "" }
}

/// The one host of a configuration that must be without faults.
func loadHost(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> Host {
    let report = load(hostText(text))
    let loaded = report.configuration
    let configuration = try #require(
        loaded, "\(report.render())", sourceLocation: sourceLocation)
    return try #require(configuration.hosts.first, sourceLocation: sourceLocation)
}

/// What `METHOD /path` meets on `host`.
func match(_ host: Host, _ method: String, _ path: String, preflight: Bool = false) -> RouteMatch {
    match(RouteTable(host: host), method, Array(path.utf8), preflight: preflight)
}

/// What a method and raw path bytes meet.
func match(_ table: RouteTable, _ method: String, _ path: [UInt8], preflight: Bool = false)
    -> RouteMatch
{
    let bytes = Array("\(method) ".utf8) + path + Array(" HTTP/1.1".utf8)
    let start = method.utf8.count + 1
    return table.match(
        bytes, method: 0..<(start - 1), path: start..<(start + path.count), isPreflight: preflight)
}
