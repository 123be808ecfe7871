"""Edges of the protocol: response trailers, trace context, what logs say of their limits."""

import json
import os
import re
import select
import socket
import sys

import case
import gate as gates
import upstream
import wire

TRUSTED = "127.0.0.2"


class Trailers(case.SharedGate):
    CHUNKED = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Grpc-Status\r\n"
               b"\r\n5\r\nhello\r\n0\r\n")
    SENT = (b"X-Sum: abc\r\nSet-Cookie: gone\r\nGrpc-Status: 0\r\nContent-Length: 3\r\n"
            b"App-Attest-Verdict: gone\r\nx_request_id: gone\r\n\r\n")

    def sent(self, fields, version="1.1"):
        self.service.respond = lambda request: self.CHUNKED + self.SENT
        with wire.Connection(self.gate.address) as connection:
            text = f"GET /public HTTP/{version}\r\nHost: {gates.HOST}\r\n"
            connection.send((text + "".join(f"{f}\r\n" for f in fields) + "\r\n").encode())
            answer = connection.response()
            self.assertEqual((answer.status, answer.body), (200, b"hello"))
            if version == "1.1":  # the connection goes on
                self.assertEqual(connection.ask("GET", "/public").status, 200)
            return answer, connection.trailers

    def test_they_reach_a_client_that_takes_them(self):
        self.service.respond = lambda request: self.CHUNKED + self.SENT
        with wire.Connection(self.gate.address) as connection:
            answer = connection.ask("GET", "/public", [("TE", "trailers")])
            self.assertEqual(connection.trailers, ["X-Sum: abc", "Grpc-Status: 0"])
        self.assertEqual(answer.get("Trailer"), "X-Sum, Grpc-Status")
        self.assertEqual(self.service.wait(1)[0].all("TE"), [])

    def test_nobody_else_gets_any(self):
        for fields, version in (([], "1.1"), (["TE: gzip"], "1.1"), (["TE: trailers"], "1.0")):
            answer, trailers = self.sent(fields, version)
            self.assertEqual((trailers, answer.all("Trailer")), ([], []), fields)


class Trace(case.SharedGate):
    GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    FRESH = re.compile(r"^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$")

    def sent(self, fields):
        self.service.reset()
        return self.check_upstream(self.ask("GET", "/public", fields))

    def test_a_good_one_passes_with_its_state(self):
        request = self.sent([("traceparent", self.GOOD), ("tracestate", "a=b,c=d")])
        self.assertEqual(request.get("traceparent"), self.GOOD)
        self.assertEqual(request.get("tracestate"), "a=b,c=d")

    def test_none_and_a_bad_one_become_a_fresh_one(self):
        bad = [[], [("traceparent", "x")], [("traceparent", self.GOOD.upper())],
               [("traceparent", self.GOOD + "-")], [("traceparent", self.GOOD)] * 2,
               [("traceparent", self.GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32))]]
        seen = set()
        for fields in bad:
            request = self.sent([*fields, ("tracestate", "a=b")])
            self.assertRegex(request.get("traceparent"), self.FRESH)
            self.assertEqual(request.all("tracestate"), [])
            seen.add(request.get("traceparent"))
        self.assertEqual(len(seen), len(bad))


