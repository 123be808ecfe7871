"""HTTP/2 clients of the tests: PyPI's h2 on one socket, a step at a time; and frames by hand."""

import json
import socket
import struct
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

import wire
from gate import HOST
from wire import DEADLINE


class Answer:
    """What came on one stream so far; reads like wire.Response."""

    def __init__(self):
        self.status, self.fields, self.body = None, [], bytearray()
        self.interim, self.trailers = [], None
        self.is_ended, self.reset = False, None

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        assert len(values) < 2, f"{name} came {len(values)} times: {values}"
        return values[0] if values else None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def is_over(self):
        return self.is_ended or self.reset is not None

    def __repr__(self):
        return f"{self.status} {self.fields} {bytes(self.body[:200])!r} {self.reset}"


class Client:
    """One connection. `window` is what each answer may send ahead; `reads` False leaves windows
    closed once they are used up."""

    def __init__(self, address, window=None, reads=True, timeout=DEADLINE, tls=None):
        self.socket = tls or socket.create_connection(address, timeout=timeout)
        if not tls:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = h2.config.H2Configuration(
            client_side=True, header_encoding="latin-1", validate_outbound_headers=False,
            normalize_outbound_headers=False)
        self.h2 = h2.connection.H2Connection(config=config)
        if window is not None:
            self.h2.local_settings = h2.settings.Settings(
                client=True,
                initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.reads, self.timeout = reads, timeout
        self.answers, self.goaways, self.is_closed = {}, [], False
        self.buffer = b""
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def send(self, data):
        self.socket.sendall(data)

    def begin(self, method, target, fields=(), end=True, host=HOST, scheme="http"):
        """Sends a head; the stream's number."""
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", scheme), (":authority", host),
                (":path", target)]
        head += [(name.lower(), value) for name, value in fields]
        self.h2.send_headers(stream, head, end_stream=end)
        self.answers[stream] = Answer()
        self.flush()
        return stream

    def body(self, stream, data, end=True):
        """Sends a body as the windows allow; reads meanwhile. False when the stream was reset."""
        view = memoryview(data)
        while view:
            if self.answers[stream].is_over:
                return False
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room > 0:
                self.h2.send_data(stream, bytes(view[:room]))
                view = view[room:]
                self.flush()
            else:
                self.step()
        if end:
            self.h2.end_stream(stream)
            self.flush()
        return True

    def step(self, within=None):
        """Reads once and takes what came; False at the end of the connection."""
        self.socket.settimeout(within or self.timeout)
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            self.is_closed = True
            return False
        for event in self.h2.receive_data(self._without_goaway(data)):
            self._take(event)
        self.flush()
        return True

    def _without_goaway(self, data):
        """Whole frames but GOAWAY: PyPI's h2 reads nothing more once it has seen one."""
        self.buffer += data
        kept, start = b"", 0
        while len(self.buffer) >= start + 9:
            end = start + 9 + int.from_bytes(self.buffer[start:start + 3], "big")
            if end > len(self.buffer):
                break
            if self.buffer[start + 3] == 7:
                self.goaways.append(
                    int.from_bytes(self.buffer[start + 13:start + 17], "big"))
            else:
                kept += self.buffer[start:end]
            start = end
        self.buffer = self.buffer[start:]
        return kept

    def _take(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        if answer is None:
            return
        if isinstance(event, h2.events.InformationalResponseReceived):
            answer.interim.append((int(event.headers[0][1]), event.headers[1:]))
        elif isinstance(event, h2.events.ResponseReceived):
            answer.status = int(event.headers[0][1])
            answer.fields = list(event.headers[1:])
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            if self.reads and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = list(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            answer.is_ended = True
        elif isinstance(event, h2.events.StreamReset):
            if not answer.is_ended:
                answer.reset = event.error_code

    def until(self, condition, within=DEADLINE):
        """Reads until `condition()` holds; whether it does."""
        end = time.monotonic() + within
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                return False
            try:
                if not self.step(left):
                    return condition()
            except TimeoutError:
                return condition()
        return True

    def answer(self, stream, within=DEADLINE):
        """The answer, once its stream is over or the connection has ended."""
        self.until(lambda: self.answers[stream].is_over, within)
        return self.answers[stream]

    def ask(self, method, target, fields=(), body=None, **options):
        stream = self.begin(method, target, fields, end=body is None, **options)
        if body is not None:
            self.body(stream, body)
        return self.answer(stream)


def ask(address, method, target, fields=(), body=None, **options):
    with Client(address) as client:
        return client.ask(method, target, fields, body, **options)


def frame(kind, flags, stream, body=b""):
    """A frame (RFC 9113 §4.1)."""
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + \
        struct.pack(">I", stream) + body


def block(path=b"/public/a", method=b"GET", more=()):
    """A head of literals that no table keeps."""
    fields = [(b":method", method), (b":scheme", b"http"),
              (b":authority", HOST.encode()), (b":path", path), *more]
    return b"".join(
        bytes([0, len(name)]) + name + bytes([len(value)]) + value for name, value in fields)


class Frames(wire.Connection):
    """A client that writes its frames itself."""

    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)

    def frames(self, until=lambda frame: False, within=DEADLINE):
        """The frames up to the first for which `until` holds, or to the end."""
        seen = []
        self.socket.settimeout(within)
        try:
            while not seen or not until(seen[-1]):
                head = self.take(9)
                body = self.take(int.from_bytes(head[:3], "big"))
                seen.append((head[3], head[4], int.from_bytes(head[5:], "big"), body))
        except (wire.Closed, OSError):
            pass
        return seen

    def goaway(self, within=DEADLINE):
        """The code of the last GOAWAY before the connection ends; None without one."""
        codes = [int.from_bytes(body[4:8], "big")
                 for kind, _, _, body in self.frames(within=within) if kind == 7]
        return codes[-1] if codes else None
