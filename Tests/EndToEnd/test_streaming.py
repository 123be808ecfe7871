"""Off routes stream both ways; a slow side slows the other, and memory stays bounded."""

import select
import signal
import socket
import threading

import case
import gate as gates
import upstream
import wire

MIB = 1 << 20


class Streaming(case.Case):
    def setUp(self):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)
        self.run_gate(service=self.stage)

    def begin(self, connection, extra="Transfer-Encoding: chunked\r\n", method="POST"):
        """Sends a head and hands over the service's end once the head is there."""
        connection.send(
            f"{method} /public HTTP/1.1\r\nHost: {gates.HOST}\r\n{extra}\r\n".encode())
        service, reader = self.stage.accept()
        head = reader.until(b"\r\n\r\n")
        return service, reader, head

    def test_a_request_goes_up_as_it_comes(self):
        with wire.Connection(self.gate.address) as connection:
            service, reader, head = self.begin(connection)
            self.assertIn(b"transfer-encoding: chunked", head.lower())
            for piece in (b"one", b"two", b"three"):
                connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.assertEqual(reader.take(int(reader.until(b"\r\n"), 16)), piece)
                reader.take(2)
            connection.send(b"0\r\n\r\n")
            self.assertEqual(reader.until(b"\r\n\r\n"), b"0")
            service.sendall(upstream.answer())
            self.assertEqual(connection.response().status, 200)

    def test_a_length_stays_a_length(self):
        with wire.Connection(self.gate.address) as connection:
            service, reader, head = self.begin(connection, "Content-Length: 10\r\n")
            self.assertIn(b"content-length: 10", head.lower())
            connection.send(b"01234")
            self.assertEqual(reader.take(5), b"01234")
            connection.send(b"56789")
            self.assertEqual(reader.take(5), b"56789")
            service.sendall(upstream.answer())
            self.assertEqual(connection.response().status, 200)

    def test_an_answer_comes_down_as_it_goes(self):
        with wire.Connection(self.gate.address) as connection:
            service, _, _ = self.begin(connection, "", "GET")
            service.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            answer = connection.read_head()
            self.assertEqual(answer.get("Transfer-Encoding"), "chunked")
            for piece in (b"one", b"two", b"three"):
                service.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.assertEqual(connection.take(int(connection.line(), 16)), piece)
                connection.take(2)
            self.assertTrue(connection.is_silent())
            service.sendall(b"0\r\n\r\n")
            self.assertEqual((connection.line(), connection.line()), (b"0", b""))
            self.assertTrue(connection.is_silent())

    def test_an_answer_without_length_ends_with_its_connection(self):
        with wire.Connection(self.gate.address) as connection:
            service, _, _ = self.begin(connection, "", "GET")
            service.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
            service.close()
            answer = connection.response()
            self.assertEqual(answer.body, b"hello")

    def test_100_continue_is_passed_on_both_ways(self):
        with wire.Connection(self.gate.address) as connection:
            extra = "Content-Length: 5\r\nExpect: 100-continue\r\n"
            service, reader, head = self.begin(connection, extra)
            self.assertIn(b"expect: 100-continue", head.lower())
            self.assertTrue(connection.is_silent())
            service.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            while b"\r\n\r\n" not in connection.buffer:
                connection.more()
            self.assertTrue(connection.buffer.startswith(b"HTTP/1.1 100"))
            connection.send(b"hello")
            self.assertEqual(reader.take(5), b"hello")
            service.sendall(upstream.answer())
            self.assertEqual(connection.response().status, 200)

    def test_an_early_answer_is_relayed_and_ends_the_upload(self):
        with wire.Connection(self.gate.address) as connection:
            service, _, _ = self.begin(connection, "Content-Length: 100000000\r\n")
            connection.send(b"x" * 1000)
            service.sendall(upstream.answer(b"no", "403 Forbidden"))
            answer = connection.response()
            self.assertEqual((answer.status, answer.body), (403, b"no"))
            self.assertTrue(connection.is_closed())

    def test_a_client_that_goes_away_ends_the_exchange(self):
        with wire.Connection(self.gate.address) as connection:
            _, reader, _ = self.begin(connection)
            connection.send(b"5\r\nhello\r\n")
            reader.until(b"hello\r\n")
        with self.assertRaises((EOFError, ConnectionError)):
            reader.until(b"0\r\n\r\n")

    def test_a_client_that_goes_away_during_an_answer_frees_the_upstream(self):
        with wire.Connection(self.gate.address) as connection:
            service, _, _ = self.begin(connection, "", "GET")
            service.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            connection.read_head()
        left = upstream.deadline()
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            while True:
                service.settimeout(left())
                service.sendall(b"x" * 65536)

    def test_an_answer_that_breaks_off_is_seen_as_broken(self):
        for head in (b"Content-Length: 10", b"Transfer-Encoding: chunked"):
            with wire.Connection(self.gate.address) as connection:
                service, _, _ = self.begin(connection, "", "GET")
                body = b"hello" if b"Length" in head else b"5\r\nhello\r\n"
                service.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)
                service.close()
                with self.assertRaises(wire.Closed):
                    connection.response()

    def flood(self, send):
        """Sends until nothing is taken for a second; how many bytes were taken."""
        block, taken = b"x" * 65536, 0
        send.setblocking(False)
        while select.select([], [send], [], 1.0)[1]:
            try:
                taken += send.send(block)
            except BlockingIOError:
                continue
            self.assertLess(taken, 256 * MIB, "no back-pressure")
        send.setblocking(True)
        return taken

    def test_a_slow_reader_slows_the_service_down(self):
        with wire.Connection(self.gate.address, receive_buffer=65536) as connection:
            service, _, _ = self.begin(connection, "", "GET")
            service.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
            connection.read_head()
            before = self.gate.memory()
            taken = self.flood(service)
            self.assertLess(self.gate.memory() - before, 8 * MIB)
            self.assertLess(taken, 64 * MIB)
            got = len(connection.buffer)
            while got < taken:
                data = connection.socket.recv(1 << 18)
                self.assertTrue(data, "cut short")
                got += len(data)
            service.sendall(b"more")
            self.assertEqual(connection.socket.recv(5), b"more")

    def test_a_slow_service_slows_the_client_down(self):
        with wire.Connection(self.gate.address) as connection:
            size = 1 << 40
            _, reader, _ = self.begin(connection, f"Content-Length: {size}\r\n")
            before = self.gate.memory()
            taken = self.flood(connection.socket)
            self.assertLess(self.gate.memory() - before, 8 * MIB)
            self.assertLess(taken, 64 * MIB)
            self.assertEqual(len(reader.take(taken)), taken)


