"""Which route takes a request (conf.md §4 and §5), and what each mode does with it."""

import app
import case
import wire


class Matching(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        settings.routes["GET /v1/data/open"] = ["mode off"]
        settings.routes["* /v1/data/deep/*"] = ["mode off"]
        settings.routes["DELETE /v1/data/deep/*"] = ["mode enforce"]
        settings.routes["GET /only/get"] = ["mode enforce"]

    def gated(self, method, target):
        answer = self.ask(method, target)
        self.assertEqual(answer.status, 401, (method, target, answer))
        self.check_nothing_upstream()

    def passed(self, method, target):
        self.service.reset()
        answer = self.ask(method, target)
        self.assertEqual(answer.status, 200, (method, target, answer))
        self.assertEqual(self.service.wait(1)[0].get("App-Attest-Verdict"), "off")
        self.service.reset()

    def test_the_most_specific_route_wins(self):
        self.passed("GET", "/v1/data/open")
        self.gated("POST", "/v1/data/open")
        self.passed("GET", "/v1/data/deep/x")
        self.gated("DELETE", "/v1/data/deep/x")
        self.gated("GET", "/v1/data/deeper")

    def test_protected_routes_match_wide(self):
        for target in ("/v1/data/a", "/V1/DATA/A", "/v1/data", "/v1/data/", "/v1/data/a/",
                       "/%76%31/%64%61%74%61/a", "/v1/data/a.", "/v1/d%41ta/x", "/v1/data?x"):
            self.gated("GET", target)
        for target in ("/v1/exports", "/V1/Exports/", "/v1/exports."):
            self.gated("POST", target)

    def test_off_routes_match_byte_by_byte(self):
        for target in ("/v1/data/Open", "/v1/data/open/", "/v1/data/%6fpen", "/v1/data/deep",
                       "/v1/data/Deep/x"):
            self.gated("GET", target)

    def test_a_prefix_ends_at_a_segment(self):
        for target in ("/v1/database", "/v1/dat", "/v1", "/", "/v1/exportsx", "/v1/exports/x"):
            self.passed("GET", target)

    def test_a_path_with_two_readings_is_refused(self):
        for path in (
            "//v1/exports", "/a//b", "/a/./b", "/a/../b", "/a/..", "/a/.", "/./a", "/../a",
            "/a/%2e/b", "/a/%2E%2e/b", "/a/.%2e/b", "/a\\b", "/a%2fb", "/a%2Fb", "/a%5cb",
            "/a%25b", "/a%00", "/a%1f", "/a%0d%0ab", "/a%7f", "/a%3bb", "/a%3fb", "/a%23b", "/a;b",
            "/;/a", "/a%20", "/a%20/b", "/a+", "/a+/b", "/a./b", "/a%2e/b", "/a%", "/a%4", "/a%zz",
            "/a%u0065", "/a%c0%af", "/a%e0%80%af", "/a%ff", "/a%c3", "/a%ed%a0%80",
            "/%ef%bd%85xports", "/v1/export%c5%bf", "/%e2%84%aa", "/%ef%ac%81", "/%c4%b1",
            "/a%f4%90%80%80",
        ):
            with self.subTest(path=path):
                self.check_problem(self.ask("GET", path), "path_ambiguous")
        self.check_nothing_upstream()

    def test_paths_with_one_reading_pass_raw(self):
        for target in ("/a%20b", "/a+b", "/caf%C3%A9", "/a.b/c", "/...a", "/.well-known/x",
                       "/a?b//c/../d;e%2f%00%zz", "/a%41", "/a:b@c!$&'()*,=~", "/a."):
            self.service.reset()
            answer = self.ask("GET", target)
            self.assertEqual(answer.status, 200, target)
            self.assertEqual(self.service.wait(1)[0].target, target)

    def test_raw_bytes_outside_visible_ascii_are_bad_requests(self):
        for byte in (0x01, 0x7f, 0x80, 0xff):
            answer = self.raw(b"GET /a%c HTTP/1.1\r\nHost: api.example.test\r\n\r\n"
                              .replace(b"%c", bytes([byte])))
            self.check_problem(answer, "bad_request")
            answer = self.raw(b"GET /a?%c HTTP/1.1\r\nHost: api.example.test\r\n\r\n"
                              .replace(b"%c", bytes([byte])))
            self.check_problem(answer, "bad_request")
        self.check_nothing_upstream()

    def test_another_method_on_a_protected_path_is_not_allowed(self):
        for method, target, allow in (
            ("GET", "/v1/exports", {"POST"}), ("GET", "/v1/redeem/1", {"POST", "PUT"}),
            ("POST", "/only/get", {"GET", "HEAD"}), ("DELETE", "/V1/EXPORTS/", {"POST"}),
        ):
            answer = self.ask(method, target)
            self.check_problem(answer, "method_not_allowed")
            self.assertEqual({name.strip() for name in answer.get("Allow").split(",")}, allow)
        self.gated("HEAD", "/only/get")
        self.check_nothing_upstream()

    def test_monitored_paths_do_not_limit_methods(self):
        self.assertEqual(self.ask("DELETE", "/v1/watched/a").status, 200)

    def test_denied_routes_answer_their_status(self):
        answer = self.ask("GET", "/closed/a")
        self.check_problem(answer, "not_found")
        for target in ("/gone/a", "/Gone/a/", "/gone"):
            answer = self.ask("POST", target, body=b"x")
            self.assertEqual((answer.status, answer.code), (410, "denied"))
            self.assertEqual(answer.json["status"], 410)
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/gone/a").status, 410)
        self.check_nothing_upstream()


class Unmatched(case.Case):
    def test_deny_is_the_default(self):
        def change(settings):
            settings.unmatched = "deny"
        self.run_gate(change)
        self.check_problem(self.ask("GET", "/public"), "not_found")
        preflight = [("Origin", "https://a"), ("Access-Control-Request-Method", "POST")]
        self.assertIn(self.ask("OPTIONS", "/public", preflight).status, (404, 405))
        self.check_problem(self.ask("GET", "/v1/data/a"), "proof_required")
        self.check_nothing_upstream()

    def test_enforce_takes_a_proof(self):
        def change(settings):
            settings.unmatched = "enforce"
        self.run_gate(change)
        self.check_problem(self.ask("GET", "/public"), "proof_required")
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/public").status, 200)

    def test_an_open_host_passes_odd_paths(self):
        def change(settings):
            settings.routes = {"* /a/*": ["mode off"]}
        self.run_gate(change)
        for target in ("//x", "/a/../b", "/a;b", "/a%2fb", "/%zz"):
            self.assertEqual(self.ask("GET", target).status, 200, target)
            self.assertEqual(self.service.wait(1)[-1].target, target)
            self.service.reset()

    def test_paths_matched_lifts_what_falls_on_no_protected_route(self):
        def change(settings):
            settings.host.append("paths matched")
        self.run_gate(change)
        for target in ("//x", "/a;b", "/a%2fb", "/a%3bb", "/x/%C3%89"):
            self.assertEqual(self.ask("GET", target).status, 200, target)
        self.service.reset()
        for target in ("//v1/exports", "/v1%2fexports", "/v1;x/exports", "/v1/exports;x",
                       "/v1/export%c5%bf", "/V1//Data/x", "/a/../b", "/a%00", "/a%5cb", "/a%25b"):
            self.check_problem(self.ask("POST", target, body=b""), "path_ambiguous")
        self.check_nothing_upstream()


class Hosts(case.Case):
    def test_hosts_are_separate_worlds(self):
        other = self.recorder()

        def change(settings):
            settings.names = "api.example.test www.example.test"
            settings.extra += [
                "upstream second {", f"    server 127.0.0.1:{other.port}", "}",
                "host two.example.test {", "    listener main", "    app shop",
                "    upstream second", "    unmatched off", "    enroll /v1/app-attest",
                "    route GET /v1/data/* {", "        mode enforce", "    }", "}",
            ]
        self.run_gate(change)
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
        alias = self.app(phone.device, host="www.example.test")
        challenge = phone.challenge()
        self.assertEqual(alias.send("GET", "/v1/data/a", challenge=challenge).status, 200)
        there = self.app(phone.device, host="two.example.test")
        answer = there.send("GET", "/v1/data/a", challenge=phone.challenge())
        self.check_problem(answer, "challenge_required")
        self.check_nothing_upstream(other)
        self.assertEqual(there.send("GET", "/v1/data/a").status, 200)
        self.assertEqual(len(other.wait(1)), 1)
        self.assertEqual(self.ask("GET", "/x", host="two.example.test").status, 200)

    def test_a_pipelined_request_goes_to_its_own_host(self):
        other = self.recorder()

        def change(settings):
            settings.extra += [
                "upstream second {", f"    server 127.0.0.1:{other.port}", "}",
                "host two.example.test {", "    listener main", "    app shop",
                "    upstream second", "    unmatched off", "}",
            ]
        self.run_gate(change)
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/1") + wire.message("GET", "/2",
                                                                     host="two.example.test"))
            self.assertEqual([connection.response().status for _ in range(2)], [200, 200])
        self.assertEqual([request.target for request in self.service.wait(1)], ["/1"])
        self.assertEqual([request.target for request in other.wait(1)], ["/2"])

    def test_a_route_may_have_its_own_upstream(self):
        other = self.recorder()

        def change(settings):
            settings.extra += ["upstream second {", f"    server 127.0.0.1:{other.port}", "}"]
            settings.routes["* /v1/elsewhere/*"] = ["mode enforce", "upstream second"]
        self.run_gate(change)
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/v1/elsewhere/a").status, 200)
        self.assertEqual(len(other.wait(1)), 1)
        self.check_nothing_upstream()

    def test_defaults_set_what_a_route_does_not(self):
        def change(settings):
            settings.host += ["defaults {", "    bind request", "}"]
            settings.routes["* /v1/special/*"] = ["bind client_data"]
        self.run_gate(change)
        phone = self.app().enrolled()
        for path, binding in (("/v1/data/a", "request"), ("/v1/special/a", "client_data")):
            self.assertEqual(phone.send("GET", path, binding=binding).status, 200)


