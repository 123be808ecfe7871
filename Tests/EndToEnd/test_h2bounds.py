"""HTTP/2 from clients: what a connection may cost, how long it may take, and how it ends."""

import os
import select
import signal
import struct
import threading
import time

import h2.errors

import case
import upstream
import wire
import wire2
from wire2 import Frames, block, frame

MIB = 1 << 20
CALM = h2.errors.ErrorCodes.ENHANCE_YOUR_CALM


class Bounded(case.Case):
    def speak(self, *lines, service=None, change=None):
        def both(settings):
            settings.listener += ["http h2c", *lines]
            if change:
                change(settings)
        return self.run_gate(both, service=service)

    def stage(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        return stage

    def client(self, **options):
        client = wire2.Client(self.gate.address, **options)
        self.addCleanup(client.close)
        return client

    def frames(self, *parts):
        connection = Frames(self.gate.address)
        self.addCleanup(connection.close)
        connection.send(Frames.PREFACE + b"".join(parts))
        return connection


class FlowControl(Bounded):
    def push(self, connection, size):
        """Sends up to `size` bytes; how many were taken before the reader stood still."""
        connection.setblocking(False)
        sent, part = 0, bytes(64 * 1024)
        while sent < size and select.select([], [connection], [], 0.5)[1]:
            sent += connection.send(part[:size - sent])
        connection.setblocking(True)
        return sent

    def test_a_client_that_grants_no_window_stops_the_service(self):
        stage = self.stage()
        self.speak(service=stage)
        client = self.client(window=1000)
        stream = client.begin("GET", "/public/a")
        connection, reader = stage.accept()
        reader.request()
        size = 64 * MIB
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        before = self.gate.memory()
        client.reads = False
        sent = self.push(connection, size)
        self.assertTrue(client.until(lambda: len(client.answers[stream].body) == 1000))
        # What the gate holds, and what the kernel's buffers do.
        self.assertLess(sent, 16 * MIB)
        self.assertLess(self.gate.memory() - before, 2 * MIB)
        self.assertEqual(len(client.answers[stream].body), 1000)
        # Another stream of the connection is served meanwhile.
        other = client.begin("GET", "/public/b")
        second, reader = stage.accept()
        reader.request()
        second.sendall(upstream.answer())
        self.assertEqual(client.answer(other).status, 200)
        client.reads = True
        client.h2.increment_flow_control_window(1 << 30, stream)
        client.h2.increment_flow_control_window(1 << 30)
        client.flush()
        rest = threading.Thread(target=connection.sendall, args=(bytes(size - sent),))
        rest.start()
        answer = client.answer(stream, within=120)
        rest.join(30)
        self.assertEqual(len(answer.body), size)
        self.assertTrue(answer.is_ended)
        self.assertLess(self.gate.memory() - before, 8 * MIB)

    def test_a_service_that_does_not_read_stops_the_client(self):
        stage = self.stage()
        self.speak(service=stage)
        client = self.client(timeout=1)
        before = self.gate.memory()
        stream = client.begin("POST", "/public/a", end=False)
        connection, reader = stage.accept()
        reader.until(b"\r\n\r\n")
        body, sent = os.urandom(64 * MIB), 0
        try:
            while sent < len(body):
                room = min(client.h2.local_flow_control_window(stream), 16384)
                if room:
                    client.h2.send_data(stream, body[sent:sent + room])
                    sent += room
                    client.flush()
                else:
                    client.step(1)
        except TimeoutError:
            pass
        self.assertLess(sent, 16 * MIB)
        self.assertLess(self.gate.memory() - before, 3 * MIB)
        # Another stream is served meanwhile.
        other = client.begin("POST", "/public/b", end=False)
        client.body(other, b"x" * 100_000)
        second, reader2 = stage.accept()
        self.assertEqual(len(reader2.request().body), 100_000)
        second.sendall(upstream.answer())
        self.assertEqual(client.answer(other).status, 200)
        seen = []
        taking = threading.Thread(target=lambda: seen.append(reader.chunks()))
        taking.start()
        self.assertTrue(client.body(stream, body[sent:]))
        taking.join(60)
        self.assertEqual(seen, [body])
        connection.sendall(upstream.answer())
        self.assertEqual(client.answer(stream).status, 200)
        self.assertLess(self.gate.memory() - before, 8 * MIB)

    def test_a_large_protected_body_waits_in_the_spool(self):
        self.speak(change=lambda settings: settings.routes.update(
            {"POST /v1/large": ["body max=64m memory=64k"]}))
        client = self.client()
        body = os.urandom(8 * MIB)
        phone = self.phone(client)
        proof = phone.prove("POST", "/v1/large", body, phone.challenge())
        before = self.gate.memory()
        seen = []

        def respond(request):
            seen.append(request.body)
            return upstream.answer()
        self.service.keeps_raw, self.service.respond = False, respond
        stream = client.begin("POST", "/v1/large", proof, end=False)
        client.body(stream, body)
        self.assertEqual(client.answer(stream, within=60).status, 200)
        self.assertEqual(seen, [body])
        self.assertLess(self.gate.memory() - before, 3 * MIB)

    def phone(self, client):
        """An app that enrols over `client`."""
        phone = self.app()
        phone.ask = lambda method, target, fields=(), body=None, connection=None, **options: \
            client.ask(method, target, [*phone.account, *fields], body)
        return phone.enrolled()


class Stalls(Bounded):
    def test_a_stream_whose_window_stays_closed_is_reset(self):
        self.speak("timeouts write=500ms")
        client = self.client(window=1)
        client.reads = False
        stream = client.begin("GET", "/public/a")
        answer = client.answer(stream, within=10)
        self.assertEqual(answer.reset, h2.errors.ErrorCodes.CANCEL)
        # A client that reads is served on.
        other = client.begin("GET", "/public/a")
        client.h2.increment_flow_control_window(1000, other)
        client.flush()
        self.assertEqual(client.answer(other).body, b"ok\n")

    def test_a_connection_whose_window_stays_closed_is_closed(self):
        self.speak("timeouts write=500ms")
        self.service.respond = lambda request: upstream.answer(bytes(100_000))
        client = self.client(window=1 << 20)
        client.reads = False
        stream = client.begin("GET", "/public/a")
        self.assertTrue(client.until(lambda: client.is_closed, within=10))
        self.assertEqual(len(client.answers[stream].body), 65535)

    def test_a_client_that_stops_reading_is_closed(self):
        self.speak("timeouts write=500ms")
        self.service.respond = lambda request: upstream.answer(bytes(30 * MIB))
        self.service.keeps_raw = False
        client = self.client(window=1 << 30)
        client.h2.increment_flow_control_window(1 << 29)
        client.begin("GET", "/public/a")
        entry = self.gate.log(within=20)
        self.assertIsNotNone(entry)
        self.assertLess(entry["bytes_out"], 30 * MIB)


class Slow(Bounded):
    def test_a_preface_that_does_not_come_whole(self):
        self.speak("timeouts header=400ms")
        for part in (b"", Frames.PREFACE[:1], Frames.PREFACE[:24]):
            with self.subTest(part=part):
                with wire.Connection(self.gate.address) as connection:
                    connection.send(part)
                    self.assertTrue(connection.is_closed(within=5))

    def test_a_preface_beside_http1(self):
        self.run_gate(lambda settings: settings.listener.extend(
            ["http h1 h2c", "timeouts header=400ms"]))
        with wire.Connection(self.gate.address) as connection:
            connection.send(Frames.PREFACE[:20])
            self.assertTrue(connection.is_closed(within=5))
            self.assertEqual(connection.buffer, b"")

    def test_a_head_that_does_not_end(self):
        self.speak("timeouts header=400ms keepalive=60s")
        head = frame(1, 1, 1, block())
        for parts in ([head], [head[:9]], [head[:30]], [head, frame(9, 0, 1, b"\0\1x\1y")]):
            with self.subTest(parts=parts):
                self.assertEqual(self.frames(*parts).goaway(within=5), CALM)
        self.check_nothing_upstream()

    def test_an_idle_connection_is_told_and_closed(self):
        self.speak("timeouts keepalive=400ms")
        self.assertEqual(self.frames().goaway(within=5), 0)
        client = self.client()
        self.assertEqual(client.ask("GET", "/public/a").status, 200)
        self.assertTrue(client.until(lambda: client.is_closed, within=5))
        self.assertEqual(client.goaways, [0])

    def test_a_body_that_stops_coming(self):
        self.speak("timeouts body=2s keepalive=60s")
        client = self.client()
        started = time.monotonic()
        streams = [client.begin("POST", path, end=False)
                   for path in ("/public/a", "/v1/app-attest/challenges")]
        for stream in streams:
            # Enough for the rate of the first two seconds: that alone would wait for four.
            client.body(stream, b" " * 5000, end=False)
        for stream in streams:
            self.check_problem(client.answer(stream, within=10), "request_timeout")
        self.assertLess(time.monotonic() - started, 3.5)
        self.assertEqual(client.ask("GET", "/public/a").status, 200)

    def test_a_body_that_comes_too_slowly(self):
        self.speak("timeouts body=1s body_min_rate=1k")
        client = self.client(timeout=0.2)
        stream = client.begin("POST", "/v1/app-attest/challenges", end=False)
        for _ in range(100):
            if client.answers[stream].is_over:
                break
            client.body(stream, b" " * 20, end=False)
            try:
                client.step(0.2)
            except TimeoutError:
                pass
        self.check_problem(client.answer(stream), "request_timeout")


class Endings(Bounded):
    def test_a_stop_lets_the_streams_in_work_end(self):
        stage = self.stage()
        self.speak(service=stage)
        client = self.client()
        first = client.begin("GET", "/public/a")
        connection, reader = stage.accept()
        reader.request()
        self.gate.signal(signal.SIGTERM)
        self.assertTrue(client.until(lambda: client.goaways))
        self.assertEqual(client.goaways, [0])
        connection.sendall(upstream.answer())
        self.assertEqual(client.answer(first).body, b"ok\n")
        self.assertTrue(client.until(lambda: client.is_closed))
        self.assertEqual(client.goaways, [0, 0])
        self.assertEqual(self.gate.stop(), 0)

    def test_a_stop_takes_what_was_on_its_way(self):
        stage = self.stage()
        self.speak(service=stage)
        connection = self.frames(frame(1, 5, 1, block()))
        service, reader = stage.accept()
        reader.request()
        self.gate.signal(signal.SIGTERM)
        frames = connection.frames(lambda seen: seen[0] == 7)
        # The first GOAWAY names no last stream: one sent before it was read still counts.
        self.assertEqual(frames[-1][3][:4], struct.pack(">I", 0x7fffffff))
        connection.send(frame(1, 5, 3, block(b"/public/b")))
        second, reader = stage.accept()
        self.assertEqual(reader.request().target, "/public/b")
        frames = connection.frames(lambda seen: seen[0] == 7)
        self.assertEqual(frames[-1][3][:4], struct.pack(">I", 3))
        service.sendall(upstream.answer())
        second.sendall(upstream.answer())
        ended = [stream for kind, flags, stream, _ in connection.frames()
                 if kind == 0 and flags & 1]
        self.assertEqual(sorted(ended), [1, 3])
        self.assertEqual(self.gate.stop(), 0)

    def test_a_stop_closes_idle_connections(self):
        self.speak()
        client = self.client()
        self.assertEqual(client.ask("GET", "/public/a").status, 200)
        self.gate.signal(signal.SIGTERM)
        self.assertTrue(client.until(lambda: client.is_closed))
        self.assertEqual(client.goaways, [0])
        self.assertEqual(self.gate.stop(), 0)

    def test_a_connection_serves_so_many_requests(self):
        self.speak("limits requests=3")
        client = self.client()
        for number in range(3):
            self.assertEqual(client.ask("GET", "/public/a").status, 200, number)
        self.assertTrue(client.until(lambda: client.is_closed))
        self.assertEqual(client.goaways, [0])

    def test_an_idle_connection_makes_room_for_a_new_one(self):
        stage = self.stage()
        self.speak("limits connections=2", service=stage,
                   change=lambda settings: settings.top.append("loops 1"))
        idle, busy = self.client(), self.client()
        stream = busy.begin("GET", "/public/a")
        connection, reader = stage.accept()
        reader.request()
        new = self.client()
        self.assertTrue(idle.until(lambda: idle.is_closed))
        self.assertEqual(idle.goaways, [0])
        other = new.begin("GET", "/public/b")
        second, reader = stage.accept()
        reader.request()
        for service, client, number in ((connection, busy, stream), (second, new, other)):
            service.sendall(upstream.answer())
            self.assertEqual(client.answer(number).status, 200)

    def test_a_client_that_goes_away_says_nothing_more(self):
        self.speak()
        connection = self.frames(frame(1, 5, 1, block()), frame(7, 0, 0, bytes(8)))
        frames = connection.frames()
        self.assertTrue([seen for seen in frames if seen[0] == 0 and seen[1] & 1])
        self.assertTrue(connection.is_closed())


class Resets(Bounded):
    def test_a_reset_takes_the_service_s_work_back(self):
        stage = self.stage()
        self.speak(service=stage)
        client = self.client()

        def reset(stream):
            client.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
            client.flush()
        # While the body is on its way, while the service thinks, while it answers.
        stream = client.begin("POST", "/public/a", end=False)
        client.body(stream, b"x" * 1000, end=False)
        connection, reader = stage.accept()
        reader.until(b"\r\n\r\n")
        reset(stream)
        with self.assertRaises((EOFError, ConnectionError)):
            reader.take(1 << 20)
        stream = client.begin("GET", "/public/a")
        connection, reader = stage.accept()
        reader.request()
        reset(stream)
        with self.assertRaises((EOFError, ConnectionError)):
            reader.more()
        stream = client.begin("GET", "/public/a")
        connection, reader = stage.accept()
        reader.request()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
        self.assertTrue(client.until(lambda: client.answers[stream].body == b"part"))
        reset(stream)
        with self.assertRaises((EOFError, ConnectionError)):
            reader.more()
        # The connection serves on, and each of them has its line.
        stream = client.begin("GET", "/public/a")
        connection, reader = stage.accept()
        reader.request()
        connection.sendall(upstream.answer())
        answer = client.answer(stream)
        self.assertEqual(answer.status, 200)
        self.assertIsNotNone(self.gate.logged(answer))
        self.assertEqual(len(self.gate.out.text.splitlines()), 4)

    def test_a_protected_request_that_is_reset_before_it_is_judged_spends_nothing(self):
        self.speak()
        client = self.client()
        phone = FlowControl.phone(self, client)
        body = b"x" * 1000
        proof = phone.prove("POST", "/v1/signed/a", body, phone.challenge(), "request")
        stream = client.begin("POST", "/v1/signed/a", proof, end=False)
        client.body(stream, body[:500], end=False)
        client.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        client.flush()
        answer = client.ask("POST", "/v1/signed/a", proof, body)
        self.check_upstream(answer)

    def test_more_resets_than_the_limit_end_the_connection(self):
        self.speak("limits h2_resets=5/30s")
        connection = self.frames()
        for number in range(5):
            stream = 2 * number + 1
            connection.send(frame(1, 4, stream, block(method=b"POST")) +
                            frame(3, 0, stream, struct.pack(">I", 8)))
        connection.send(frame(1, 5, 11, block()))
        frames = connection.frames(lambda seen: seen[0] == 0 and seen[1] & 1)
        self.assertEqual([seen for seen in frames if seen[0] == 7], [])
        connection.send(frame(1, 4, 13, block(method=b"POST")) +
                        frame(3, 0, 13, struct.pack(">I", 8)))
        self.assertEqual(connection.goaway(), CALM)

    def test_streams_over_the_limit_are_refused(self):
        stage = self.stage()
        self.speak("limits h2_streams=4", service=stage)
        connection = self.frames()
        for number in range(6):
            connection.send(frame(1, 5, 2 * number + 1, block()))
        frames = connection.frames(lambda seen: seen[0] in (3, 7))
        kind, _, _, body = frames[-1]
        code = int.from_bytes(body[-4:] if kind == 3 else body[4:8], "big")
        self.assertIn(code, (1, 7))
        for _ in range(4):
            stage.accept()


class Identifiers(Bounded):
    def test_streams_only_go_up(self):
        self.speak()
        for name, parts in {
                "one that was passed over": [frame(1, 5, 5, block()), frame(1, 5, 3, block())],
                "an even one": [frame(1, 5, 2, block())],
                "zero": [frame(1, 5, 0, block())],
                "data on one that is not open": [frame(0, 1, 3, b"x")],
                "a reset of one that is not open": [frame(3, 0, 3, bytes(4))]}.items():
            with self.subTest(name=name):
                self.assertEqual(self.frames(*parts).goaway(), 1)

    def test_frames_on_a_stream_that_has_ended(self):
        self.speak()
        closed = self.frames(frame(1, 5, 1, block()))
        closed.frames(lambda seen: seen[0] == 0 and seen[1] & 1)
        # RFC 9113 §5.1: STREAM_CLOSED, of the stream or the connection, or ignored.
        closed.send(frame(1, 5, 1, block()) + frame(6, 0, 0, bytes(8)))
        frames = closed.frames(lambda seen: seen[0] in (3, 6, 7))
        kind, flags, _, body = frames[-1]
        if kind == 7:
            self.assertIn(int.from_bytes(body[4:8], "big"), (1, 5))
        self.assertEqual(len(self.service.wait(1)), 1)

    def test_control_frames_over_the_limit_end_the_connection(self):
        self.speak("limits h2_control=20/10s")
        connection = self.frames(frame(6, 0, 0, bytes(8)) * 21)
        self.assertEqual(connection.goaway(), CALM)
        fine = self.frames(frame(6, 0, 0, bytes(8)) * 20 + frame(1, 5, 1, block()))
        frames = fine.frames(lambda seen: seen[0] == 0 and seen[1] & 1)
        self.assertEqual(len([seen for seen in frames if seen[0] == 6]), 20)


class Grammar(Bounded):
    """Faults of frames (RFC 9113 §4–§6): each ends what it must, with the code it has."""

    NONE, PROTOCOL, FLOW, CLOSED, SIZE, COMPRESSION = 0, 1, 3, 5, 6, 9

    def setting(self, code, value):
        return frame(4, 0, 0, struct.pack(">HI", code, value))

    def test_a_fault_of_the_connection_ends_it(self):
        self.speak()
        head = frame(1, 5, 1, block())
        faults = {
            "a frame larger than was allowed": (frame(0, 1, 1, bytes(16385)),
                                                {self.SIZE, self.PROTOCOL}),
            "a SETTINGS that is no list": (frame(4, 0, 0, bytes(3)), {self.SIZE}),
            "a SETTINGS of a stream": (frame(4, 0, 1), {self.PROTOCOL}),
            "an acknowledgement that says something": (frame(4, 1, 0, bytes(6)), {self.SIZE}),
            "ENABLE_PUSH of 2": (self.setting(2, 2), {self.PROTOCOL}),
            "a window of 2 GiB": (self.setting(4, 1 << 31), {self.FLOW}),
            "frames of one octet": (self.setting(5, 1), {self.PROTOCOL}),
            "a PING of six octets": (frame(6, 0, 0, bytes(6)), {self.SIZE}),
            "a PING of a stream": (frame(6, 0, 1, bytes(8)), {self.PROTOCOL}),
            "a GOAWAY of a stream": (frame(7, 0, 1, bytes(8)), {self.PROTOCOL}),
            "a reset of nothing": (frame(3, 0, 0, bytes(4)), {self.PROTOCOL}),
            "a reset of three octets": (head + frame(3, 0, 1, bytes(3)), {self.SIZE}),
            "a window opened by nothing": (
                frame(8, 0, 0, bytes(4)), {self.PROTOCOL}),
            "a window opened too far": (
                frame(8, 0, 0, struct.pack(">I", (1 << 31) - 1)), {self.FLOW}),
            "a CONTINUATION of nothing": (frame(9, 4, 1, block()), {self.PROTOCOL}),
            "a frame inside a head": (
                frame(1, 1, 1, block()) + frame(6, 0, 0, bytes(8)), {self.PROTOCOL}),
            "a head inside a head": (frame(1, 1, 1, block()) + frame(1, 5, 3, block()),
                                     {self.PROTOCOL}),
            "padding longer than its frame": (
                frame(1, 4, 1, block(method=b"POST")) + frame(0, 9, 1, b"\xff1"),
                {self.PROTOCOL}),
            "a promise": (frame(5, 4, 1, bytes(4) + block()), {self.PROTOCOL}),
            "a block that is no HPACK": (frame(1, 5, 1, b"\xff\xff\xff\xff\xff"),
                                         {self.COMPRESSION}),
            "a table larger than was allowed": (
                frame(1, 5, 1, b"\x3f\xe2\x1f" + block()), {self.COMPRESSION}),
        }
        for name, (octets, codes) in faults.items():
            with self.subTest(name=name):
                self.assertIn(self.frames(octets).goaway(), codes)
        self.assertTrue(self.gate.is_alive)

    def test_what_no_one_knows_is_let_pass(self):
        self.speak()
        octets = frame(0xbe, 0xff, 0, b"x" * 20) + self.setting(0xbeef, 7) + \
            frame(2, 0, 1, b"\0\0\0\0\x10") + frame(1, 0xf5 & ~0x28, 1, block())
        frames = self.frames(octets).frames(lambda seen: seen[0] == 0 and seen[1] & 1)
        self.assertEqual(frames[-1][3], b"ok\n")
        self.assertEqual([seen for seen in frames if seen[0] == 7], [])

    def test_padding_is_taken_off(self):
        self.speak()
        octets = frame(1, 0x0c, 1, b"\3" + block(method=b"POST") + bytes(3)) + \
            frame(0, 0x09, 1, b"\xc8" + b"hello" + bytes(200))
        self.frames(octets).frames(lambda seen: seen[0] == 0 and seen[1] & 1)
        self.assertEqual(self.service.wait(1)[0].body, b"hello")
