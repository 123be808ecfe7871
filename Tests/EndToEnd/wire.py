"""A raw HTTP/1.1 client: sends exactly the bytes it is told to, reads answers strictly."""

import json
import select
import socket
import time

DEADLINE = 15.0


class Closed(Exception):
    """The peer closed the connection where an answer was due."""


class Malformed(Exception):
    """An answer that RFC 9112 does not allow."""


class Response:
    """One final answer, with the interim ones that came before it."""

    def __init__(self, version, status, reason, fields, interim):
        self.version, self.status, self.reason = version, status, reason
        self.fields, self.interim = fields, interim
        self.body = b""

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name):
        """The one value of a field; None where it is absent."""
        values = self.all(name)
        if len(values) > 1:
            raise Malformed(f"{name} came {len(values)} times")
        return values[0] if values else None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of a problem answer; None for another answer."""
        if self.get("Content-Type") != "application/problem+json":
            return None
        return self.json.get("code")

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:300]!r}"


class Connection:
    """One connection to the gate; `with` closes it."""

    def __init__(self, address, source=None, timeout=DEADLINE, receive_buffer=None):
        self.address, self.source = address, source
        self.timeout, self.receive_buffer = timeout, receive_buffer
        self.is_over = False
        self._open()

    def _open(self):
        address, source = self.address, self.source
        timeout, receive_buffer = self.timeout, self.receive_buffer
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        self.buffer = b""
        self.trailers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends all; an answer that came before everything was sent is no fault."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def more(self):
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError as error:
            raise Closed("connection reset") from error
        if not data:
            raise Closed(f"connection closed, {len(self.buffer)} bytes read")
        self.buffer += data

    def take(self, count):
        while len(self.buffer) < count:
            self.more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        text, self.buffer = self.buffer.split(b"\r\n", 1)
        if b"\n" in text or b"\r" in text:
            raise Malformed(f"bare CR or LF in {text!r}")
        return text

    def head(self):
        start = self.line().decode("latin-1")
        version, status, reason = start.split(" ", 2)
        if version not in ("HTTP/1.1", "HTTP/1.0") or len(status) != 3:
            raise Malformed(start)
        fields = []
        while True:
            text = self.line().decode("latin-1")
            if not text:
                break
            name, value = text.split(":", 1)
            if not name or name != name.strip():
                raise Malformed(text)
            fields.append((name, value.strip(" \t")))
        return version, int(status), reason, fields

    def read_head(self):
        """The next final head, its body not read yet."""
        interim = []
        while True:
            version, status, reason, fields = self.head()
            if status >= 200 or status == 101:
                return Response(version, status, reason, fields, interim)
            interim.append(status)

    def response(self, method="GET"):
        """The next final answer with its whole body."""
        answer = self.read_head()
        lengths = answer.all("Content-Length")
        codings = answer.all("Transfer-Encoding")
        if len(lengths) + len(codings) > 1:
            raise Malformed(f"{lengths} {codings}")
        if method == "HEAD" or answer.status in (204, 304):
            return answer
        if codings:
            answer.body = self.chunks()
        elif lengths:
            answer.body = self.take(int(lengths[0]))
        else:
            answer.body = self.rest()
        return answer

    def chunks(self):
        body = b""
        while True:
            size = int(self.line().split(b";")[0], 16)
            if size == 0:
                self.trailers = []
                while text := self.line():
                    self.trailers.append(text.decode("latin-1"))
                return body
            body += self.take(size)
            if self.take(2) != b"\r\n":
                raise Malformed("no CRLF behind a chunk")

    def rest(self):
        """Everything until the peer closes."""
        try:
            while True:
                self.more()
        except Closed:
            data, self.buffer = self.buffer, b""
            return data

    def is_closed(self, within=5.0):
        """Whether the peer closes within so many seconds without sending anything more."""
        end = time.monotonic() + within
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                break
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return True
            if not data:
                return True
            self.buffer += data
        return False

    def is_silent(self, during=0.3):
        """Whether nothing arrives for so many seconds (and the peer does not close)."""
        return not self.buffer and not select.select([self.socket], [], [], during)[0]

    def ask(self, method, target, fields=(), body=None, host="api.example.test", chunked=False):
        """One request, one answer; on a new connection where the last answer closed this one."""
        if self.is_over:
            self.close()
            self._open()
            self.is_over = False
        self.send(message(method, target, fields, body, host, chunked))
        answer = self.response(method)
        self.is_over = (answer.get("Connection") or "").lower() == "close"
        return answer


def message(method, target, fields=(), body=None, host="api.example.test", chunked=False):
    """The bytes of a request. A body of None has no length; chunked sends it in odd pieces."""
    lines = [f"{method} {target} HTTP/1.1"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in fields]
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    elif body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if chunked:
        return head + chunk(body or b"")
    return head + (body or b"")


def chunk(body, size=7001):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def ask(address, method, target, fields=(), body=None, source=None, **options):
    """One request on a connection of its own."""
    with Connection(address, source=source) as connection:
        return connection.ask(method, target, fields, body, **options)


def raw(address, data, source=None, method="GET"):
    """One answer to exactly these bytes, on a connection of its own."""
    with Connection(address, source=source) as connection:
        connection.send(data)
        return connection.response(method)
