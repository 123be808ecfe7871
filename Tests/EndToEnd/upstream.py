"""Services behind the gate: one that records what it is sent, one that a test plays by hand."""

import queue
import socket
import threading
import time

from wire import DEADLINE


class Request:
    """What a service received: parsed, and the head as raw bytes."""

    def __init__(self, head, body, connection):
        self.head, self.body, self.connection = head, body, connection
        lines = head.split(b"\r\n")
        self.method, self.target, self.version = lines[0].decode("latin-1").split(" ")
        self.fields = []
        for text in lines[1:]:
            name, value = text.split(b":", 1)
            self.fields.append((name.decode("latin-1"), value.strip(b" \t").decode("latin-1")))

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        assert len(values) < 2, f"{name} came {len(values)} times: {values}"
        return values[0] if values else None

    @property
    def names(self):
        return [name for name, _ in self.fields]

    def __repr__(self):
        return f"{self.head!r} + {len(self.body)} bytes"


def answer(body=b"ok\n", status="200 OK", fields=()):
    """The bytes of an answer with a length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class Recorder:
    """An HTTP/1.1 service that records every byte.

    `respond(request)` gives the bytes of the answer; None closes the connection instead. After an
    answer the connection stays open unless `closes` is set. With `keeps_tapes`, `tapes` has what
    each connection brought, by its number.
    """

    def __init__(self, port=0, respond=None, address=None, host="127.0.0.1"):
        self.respond = respond or (lambda request: answer())
        self.closes = False
        self.changed = threading.Condition()
        self.requests, self.raw, self.connections, self.faults = [], b"", 0, []
        self.open = set()
        self.locals = []  # the address of this side of each connection, in order
        self.keeps_raw = True
        self.keeps_tapes, self.tapes = False, {}
        self.served = 0
        if address:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(address)
        else:
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind((host, port))
        self.listener.listen(256)
        self.port = 0 if address else self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Stops listening and closes every connection."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.drop()

    def drop(self):
        """Closes the connections that are open."""
        with self.changed:
            sockets = list(self.open)
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def reset(self):
        """Forgets what came so far."""
        with self.changed:
            self.requests, self.raw, self.faults, self.served = [], b"", [], 0

    def wait(self, count, within=DEADLINE):
        """The requests, once there are `count` of them."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.requests) >= count, within)
            return list(self.requests)

    def wait_until(self, condition, within=DEADLINE):
        """Whether `condition()` comes true; looked at whenever something happens here."""
        with self.changed:
            return self.changed.wait_for(condition, within)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                self.connections += 1
                number = self.connections
                if not isinstance(name := connection.getsockname(), str):
                    self.locals.append(name[0])
                self.open.add(connection)
                self.changed.notify_all()
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection, number):
        reader = Reader(connection, lambda data: self._note(data, number))
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while (request := reader.request(number)) is not None:
                with self.changed:
                    self.served += 1
                    if self.keeps_raw:
                        self.requests.append(request)
                    self.changed.notify_all()
                data = self.respond(request)
                if data is None:
                    break
                if request.method == "HEAD":
                    data = data.split(b"\r\n\r\n")[0] + b"\r\n\r\n"
                connection.sendall(data)
                if self.closes:
                    break
        except (OSError, EOFError):
            pass
        except Exception as error:  # kept for the test to see
            with self.changed:
                self.faults.append(repr(error))
        finally:
            with self.changed:
                self.open.discard(connection)
                self.changed.notify_all()
            connection.close()

    def _note(self, data, number):
        if self.keeps_tapes:
            with self.changed:
                self.tapes.setdefault(number, bytearray()).extend(data)
        if self.keeps_raw:
            with self.changed:
                self.raw += data
                self.changed.notify_all()


class Reader:
    """Reads requests off a socket, strictly: what the gate writes must be plain HTTP/1.1."""

    def __init__(self, connection, note=lambda data: None):
        self.connection, self.note, self.buffer = connection, note, b""

    def more(self):
        data = self.connection.recv(1 << 16)
        if not data:
            raise EOFError
        self.note(data)
        self.buffer += data

    def until(self, end):
        while end not in self.buffer:
            self.more()
        data, self.buffer = self.buffer.split(end, 1)
        return data

    def take(self, count):
        while len(self.buffer) < count:
            self.more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def request(self, number=0):
        """The next request with its body; None at a clean end."""
        try:
            if not self.buffer:
                self.more()
        except EOFError:
            return None
        head = self.until(b"\r\n\r\n")
        request = Request(head, b"", number)
        codings, lengths = request.all("Transfer-Encoding"), request.all("Content-Length")
        assert len(codings) + len(lengths) <= 1, f"two lengths: {head!r}"
        if codings:
            assert codings == ["chunked"], codings
            request.body = self.chunks()
        elif lengths:
            request.body = self.take(int(lengths[0]))
        return request

    def chunks(self):
        pieces = []
        while size := int(self.until(b"\r\n"), 16):
            pieces.append(self.take(size))
            assert self.take(2) == b"\r\n"
        assert self.until(b"\r\n") == b"", "trailers came through"
        return b"".join(pieces)


class Stage:
    """A service that the test plays by hand: accepts, hands the socket over."""

    def __init__(self, port=0):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.waiting = queue.Queue()
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(DEADLINE)
            self.sockets.append(connection)
            self.waiting.put(connection)

    def accept(self, within=DEADLINE):
        """The next connection, with a reader on it."""
        connection = self.waiting.get(timeout=within)
        return connection, Reader(connection)

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for connection in self.sockets:
            connection.close()


def deadline(within=DEADLINE):
    """A function that tells how many seconds are left, and fails when there are none."""
    end = time.monotonic() + within

    def left():
        rest = end - time.monotonic()
        assert rest > 0, f"not within {within} s"
        return rest

    return left
