/// The `proxy.conf` of the demo.
struct DemoConfiguration {
    let directory: String
    let port: UInt16
    let upstreamPort: UInt16

    /// The App ID of the demo's app.
    static let appID = "DEMO123456.com.example.shop"
    /// The field in which a trusted front tells who is signed in.
    static let accountField = "X-Account-Id"
    /// The prefix of the enrolment endpoints.
    static let prefix = DeviceOptions.defaultPrefix
    /// The host with the usual lifetimes, and one whose challenges expire at once.
    static let host = "localhost"
    static let briefHost = "brief.localhost"
    /// Seconds that a challenge of ``briefHost`` lives.
    static let briefSeconds: Int64 = 1

    var path: String { directory + "/proxy.conf" }
    var rootPath: String { directory + "/root.pem" }
    var statePath: String { directory + "/device.state" }
    var accessLogPath: String { directory + "/access.log" }

    var text: String {
        """
        # The demo's gate: one app, one service, one protected route.

        log {
            access  \(accessLogPath)
            error   level=error
        }

        store {
            dir  \(directory)/store
        }

        spool {
            dir  \(directory)/spool
        }

        listener demo {
            address          127.0.0.1:\(port)
            trusted_proxies  127.0.0.0/8    # whom \(Self.accountField) is believed from
        }

        app shop {
            app_id       \(Self.appID)
            environment  development
            root         file:\(rootPath)   # the simulated device's, in place of Apple's
            receipts     off
        }

        upstream orders {
            server  127.0.0.1:\(upstreamPort)
        }

        \(host(Self.host, challenge: ""))
        # The same, with challenges that expire at once.
        \(host(Self.briefHost, challenge: "\n    challenge  ttl=\(Self.briefSeconds)s"))
        """
    }

    private func host(_ name: String, challenge: String) -> String {
        """
        host \(name) {
            listener   demo
            app        shop
            upstream   orders
            enroll     \(Self.prefix)
            account    header \(Self.accountField)\(challenge)

            route POST /v1/orders/* {
                mode  enforce
            }
            route GET /public/* {
                mode  off
            }
        }

        """
    }
}
