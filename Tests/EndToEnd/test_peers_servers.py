"""Frameworks behind the gate: they see the path, the fields and the body that were signed."""

import asyncio
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import unittest

import httpx

import case
import gate as gates
import wire

PEERS = os.path.join(gates.TOP, "Tests", "Peers")
TARGET = "caf%C3%A9/a%20b%7Ec/x,y:z@1?x=%2F&y=1+2&z=&q=%C3%BC&w=\"<>[]{}|"
PATH = "caf\u00e9/a b~c/x,y:z@1"


class Process:
    """A service as a process of its own, ended by its id."""

    def __init__(self, *command):
        self.port = gates.port()
        self.process = subprocess.Popen(
            [*command, str(self.port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(wire.DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()


class Framework:
    """What holds for each of them; a derived class names its command."""

    @classmethod
    def setUpClass(cls):
        cls.peer = Process(*cls.command)
        cls.addClassCleanup(cls.peer.close)
        assert gates.poll(cls.peer.answers, within=30), cls.command

    def setUp(self):
        def change(settings):
            settings.servers = [f"127.0.0.1:{self.peer.port}"]
            settings.routes["* /v1/large/*"] = ["body max=8m memory=64k"]
        self.run_gate(change)

    def check_seen(self, answer, method, target, body):
        self.assertEqual(answer.status, 200, answer)
        seen = answer.json
        self.assertEqual((seen["method"], seen["target"]), (method, target))
        self.assertEqual(seen["body"], hashlib.sha256(body or b"").hexdigest())
        return seen, dict(seen["fields"])

    def test_the_request_is_seen_as_it_was_signed(self):
        phone = self.app().enrolled()
        fields = [("Content-Type", "application/json"), ("Cookie", "a=b; c=\"d e\""),
                  ("X-Kept", "1, 2"), ("App_Attest_Verdict", "forged"),
                  ("App.Attest.Account", "forged"), ("X-Forwarded-For", "198.51.100.7")]
        body = json.dumps({"amount": 5, "to": "\u00fc"}).encode()
        with phone.connect() as connection:
            for number in range(12):
                method = ("POST", "PUT", "GET", "DELETE")[number % 4]
                binding, prefix = (("client_data", "/v1/data/"), ("request", "/v1/signed/"))[
                    number % 2]
                sent = body if number % 4 < 2 else None
                answer = phone.send(method, prefix + TARGET, sent, binding, fields=fields,
                                    connection=connection, chunked=number == 5)
                seen, found = self.check_seen(answer, method, prefix + TARGET, sent)
                self.assertEqual(seen["path"], prefix + PATH)
                self.assertEqual(found["app-attest-verdict"], "verified")
                self.assertEqual(found["app-attest-verified-key"], phone.key_id)
                self.assertEqual(found["cookie"], "a=b; c=\"d e\"")
                self.assertEqual(found["x-kept"], "1, 2")
                self.assertEqual(found["x-forwarded-for"], "127.0.0.1")
                self.assertEqual(found["host"], gates.HOST)
                self.assertNotIn("forged", str(seen))

    def test_bodies_arrive_whole(self):
        phone, large = self.app().enrolled(), os.urandom(3 << 20)
        answer = phone.send("POST", "/v1/large/a", large)
        self.check_seen(answer, "POST", "/v1/large/a", large)
        for chunked in (False, True):
            answer = self.ask("POST", "/public/a", body=large, chunked=chunked)
            _, fields = self.check_seen(answer, "POST", "/public/a", large)
            self.assertEqual(fields["app-attest-verdict"], "off")

    def test_a_head_has_no_body_and_the_connection_stays_in_step(self):
        with wire.Connection(self.gate.address) as connection:
            for _ in range(3):
                answer = connection.ask("HEAD", "/public/a")
                self.assertEqual((answer.status, answer.body), (200, b""))
                self.check_seen(connection.ask("GET", "/public/b?"), "GET", self.bare_query, None)

    # Some frameworks cannot tell an empty query from none.
    bare_query = "/public/b?"


class Uvicorn(Framework, case.Case):
    command = (sys.executable, "-B", os.path.join(PEERS, "peer_services.py"), "uvicorn")
    bare_query = "/public/b"


class GunicornAndFlask(Framework, case.Case):
    command = (sys.executable, "-B", os.path.join(PEERS, "peer_services.py"), "gunicorn")


class Aiohttp(Framework, case.Case):
    command = (sys.executable, "-B", os.path.join(PEERS, "peer_services.py"), "aiohttp")


@unittest.skipUnless(shutil.which("node"), "no node")
class Node(Framework, case.Case):
    command = ("node", os.path.join(PEERS, "peer_service.js"))


class Httpx(case.SharedGate):
    """The client most Python services call with."""

    def url(self, target):
        return f"http://127.0.0.1:{self.gate.settings.port}{target}"

    def test_many_at_once_streamed_both_ways(self):
        async def upload(client, number):
            async def pieces():
                for _ in range(10):
                    yield bytes([number]) * 1000
            answer = await client.post(self.url(f"/public/{number}"), content=pieces())
            return answer.status_code, answer.content

        async def run():
            limits = httpx.Limits(max_connections=20)
            async with httpx.AsyncClient(headers={"Host": gates.HOST}, limits=limits) as client:
                return await asyncio.gather(*(upload(client, number) for number in range(100)))
        self.assertEqual(set(asyncio.run(run())), {(200, b"ok\n")})
        bodies = {request.target: request.body for request in self.service.wait(100)}
        for number in range(100):
            self.assertEqual(bodies[f"/public/{number}"], bytes([number]) * 10_000)

    def test_a_signed_request(self):
        phone = self.app().enrolled()
        target, body = "/v1/data/a?b=c%20d", b'{"x": 1}'
        proof = phone.prove("POST", target, body, phone.challenge())
        with httpx.Client() as client:
            answer = client.post(self.url(target), content=body,
                                 headers=[("Host", gates.HOST), *proof])
            self.assertEqual(answer.status_code, 200, answer.text)
            again = client.post(self.url(target), content=body,
                                headers=[("Host", gates.HOST), *proof])
            self.assertEqual(again.json()["code"], "challenge_required")
        self.assertEqual(self.service.wait(1)[0].target, target)
