import GateConfig
import Testing

@Suite("Availability: what came with later versions is all there")
struct AvailabilityTests {
    private func report(_ block: String, _ line: String) -> ConfigurationReport {
        switch block {
        case "listener": load(hostText("", listener: line))
        case "upstream": load(hostText("", upstream: line))
        case "app": load(hostText("", app: line))
        case "host": load(hostText(line))
        case "route": load(hostText("route GET /a {\n\(line)\n}"))
        case "": load(hostText("") + "\n" + line)
        default: load(hostText("") + "\n\(block) {\n\(line)\n}")
        }
    }

    @Test(
        "its syntax is checked",
        arguments: [
            ("store", "snapshot every=10", "\"10\" needs a unit"),
            ("store", "durability relaxed 20", "\"20\" needs a unit"),
            (
                "store", "durability relaxd 20ms",
                "unknown durability \"relaxd\"; did you mean \"relaxed\"?"
            ),
            ("listener", "tls {\n certifcate a\n}", "unknown directive \"certifcate\" in tls"),
            ("upstream", "health GET healthz", "path \"healthz\" must begin with \"/\""),
            ("host", "account jwt {\n leeway 60\n}", "\"60\" needs a unit"),
            (
                "", "apple {\n devicecheck_url http://a.example\n}",
                "\"http://a.example\" is no https URL"
            ),
        ])
    func syntax(block: String, line: String, message: String) {
        #expect(
            report(block, line).diagnostics.map(\.message).contains(message),
            "\(report(block, line).render())")
    }

    @Test(
        "each form is available",
        arguments: [
            ("store", "durability strict"), ("store", "durability relaxed 20ms"),
            ("store", "snapshot every=10m after=256m"), ("listener", "http h1"),
            ("listener", "http h1 h2c"), ("listener", "http h2c"),
            ("listener", "proxy_protocol off"),
            ("app", "receipts off"), ("upstream", "balance round_robin"),
            ("upstream", "protocol h1"),
            ("upstream", "health off"), ("upstream", "eject off"), ("upstream", "max_active off"),
            ("upstream", "request stream"), ("host", "account none"), ("route", "mode enforce"),
            ("route", "bind request"), ("route", "inline_enroll off"), ("route", "fallback deny"),
        ])
    func available(block: String, line: String) {
        #expect(report(block, line).configuration != nil, "\(report(block, line).render())")
    }

    @Test("the specification's own example has no faults")
    func specification() {
        let report = load(
            SpecificationExample.text, files: ["/etc/attestgate/tls/api.pem": "chain"],
            credentials: ["gate-secret": "s", "api.key": "key", "devicecheck.p8": "key"])
        #expect(report.errorCount == 0, "\(report.render())")
    }
}

/// The example of the configuration's specification, as it stands there.
enum SpecificationExample {
    static let text = #"""
        loops          auto                        # one a core
        drain_timeout  30s

        log {
            access   stdout                        # stdout (default; the journal under systemd), \#
            /path, off; JSON lines
            error    level=info
            sample   off 1%                        # share of lines kept for routes whose mode is \#
            off
        }

        store {
            dir         ${STATE_DIRECTORY:-/var/lib/attestgate}      # created 0700
            durability  strict                     # or: relaxed 20ms (store.md)
            snapshot    every=10m after=256m
            max_keys    5000000
        }

        spool {
            dir  ${CACHE_DIRECTORY:-/var/cache/attestgate}           # created 0700
            max  1g files=256                      # over it: 503 retry_later
        }

        admin {
            address  unix:/run/attestgate/admin.sock mode=0660
            address  127.0.0.1:9901                # read-only paths only
        }

        listener public {
            address          [::]:443
            http             h2 h1
            tls {
                certificate  file:/etc/attestgate/tls/api.pem credential:api.key
            }
            trusted_proxies  10.0.0.0/8
            limits   connections=20000 per_address=200 header_fields=100 header_size=48k \#
            field_size=32k target_size=8k \
                     requests=10000 h2_streams=100 h2_resets=200/30s h2_control=1000/10s
            timeouts handshake=10s header=10s body=15s body_min_rate=1k keepalive=75s write=30s \#
            tunnel=1h tunnel_max=24h
        }

        apple {                                    # for DeviceCheck and the fraud metric
            team_id   ABCDE12345
            key_id    KEY1234567
            key       credential:devicecheck.p8
        }

        app shop {
            app_id            ABCDE12345.com.example.shop
            environment       production
            receipts          refresh
        }

        upstream orders {
            server      10.0.2.10:8080 weight=2
            server      orders-spare.internal:8080 backup
            balance     least_connections
            keepalive   64 idle=4s requests=10000
            health      GET /healthz expect=200 every=5s timeout=1s rise=2 fall=3
            eject       after=5 within=10s for=30s
            max_active  400 queue=100 wait=2s
            retry       1
            timeouts    connect=2s first_byte=30s idle=60s
            set_field   X-Gate-Secret credential:gate-secret
        }

        host api.example.com www.api.example.com {
            listener   public
            app        shop
            upstream   orders
            unmatched  deny
            enroll     /v1/app-attest
            account    header X-Account-Id
            challenge  ttl=5m attestation_ttl=24h
            rate       challenges per_account=600/1m
            rate       attestations per_account=60/1h per_address=600/1h
            rate       failed_signatures per_account=60/1m per_address=600/1m

            route POST /v1/exports {
                mode      enforce
                bind      client_data
                purpose   export
                body      max=256k memory=64k
                fallback  devicecheck bit1=0 rate=20/1h
            }
            route POST,PUT /v1/redeem/* {
                mode      enforce 25% by=account else=monitor
                require   category app_store testflight absent
                require   bundle_version >= 214 absent
                require   metric <= 20 absent
            }
            route GET /v1/live {
                upgrade   websocket
            }
            route * /internal/* {
                mode      deny 404
            }
            route * /public/* {
                mode      off
            }
        }
        """#
}
