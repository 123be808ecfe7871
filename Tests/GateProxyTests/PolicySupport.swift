import GateBytes
import GateConfig
import GateHTTP
import GateProxy
import Testing

/// A request head, as the codec reads it; a `Host` is put in where there is none.
func request(_ first: String, _ lines: [String] = []) throws -> RequestHead {
    let hasHost = lines.contains { $0.lowercased().hasPrefix("host:") }
    let all = [first + " HTTP/1.1"] + (hasHost ? [] : ["Host: api.example.com"]) + lines
    return try decode(Array((all.joined(separator: "\r\n") + "\r\n\r\n").utf8))
}

func decode(_ bytes: [UInt8]) throws -> RequestHead {
    var buffer = ByteBuffer()
    buffer.append(bytes)
    var decoder = RequestDecoder(limits: HeadLimits())
    guard case .head(let head) = try decoder.next(&buffer) else {
        throw ExpectationFailedError()
    }
    return head
}

/// A response head, as the codec reads it.
func response(_ lines: [String]) throws -> ResponseHead {
    var buffer = ByteBuffer()
    buffer.append(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
    var decoder = ResponseDecoder(requestMethodIsHead: false, limits: HeadLimits())
    switch try decoder.next(&buffer) {
    case .head(let head), .interim(let head): return head
    default: throw ExpectationFailedError()
    }
}

struct ExpectationFailedError: Error {}

/// The lines of a head that was written, without the empty one; a first line and fields.
func lines(_ bytes: [UInt8]) -> [String] {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.hasSuffix("\r\n\r\n") else { return [] }
    // CRLF is one character of Swift.
    return text.dropLast(2).split(separator: "\r\n", omittingEmptySubsequences: false)
        .map(String.init)
}

/// The values of the fields called `name`, any case.
func values(_ name: String, _ bytes: [UInt8]) -> [String] {
    lines(bytes).dropFirst().filter { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
        .map { String($0.dropFirst(name.count + 2)) }
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// A configuration from which tests make theirs: its values are changed, never built.
private let configuration: Configuration = {
    let text = """
        listener public {
            address         127.0.0.1:8080
            trusted_proxies 10.0.0.0/8
        }
        app shop {
            app_id      ABCDE12345.com.example.shop
            environment production
        }
        upstream orders {
            server    127.0.0.1:9000
            set_field X-Gate-Secret credential:secret
        }
        host api.example.com www.example.com {
            listener public
            app      shop
            upstream orders
            enroll   /v1/app-attest
            account  header X-Account-Id
            route POST /v1/exports {
                bind client_data
            }
        }
        """
    let report = ConfigurationLoader.load(
        path: "proxy.conf",
        source: MemoryConfigurationSource(["proxy.conf": text], credentials: ["secret": "s3"]))
    guard let configuration = report.configuration else { fatalError(report.render()) }
    return configuration
}()

func makeHost(
    unmatched: Host.Unmatched = .off, account: Host.Account = .header("X-Account-Id"),
    underscores: Host.Underscores = .drop, modes: [Route.Mode] = [.enforce],
    purposes: [String] = ["request"], keyIDField: String = "App-Attest-Key-Id"
) -> Host {
    var host = configuration.hosts[0]
    host.unmatched = unmatched
    host.account = account
    host.underscores = underscores
    host.proof.keyID = keyIDField
    let template = host.routes[0]
    host.routes = zip(modes, purposes).map { mode, purpose in
        var route = template
        route.mode = mode
        route.purpose = purpose
        return route
    }
    host.unmatchedRoute.purpose = "unmatched"
    return host
}

func makeFields(_ host: Host = makeHost()) -> HostFields {
    HostFields(host, app: configuration.apps[0])
}

func makeSetField(_ value: String) -> Upstream.SetField {
    var field = configuration.upstreams[0].setFields[0]
    field.value = Array(value.utf8)
    return field
}

/// The limits of a host that has only those named.
func makeRates(_ limits: [WritableKeyPath<Rates, Rate?>: (count: Int, per: Duration)]) -> Rates {
    var rates = configuration.hosts[0].rates
    let template = rates.attestationsPerAccount
    for path in [
        \Rates.challengesPerAccount, \.challengesPerAddress, \.attestationsPerAccount,
        \.attestationsPerAddress, \.failedSignaturesPerAccount, \.failedSignaturesPerAddress,
    ] {
        rates[keyPath: path] = limits[path].flatMap { limit in
            var rate = template
            rate?.count = limit.count
            rate?.per = limit.per
            return rate
        }
    }
    return rates
}