class Fairness(case.Case):
    """One busy connection on the only loop leaves the others their turn."""

    def setUp(self):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)
        self.run_gate(lambda settings: settings.top.append("loops 1"), service=self.stage)
        self.busy = wire.Connection(self.gate.address, timeout=60)
        self.addCleanup(self.busy.close)

    def start(self, *steps):
        """Runs each step again and again until its socket is closed."""
        def run(step):
            try:
                while step():
                    pass
            except OSError:
                pass
        for step in steps:
            threading.Thread(target=run, args=(step,), daemon=True).start()

    def check_bystander(self):
        for _ in range(5):
            self.assertEqual(self.ask("OPTIONS", "*").status, 200)

    def test_an_upload_in_chunks_of_one_octet(self):
        block = b"1\r\nx\r\n" * 20000
        self.busy.send(b"POST /public HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
                       % gates.HOST.encode())
        service, reader = self.stage.accept()
        reader.until(b"\r\n\r\n")
        self.start(lambda: self.busy.socket.sendall(block) is None,
                   lambda: service.recv(1 << 20))
        self.check_bystander()

    def test_an_answer_without_end(self):
        self.busy.send(wire.message("GET", "/public"))
        service, reader = self.stage.accept()
        reader.until(b"\r\n\r\n")
        service.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        block = b"x" * MIB
        self.start(lambda: service.sendall(block) is None,
                   lambda: self.busy.socket.recv(1 << 20))
        self.check_bystander()


