"""A service that closes idle connections after one second, and requests that come just then.

The gate would keep the connections for four. Nothing tells it in time, so some requests are on
their way when the close is: one that is idempotent is sent again, any other never is.
"""

import asyncio
import collections
import random

import case
import wire

CLIENTS, ROUNDS = 400, 25
PATIENCE = 1.0
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


class Service:
    """What its connections have seen."""

    def __init__(self):
        self.seen = collections.Counter()
        self.cut = 0
        self.port = 0
        self.connections = 0

    async def start(self):
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Served(self), "127.0.0.1", 0, backlog=2 * CLIENTS)
        self.port = self.server.sockets[0].getsockname()[1]


class Served(asyncio.Protocol):
    """Answers, and closes once it was idle for too long: every second connection at once, the
    others after they have looked at what still comes."""

    def __init__(self, service):
        self.service, self.buffer, self.timer, self.is_ending = service, b"", None, False
        service.connections += 1
        self.is_kind = service.connections % 2 == 0

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, rest = self.buffer.split(b"\r\n\r\n", 1)
            length = 1 if b"\r\nContent-Length: 1\r\n" in head + b"\r\n" else 0
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.service.seen[tuple(head.decode("latin-1").split(" ")[:2])] += 1
            self.note()

    def note(self):
        if self.is_ending:
            self.service.cut += 1
            return self.transport.close()
        self.transport.write(ANSWER)
        if self.timer:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(PATIENCE, self.end)

    def end(self):
        self.is_ending = True
        if not self.is_kind:
            return self.transport.close()
        self.transport.write_eof()
        self.timer = asyncio.get_running_loop().call_later(2, self.transport.close)

    def connection_lost(self, error):
        if self.timer:
            self.timer.cancel()


class Client(asyncio.Protocol):
    """One connection to the gate; `status` is a future of the answer's."""

    def connection_made(self, transport):
        self.transport, self.buffer, self.status = transport, b"", None

    def ask(self, method, target, body):
        self.status = asyncio.get_running_loop().create_future()
        self.transport.write(wire.message(method, target, body=body))
        return self.status

    def data_received(self, data):
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) >= length:
            self.buffer = body[length:]
            self.status.set_result(int(head.split(b" ")[1]))

    def connection_lost(self, error):
        if self.status and not self.status.done():
            self.status.set_exception(wire.Closed("closed within an exchange"))


async def pause(seconds):
    """Lets time pass: the service's patience is a matter of the clock alone."""
    passed = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, passed.set_result, None)
    await passed


class Edge(case.Case):
    def test_ten_thousand_requests_around_the_close(self):
        asyncio.run(self.play())

    async def play(self):
        service = Service()
        await service.start()

        def change(settings):
            settings.listener = [f"limits per_address={2 * CLIENTS}"]
            settings.upstream = [f"keepalive {2 * CLIENTS} idle=4s requests=100000"]
        self.run_gate(change, service=service)
        loop = asyncio.get_running_loop()
        clients = [
            (await loop.create_connection(Client, *self.gate.address))[1] for _ in range(CLIENTS)]
        statuses = collections.Counter()
        for turn in range(ROUNDS):
            # All at once, so that each needs a connection of its own from the last round.
            methods = ["POST" if (number + turn) % 2 else "GET" for number in range(CLIENTS)]
            answers = await asyncio.wait_for(
                asyncio.gather(*(
                    client.ask(method, f"/public/{number}/{turn}", b"x"[number % 4 // 2:])
                    for number, (client, method) in enumerate(zip(clients, methods)))),
                60)
            statuses.update(zip(methods, answers))
            await pause(PATIENCE - random.uniform(0, 0.1))
        for client in clients:
            client.transport.close()
        self.gate.kill()
        service.server.close()
        self.judge(statuses, service)

    def judge(self, statuses, service):
        half = CLIENTS * ROUNDS // 2
        self.assertEqual(sum(statuses.values()), 2 * half)
        self.assertEqual(statuses["GET", 200], half, statuses)
        self.assertLessEqual(set(statuses), {("GET", 200), ("POST", 200), ("POST", 502)})
        twice = [request for request, count in service.seen.items() if count > 1]
        self.assertEqual([request for request in twice if request[0] == "POST"], [])
        # Some were cut off at the close, or the test has shown nothing.
        self.assertGreater(service.cut + statuses["POST", 502], 0, statuses)
