"""Four readers of HTTP/1.1 requests that others wrote and that share no code: what the gate
forwards must be one and the same request to each of them.

Each takes the bytes of a connection and gives the requests that are complete, as `Read`s. A reader
that finds a fault raises `Refused`.
"""

import asyncio
import dataclasses

import aiohttp.http_exceptions
import aiohttp.http_parser
import gunicorn.config
import gunicorn.http
import gunicorn.http.errors
import h11
import httptools

SIZE = 1 << 20


class Refused(Exception):
    """The reader takes these bytes for no request."""


@dataclasses.dataclass
class Read:
    """A request as one reader sees it; names of fields in lower case, since not all keep case."""

    method: bytes
    target: bytes
    fields: list
    body: bytes


def field(name, value):
    return name.lower(), value.strip(b" \t")


def by_h11(data):
    """h11: regular expressions after the grammar of RFC 9112, a state machine in Python."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=SIZE)
    found, current = [], None
    connection.receive_data(data)
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                fields = [field(name, value) for name, value in event.headers]
                current = Read(event.method, event.target, fields, b"")
            elif isinstance(event, h11.Data):
                current.body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found.append(current)
                current = None
                connection.send(h11.Response(status_code=204, headers=[]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
            else:
                return found
    except h11.RemoteProtocolError as error:
        raise Refused(f"h11: {error}") from error


class Listener:
    """What httptools calls back."""

    def __init__(self):
        self.found, self.current = [], None

    def on_message_begin(self):
        self.current = Read(b"", b"", [], b"")

    def on_url(self, url):
        self.current.target += url

    def on_header(self, name, value):
        self.current.fields.append(field(name, value))

    def on_headers_complete(self):
        self.current.method = self.parser.get_method()

    def on_body(self, body):
        self.current.body += body

    def on_message_complete(self):
        self.found.append(self.current)


def by_llhttp(data):
    """httptools: llhttp, node's parser, generated C."""
    listener = Listener()
    parser = listener.parser = httptools.HttpRequestParser(listener)
    try:
        parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
        raise Refused(f"llhttp: {error!r}") from error
    return listener.found


class Protocol:
    """As much of a protocol as aiohttp's reader of bodies asks for."""

    _reading_paused = False

    def pause_reading(self, *_, **__):
        """All is there at once."""

    resume_reading = pause_reading


def by_aiohttp(data):
    """aiohttp's reader in pure Python, which serves where its C one cannot be built."""
    loop = asyncio.new_event_loop()
    try:
        parser = aiohttp.http_parser.HttpRequestParserPy(
            Protocol(), loop, SIZE, max_line_size=SIZE, max_headers=1000, max_field_size=SIZE,
            auto_decompress=False)
        try:
            messages, _, _ = parser.feed_data(data)
        except (aiohttp.http_exceptions.HttpProcessingError, ValueError) as error:
            raise Refused(f"aiohttp: {error!r}") from error
        found = []
        for message, payload in messages:
            fields = [field(name, value) for name, value in message.raw_headers]
            if payload.exception() is not None:
                raise Refused(f"aiohttp: {payload.exception()!r}")
            if payload.is_eof():
                body = loop.run_until_complete(payload.read())
                found.append(Read(
                    message.method.encode(), message.path.encode("utf-8", "surrogateescape"),
                    fields, body))
        return found
    finally:
        loop.close()


def by_gunicorn(data):
    """gunicorn: a reader of its own in Python, for WSGI."""
    settings = gunicorn.config.Config()
    for name, value in {
        "limit_request_line": 8190, "limit_request_fields": 1000, "header_map": "dangerous",
        "limit_request_field_size": 0, "forwarded_allow_ips": "*",
    }.items():
        settings.set(name, value)
    found = []
    requests = gunicorn.http.RequestParser(settings, iter([data]), ("127.0.0.1", 1))
    try:
        for request in requests:
            fields = [field(name.encode("latin-1"), value.encode("latin-1"))
                      for name, value in request.headers]
            body = request.body.read()
            length = [int(value) for name, value in fields if name == b"content-length"]
            if length and len(body) < length[0]:
                return found
            found.append(Read(
                request.method.encode(), request.uri.encode("latin-1"), fields, body))
            # It closes by what `Connection` says; the test goes on to see what it would read.
            request.should_close = lambda: False
    except (StopIteration, gunicorn.http.errors.NoMoreData):
        return found
    except (gunicorn.http.errors.ParseException, ValueError) as error:
        raise Refused(f"gunicorn: {error!r}") from error
    return found


READERS = (by_h11, by_llhttp, by_aiohttp, by_gunicorn)
