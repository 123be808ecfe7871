"""Ways past a gate, by the numbers of the list of threats: at least one test of our own each.

Beyond the shared corpus (test_hostile.py) and what the other modules test in passing. A test is
named by its threat; `Table` says which numbers are tested where.
"""

import itertools
import json
import os
import re
import threading
import unittest

import case
import gate as gates
import wire

GET = f"GET /public HTTP/1.1\r\nHost: {gates.HOST}\r\n"
POST = f"POST /public HTTP/1.1\r\nHost: {gates.HOST}\r\n"
SMUGGLED = f"GET /smuggled HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n"
MIB = 1 << 20

# Threats whose tests stand in other modules, by the tests' names.
ELSEWHERE = {
    "T12": "proof.Passing.test_the_coded_body_is_what_was_signed",
    "T16": "answers.Lengths.test_t16_two_lengths",
    "T18": "tls.Serving.test_a_request_for_a_host_with_another_certificate_is_misdirected",
    "T19": "store.NoSpace.test_out_of_space_and_back",
    "T20": "hostile.Probes.test_http2_in_the_clear",
    "T21": "hostile.Floods.test_in_the_clear",
    "T22": "h2bounds.Resets.test_more_resets_than_the_limit_end_the_connection",
    "T23": "hostile.Floods.test_over_tls",
    "T24": "h2bounds.Identifiers.test_control_frames_over_the_limit_end_the_connection",
    "T25": "h2bounds.Stalls.test_a_stream_whose_window_stays_closed_is_reset",
    "T27": "replay.Copies.test_one_of_a_hundred_copies_passes",
}


class Table(unittest.TestCase):
    def test_every_threat_is_tested(self):
        names = {test.id().removeprefix("test_") for test in every_test()}
        here = {match[1].upper() for name in names
                if (match := re.search(r"\.test_(t[0-9]{2})_", name))}
        self.assertEqual([name for name in ELSEWHERE.values() if name not in names], [])
        wanted = {f"T{number:02}" for number in range(1, 32)}
        self.assertEqual(wanted - here - set(ELSEWHERE), set())


def every_test():
    def flat(suite):
        for entry in suite:
            if isinstance(entry, unittest.TestSuite):
                yield from flat(entry)
            else:
                yield entry
    top = os.path.dirname(os.path.abspath(__file__))
    yield from flat(unittest.TestLoader().discover(top, pattern="test_*.py", top_level_dir=top))