class Monitor(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        settings.routes["* /v1/watched/*"] = ["mode monitor", "body max=1m memory=4k"]

    def test_a_good_proof_is_verified_and_spent(self):
        phone = self.app().enrolled()
        challenge = phone.challenge()
        answer = phone.send("POST", "/v1/watched/a", b"x", challenge=challenge)
        request = self.check_upstream(answer)
        self.assertEqual(request.get("App-Attest-Verdict"), "verified")
        self.assertEqual(request.get("App-Attest-Verified-Key"), phone.key_id)
        self.assertEqual(answer.all("App-Attest-Next-Challenge"), [])
        answer = phone.send("GET", "/v1/data/a", challenge=challenge)
        self.check_problem(answer, "challenge_required")

    def test_what_would_be_refused_goes_on_as_monitored(self):
        phone = self.app().enrolled()
        proof = phone.prove("POST", "/v1/watched/a", b"x", phone.challenge())
        used = phone.prove("GET", "/v1/data/a", None, phone.challenge())
        self.assertEqual(phone.ask("GET", "/v1/data/a", used).status, 200)
        stranger = self.app().prove("POST", "/v1/watched/a", b"x", phone.challenge())
        cases = {
            "proof_absent": [], "proof_incomplete": proof[:2], "key_unknown": stranger,
            "challenge_spent": [used[0], used[1], used[2]],
            "proof_malformed": [("App-Attest-Key-Id", "*"), *proof[1:]],
            "unsupported": [("App-Attest-Unsupported", "?1")],
        }
        for reason, fields in cases.items():
            with self.subTest(reason=reason):
                self.service.reset()
                answer = self.ask("POST", "/v1/watched/a", fields, b"x")
                request = self.check_upstream(answer)
                self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
                for name in ("App-Attest-Verified-Key", "App-Attest-Counter", "App-Attest-Risk"):
                    self.assertEqual(request.all(name), [])
                self.assertEqual(request.body, b"x")
                entry = self.gate.logged(answer)
                self.assertEqual((entry["verdict"], entry["reason"]), ("monitored", reason))

    def test_a_body_that_differs_goes_on_as_monitored(self):
        phone = self.app().enrolled()
        proof = phone.prove("POST", "/v1/watched/a", b"x", phone.challenge())
        request = self.check_upstream(self.ask("POST", "/v1/watched/a", proof, b"y"))
        self.assertEqual(request.get("App-Attest-Verdict"), "monitored")

    def test_a_body_over_the_memory_streams_on_unverifiable(self):
        phone = self.app().enrolled()
        for size in (5000, 3 << 20):
            self.service.reset()
            body = bytes(size)
            answer = phone.send("POST", "/v1/watched/a", body)
            request = self.check_upstream(answer)
            self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
            self.assertEqual(len(request.body), size)
            self.assertEqual(self.gate.logged(answer)["reason"], "unverifiable")

    def test_proof_fields_do_not_go_up(self):
        phone = self.app()
        proof = phone.prove("GET", "/v1/watched/a", None, app.Challenge("a", bytes(32)))
        request = self.check_upstream(self.ask("GET", "/v1/watched/a", proof))
        self.assertEqual({name for name, _ in proof} & set(request.names), set())


class RouteLines(case.Case):
    def test_pass_proof_keeps_the_fields(self):
        def change(settings):
            settings.routes["* /v1/kept/*"] = ["mode enforce", "pass_proof on"]
        self.run_gate(change)
        phone = self.app().enrolled()
        challenge = phone.challenge()
        proof = phone.prove("GET", "/v1/kept/a", None, challenge)
        request = self.check_upstream(self.ask("GET", "/v1/kept/a", proof))
        for name, value in proof:
            self.assertEqual(request.all(name), [value])

    def test_proof_fields_can_be_renamed(self):
        def change(settings):
            settings.host += ["proof {", "    key_id header X-Key", "    assertion header X-Proof",
                              "    client_data header X-Signed", "}"]
        self.run_gate(change)
        phone = self.app().enrolled()
        names = {"App-Attest-Key-Id": "X-Key", "App-Attest-Assertion": "X-Proof",
                 "App-Attest-Client-Data": "X-Signed"}
        proof = phone.prove("GET", "/v1/data/a", None, phone.challenge())
        self.check_problem(self.ask("GET", "/v1/data/a", proof), "proof_required")
        renamed = [(names[name], value) for name, value in proof]
        request = self.check_upstream(self.ask("GET", "/v1/data/a", renamed))
        self.assertEqual(set(names.values()) & set(request.names), set())
