"""Services that answer wrongly or say too much (threat T16): nobody is given another's answer."""

import re
import select
import signal
import threading

import case
import gate as gates
import upstream
import wire

MIB = 1 << 20
POISON = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Poison: yes\r\n\r\npoison"


def ok(text, fields=b""):
    return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (fields, len(text), text)


class Played(case.Case):
    """A gate with one loop before a service that the test plays by hand."""

    def setUp(self):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)

        def change(settings):
            settings.top.append("loops 1")
            settings.upstream = ["timeouts connect=2s first_byte=5s idle=2s", "retry 0"]
        self.run_gate(change, service=self.stage)

    def serve(self, connection, answer, method="GET", target="/public", body=None):
        """One exchange with the service's next connection, which is handed over after it."""
        connection.send(wire.message(method, target, body=body))
        service, reader = self.stage.accept()
        reader.request()
        service.sendall(answer)
        return service, connection.response(method)

    def check_clean(self, connection, method="GET", body=None):
        """The next request goes over a new connection and is answered by that."""
        service, answer = self.serve(
            connection, ok(b"right", b"Connection: close\r\n"), method, "/public/next", body)
        self.assertEqual((answer.status, answer.body), (200, b"right"))
        self.assertTrue(is_over(service))


class Queue(Played):
    """Bytes of the service that no request asked for (response queue poisoning)."""

    def test_t16_a_second_answer_in_the_same_write(self):
        with wire.Connection(self.gate.address) as connection:
            for method in ("GET", "POST", "GET"):
                body = b"" if method == "POST" else None
                _, answer = self.serve(connection, ok(b"first") + POISON, method, body=body)
                self.assertEqual(answer.body, b"first")
            self.check_clean(connection)

    def test_t16_a_second_answer_after_the_first(self):
        with wire.Connection(self.gate.address) as connection:
            for text in (POISON, b"\r\n", b"H", b"HTTP/1.1 100 Continue\r\n\r\n",
                         b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"):
                service, answer = self.serve(connection, ok(b"first"))
                self.assertEqual(answer.body, b"first")
                service.sendall(text)
                # The gate drops such a connection by itself, before anyone asks for it.
                self.assertTrue(select.select([service], [], [], wire.DEADLINE)[0])
                self.assertTrue(is_over(service))
            self.check_clean(connection)

    def test_t16_a_second_answer_and_the_next_request_at_once(self):
        # While the gate stands still both arrive; which it looks at first must not matter.
        with wire.Connection(self.gate.address) as first, \
                wire.Connection(self.gate.address) as second:
            service, answer = self.serve(second, ok(b"warm"))
            for number in range(24):
                method = ("GET", "POST", "PUT", "HEAD")[number % 4]
                body = b"x" if method in ("POST", "PUT") else None
                self.gate.signal(signal.SIGSTOP)
                try:
                    self.stopped()
                    request = wire.message(method, f"/public/{number}", body=body)
                    if number % 3:
                        service.sendall(POISON)
                        first.send(request)
                    else:
                        first.send(request)
                        service.sendall(POISON)
                finally:
                    self.gate.signal(signal.SIGCONT)
                service, reader = self.stage.accept()
                self.assertEqual(reader.request().target, f"/public/{number}")
                service.sendall(ok(b"" if method == "HEAD" else b"right"))
                answer = first.response(method)
                self.assertEqual((answer.status, answer.all("X-Poison")), (200, []), number)
                if method != "HEAD":
                    self.assertEqual(answer.body, b"right")

    def stopped(self):
        def state():
            with open(f"/proc/{self.gate.process.pid}/stat", encoding="ascii") as file:
                return file.read().rsplit(")", 1)[1].split()[0]
        self.assertTrue(gates.poll(lambda: state() == "T", every=0.001))

    def test_t16_an_answer_before_there_is_a_request(self):
        # A service that speaks first, as mail servers do: its greeting is no answer to anyone.
        with wire.Connection(self.gate.address) as connection:
            service, _ = self.serve(connection, ok(b"first"))
            service.close()
            connection.send(wire.message("GET", "/public"))
            service, _ = self.stage.accept()
            service.sendall(b"220 mail.example.test ESMTP\r\n")
            self.check_problem(connection.response(), "upstream_unavailable")
            self.check_clean(connection)


class Lengths(Played):
    def test_t16_two_lengths(self):
        forms = (
            b"Content-Length: 5\r\nContent-Length: 5\r\n", b"Content-Length: 5, 5\r\n",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"Content-Length: 0x5\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: chunked, identity\r\n", b"Content-Length : 5\r\n",
            b"Content-Length: 99999999999999999999\r\n", b"Content-Length: -1\r\n",
            b"X: a\r\n\tContent-Length: 5\r\n", b"Content-Length: 5\nX: y\r\n",
        )
        with wire.Connection(self.gate.address) as connection:
            for form in forms:
                with self.subTest(form=form):
                    service, answer = self.serve(
                        connection, b"HTTP/1.1 200 OK\r\n" + form + b"\r\nhello" + POISON)
                    self.check_problem(answer, "upstream_unavailable")
                    self.assertTrue(is_over(service))
                    self.check_clean(connection)

    def test_t16_a_body_where_none_can_be(self):
        cases = (("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 67\r\n\r\n"),
                 ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                 ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
                 ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 67\r\n\r\n"))
        for method, head in cases:
            for at_once in (True, False):
                with self.subTest(head=head, at_once=at_once), \
                        wire.Connection(self.gate.address) as connection:
                    service, answer = self.serve(
                        connection, head + (POISON if at_once else b""), method)
                    self.assertEqual(answer.body, b"")
                    self.assertEqual(answer.status, int(head[9:12]))
                    if not at_once:
                        service.sendall(POISON)
                    self.assertTrue(is_over(service))
                    self.check_clean(connection)

    def test_t16_a_body_shorter_than_its_length_is_cut_for_the_client_too(self):
        for head in (b"Content-Length: 10\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n"
                     b"5\r\nhello\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"):
            with wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", "/public"))
                service, reader = self.stage.accept()
                reader.request()
                service.sendall(b"HTTP/1.1 200 OK\r\n" + head)
                self.assertEqual(connection.read_head().status, 200)
                service.close()
                with self.assertRaises(wire.Closed):
                    connection.chunks() if b"chunked" in head else connection.take(10)

    def test_t16_chunks_of_an_answer_that_are_none(self):
        for body in (b"0x5\r\nhello\r\n0\r\n\r\n", b"+5\r\nhello\r\n0\r\n\r\n",
                     b"5\nhello\r\n0\r\n\r\n", b"5\r\nhelloXX0\r\n\r\n",
                     b"fffffffffffffffff\r\nhello", b"5;\nx\r\nhello\r\n0\r\n\r\n",
                     b"5\r\nhello\r\n0\r\nX : y\r\n\r\n"):
            with self.subTest(body=body), wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", "/public"))
                service, reader = self.stage.accept()
                reader.request()
                service.sendall(
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + POISON)
                # Too late for a 502 where the head has gone; never a whole answer, though.
                try:
                    answer = connection.response()
                    self.check_problem(answer, "upstream_unavailable")
                except wire.Closed:
                    pass
                self.assertNotIn(b"poison", connection.buffer)
                self.assertTrue(is_over(service))


class Heads(Played):
    def test_t16_interim_answers_without_end(self):
        flood = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 200_000
        for text, code in ((flood, 502), (b"HTTP/1.1 100 Continue\r\n\r\n" * 200_000, 502),
                           (b"HTTP/1.1 199 X\r\n\r\n" * 9, 502)):
            with wire.Connection(self.gate.address) as connection:
                before = self.gate.memory()
                connection.send(wire.message("GET", "/public"))
                service, reader = self.stage.accept()
                reader.request()
                sender = threading.Thread(target=push, args=(service, text), daemon=True)
                sender.start()
                answer = connection.response()
                self.assertEqual(answer.status, code)
                self.assertLessEqual(len(answer.interim), 8)
                sender.join(wire.DEADLINE)
                self.assertFalse(sender.is_alive())
                self.assertLess(self.gate.memory() - before, 4 * MIB)

    def test_t16_a_giant_head(self):
        for text in (b"X: " + b"a" * (64 * MIB), b"X: a\r\n" * MIB, b"a" * (16 * MIB)):
            with wire.Connection(self.gate.address) as connection:
                before = self.gate.memory()
                connection.send(wire.message("GET", "/public"))
                service, reader = self.stage.accept()
                reader.request()
                sender = threading.Thread(
                    target=push, args=(service, b"HTTP/1.1 200 OK\r\n" + text), daemon=True)
                sender.start()
                self.check_problem(connection.response(), "upstream_unavailable")
                sender.join(wire.DEADLINE)
                self.assertFalse(sender.is_alive())
                self.assertLess(self.gate.memory() - before, 4 * MIB)

    def test_t16_a_switch_of_protocols_that_nobody_asked_for(self):
        for fields in (b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Upgrade: h2c\r\n", b""):
            with wire.Connection(self.gate.address) as connection:
                service, answer = self.serve(
                    connection, b"HTTP/1.1 101 Switching Protocols\r\n" + fields + b"\r\n"
                    + POISON)
                self.check_problem(answer, "upstream_unavailable")
                self.assertTrue(is_over(service))
                # No tunnel stands: what the client sends is a request of its own.
                self.check_clean(connection)

    def test_t16_octets_of_a_head_that_split_it(self):
        for octet in (*range(0x20), 0x7f):
            for text in (b"X: a%bb\r\n", b"X%b: a\r\n", b"Location: /%bx\r\n"):
                sent = bytes([octet])
                if octet == 0x09 and b"X%b" not in text:
                    continue
                with self.subTest(octet=octet, text=text), \
                        wire.Connection(self.gate.address) as connection:
                    service, answer = self.serve(
                        connection, b"HTTP/1.1 200 OK\r\n" + text % sent
                        + b"Content-Length: 0\r\n\r\n")
                    self.check_problem(answer, "upstream_unavailable")
                    service.close()

    def test_t16_status_lines(self):
        good = (b"HTTP/1.1 200 OK", b"HTTP/1.1 200 ", b"HTTP/1.0 200 OK", b"HTTP/1.1 599 \xe9")
        bad = (b"HTTP/1.1  200 OK", b"HTTP/1.1 2000 OK", b"HTTP/1.1 099 OK", b"HTTP/1.1 +20 OK",
               b"http/1.1 200 OK", b"HTTP/1.2 200 OK", b"HTTP/1.1 200 a\x00b", b" HTTP/1.1 200 OK",
               b"ICY 200 OK", b"HTTP/1.1 200\tOK", b"HTTP/1.1 2 0 OK", b"HTTP/1.1 1000")
        for line in good + bad:
            with self.subTest(line=line), wire.Connection(self.gate.address) as connection:
                service, answer = self.serve(
                    connection, line + b"\r\nContent-Length: 0\r\n\r\n")
                if line in good:
                    self.assertEqual(answer.status, int(line.split(b" ")[1]))
                else:
                    self.check_problem(answer, "upstream_unavailable")
                service.close()

    def test_t16_nothing_of_a_request_is_echoed_into_a_head(self):
        # A decoded %0d%0a in a field the gate writes would split the answer or the request.
        for target in ("/public/%0d%0aX-Split:%20yes", "/public?%0d%0aX-Split:%20yes",
                       "/closed/%0d%0aX-Split:%20yes", "/v1/exports%0d%0aX-Split:%20yes"):
            connection = wire.Connection(self.gate.address)
            connection.send(wire.message("PUT", target, body=b""))
            if target.startswith("/public?"):
                service, reader = self.stage.accept()
                self.assertEqual(reader.request().target, target)
                service.sendall(ok(b""))
            answer = connection.response("PUT")
            self.assertFalse(any(re.search("split", name, re.I) for name, _ in answer.fields))
            connection.close()


def push(service, data):
    """Sends all that is taken; the gate may close in the midst of it."""
    try:
        service.sendall(data)
    except OSError:
        pass


def is_over(service, within=wire.DEADLINE):
    """Whether the gate closes this connection of the service, whatever it sent before."""
    service.settimeout(within)
    try:
        while service.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True
