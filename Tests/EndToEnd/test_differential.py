"""What the gate forwards is one and the same request to four readers that others wrote, and the
one that the client meant (threats T03 to T05: two readings, no service).

Requests are drawn from a seed: odd but legal, whole or cut into odd writes, one behind the other on
few connections. Then valid ones are damaged: refused, or forwarded such that all readers agree.
"""

import os
import random
import socket

import case
import gate as gates
import readers
import wire

SEED = int(os.environ.get("GATE_SEED", "20261130"))
# Methods that llhttp knows; the others of the registry are no more than longer words.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "ACL", "BIND", "COPY",
           "LINK", "LOCK", "MERGE", "MKCALENDAR", "MKCOL", "MOVE", "PROPFIND", "PROPPATCH", "QUERY",
           "REBIND", "REPORT", "SEARCH", "UNBIND", "UNLINK", "UNLOCK")
# What the gate adds to a request on an off route.
ADDED = {"app-attest-verdict", "app-attest-app", "app-attest-verified-key", "app-attest-counter",
         "app-attest-risk", "x-request-id", "x-forwarded-for", "x-forwarded-proto",
         "x-forwarded-host", "via", "traceparent", "content-length", "transfer-encoding"}
DROPPED = ("Connection: keep-alive, X-Gone\r\nX-Gone: a", "TE: trailers", "Keep-Alive: timeout=5",
           "X_Under: a", "Proxy: http://a", "X-Forwarded-For: 1.2.3.4", "Upgrade: h2c",
           "HTTP2-Settings: AAMAAABk", "App-Attest-Verdict: verified", "X-Original-URL: /a")
TOKEN = "!#$%&'*+-.^`|~09azAZ"
SEGMENT = "abcXYZ019-._~!$&'()*+,:=@"
QUERY = "".join(chr(c) for c in range(0x21, 0x7f) if chr(c) != "#")
ESCAPES = ("%20x", "%22", "%3C", "%C3%A9", "%e2%82%ac", "%7E", "%41", "%26", "%2B", "%F0%9F%98%80")
VALUE = "".join(chr(c) for c in (*range(0x20, 0x7f), *range(0xa0, 0x100), 0x09))


class Draw:
    """Draws requests; the same seed draws the same."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, alphabet, least, most):
        return "".join(self.random.choices(alphabet, k=self.random.randint(least, most)))

    def target(self, prefix):
        segments = []
        for _ in range(self.random.randint(1, 4)):
            # A letter at either end: `.` and `..`, and what ends in `.`, have two readings.
            piece = self.text(SEGMENT, 0, 12)
            if self.random.random() < 0.3:
                piece += self.random.choice(ESCAPES)
            segments.append("s" + piece + "e")
        target = prefix + "/".join(segments)
        if self.random.random() < 0.6:
            target += "?" + self.text(QUERY, 0, 40)
        return target

    def fields(self):
        found = []
        for _ in range(self.random.choice((0, 1, 3, 8, 30))):
            name = self.random.choice(("X-", "x-", "Accept", "Range", "Cookie", "If-")) \
                + self.text(TOKEN, 1, 12)
            value = self.text(VALUE, 0, self.random.choice((0, 8, 60, 900))).strip(" \t")
            found.append((name, value))
        return found

    def body(self):
        size = self.random.choice((0, 0, 1, 5, 64, 1000, 5000))
        return self.random.randbytes(size)

    def length(self, body):
        """The field that tells the body's end, and the body as it travels."""
        draw = self.random
        if not body and draw.random() < 0.5:
            return [], b""
        if draw.random() < 0.4:
            return [f"{self.case('Content-Length')}:{self.space()}{len(body)}{self.space()}"], body
        sent, at = b"", 0
        while at < len(body):
            piece = body[at : at + draw.choice((1, 2, 7, 100, 4096))]
            at += len(piece)
            size = f"{len(piece):x}" if draw.random() < 0.5 else f"{len(piece):X}"
            size = "0" * draw.randint(0, 8 - len(size)) + size
            sent += f"{size}{self.extension()}\r\n".encode() + piece + b"\r\n"
        sent += f"{'0' * draw.randint(1, 8)}{self.extension()}\r\n".encode()
        for _ in range(draw.choice((0, 0, 0, 1, 3))):
            sent += f"{draw.choice(('X-Sum', 'Content-Length', 'Host'))}: 5\r\n".encode()
        return [f"{self.case('Transfer-Encoding')}:{self.space()}{self.case('chunked')}"], \
            sent + b"\r\n"

    def extension(self):
        return self.random.choice(("", "", "", ";a", ";a=b", '; a="b c"', ";\ta"))

    def space(self):
        return self.text(" \t", 0, 2)

    def case(self, text):
        return "".join(self.random.choice((c.lower(), c.upper())) for c in text)

    def message(self, method, target, fields, body, extra=()):
        """The request as it travels, its fields in any order among those that must go."""
        length, sent = self.length(body)
        lines = [f"{name}:{self.space()}{value}{self.space()}" for name, value in fields]
        host = f"{self.case('Host')}:{self.space()}{self.case(gates.HOST)}{self.space()}"
        for line in (host, *length, *extra):
            lines.insert(self.random.randint(0, len(lines)), line)
        if self.random.random() < 0.1:
            target = f"http://{gates.HOST}{target}"
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(line + "\r\n" for line in lines)
        return head.encode("latin-1") + b"\r\n" + sent

    def writes(self, data):
        """The bytes in pieces."""
        style, at = self.random.choice(("whole", "odd", "ends")), 0
        while at < len(data):
            if style == "whole":
                size = len(data)
            elif style == "odd":
                size = self.random.choice((1, 2, 3, 50, 500, 5000))
            else:
                size = data.find(b"\n", at) - at + self.random.randint(0, 1) or 1
                size = size if size > 0 else len(data)
            yield data[at : at + size]
            at += size