class Targets(case.SharedGate):
    def refused(self, answer, target):
        self.assertIn(answer.status, (400, 401, 403, 404, 405, 421, 501), (target, answer))
        self.assertEqual(self.service.raw, b"", target)

    def test_t01_no_spelling_of_a_protected_path_reaches_the_service(self):
        path = "/v1/exports"
        spellings = {path, path.upper(), path + "/", path + "/.", path + ".", path + "%20"}
        for at in range(1, len(path)):
            escaped = f"%{ord(path[at]):02x}"
            for text in (escaped, escaped.upper(), escaped.replace("%", "%25"), path[at].upper()):
                spellings.add(path[:at] + text + path[at + 1:])
        ups = ("..", "%2e%2e", ".%2e", "%2E.", "..;", "..%00", "%252e%252e", "..%5c", "..\\")
        for up, slash in itertools.product(ups, ("/", "//", "%2f", "%5c", "\\", "/./", "/;/")):
            spellings.add(f"/public/{up}{slash}v1/exports")
            spellings.add(f"/v1/x{slash}{up}/exports")
        for tail in (";", ";a=b", "%3b", "#", "%23", "%3f", "%00", "%09", "%0a", "\\", "%5c",
                     "%2f"):
            spellings.add(path + tail)
        phone = self.app().enrolled()
        with wire.Connection(self.gate.address) as connection:
            for target in sorted(spellings):
                self.refused(connection.ask("POST", target, body=b"{}"), target)
        # Nor does a proof: the path is refused whoever signed it.
        for target in ("/v1/data/../data/a", "/v1//data/a", "/v1/data/%2e%2e/a", "/v1/data/a;x"):
            answer = phone.ask(
                "GET", target, phone.prove("GET", target, None, phone.challenge()))
            self.check_problem(answer, "path_ambiguous")
        self.check_nothing_upstream()

    def test_t02_the_request_line_and_host_alone_choose(self):
        for authority in ("api.example.test:80@evil.test", "evil.test\\@api.example.test",
                          "api.example.test,evil.test", "api.example.test evil.test",
                          "api.example.test:", "api.example.test:http", "api.example.test:80:80",
                          "api.example.test:99999", "[api.example.test]", "api%2eexample.test",
                          "api.example.test/", "api.example.test#", "api.example.test?",
                          ".api.example.test", "api..example.test"):
            for text in (f"POST /v1/exports HTTP/1.1\r\nHost: {authority}\r\n",
                         f"POST http://{authority}/v1/exports HTTP/1.1\r\nHost: {authority}\r\n",
                         f"POST http://{gates.HOST}/public HTTP/1.1\r\nHost: {authority}\r\n"):
                with self.subTest(text=text):
                    answer = self.raw(text + "Content-Length: 2\r\n\r\n{}")
                    self.refused(answer, authority)
        for name in ("X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Uri", "X-Forwarded-Prefix",
                     "X-Forwarded-Path", "X-Original-URI", "X-Original-Method", "X_Original_URL",
                     "X.Rewrite.Url"):
            with self.subTest(name=name):
                answer = self.ask("POST", "/v1/exports", [(name, "/public")], b"{}")
                self.check_problem(answer, "proof_required")
                self.check_nothing_upstream()
                answer = self.ask("GET", "/public", [(name, "/v1/exports")])
                self.assertNotIn(b"/v1/exports", self.check_upstream(answer).head)
                self.service.reset()

    def test_t05_every_octet_in_every_part_of_a_head(self):
        name = set(b"!#$%&'*+-.^_`|~0123456789"
                   b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        target = set(range(0x21, 0x7f)) - set(b"#")
        value = set(range(0x20, 0x7f)) | set(range(0x80, 0x100)) | {0x09}
        heads = {
            "method": (b"GE%bT /public HTTP/1.1\r\nHost: %b\r\n\r\n", set()),
            "query": (b"GET /public?a%bb HTTP/1.1\r\nHost: %b\r\n\r\n", target),
            "name": (b"GET /public HTTP/1.1\r\nX-a%bb: c\r\nHost: %b\r\n\r\n", name - {0x5f}),
            "value": (b"GET /public HTTP/1.1\r\nX-a: b%bc\r\nHost: %b\r\n\r\n", value),
            "before the colon": (b"GET /public HTTP/1.1\r\nX-a%b: c\r\nHost: %b\r\n\r\n",
                                 name - {0x5f}),
            "line end": (b"GET /public HTTP/1.1%b\r\nHost: %b\r\n\r\n", set()),
        }
        for part, (text, good) in heads.items():
            for octet in range(256):
                sent = bytes([octet])
                answer = self.raw(text % (sent, gates.HOST.encode()))
                if octet in good:
                    self.assertEqual(answer.status, 200, (part, octet, answer))
                    head = self.service.wait(1)[0].head
                    self.assertIn({"query": b"?a%bb ", "name": b"X-a%bb: c", "value": b"b%bc",
                                   "before the colon": b"X-a%b: c"}[part] % sent, head)
                elif octet == 0x3a and part in ("name", "before the colon"):
                    self.assertRegex(self.service.wait(1)[0].head, rb"X-a: (b)?: c\r\n")
                elif octet == 0x5f and part in ("name", "before the colon"):
                    self.assertNotIn(b"X-a", self.service.wait(1)[0].head)
                else:
                    self.assertIn(answer.status, (400, 501, 505), (part, octet, answer))
                    self.assertEqual(self.service.raw, b"", (part, octet))
                self.service.reset()

    def test_t08_no_field_and_no_query_changes_the_method(self):
        for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override",
                     "x_http_method_override", "X.HTTP.Method"):
            answer = self.ask("GET", "/v1/exports", [(name, "POST")])
            self.check_problem(answer, "method_not_allowed")
            self.check_nothing_upstream()
            answer = self.ask("POST", "/public", [(name, "DELETE")], b"")
            self.assertNotIn(b"DELETE", self.check_upstream(answer).head)
            self.service.reset()
        for target in ("/v1/exports?_method=POST", "/v1/exports?_method=post&x"):
            self.check_problem(self.ask("GET", target), "method_not_allowed")
        for method in ("TRACE", "CONNECT", "TRACK", "post", "PoST", "POST\0", "DEBUG", "PRI"):
            answer = self.raw(f"{method} /public HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n")
            self.assertIn(answer.status, (400, 501, 505), method)
        self.check_nothing_upstream()

    def test_t13_no_change_of_the_query_passes(self):
        phone = self.app().enrolled()
        signed = "/v1/data/a?x=1&y=%2F+%20;z"
        others = ["/v1/data/a", "/v1/data/a?", signed + "&", signed + "&x=2", signed[:-1],
                  signed.replace("+", "%20"), signed.replace("%20", "+"), signed + "?",
                  signed.replace("%2F", "%2f"), signed.replace("%2F", "/"),
                  signed.replace("x=1&y", "y=%2F&x"), signed.replace("?", "??"),
                  signed.replace(";", "&"), signed.replace("&", "&&"), signed.replace("x=", "X=")]
        for binding, path in (("client_data", "/v1/data"), ("request", "/v1/signed")):
            target = signed.replace("/v1/data", path)
            for other in others:
                other = other.replace("/v1/data", path)
                proof = phone.prove("GET", target, None, phone.challenge(), binding)
                with self.subTest(binding=binding, other=other):
                    self.check_problem(phone.ask("GET", other, proof), "rejected")
            self.check_nothing_upstream()
            proof = phone.prove("GET", target, None, phone.challenge(), binding)
            self.assertEqual(
                self.check_upstream(phone.ask("GET", target, proof)).target, target)
            self.service.reset()