class Forwarded(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        settings.listener.append(f"trusted_proxies {TRUSTED}/32")

    def test_it_passes_from_trusted_proxies_alone(self):
        value = 'for="[2001:db8::1]:4711";proto=https'
        for source, expected in ((TRUSTED, [value]), ("127.0.0.1", [])):
            self.service.reset()
            answer = self.ask("GET", "/public", [("Forwarded", value)], source=source)
            self.assertEqual(self.check_upstream(answer).all("Forwarded"), expected)


class Lingering(case.SharedGate):
    def test_an_answer_to_what_is_malformed_can_be_read_by_who_still_sends(self):
        bad = f"GET /public HTTP/1.1\r\nHost: {gates.HOST}\r\nX : y\r\n\r\n".encode()
        for size in (0, 1000, 55_000):
            with self.subTest(size=size), wire.Connection(self.gate.address) as connection:
                connection.send(bad + b"x" * size)
                self.check_problem(connection.response(), "bad_request")
                # What was sent is read and dropped, or the close would be a reset.
                self.assertTrue(connection.is_closed())
                self.assertFalse(gates.poll(lambda sent=connection: self.error(sent), within=1.5))

    @staticmethod
    def error(connection):
        return connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


class Logs(case.Case):
    def test_a_spool_that_cannot_be_used_names_its_directive(self):
        def change(settings):
            settings.spool_lines = ["max 64k files=4"]
            settings.routes["* /v1/data/*"] = ["mode enforce", "body max=1m memory=1k"]
        self.run_gate(change)
        phone = self.app().enrolled()
        answer = phone.send("POST", "/v1/data/a", b"x" * 200_000)
        self.check_problem(answer, "retry_later")
        self.assertTrue(self.gate.err.wait(lambda line: "spool max" in line), self.gate.err.text)

    def test_lines_that_a_full_disk_takes_no_more_are_counted(self):
        # /dev/full answers every write with ENOSPC.
        self.run_gate(lambda settings: settings.top.append("log {\n    access /dev/full\n}"))
        for _ in range(3):
            self.assertEqual(self.ask("GET", "/public").status, 200)
        line = self.gate.err.wait(lambda line: "access log: write: No space left" in line)
        self.assertIsNotNone(line, self.gate.err.text)
        self.assertIn("counted", line)

    def test_a_pipe_that_is_full_loses_no_line_uncounted_and_cuts_none(self):
        fifo = os.path.join(self.temporary(), "fifo")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        # A standard output that does not block, as some supervisors hand it down.
        start = ("import os, sys; os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK), 1);"
                 "os.set_inheritable(1, True); os.execvp(sys.argv[2], sys.argv[2:])")
        self.run_gate(prefix=[sys.executable, "-c", start, fifo])
        asked = 0

        def ask(count):
            nonlocal asked
            with wire.Connection(self.gate.address) as connection:
                for _ in range(count):
                    connection.ask("GET", "/public/" + "x" * 300)
            asked += count
        ask(400)
        line = self.gate.err.wait(lambda line: "access log: write: Resource temporarily" in line)
        self.assertIsNotNone(line, self.gate.err.text)
        text = b""

        def is_told():
            nonlocal text
            ask(1)
            while select.select([reader], [], [], 0.1)[0]:
                text += os.read(reader, 1 << 16)
            if not text.endswith(b"\n"):
                return False
            found = []
            for line in text.decode("ascii").splitlines():
                if line.endswith("}"):
                    found.append(json.loads(line))
                else:
                    self.assertTrue(line.startswith('{"time"'))  # cut short, and counted
            dropped = sum(entry.get("dropped_lines", 0) for entry in found)
            self.assertLessEqual(len(found), asked + 2)
            return dropped > 0 and sum("time" in entry for entry in found) + dropped == asked
        self.assertTrue(gates.poll(is_told), text[-600:])

    def test_error_level_is_the_least_that_is_written(self):
        for level, expected in (("warn", True), ("error", False)):
            def change(settings, level=level):
                settings.top.append(f"log {{\n    error level={level}\n}}")
            service = upstream.Stage()
            self.addCleanup(service.close)
            self.run_gate(change, service=service)
            with wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", "/public"))
                service.accept()[0].close()
                self.check_problem(connection.response(), "upstream_unavailable")
            self.gate.stop()
            self.assertEqual("warn: upstream " in self.gate.err.text, expected, level)

    def test_accounts_are_logged_as_they_are_where_the_operator_says_so(self):
        def change(settings):
            settings.listener.append(f"trusted_proxies {TRUSTED}/32")
            settings.account = "header X-Account-Id"
            settings.top.append("log {\n    account_in_log plain\n}")
        self.run_gate(change)
        phone = self.app(account="alice", source=TRUSTED).enrolled()
        entry = self.gate.logged(phone.send("GET", "/v1/data/a"))
        self.assertEqual(entry["account"], "alice")


class SetField(case.Case):
    def test_a_secret_of_systemd_goes_up_and_nobody_can_send_it(self):
        directory = self.temporary()
        with open(f"{directory}/gate-secret", "w", encoding="ascii") as file:
            file.write("s3cret\n")
        self.run_gate(
            lambda settings: settings.upstream.append(
                "set_field X-Gate-Secret credential:gate-secret"),
            environment={"CREDENTIALS_DIRECTORY": directory})
        answer = self.ask("GET", "/public", [("X-Gate-Secret", "forged"),
                                             ("X.Gate.Secret", "forged")])
        request = self.check_upstream(answer)
        self.assertEqual(request.get("X-Gate-Secret"), "s3cret")
        self.assertNotIn(b"forged", request.head)
        self.assertNotIn("s3cret", self.gate.out.text + self.gate.err.text)
