"""HTTP/2 from clients: the same requests and the same checks, many at once, each bounded."""

import os
import subprocess
import threading

import h2.errors

import case
import pki
import secure
import gate as gates
import upstream
import wire
import wire2


def speaks(settings, lines=("http h2c h1",)):
    settings.listener += lines


class Requests(case.SharedGate):
    """One gate that speaks both versions in clear text."""

    @classmethod
    def configure(cls, settings):
        speaks(settings)

    def client(self, **options):
        client = wire2.Client(self.gate.address, **options)
        self.addCleanup(client.close)
        return client

    def test_a_request_reaches_the_service_as_one_of_http1(self):
        answer = self.client().ask(
            "POST", "/public/a?x=1", [("User-Agent", "a"), ("Cookie", "a=1"), ("Cookie", "b=2"),
                                      ("X-Trace-Token", "T")], b"hello")
        request = self.check_upstream(answer)
        self.assertEqual((request.method, request.target), ("POST", "/public/a?x=1"))
        self.assertEqual(request.version, "HTTP/1.1")
        self.assertEqual(request.get("Host"), gates.HOST)
        self.assertEqual(request.get("Cookie"), "a=1; b=2")
        self.assertEqual(request.body, b"hello")
        # Services that read the case of names know them so.
        self.assertIn("X-Trace-Token", request.names)
        self.assertIn("User-Agent", request.names)
        entry = self.gate.logged(answer)
        self.assertEqual(entry["protocol"], "HTTP/2.0")
        self.assertEqual(entry["status"], 200)
        self.assertGreater(entry["bytes_in"], 5)
        self.assertGreater(entry["bytes_out"], 3)

    def test_an_answer_says_nothing_of_the_connection(self):
        self.service.respond = lambda request: upstream.answer(
            fields=["Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", "X-Kept: 2",
                    "X-Request-Id: theirs", "App-Attest-Next-Challenge: theirs"])
        answer = self.client().ask("GET", "/public/a")
        names = [name for name, _ in answer.fields]
        self.assertEqual([name for name in names if name != name.lower()], [])
        for name in ("connection", "keep-alive", "x-hop", "transfer-encoding",
                     "app-attest-next-challenge"):
            self.assertNotIn(name, names)
        self.assertEqual(answer.get("x-kept"), "2")
        self.assertNotEqual(answer.get("x-request-id"), "theirs")
        self.assertEqual(answer.get("content-length"), "3")
        self.assertTrue(answer.get("date"))

    def test_a_body_of_unknown_length_goes_either_way(self):
        self.service.respond = lambda request: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(request.body), request.body))
        body = os.urandom(300_000)
        answer = self.client().ask("POST", "/public/a", body=body)
        self.assertEqual(answer.body, body)
        self.assertEqual(self.service.requests[0].get("Transfer-Encoding"), "chunked")
        self.assertIsNone(answer.get("content-length"))
        answer = self.client().ask(
            "POST", "/public/a", [("content-length", str(len(body)))], body)
        self.assertEqual(answer.body, body)
        self.assertEqual(self.service.requests[1].get("Content-Length"), str(len(body)))

    def test_answers_without_a_body(self):
        client = self.client()
        head = client.ask("HEAD", "/public/a")
        self.assertEqual((head.status, head.body, head.get("content-length")), (200, b"", "3"))
        self.service.respond = lambda request: b"HTTP/1.1 204 No Content\r\n\r\n"
        none = client.ask("DELETE", "/public/a")
        self.assertEqual((none.status, none.body, none.get("content-length")), (204, b"", None))
        self.service.respond = lambda request: (
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: \"a\"\r\n\r\n")
        same = client.ask("GET", "/public/a")
        self.assertEqual((same.status, same.body, same.get("etag")), (304, b"", '"a"'))

    def test_hints_come_before_the_answer(self):
        self.service.respond = lambda request: (
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + upstream.answer())
        answer = self.client().ask("GET", "/public/a")
        self.assertEqual([status for status, _ in answer.interim], [103])
        self.assertEqual(answer.interim[0][1], [("link", "</a>")])
        self.assertEqual(answer.status, 200)

    def test_a_refusal_is_the_same_problem(self):
        client = self.client()
        stream = client.begin("POST", "/v1/data/a", end=False)
        client.body(stream, b"{}", end=False)
        answer = client.answer(stream)
        self.check_problem(answer, "proof_required")
        self.check_nothing_upstream()
        self.assertEqual(answer.get("cache-control"), "no-store")
        # The rest of the request is not wanted, and the connection serves on.
        self.assertEqual(client.ask("GET", "/public/a").status, 200)
        self.check_problem(client.ask("GET", "/public/a", host="other.test"), "misdirected")
        self.check_problem(client.ask("GET", "/v1/data//a"), "path_ambiguous")
        head = client.ask("HEAD", "/v1/data/a")
        self.assertEqual((head.status, head.body), (401, b""))
        self.assertEqual(client.ask("OPTIONS", "*").status, 200)

    def test_a_proof_passes_once(self):
        phone = self.app().enrolled()
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            for body in (None, b"{}", os.urandom(200_000)):
                with self.subTest(binding=binding, size=len(body or b"")):
                    self.service.reset()
                    client = self.client()
                    proof = phone.prove("POST", path, body, phone.challenge(), binding)
                    answer = client.ask("POST", path, proof, body)
                    request = self.check_upstream(answer)
                    self.assertEqual(request.body, body or b"")
                    self.assertEqual(request.get("App-Attest-Verdict"), "verified")
                    self.check_next_challenge(answer)
                    self.check_problem(
                        client.ask("POST", path, proof, body), "challenge_required")
                    self.assertEqual(len(self.service.requests), 1)

    def test_a_proof_of_another_body_is_refused(self):
        phone = self.app().enrolled()
        proof = phone.prove("POST", "/v1/data/a", b"{}", phone.challenge())
        self.check_problem(
            self.client().ask("POST", "/v1/data/a", proof, b"{ }"), "rejected")
        self.check_nothing_upstream()

    def test_copies_of_a_proof_on_one_connection(self):
        phone = self.app().enrolled()
        proof = phone.prove("POST", "/v1/data/a", b"{}", phone.challenge())
        client = self.client()
        streams = [client.begin("POST", "/v1/data/a", proof, end=False) for _ in range(50)]
        for stream in streams:
            client.body(stream, b"{}")
        statuses = sorted(client.answer(stream).status for stream in streams)
        self.assertEqual(statuses, [200] + [401] * 49)
        self.assertEqual(len(self.service.requests), 1)

    def test_a_client_that_waits_for_100(self):
        client = self.client()
        phone = self.app().enrolled()
        body = b"x" * 5000
        expect = [("expect", "100-continue"), ("content-length", "5000")]
        proof = phone.prove("POST", "/v1/data/a", body, phone.challenge())
        stream = client.begin("POST", "/v1/data/a", [*proof, *expect], end=False)
        waiting = client.answers[stream]
        self.assertTrue(client.until(lambda: waiting.interim))
        self.assertEqual(waiting.interim[0][0], 100)
        client.body(stream, body)
        self.check_upstream(client.answer(stream))
        # Where a body streams it is the service that says so.
        self.service.respond = lambda request: b"HTTP/1.1 100 Continue\r\n\r\n" + \
            upstream.answer()
        self.service.reset()
        stream = client.begin("POST", "/public/a", expect, end=False)
        client.body(stream, body)
        self.check_upstream(client.answer(stream))
        self.assertEqual(self.service.requests[0].get("Expect"), "100-continue")
        stream = client.begin("POST", "/v1/data/a", expect, end=False)
        answer = client.answer(stream)
        self.check_problem(answer, "proof_required")
        self.assertEqual(answer.interim, [])
        self.check_problem(
            client.ask("GET", "/public/a", [("expect", "y")]), "expectation_failed")

    def test_trailers_of_an_answer_pass(self):
        self.service.respond = lambda request: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
            b"2\r\nok\r\n0\r\nX-Sum: 7\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n")
        answer = self.client().ask("GET", "/public/a")
        self.assertEqual(answer.body, b"ok")
        self.assertEqual(answer.trailers, [("x-sum", "7")])
        self.assertEqual(answer.get("trailer"), "X-Sum")
        self.service.respond = lambda request: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\nok\r\n0\r\nSet-Cookie: a=b\r\n\r\n")
        answer = self.client().ask("GET", "/public/a")
        self.assertEqual((answer.body, answer.trailers, answer.is_ended), (b"ok", None, True))

    def test_request_trailers_are_dropped(self):
        client = self.client()
        stream = client.begin("POST", "/public/a", end=False)
        client.body(stream, b"hello", end=False)
        client.h2.send_headers(stream, [("x-user", "admin")], end_stream=True)
        client.flush()
        request = self.check_upstream(client.answer(stream))
        self.assertEqual(request.body, b"hello")
        self.assertNotIn(b"admin", self.service.raw)

    def test_http1_is_spoken_on_the_same_listener(self):
        self.check_upstream(self.ask("GET", "/public/a"))
        with wire.Connection(self.gate.address) as connection:
            for part in (b"P", b"R", b"OPFIND /public/a HTTP/1.1\r\nHost: ", b"a\r\n\r\n"):
                connection.send(part)
            self.assertEqual(connection.response().status, 421)

    def test_malformed_heads_are_answered_or_reset(self):
        for fields in ([("host", "evil.test")], [("te", "gzip")], [("connection", "close")],
                       [("x", "a\r\nb: c")], [("transfer-encoding", "chunked")]):
            with self.subTest(fields=fields):
                answer = self.client().ask("GET", "/public/a", fields)
                self.assertIn((answer.status, answer.reset), [(400, None), (None, 1)])
                self.check_nothing_upstream()
        answer = self.client().ask("GET", "/public/a", [("host", "evil.test")])
        self.check_problem(answer, "bad_request")
        # What could not be answered has its line as well.
        entry = self.gate.log(lambda entry: "status" not in entry)
        self.assertEqual((entry["reason"], entry["bytes_out"]), ("malformed", 0))

    def test_heads_over_a_limit(self):
        client = self.client()
        long = client.ask("GET", "/" + "a" * 9000)
        self.check_problem(long, "too_large", 414)
        many = client.ask("GET", "/public/a", [(f"x-{n}", "y") for n in range(200)])
        self.check_problem(many, "too_large", 431)
        self.assertEqual(client.ask("GET", "/public/a").status, 200)
        # The third within half a minute is one too many.
        client.ask("GET", "/public/a", [(f"x-{n}", "y") for n in range(200)])
        self.assertEqual(client.goaways, [h2.errors.ErrorCodes.ENHANCE_YOUR_CALM])
        self.check_nothing_upstream

    def test_streams_are_served_side_by_side(self):
        let = threading.Event()
        self.addCleanup(let.set)

        def respond(request):
            if request.target == "/public/slow":
                let.wait(wire.DEADLINE)
            return upstream.answer()
        self.service.respond = respond
        client = self.client()
        slow = client.begin("GET", "/public/slow")
        for _ in range(20):
            self.assertEqual(client.ask("GET", "/public/a").status, 200)
        self.assertFalse(client.answers[slow].is_over)
        let.set()
        self.assertEqual(client.answer(slow).status, 200)

    def test_large_answers_share_the_connection(self):
        body = os.urandom(2_000_000)
        self.service.respond = lambda request: upstream.answer(
            body if request.target == "/public/large" else b"ok\n")
        self.service.keeps_raw = False
        client = self.client(window=1 << 20)
        client.h2.increment_flow_control_window(1 << 28)
        large = [client.begin("GET", "/public/large") for _ in range(4)]
        small = client.ask("GET", "/public/small")
        self.assertEqual(small.status, 200)
        for stream in large:
            self.assertEqual(client.answer(stream).body, body)

    def test_an_answer_cut_short_is_reset(self):
        self.service.respond = lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"
        self.service.closes = True
        client = self.client()
        answer = client.ask("GET", "/public/a")
        # What had not left goes with the stream.
        self.assertIn((answer.status, answer.body), [(200, b"short"), (200, b""), (None, b"")])
        self.assertEqual(answer.reset, h2.errors.ErrorCodes.INTERNAL_ERROR)
        self.assertFalse(answer.is_ended)

    def test_curl_and_nghttp(self):
        url = f"http://127.0.0.1:{self.gate.settings.port}/public/a"
        host = ["-H", f"Host: {gates.HOST}"]
        done = subprocess.run(
            ["curl", "-sS", "--http2-prior-knowledge", *host, "-d", "@-", "-w", "%{http_version}",
             url], input=b"x" * 200_000, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.stdout, b"ok\n2", done.stderr)
        self.assertEqual(self.service.requests[0].body, b"x" * 200_000)
        done = subprocess.run(
            ["nghttp", "-v", "-H", f":authority: {gates.HOST}", url], capture_output=True,
            text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(":status: 200", done.stdout)
        self.assertNotIn("PROTOCOL_ERROR", done.stdout)


class Encrypted(case.Case):
    """HTTP/2 over TLS, where ALPN chooses it."""

    def setUp(self):
        self.pki = pki.Authority(self.temporary())
        self.identity = self.pki.issue("api", gates.HOST, "other.test")

    def serve(self, *lines):
        def configure(settings):
            settings.listener += ["tls {", "    " + self.identity.line, "}", *lines]
            settings.extra += ["host other.test {", "    listener main", "    upstream service",
                               "    unmatched off", "}"]
        return self.run_gate(configure)

    def connect(self, alpn):
        context = secure.context(self.pki, alpn=alpn)
        connection = secure.Connection(self.gate.address, context)
        self.addCleanup(connection.close)
        return connection

    def client(self):
        connection = self.connect(["h2", "http/1.1"])
        self.assertEqual(connection.socket.selected_alpn_protocol(), "h2")
        return wire2.Client(self.gate.address, tls=connection.socket)

    def test_both_are_offered_and_http2_is_dearer(self):
        self.serve()
        answer = self.client().ask("GET", "/public/a", scheme="https")
        request = self.check_upstream(answer)
        self.assertEqual(request.get("X-Forwarded-Proto"), "https")
        entry = self.gate.logged(answer)
        self.assertEqual((entry["protocol"], entry["tls"]), ("HTTP/2.0", "TLSv1.3"))
        for alpn in (["http/1.1"], []):
            self.assertEqual(self.connect(alpn).ask("GET", "/public/a").status, 200)

    def test_what_is_not_offered_cannot_be_had(self):
        self.serve("http h1")
        old = self.connect(["h2", "http/1.1"])
        self.assertEqual(old.socket.selected_alpn_protocol(), "http/1.1")
        self.assertEqual(self.gate.stop(), 0)
        self.serve("http h2")
        self.assertEqual(self.client().ask("GET", "/public/a").status, 200)
        self.assertTrue(self.connect([]).is_closed())

    def test_hosts_of_one_certificate_share_a_connection(self):
        self.serve()
        client = self.client()
        for host in (gates.HOST, "other.test"):
            self.assertEqual(client.ask("GET", "/public/a", host=host).status, 200)

    def test_large_bodies_both_ways(self):
        self.serve()
        body = os.urandom(3_000_000)
        self.service.keeps_raw = False
        self.service.respond = lambda request: upstream.answer(request.body)
        client = self.client()
        self.assertEqual(client.ask("POST", "/public/a", body=body).body, body)

    def test_curl(self):
        self.serve()
        port = self.gate.settings.port
        done = subprocess.run(
            ["curl", "-sS", "--http2", "--cacert", self.pki.pem, "--resolve",
             f"{gates.HOST}:{port}:127.0.0.1", "-w", "%{http_version}",
             f"https://{gates.HOST}:{port}/public/a"],
            capture_output=True, timeout=60, check=False)
        self.assertEqual(done.stdout, b"ok\n2", done.stderr)


class Load(case.Case):
    # All that is promised of the build that ships; a debug build takes its time.
    REQUESTS = 20_000 if "/debug/" in gates.BINARY else 100_000

    def test_h2load(self):
        def change(settings):
            speaks(settings, ["http h2c", "limits requests=1000000"])
            settings.upstream.append("keepalive 200 idle=60s")
        self.run_gate(change)
        self.service.keeps_raw = False
        done = subprocess.run(
            ["h2load", "-n", str(self.REQUESTS), "-c", "8", "-m", "16",
             "-H", f":authority: {gates.HOST}",
             f"http://127.0.0.1:{self.gate.settings.port}/public/a"],
            capture_output=True, text=True, timeout=600, check=False)
        self.assertIn(f"{self.REQUESTS} succeeded, 0 failed, 0 errored, 0 timeout", done.stdout,
                      done.stderr)
        self.assertIn(f"status codes: {self.REQUESTS} 2xx", done.stdout)
        self.assertEqual(self.gate.stop(), 0)