class Bodies(case.SharedGate):
    """Off routes, where the body streams: the service may see a cut request, never another one."""

    def probe(self, text):
        """Sends the text; what the service saw once the gate has closed or answered."""
        self.service.reset()
        self.service.closes = True
        with wire.Connection(self.gate.address, timeout=5) as connection:
            connection.send(text.encode("latin-1"))
            try:
                first = connection.response("POST")
            except wire.Closed:
                first = None
            closed = connection.is_closed()
        # A cut request ends upstream as well, and before the next probe looks at the record.
        self.assertTrue(self.service.wait_until(lambda: not self.service.open))
        return first, closed, self.service.raw, list(self.service.requests)

    def test_t03_a_length_with_two_readings_makes_no_second_request(self):
        lengths = ("Content-Length: 0", "Content-Length: 5", "Content-Length: 05",
                   "Content-Length: 5 ", "Content-Length: 5\t", "Content-Length: 5,5",
                   "Content-Length: 5;", "Content-Length : 5", "Content-Length:\x0b5",
                   "Content-Length: 5\x00", "content_length: 5", "Content-Length: 5e0",
                   "Content-Length: \xb2", "Content-Length: 0x5", "Content-Length: ")
        codings = ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked ",
                   "Transfer-Encoding: CHUNKED", "Transfer-Encoding:chunked",
                   "Transfer-Encoding:\tchunked", "Transfer-Encoding: x-chunked",
                   "Transfer-Encoding: chunked, identity", "Transfer-Encoding: \"chunked\"",
                   "Transfer-Encoding: chunk\xe9d", "Transfer-Encoding : chunked",
                   "X: a\r\n Transfer-Encoding: chunked", "Transfer_Encoding: chunked",
                   "TE: chunked\r\nContent-Encoding: chunked")
        both = [f"{a}\r\n{b}" for a, b in itertools.product(lengths, codings)]
        both += [f"{b}\r\n{a}" for a, b in itertools.product(lengths, codings)]
        both += [f"{a}\r\n{b}" for a, b in itertools.product(lengths, lengths[:8])]
        both += [f"{a}\r\n{b}" for a, b in itertools.product(codings, codings[:5])]
        passed = 0
        for fields in both:
            first, closed, raw, requests = self.probe(
                POST + fields + "\r\nConnection: close\r\n\r\n0\r\n\r\n" + SMUGGLED)
            self.assertNotIn(b"GET /smuggled", b"".join(request.head for request in requests))
            if first is not None and first.status == 200:
                # Read one way by everyone: an underscore is not the field, and so on.
                self.assertEqual(len(requests), 1, fields)
                passed += 1
            else:
                self.assertEqual((first.status, raw), (400, b""), fields)
            self.assertTrue(closed, fields)
        self.assertGreater(passed, 10)

    def test_t04_a_bad_chunk_cuts_the_request_and_nothing_behind_it_is_one(self):
        bad = ("0x5\r\nhello", "+5\r\nhello", "-5\r\nhello", "5 \r\nhello", " 5\r\nhello",
               "5\t;a\r\nhello", "5\nhello", "5\rhello", "5;\nhello", "5;a\rb\r\nhello",
               "5;a\x00\r\nhello", "5;\x7f\r\nhello", "5\r\nhelloXX\r\n", "5\r\nhello\n",
               "5\r\nhello\r", "5\r\nhelloo\r\n", "10000000000000005\r\nhello",
               "fffffffffffffffb\r\nhello", "000000005\r\nhello", "\r\n5\r\nhello", ";\r\nhello",
               "5\r\nhello\r\n0\r\nX : a\r\n", "5\r\nhello\r\n0\r\n X: a\r\n",
               "5\r\nhello\r\n0\r\nX\r\n", "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\n\r\n",
               "5\r\nhello\r\n0;\n\r\n", "5\r\nhello\r\n00000000000\r\n",
               "5;" + "a" * 1025 + "\r\n")
        for body in bad:
            first, closed, raw, requests = self.probe(
                POST + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n" + body + "\r\n0\r\n\r\n"
                + SMUGGLED)
            self.assertIn(first.status if first else 400, (400, 431), body)
            self.assertTrue(closed, body)
            # The service never sees the end of the body, nor what stood behind it as a request.
            self.assertEqual(requests, [], body)
            self.assertFalse(raw.endswith(b"0\r\n\r\n"), body)
            self.assertEqual(raw.count(b" HTTP/1.1\r\n"), 1 if raw else 0, body)

    def test_t09_an_upgrade_that_no_route_allows_is_a_request(self):
        for fields in ("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                       "HTTP2-Settings: AAMAAABkAAQAAP__\r\n",
                       "Upgrade: h2c\r\nConnection: Upgrade\r\n", "Upgrade: h2c\r\n",
                       "Upgrade: TLS/1.2\r\nConnection: Upgrade\r\n",
                       "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"):
            for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n",
                           b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n"
                           b"Connection: Upgrade\r\n\r\n"):
                with self.subTest(fields=fields, answer=answer[:12]):
                    self.service.reset()
                    self.service.respond = lambda request, answer=answer: answer
                    with wire.Connection(self.gate.address) as connection:
                        # What stands behind the head is the next request, judged by itself.
                        connection.send((GET + fields + "\r\n").encode()
                                        + wire.message("POST", "/v1/exports", body=b"{}"))
                        first = connection.response()
                        self.assertEqual(first.status, 502 if b"101" in answer else 200)
                        self.check_problem(connection.response("POST"), "proof_required")
                    for request in self.service.wait(1):
                        self.assertEqual(request.all("Upgrade"), [])
                        self.assertEqual(request.all("HTTP2-Settings"), [])
                        self.assertEqual(request.target, "/public")

    def test_t11_a_body_that_stops_is_no_request(self):
        phone = self.app().enrolled()
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            proof = phone.prove("POST", path, b"hello", phone.challenge(), binding)
            text = wire.message("POST", path, proof, b"hello")
            for cut in (1, 5):
                with wire.Connection(self.gate.address) as connection:
                    connection.send(text[:-cut])
            self.check_nothing_upstream()
        for text in (POST + "Content-Length: 9\r\n\r\nhello",
                     POST + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"):
            self.service.reset()
            with wire.Connection(self.gate.address) as connection:
                connection.send(text.encode())
                self.assertTrue(self.service.wait_until(lambda: b"hello" in self.service.raw))
            self.assertTrue(self.service.wait_until(lambda: not self.service.open))
            self.assertEqual(self.service.requests, [])

    def test_t11_an_expectation_is_met_or_refused_never_half(self):
        for value in ("100-continue\r\nExpect: 100-continue", "100-continue,100-continue",
                      "100-continue ;a", "\"100-continue\"", "100-contin\xfce", "", "-",
                      "100-continue\r\n\tx"):
            self.service.reset()
            answer = self.raw(POST + f"Expect: {value}\r\nContent-Length: 2\r\n\r\n{{}}")
            self.assertIn(answer.status, (400, 417), value)
            self.assertEqual(answer.interim, [])
            self.check_nothing_upstream()
        # A client that does not wait is served; one without a body as well.
        for text in (POST + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
                     GET + "Expect: 100-continue\r\n\r\n"):
            self.service.reset()
            self.assertEqual(self.raw(text).status, 200, text)

    def test_t17_no_trailer_becomes_a_field(self):
        forged = ("Content-Length: 50", "Transfer-Encoding: chunked", "Host: evil.test",
                  "Authorization: forged", "Cookie: forged", "X-User: forged",
                  "App-Attest-Verdict: forged", "App_Attest_Verdict: forged",
                  "X-Forwarded-For: forged", "Trailer: forged", "Connection: close, forged")
        phone = self.app().enrolled()
        for trailer in forged:
            for target in ("/public", "/v1/data/a", "/v1/watched/a"):
                with self.subTest(trailer=trailer, target=target):
                    self.service.reset()
                    proof = phone.prove("POST", target, b"{}", phone.challenge())
                    head = wire.message("POST", target, [*proof, ("Trailer", "X-User")])
                    head = head.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
                    with wire.Connection(self.gate.address) as connection:
                        connection.send(
                            head + f"2\r\n{{}}\r\n0\r\n{trailer}\r\n\r\n".encode())
                        answer = connection.response("POST")
                        self.assertEqual(connection.ask("GET", "/public").status, 200)
                    self.assertEqual(answer.status, 200, answer)
                    first = self.service.wait(2)[0]
                    self.assertEqual(first.body, b"{}")
                    self.assertNotIn(b"forged", self.service.raw)
                    self.assertNotIn(b"evil", self.service.raw)


class Fields(case.SharedGate):
    def test_t06_no_spelling_of_a_field_speaks_for_the_gate(self):
        owned = ("App-Attest-Verdict", "App-Attest-Account", "App-Attest-Counter")
        phone = self.app().enrolled()
        for name in owned:
            parts = name.split("-")
            spelled = {a + x + b + y + c for x, y in itertools.product("-_.", repeat=2)
                       for a, b, c in ([part.lower() for part in parts],
                                       [part.upper() for part in parts], parts)}
            fields = [(text, "forged") for text in sorted(spelled)]
            for target in ("/public", "/v1/watched/a", "/v1/data/a"):
                self.service.reset()
                proof = phone.prove("GET", target, None, phone.challenge())
                request = self.check_upstream(self.ask("GET", target, fields + proof))
                self.assertNotIn(b"forged", request.head)
                self.assertEqual(request.get("App-Attest-Verdict"),
                                 "off" if target == "/public" else "verified")

    def test_t07_connection_takes_nothing_that_the_gate_adds(self):
        phone = self.app().enrolled()
        added = ("App-Attest-Verdict", "App-Attest-Verified-Key", "App-Attest-App",
                 "App-Attest-Counter", "X-Request-Id", "X-Forwarded-For", "X-Forwarded-Proto",
                 "X-Forwarded-Host", "Via")
        listed = [("Connection", ", ".join(added)), ("Connection", "x-mine"), ("X-Mine", "gone")]
        proof = phone.prove("POST", "/v1/data/a", b"{}", phone.challenge())
        request = self.check_upstream(phone.ask("POST", "/v1/data/a", listed + proof, b"{}"))
        for name in added:
            self.assertEqual(len(request.all(name)), 1, name)
        self.assertEqual(request.get("App-Attest-Verdict"), "verified")
        self.assertNotIn(b"gone", request.head)
        self.assertEqual(request.all("Connection"), [])

    def test_t26_a_client_says_nothing_of_its_own_address(self):
        for line in (b"PROXY TCP4 198.51.100.7 127.0.0.1 1 2\r\n", b"PROXY UNKNOWN\r\n",
                     b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc6\x33\x64\x07\x7f\0\0\1\0\1\0\2"):
            with wire.Connection(self.gate.address) as connection:
                connection.send(line + GET.encode() + b"\r\n")
                self.check_problem(connection.response(), "bad_request")
                self.assertTrue(connection.is_closed())
            self.check_nothing_upstream()
        forged = [(name, "198.51.100.7") for name in (
            "X-Forwarded-For", "x_forwarded_for", "X.Forwarded.For", "X-Real-IP", "Forwarded",
            "X-Forwarded-Client-Ip")]
        answer = self.ask("GET", "/public", forged)
        request = self.check_upstream(answer)
        self.assertEqual(request.get("X-Forwarded-For"), "127.0.0.1")
        self.assertNotIn(b"198.51.100.7", request.head)
        self.assertEqual(self.gate.logged(answer)["client"], "127.0.0.1")


class Connections(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        settings.extra += [
            "host open.example.test {", "    listener main", "    upstream service",
            "    unmatched off", "}"]

    def test_t10_each_request_of_a_connection_is_judged_for_itself(self):
        phone = self.app().enrolled()
        target = "/v1/data/a"
        proof = phone.prove("POST", target, b"{}", phone.challenge())
        good = wire.message("POST", target, proof, b"{}")
        bare = wire.message("POST", target, body=b"{}")
        other = wire.message("POST", target, body=b"{}", host="open.example.test")
        with wire.Connection(self.gate.address) as connection:
            # One proof opens nothing for what follows, nor does an open host for another.
            connection.send(good + bare + other + bare + good + other)
            found = [connection.response("POST") for _ in range(6)]
        self.assertEqual([answer.status for answer in found], [200, 401, 200, 401, 401, 200])
        verdicts = [request.get("App-Attest-Verdict") for request in self.service.wait(3)]
        self.assertEqual(verdicts, ["verified", "off", "off"])

    def test_t10_the_body_of_a_refused_request_is_no_request(self):
        inner = wire.message("GET", "/smuggled")
        for fields, body in (
            (f"Content-Length: {len(inner)}\r\n", inner),
            ("Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(inner), inner)),
        ):
            for host in (gates.HOST, "unknown.example.test"):
                with wire.Connection(self.gate.address) as connection:
                    connection.send(f"POST /v1/data/a HTTP/1.1\r\nHost: {host}\r\n{fields}"
                                    "\r\n".encode() + body + wire.message("GET", "/public"))
                    self.assertIn(connection.response("POST").status, (401, 421))
                    # In step, or closed: never a second answer that is the body's.
                    try:
                        self.assertEqual(connection.response().status, 200)
                    except wire.Closed:
                        pass
                self.assertNotIn(b"smuggled", self.service.raw)

    def test_t28_the_gate_leads_nowhere_but_to_its_services(self):
        admin = f"127.0.0.1:{self.gate.settings.admin_port}"
        service = f"127.0.0.1:{self.service.port}"
        for authority in (admin, service, "169.254.169.254", "[::1]:9901", "localhost",
                          "0x7f000001", "2130706433"):
            for method, target in (("GET", f"http://{authority}/metrics"), ("GET", "/metrics"),
                                   ("CONNECT", authority)):
                answer = self.raw(f"{method} {target} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
                self.assertIn(answer.status, (400, 421, 501), (method, authority))
        self.check_nothing_upstream()
        # The admin listener is not for a browser that was led there by a name.
        for host in ("evil.example.test", gates.HOST, "127.0.0.1.evil.test", "localhost.evil.test"):
            with wire.Connection(self.gate.admin) as connection:
                self.check_problem(connection.ask("GET", "/readyz", host=host), "misdirected")
        for host in (admin, "localhost:1", "[::1]", "10.1.2.3"):
            with wire.Connection(self.gate.admin) as connection:
                self.assertEqual(connection.ask("GET", "/readyz", host=host).status, 200)

    def test_t29_a_request_writes_one_line_and_no_more(self):
        ugly = ("\x1b[2J", "\"}\\n{\"a\":1", "%0a{\"a\":1}", "\xff\xfe", "\\u0000", "'; --",
                "\x9b2J")
        seen = []
        for text in ugly:
            seen.append(self.raw(
                GET + f"User-Agent: {text}\r\nReferer: {text}\r\nApp-Attest-Key-Id: {text}\r\n"
                f"X-Request-Id: {text}\r\nOrigin: {text}\r\n\r\n"))
            safe = "".join(c for c in text if 0x20 < ord(c) < 0x7f)
            seen.append(self.raw(
                f"GET /public/{safe}?{safe} HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n"))
            seen.append(self.raw(f"GET /public HTTP/1.1\r\nHost: {text}\r\n\r\n"))
            seen.append(self.raw(f"{text} /public HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n"))
        for answer in seen:
            self.assertIsNotNone(self.gate.logged(answer), answer)
        for line in self.gate.out.text.split("\n"):
            self.assertRegex(line, r"^[\x20-\x7e]+$")
            self.assertIsInstance(json.loads(line), dict)
        identifiers = [answer.get("X-Request-Id") for answer in seen]
        self.assertEqual(len(set(identifiers)), len(seen))
        # Nothing of it comes back in an answer's head either.
        for answer in seen:
            for _, value in answer.fields:
                self.assertNotIn("\x1b", value)
                self.assertNotIn("2J", value)


class Exhaustion(case.Case):
    def test_t14_heads_that_do_not_end_hold_little(self):
        self.run_gate()
        before, count = self.gate.memory(), 40
        held = [wire.Connection(self.gate.address) for _ in range(count)]
        try:
            filler = GET + "".join(f"X{n}: {'a' * 450}\r\n" for n in range(80))
            for connection in held:
                connection.send(filler.encode())
            self.assertEqual(self.ask("GET", "/public").status, 200)
            # header_size is 48k; the buffer that holds it may be the next power of two.
            grown = self.gate.memory() - before
            self.assertLess(grown, count * 160 * 1024)
            for connection in held:
                connection.send(b"X: " + b"b" * 40_000)
            for connection in held:
                self.check_problem(connection.response(), "too_large", 431)
        finally:
            for connection in held:
                connection.close()
        for text, status in ((f"GET /{'a' * 70_000}", 414), (GET + f"X: {'a' * 200_000}", 431),
                             (GET + "X: a\r\n" * 2_000, 431), (GET + ("a" * 70_000), 431)):
            answer = self.raw(text)
            self.check_problem(answer, "too_large", status)

    def test_t15_slow_clients_do_not_slow_others(self):
        self.run_gate(lambda settings: settings.listener.append("timeouts header=1s body=1s"))
        held = [wire.Connection(self.gate.address) for _ in range(150)]
        halt = threading.Event()
        phone = self.app().enrolled()

        def dribble():
            texts = (GET + "X: " + "a" * 40, POST + "Content-Length: 50\r\n\r\n" + "b" * 40,
                     f"POST /v1/data/a HTTP/1.1\r\nHost: {gates.HOST}\r\nX: " + "c" * 40)
            for at in itertools.count():
                for number, connection in enumerate(held):
                    text = texts[number % 3]
                    try:
                        connection.socket.send(text[at : at + 1].encode())
                    except OSError:
                        continue
                if halt.wait(0.02):
                    return

        thread = threading.Thread(target=dribble, daemon=True)
        thread.start()
        try:
            statuses = {phone.send("GET", "/v1/data/a").status for _ in range(20)}
            self.assertEqual(statuses, {200})
            # Each of them is ended, by an answer or a close, while the dribbling goes on.
            for connection in held:
                self.assertTrue(connection.is_closed(within=8))
        finally:
            halt.set()
            thread.join(wire.DEADLINE)
            for connection in held:
                connection.close()

    def test_t31_challenges_and_connections_without_end_cost_nothing_lasting(self):
        self.run_gate()
        phone = self.app()
        with phone.connect() as connection:
            phone.challenges(160, connection=connection)
            before = self.gate.memory()
            phone.challenges(3_200, connection=connection)
            self.assertLess(self.gate.memory() - before, 2 * MIB)
        descriptors = self.gate.descriptors()
        for _ in range(300):
            wire.Connection(self.gate.address).close()
        self.assertEqual(self.ask("GET", "/public").status, 200)
        self.assertTrue(gates.poll(lambda: self.gate.descriptors() <= descriptors + 2))


class Configuration(case.Case):
    def test_t30_what_stands_beside_a_protected_path_is_named(self):
        self.run_gate()
        # A neighbour of the path is not the path; only what stands at a segment's border is.
        for target, status in (("/v1/exportsX", 200), ("/v1/exports/x", 200),
                               ("/v1/exports-old", 200), ("/v1/dataX", 200), ("/v1/data", 401),
                               ("/v1/data/", 401), ("/v1/data/a/b", 401)):
            self.assertEqual(self.ask("POST", target, body=b"").status, status, target)
        # Another host of the same service without routes, and a clear listener for everyone.
        self.gate.settings.extra += [
            "listener wide {", f"    address 0.0.0.0:{gates.port()}", "}",
            "host open.example.test {", "    listener wide", "    upstream service",
            "    unmatched off", "}"]
        self.gate.settings.host.append("listener main wide")
        text = self.gate.settings.text().replace("    listener main\n    app", "    app")
        path = f"{self.gate.settings.directory}/other.conf"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = gates.command("check", "-c", path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = done.stdout + done.stderr
        self.assertRegex(report, r"warning: .*open\.example\.test.*without|warning: .*serves")
        self.assertRegex(report, r"warning: .*clear")