class Differential(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        settings.top.append("loops 1")
        # Short tapes: gunicorn's reader copies what is left for every piece it takes.
        settings.upstream = ["keepalive 8 idle=4s requests=25"]
        settings.listener.append("limits requests=1000000")
        settings.host.append("preflight deny")

    def setUp(self):
        super().setUp()
        self.service.keeps_raw, self.service.keeps_tapes = False, True
        self.service.tapes.clear()
        self.addCleanup(setattr, self.service, "keeps_tapes", False)

    def read(self, tape):
        """The requests of one connection to the service; all readers must read the same."""
        found = {}
        for reader in readers.READERS:
            try:
                found[reader.__name__] = reader(tape)
            except readers.Refused as refused:
                self.fail(f"seed {SEED}: {refused}\n{tape!r}")
        first, *others = found.values()
        for name, other in zip(list(found)[1:], others, strict=True):
            self.assertEqual(other, first, f"seed {SEED}: {name} differs\n{tape!r}")
        return first

    def compare(self, sent, verdict):
        """All that reached the service is what was sent, in order."""
        read = [request for _, tape in sorted(self.service.tapes.items())
                for request in self.read(bytes(tape))]
        self.assertEqual(len(read), len(sent), f"seed {SEED}")
        for request, (method, target, fields, body) in zip(read, sent, strict=True):
            note = f"seed {SEED}: {method} {target} {[name for name, _ in fields]}"
            self.assertEqual((request.method, request.target),
                             (method.encode(), target.encode()), note)
            self.assertEqual(request.body, body, note)
            wanted = [readers.field(name.encode(), value.encode("latin-1"))
                      for name, value in fields]
            names = [name.decode() for name, _ in request.fields]
            mine = [pair for pair, name in zip(request.fields, names, strict=True)
                    if name not in ADDED]
            self.assertEqual([pair for pair in mine if pair[0] != b"host"], wanted, note)
            self.assertEqual([pair[1].lower() for pair in mine if pair[0] == b"host"],
                             [gates.HOST.encode()], note)
            lengths = names.count("content-length") + names.count("transfer-encoding")
            self.assertLessEqual(lengths, 1, note)
            for name in ("app-attest-verdict", "x-request-id", "via"):
                self.assertEqual(names.count(name), 1, note)
            self.assertIn((b"app-attest-verdict", verdict), request.fields, note)

    def test_requests_of_an_off_route(self):
        draw, sent = Draw(SEED), []
        for _ in range(40):
            with wire.Connection(self.gate.address) as connection:
                # So many at once that answers never fill what nobody reads meanwhile.
                methods, data = [], b""
                for _ in range(50):
                    method, body = draw.random.choice(METHODS), draw.body()
                    target, fields = draw.target("/"), draw.fields()
                    extra = draw.random.sample(DROPPED, draw.random.choice((0, 0, 1, 4)))
                    data += draw.message(method, target, fields, body, extra)
                    sent.append((method, target, fields, body))
                    methods.append(method)
                for piece in draw.writes(data):
                    connection.send(piece)
                for number, method in enumerate(methods):
                    answer = connection.response(method)
                    self.assertEqual(answer.status, 200, (SEED, sent[number - 50][:3], answer))
        self.compare(sent, b"off")

    def test_requests_of_protected_routes(self):
        draw, sent = Draw(SEED + 1), []
        phone = self.app().enrolled()
        challenges = phone.challenges(256)
        with wire.Connection(self.gate.address) as connection:
            for number, challenge in enumerate(challenges):
                binding, prefix = (("client_data", "/v1/data/"), ("request", "/v1/signed/"))[
                    number % 2]
                method, body = draw.random.choice(METHODS), draw.body()
                target, fields = draw.target(prefix), draw.fields()
                # A signed target is in the head twice, and must fit: base64 of JSON.
                proof = [f"{name}: {value}" for name, value in phone.prove(
                    method, target, body, challenge, binding)]
                extra = draw.random.sample(DROPPED, draw.random.choice((0, 0, 1, 4))) + proof
                for piece in draw.writes(draw.message(method, target, fields, body, extra)):
                    connection.send(piece)
                answer = connection.response(method)
                self.assertEqual(answer.status, 200, (SEED, method, target, fields, answer))
                sent.append((method, target, fields, body))
        self.compare(sent, b"verified")

    def test_damaged_requests_are_refused_or_read_alike(self):
        draw, passed, total = Draw(SEED + 2), 0, 1200
        self.service.closes = True
        for number in range(total):
            method = draw.random.choice(METHODS[:7])
            fields = draw.fields()[:8] + [("X-Case", str(number))]
            data = draw.message(method, draw.target("/"), fields, draw.body())
            data = damage(draw.random, data)
            with wire.Connection(self.gate.address) as connection:
                connection.send(data + b"GET /sentinel HTTP/1.1\r\nHost: " + gates.HOST.encode()
                                + b"\r\nConnection: close\r\n\r\n")
                try:
                    connection.socket.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # The gate has closed already.
                connection.rest()
        # Nothing is on its way any more once a last request has gone all of it.
        self.service.closes = False
        self.assertEqual(self.ask("GET", "/last").status, 200)
        self.assertTrue(gates.poll(lambda: len(self.service.open) <= 1))
        seen = set()
        for tape in map(bytes, self.service.tapes.values()):
            for request in self.read(tape):
                passed += 1
                # One that the gate wrote has the gate's word in it, once, and one of its own.
                names = [name for name, _ in request.fields]
                for name in (b"app-attest-verdict", b"x-request-id", b"via", b"host"):
                    self.assertEqual(names.count(name), 1, (SEED, tape))
                identifier = dict(request.fields)[b"x-request-id"]
                self.assertNotIn(identifier, seen, (SEED, tape))
                seen.add(identifier)
                self.assertIn((b"app-attest-verdict", b"off"), request.fields)
        # Both happened often enough to mean something.
        self.assertGreater(passed, total // 4)
        self.assertLess(passed, 2 * total)


OCTETS = (b"\r", b"\n", b"\0", b" ", b"\t", b":", b",", b";", b"\r\n", b"\r\n\r\n", b"\n\n",
          b"\x0b", b"\x85", b"\xa0", b"\x7f", b"0", b"%", b"#", b"\\", b"/", b"..", b"\r\n ",
          b"HTTP/1.1")
LINES = (b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Content-Length: 0",
         b"Transfer-Encoding: gzip, chunked", b"Content-Length : 3", b"Host: evil.test",
         b"X\x00: a", b"Connection: Content-Length", b"Content_Length: 4", b" folded", b"nothing",
         b"Expect: 100-continue", b"Transfer-Encoding: \x0bchunked", b"Content-Length: 1e1")


def damage(draw, data):
    """One to three changes of a valid request, most of them where its reading is decided."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        end = data.find(b"\r\n\r\n")
        # In the head, around the line ends, or anywhere.
        at = draw.choice((draw.randint(0, max(end, 0)), data.find(b"\r\n", draw.randint(0, max(
            end, 1))), draw.randint(0, len(data))))
        at = max(0, min(at, len(data)))
        kind = draw.randint(0, 6)
        if kind == 0:
            data = data[:at] + bytes([draw.randint(0, 255)]) + data[at + 1:]
        elif kind == 1:
            data = data[:at] + draw.choice(OCTETS) + data[at:]
        elif kind == 2:
            data = data[:at] + data[at + draw.randint(1, 4):]
        elif kind == 3 and end > 0:
            start = data.find(b"\r\n")
            data = data[:start + 2] + draw.choice(LINES) + b"\r\n" + data[start + 2:]
        elif kind == 4 and end > 0:
            lines = data[:end].split(b"\r\n")
            chosen = draw.randrange(len(lines))
            lines.insert(draw.randrange(len(lines) + 1), lines[chosen])
            data = b"\r\n".join(lines) + data[end:]
        elif kind == 5 and end > 0:
            data = data[:end] + b"\r\n" + draw.choice(LINES) + data[end:]
        else:
            data = data[:at] + data[at:].swapcase() if at < end else data.replace(
                b"\r\n", b"\n", draw.randint(1, 3))
    return data