class Ends(case.Case):
    """An answer that is complete in the gate reaches the client whole, whatever ends meanwhile."""

    SIZE = 3 * MIB

    def begin(self, change=None):
        """An answer whose end is in the gate and whose client has read nothing yet."""
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)
        self.run_gate(change, service=self.stage)
        connection = wire.Connection(self.gate.address, receive_buffer=4096)
        self.addCleanup(connection.close)
        connection.send(wire.message("GET", "/public"))
        service, reader = self.stage.accept()
        reader.until(b"\r\n\r\n")
        sender = threading.Thread(
            target=service.sendall, args=(upstream.answer(b"x" * self.SIZE),), daemon=True)
        sender.start()
        # All of it is on its way, or the gate takes no more: the sockets' buffers differ.
        self.assertTrue(gates.poll(lambda: not sender.is_alive() or is_full(service)))
        return connection, sender

    def finish(self, connection, sender):
        answer = connection.response()
        self.assertEqual(len(answer.body), self.SIZE)
        sender.join(wire.DEADLINE)
        return answer

    def test_a_half_closed_client_gets_all_of_it(self):
        connection, sender = self.begin()
        connection.socket.shutdown(socket.SHUT_WR)
        self.finish(connection, sender)

    def test_a_client_slower_than_keepalive_gets_all_of_it(self):
        connection, sender = self.begin(
            lambda settings: settings.listener.append("timeouts keepalive=250ms"))
        gates.pass_time(1)
        self.finish(connection, sender)

    def test_a_stopping_gate_finishes_it(self):
        connection, sender = self.begin()
        self.gate.signal(signal.SIGTERM)
        self.assertTrue(self.gate.wait_notification("STOPPING=1"))
        self.finish(connection, sender)


class Bounds(case.Case):
    def test_a_body_waits_while_no_connection_to_the_service_stands(self):
        # A listener whose backlog is full answers no SYN: the connection stays in the making.
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            fillers = []
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(deaf.getsockname())
                fillers.append(filler)
                self.addCleanup(filler.close)

            def change(settings):
                settings.servers = [f"127.0.0.1:{deaf.getsockname()[1]}"]
                settings.upstream.append("timeouts connect=5s")
            self.run_gate(change)
            with wire.Connection(self.gate.address) as connection:
                before = self.gate.memory()
                connection.send(
                    f"POST /public HTTP/1.1\r\nHost: {gates.HOST}\r\n"
                    f"Content-Length: {1 << 30}\r\n\r\n".encode())
                taken = Streaming.flood(self, connection.socket)
                self.assertLess(taken, 16 * MIB)
                self.assertLess(self.gate.memory() - before, 8 * MIB)

    def test_requests_whose_answers_nobody_reads_are_not_taken(self):
        self.run_gate()
        body = b'{"purpose":"request","count":16}'
        call = wire.message("POST", "/v1/app-attest/challenges", body=body)
        with wire.Connection(self.gate.address, receive_buffer=4096) as deaf:
            before = self.gate.memory()
            deaf.socket.setblocking(False)
            sent = 0
            while select.select([], [deaf.socket], [], 1.0)[1] and sent < 64 * MIB:
                try:
                    sent += deaf.socket.send(call * 100)
                except BlockingIOError:
                    continue
            self.assertLess(sent, 64 * MIB)
            self.assertLess(self.gate.memory() - before, 8 * MIB)
            self.assertEqual(self.ask("GET", "/public").status, 200)

    def test_an_answer_behind_pipelined_ones_comes_once_they_are_read(self):
        self.run_gate()
        call = wire.message("POST", "/v1/app-attest/challenges", body=b'{"purpose":"request"}')
        with wire.Connection(self.gate.address, receive_buffer=4096) as connection:
            calls = 1500
            connection.socket.setblocking(True)
            sender = threading.Thread(
                target=connection.send,
                args=(call * calls + wire.message("GET", "/public"),), daemon=True)
            sender.start()
            self.assertTrue(gates.poll(
                lambda: not sender.is_alive() or is_full(connection.socket)))
            for _ in range(calls):
                self.assertEqual(connection.response().status, 200)
            self.assertEqual(connection.response().status, 200)
            sender.join(wire.DEADLINE)

    def test_a_client_that_waits_for_100_is_not_timed_out_by_the_gate(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        self.run_gate(
            lambda settings: settings.listener.append("timeouts body=1s"), service=stage)
        with wire.Connection(self.gate.address) as connection:
            connection.send(
                f"POST /public HTTP/1.1\r\nHost: {gates.HOST}\r\nContent-Length: 2\r\n"
                "Expect: 100-continue\r\n\r\n".encode())
            service, reader = stage.accept()
            reader.until(b"\r\n\r\n")
            gates.pass_time(1.6)
            service.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.assertEqual(
                connection.socket.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.send(b"hi")
            self.assertEqual(reader.take(2), b"hi")
            service.sendall(upstream.answer())
            self.assertEqual(connection.response().status, 200)


def is_full(connection):
    """Whether a socket takes nothing, and still takes nothing a moment later."""
    return not select.select([], [connection], [], 0.05)[1]
