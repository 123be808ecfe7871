"""HTTP/1.1 at the gate: what is refused before any policy, and how connections go on."""

import time

import case
import gate as gates
import upstream
import wire

GET = f"GET /public HTTP/1.1\r\nHost: {gates.HOST}\r\n"
POST = f"POST /public HTTP/1.1\r\nHost: {gates.HOST}\r\n"


class Messages(case.SharedGate):
    def refused(self, text, code, status=None, closes=True):
        with wire.Connection(self.gate.address) as connection:
            connection.send(text if isinstance(text, bytes) else text.encode("latin-1"))
            answer = connection.response()
            self.check_problem(answer, code, status)
            if closes:
                self.assertEqual(answer.get("Connection"), "close")
                self.assertTrue(connection.is_closed())
            self.check_nothing_upstream()
            return answer

    def test_malformed_heads_are_bad_requests_and_close(self):
        for text in (
            "GET /public HTTP/1.1\r\n\r\n", GET + f"Host: {gates.HOST}\r\n\r\n",
            GET + "Host: other.example.test\r\n\r\n", "GET /public HTTP/1.1\r\nHost:\r\n\r\n",
            "GET /public HTTP/1.1\r\nHost: a b\r\n\r\n", "GET public HTTP/1.1\r\nHost: a\r\n\r\n",
            GET + "X : a\r\n\r\n", GET + " X: a\r\n\r\n", GET + "X: a\r\n b\r\n\r\n",
            GET + "X\r\n\r\n", GET + ": a\r\n\r\n", GET + "X: a\0b\r\n\r\n",
            GET + "X: a\x01\r\n\r\n", GET + "X: a\x7f\r\n\r\n", GET + "X: a\nY: b\r\n\r\n",
            GET + "X: a\rY: b\r\n\r\n", GET.replace("\r\n", "\n") + "\n", GET + "\n\n",
            "GET  /public HTTP/1.1\r\nHost: a\r\n\r\n", "GET\t/public HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /public  HTTP/1.1\r\nHost: a\r\n\r\n", "G@T /public HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\n\r\n\r\n" + GET + "\r\n", " " + GET + "\r\n", "GET /a b HTTP/1.1\r\n\r\n",
            "GET /public http/1.1\r\nHost: a\r\n\r\n", "GET /public HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET /public HTTP/1.1x\r\nHost: a\r\n\r\n", "GET /a\x80 HTTP/1.1\r\nHost: a\r\n\r\n",
            f"GET /a#b HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n", "GET / FTP/1.1\r\n\r\n",
            f"GET ?a HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n", "GET /public\r\n\r\n",
        ):
            with self.subTest(text=text):
                answer = self.raw(text)
                if answer.status == 505:  # where the version is what is wrong, either will do
                    self.check_problem(answer, "version_not_supported")
                elif answer.code == "path_ambiguous":
                    self.assertIn("#", text)
                else:
                    self.refused(text, "bad_request")

    def test_lengths_that_two_could_read_differently(self):
        ok = "0\r\n\r\n"
        for fields, body in (
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ok),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", ok),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
            ("Content-Length: 5, 5\r\n", "hello"), ("Content-Length: +5\r\n", "hello"),
            ("Content-Length: -5\r\n", "hello"), ("Content-Length: 5a\r\n", "hello"),
            ("Content-Length:\r\n", ""), ("Content-Length: 0x5\r\n", "hello"),
            ("Content-Length: 5 5\r\n", "hello"), ("Content-Length: 5.0\r\n", "hello"),
            ("Content-Length: 1234567890123456789\r\n", ""),
            ("Transfer-Encoding: gzip\r\n", ok), ("Transfer-Encoding: gzip, chunked\r\n", ok),
            ("Transfer-Encoding: chunked, chunked\r\n", ok), ("Transfer-Encoding:\r\n", ok),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", ok),
            ("Transfer-Encoding: chunked;q=1\r\n", ok), ("Transfer-Encoding: \x0bchunked\r\n", ok),
            ("Transfer-Encoding: identity\r\n", ok), ("Transfer-Encoding: ,chunked\r\n", ok),
        ):
            with self.subTest(fields=fields):
                self.refused(POST + fields + "\r\n" + body, "bad_request", 400)

    def test_chunks_that_are_none(self):
        for body in (
            "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
            " 5\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n",
            "5\r\nhelloXX0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n",
            "000000005\r\nhello\r\n0\r\n\r\n", "fffffffff\r\n", "g\r\n", "5;\nxx\r\nhello\r\n",
            "5;a=\x01\r\nhello\r\n0\r\n\r\n", "5;" + "a" * 1100 + "\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello\r\n0\r\nX\r\n\r\n", "5\r\nhello\r\n0\r\nX : y\r\n\r\n",
            "5\r\nhello\r\n0\r\n\n",
        ):
            with self.subTest(body=body[:30]):
                # On a route that holds the body, so that nothing has gone upstream.
                text = f"POST /v1/app-attest/challenges HTTP/1.1\r\nHost: {gates.HOST}\r\n"
                text += "Transfer-Encoding: chunked\r\n\r\n" + body
                self.refused(text, "bad_request", 400)

    def test_too_many_trailers_are_too_large(self):
        text = f"POST /v1/app-attest/challenges HTTP/1.1\r\nHost: {gates.HOST}\r\n"
        text += "Transfer-Encoding: chunked\r\n\r\n0\r\n" + "X: y\r\n" * 17 + "\r\n"
        self.refused(text, "too_large", 431)

    def test_versions(self):
        for version in ("HTTP/2.0", "HTTP/1.2", "HTTP/3.0", "HTTP/0.9", "HTTP/9.9"):
            text = f"GET /public {version}\r\nHost: {gates.HOST}\r\n\r\n"
            with wire.Connection(self.gate.address) as connection:
                connection.send(text.encode())
                answer = connection.response()
                self.assertIn(answer.code, ("version_not_supported", "bad_request"), text)
                self.assertTrue(connection.is_closed())
        self.check_nothing_upstream()

    def test_methods_outside_the_registry_connect_and_trace(self):
        for method in ("BREW", "get", "Get", "FOO-BAR", "CONNECT", "TRACE"):
            target = f"{gates.HOST}:443" if method == "CONNECT" else "/public"
            answer = self.raw(f"{method} {target} HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n")
            self.check_problem(answer, "not_implemented")
        self.check_nothing_upstream()

    def test_expectations(self):
        for value in ("200-ok", "100-continue, x", "y 100-continue", "100-continue;q=1"):
            text = POST + f"Expect: {value}\r\nContent-Length: 2\r\n\r\n{{}}"
            self.refused(text, "expectation_failed", 417, closes=False)

    def test_unknown_hosts_are_misdirected(self):
        for host in ("other.example.test", "127.0.0.1", "[::1]:80", "api.example.test.evil",
                     "xapi.example.test", "api.example.test.."):
            answer = self.raw(f"GET /public HTTP/1.1\r\nHost: {host}\r\n\r\n")
            self.assertIn(answer.code, ("misdirected", "bad_request"), host)
            if host != "api.example.test..":
                self.check_problem(answer, "misdirected")
        self.check_nothing_upstream()

    def test_a_host_is_known_with_port_dot_and_in_any_case(self):
        for host in ("API.Example.Test", "api.example.test:8080", "api.example.test.",
                     "api.example.test.:80"):
            answer = self.raw(f"GET /public HTTP/1.1\r\nHost: {host}\r\n\r\n")
            self.assertEqual(answer.status, 200, host)

    def test_absolute_form(self):
        for target, host, good in (
            ("http://api.example.test/public?x", gates.HOST, True),
            ("https://api.example.test/public?x", gates.HOST, True),
            ("http://other.example.test/public", gates.HOST, False),
            ("http://api.example.test/public", "other.example.test", False),
            ("http:/public", gates.HOST, False), ("http:public", gates.HOST, False),
            ("ftp://api.example.test/public", gates.HOST, False),
            ("http://u@api.example.test/public", gates.HOST, False),
            ("http://127.0.0.1:9901/metrics", "127.0.0.1:9901", False),
        ):
            with self.subTest(target=target, host=host):
                self.service.reset()
                answer = self.raw(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
                if good:
                    self.assertEqual(self.check_upstream(answer).target, "/public?x")
                else:
                    self.assertIn(answer.code, ("bad_request", "misdirected"), answer)
                    self.check_nothing_upstream()

    def test_the_gate_answers_options_star(self):
        answer = self.raw(f"OPTIONS * HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n")
        self.assertEqual(answer.status, 200, answer)
        self.check_nothing_upstream()

    def test_limits_of_the_head(self):
        cases = [
            ("target", f"GET /{'a' * 8192} HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n", 414),
            ("field", GET + f"X: {'a' * 32769}\r\n\r\n", 431),
            ("fields", GET + "".join(f"X{n}: a\r\n" for n in range(101)) + "\r\n", 431),
            ("head", GET + "".join(f"X{n}: {'a' * 9000}\r\n" for n in range(6)) + "\r\n", 431),
        ]
        for what, text, status in cases:
            with self.subTest(what=what):
                self.refused(text, "too_large", status)
        answer = self.raw(GET + "".join(f"X{n}: a\r\n" for n in range(90)) + "\r\n")
        self.assertEqual(answer.status, 200)
        answer = self.raw(GET + f"X: {'a' * 32000}\r\n\r\n")
        self.assertEqual(answer.status, 200)
        answer = self.raw(f"GET /{'a' * 8000} HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n")
        self.assertEqual(answer.status, 200)

    def test_a_head_without_an_end_is_answered_at_the_limit(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(GET.encode() + b"X: " + b"a" * 200_000)
            self.check_problem(connection.response(), "too_large", 431)
            self.assertTrue(connection.is_closed())

    def test_octets_are_judged_as_they_arrive(self):
        for text in ("\x16\x03\x01", "GET /public HTTP/1.1\r\nX : ", "GET /public HTTP/1.1\n",
                     "GET /a\x01", "GET /public HTTP/1.1\r\nHost: a\r\n X", "GET /public XTTP"):
            with wire.Connection(self.gate.address, timeout=4) as connection:
                connection.send(text.encode("latin-1"))
                self.assertEqual(connection.response().status, 400, text)
                self.assertTrue(connection.is_closed())

    def test_an_answer_can_be_read_although_the_body_was_not(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("POST", "/v1/data/a", body=b"x" * 60000))
            self.check_problem(connection.response(), "proof_required")
        self.check_nothing_upstream()

    def test_an_early_refusal_needs_no_body(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(
                f"POST /v1/data/a HTTP/1.1\r\nHost: {gates.HOST}\r\nExpect: 100-continue\r\n"
                "Content-Length: 1000000\r\n\r\n".encode())
            answer = connection.response()
            self.assertEqual(answer.interim, [])
            self.check_problem(answer, "proof_required")

    def test_a_leading_empty_line_is_ignored_once(self):
        self.assertEqual(self.raw("\r\n" + GET + "\r\n").status, 200)

    def test_problem_of_the_admin_listener_is_its_own(self):
        self.assertEqual(self.gate.readyz(), 200)
        with wire.Connection(self.gate.admin) as connection:
            host = f"127.0.0.1:{self.gate.settings.admin_port}"
            self.assertEqual(connection.ask("GET", "/healthz", host=host).status, 200)
            self.assertEqual(connection.ask("GET", "/nothing", host=host).status, 404)
            self.assertIn(connection.ask("POST", "/healthz", body=b"", host=host).status,
                          (404, 405))


class Connections(case.SharedGate):
    def test_requests_of_one_connection_are_judged_one_by_one(self):
        text = (GET + "\r\n").encode()
        gated = f"GET /v1/data/a HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n".encode()
        with wire.Connection(self.gate.address) as connection:
            connection.send(text + gated + text + gated + text)
            statuses = [connection.response().status for _ in range(5)]
        self.assertEqual(statuses, [200, 401, 200, 401, 200])
        self.assertEqual(len(self.service.wait(3)), 3)

    def test_pipelined_signed_requests_come_back_in_order(self):
        phone = self.app().enrolled()
        sent = b""
        for number in range(20):
            body = b"%d" % number
            target = f"/v1/data/{number}"
            proof = phone.prove("POST", target, body, phone.challenge())
            sent += wire.message("POST", target, proof, body)

        self.service.respond = lambda request: upstream.answer(request.body)
        with wire.Connection(self.gate.address) as connection:
            connection.send(sent)
            bodies = [connection.response("POST").body for _ in range(20)]
        self.assertEqual(bodies, [b"%d" % number for number in range(20)])

    def test_keep_alive_and_close(self):
        with wire.Connection(self.gate.address) as connection:
            for _ in range(3):
                self.assertEqual(connection.ask("GET", "/public").status, 200)
            answer = connection.ask("GET", "/public", [("Connection", "close")])
            self.assertEqual(answer.get("Connection"), "close")
            self.assertTrue(connection.is_closed())

    def test_nothing_behind_a_closing_request_is_read(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send((GET + "Connection: close\r\n\r\n" + GET + "\r\n").encode())
            self.assertEqual(connection.response().status, 200)
            self.assertTrue(connection.is_closed())
        self.assertEqual(len(self.service.wait(1)), 1)

    def test_http_1_0(self):
        text = f"GET /public HTTP/1.0\r\nHost: {gates.HOST}\r\n"
        with wire.Connection(self.gate.address) as connection:
            connection.send((text + "\r\n").encode())
            answer = connection.response()
            self.assertEqual((answer.status, answer.body), (200, b"ok\n"))
            self.assertTrue(connection.is_closed())
        self.assertEqual(self.service.wait(1)[0].version, "HTTP/1.1")
        self.check_problem(self.raw("GET /public HTTP/1.0\r\n\r\n"), "bad_request")
        self.check_problem(
            self.raw(text + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "bad_request")

    def test_http_1_0_gets_no_chunks(self):
        self.service.respond = lambda request: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        text = f"GET /public HTTP/1.0\r\nHost: {gates.HOST}\r\n\r\n"
        with wire.Connection(self.gate.address) as connection:
            connection.send(text.encode())
            answer = connection.response()
            self.assertEqual(answer.all("Transfer-Encoding"), [])
            self.assertEqual(answer.body, b"hello")
            self.assertTrue(connection.is_closed())

    def test_a_head_may_come_in_single_bytes(self):
        phone = self.app().enrolled()
        proof = phone.prove("POST", "/v1/data/a", b"xyz", phone.challenge())
        text = wire.message("POST", "/v1/data/a", proof, b"xyz")
        with wire.Connection(self.gate.address) as connection:
            for at in range(len(text)):
                connection.send(text[at : at + 1])
            answer = connection.response("POST")
        self.assertEqual(self.check_upstream(answer).body, b"xyz")

    def test_continue_is_sent_once_all_that_needs_no_body_has_passed(self):
        phone = self.app().enrolled()
        for path, binding in (("/v1/data/a", "client_data"), ("/v1/signed/a", "request")):
            self.service.reset()
            proof = phone.prove("POST", path, b"hello", phone.challenge(), binding)
            head = wire.message("POST", path, [*proof, ("Expect", "100-Continue"),
                                               ("Content-Length", "5")])
            with wire.Connection(self.gate.address) as connection:
                connection.send(head)
                while b"\r\n\r\n" not in connection.buffer:
                    connection.more()
                self.assertTrue(connection.buffer.startswith(b"HTTP/1.1 100 "))
                connection.send(b"hello")
                answer = connection.response("POST")
                self.assertEqual(answer.interim, [100])
            request = self.check_upstream(answer)
            self.assertEqual(request.all("Expect"), [])
        self.service.reset()
        proof = phone.prove("POST", "/v1/data/b", b"hello", phone.challenge())
        head = wire.message("POST", "/v1/data/a", [*proof, ("Expect", "100-continue"),
                                                   ("Content-Length", "5")])
        with wire.Connection(self.gate.address) as connection:
            connection.send(head)
            answer = connection.response("POST")
        self.assertEqual(answer.interim, [])
        self.check_problem(answer, "rejected")

    def test_preflights(self):
        proper = [("Origin", "https://a"), ("Access-Control-Request-Method", "POST")]
        answer = self.ask("OPTIONS", "/v1/exports", proper)
        self.assertEqual(self.check_upstream(answer).get("App-Attest-Verdict"), "off")
        for fields, body in (([], None), (proper[:1], None), (proper[1:], None), (proper, b"x")):
            self.service.reset()
            answer = self.ask("OPTIONS", "/v1/exports", fields, body)
            self.check_problem(answer, "method_not_allowed")
            self.check_nothing_upstream()
        self.service.reset()
        self.check_problem(self.ask("OPTIONS", "/closed/a", proper), "not_found")
        self.check_problem(
            self.ask("OPTIONS", "/v1/app-attest/keys", proper), "method_not_allowed")
        self.check_nothing_upstream()


class Deadlines(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        settings.listener.append(
            "timeouts header=1s body=1s body_min_rate=1k keepalive=1s write=2s")
        settings.listener.append("limits requests=3 per_address=30")

    def test_a_head_that_does_not_end_times_out(self):
        with wire.Connection(self.gate.address) as connection:
            began = time.monotonic()
            connection.send(GET.encode())
            answer = connection.response()
            self.check_problem(answer, "request_timeout")
            self.assertTrue(connection.is_closed())
            self.assertLess(time.monotonic() - began, 5)
        self.check_nothing_upstream()

    def test_a_head_begun_behind_a_request_is_owed_an_answer(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public") + b"GET /pub")
            self.assertEqual(connection.response().status, 200)
            self.check_problem(connection.response(), "request_timeout")
            self.assertTrue(connection.is_closed())

    def test_a_body_that_stops_times_out(self):
        phone = self.app().enrolled()
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            body = b"hello"
            proof = phone.prove("POST", path, body, phone.challenge(), binding)
            with wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("POST", path, proof, body)[:-2])
                self.check_problem(connection.response("POST"), "request_timeout")
                self.assertTrue(connection.is_closed())
        self.check_nothing_upstream()

    def test_an_idle_connection_is_closed_without_a_word(self):
        with wire.Connection(self.gate.address) as connection:
            self.assertTrue(connection.is_closed())
            self.assertEqual(connection.buffer, b"")
        with wire.Connection(self.gate.address) as connection:
            self.assertEqual(connection.ask("GET", "/public").status, 200)
            self.assertTrue(connection.is_closed())
            self.assertEqual(connection.buffer, b"")

    def test_a_connection_ends_after_so_many_requests(self):
        with wire.Connection(self.gate.address) as connection:
            answers = [connection.ask("GET", "/public") for _ in range(3)]
            self.assertEqual([answer.get("Connection") for answer in answers],
                             [None, None, "close"])
            self.assertTrue(connection.is_closed())

    def test_connections_of_one_address_have_a_limit(self):
        held = [wire.Connection(self.gate.address, source="127.0.0.9") for _ in range(30)]
        try:
            for connection in held:
                self.assertEqual(connection.ask("GET", "/public").status, 200)
            extra = wire.Connection(self.gate.address, source="127.0.0.9")
            try:
                extra.send((GET + "\r\n").encode())
                answer = extra.response()
                self.assertIn(answer.status, (429, 503))
            except wire.Closed:
                pass
            finally:
                extra.close()
            with wire.Connection(self.gate.address, source="127.0.0.10") as other:
                self.assertEqual(other.ask("GET", "/public").status, 200)
        finally:
            for connection in held:
                connection.close()
