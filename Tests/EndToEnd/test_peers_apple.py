"""The stand-in of Apple's servers is one: it takes what Apple takes, refuses what Apple refuses."""

import base64
import json
import os
import sys
import time

import case
import pki
from gate import TOP

sys.path.insert(0, os.path.join(TOP, "Tests", "Peers"))
import peer_apple  # noqa: E402
from peer_apple import EXCHANGE, QUERY, UPDATE, VALIDATE, Answer  # noqa: E402


class StandIn(case.Case):
    def setUp(self):
        authority = pki.Authority(self.temporary())
        identity = authority.issue("apple", "127.0.0.1")
        self.apple = peer_apple.Apple(identity.pem, identity.key_pem)
        self.addCleanup(self.apple.close)
        self.client = peer_apple.Client(self.apple, authority.pem)

    def ask(self, path, token=None, **members):
        options = {name: members.pop(name) for name in ("authorization", "kind")
                   if name in members}
        token = token or self.apple.token()
        return self.client.post(path, self.client.members(token, **members), **options)

    def test_bits_are_of_the_device_and_no_state_is_a_text(self):
        token = self.apple.token()
        self.assertEqual(self.ask(QUERY, token), (200, "Failed to find bit state"))
        self.assertEqual(self.ask(UPDATE, token, bit0=True, bit1=False), (200, ""))
        other = self.apple.token(self.apple.device(token))
        status, text = self.ask(QUERY, other)
        month = time.strftime("%Y-%m", time.gmtime())
        self.assertEqual((status, json.loads(text)),
                         (200, {"bit0": True, "bit1": False, "last_update_time": month}))
        self.assertEqual(self.ask(VALIDATE, token), (200, ""))
        self.assertEqual(self.apple.problems, [])

    def test_what_a_call_must_be(self):
        for status, path, options in [
                (400, QUERY, {"timestamp": int(time.time())}),
                (400, QUERY, {"timestamp": time.time() * 1000}),
                (400, QUERY, {"transaction_id": 7}),
                (400, QUERY, {"kind": "text/plain"}),
                (400, UPDATE, {"bit0": 1}),
                (400, QUERY, {"authorization": self.client.authorization()}),
                (400, QUERY, {"authorization": "Bearer x"}),
                (401, QUERY, {"authorization": "Bearer " + self.client.authorization(der=True)}),
                (401, QUERY, {"authorization": "Bearer " + self.client.authorization(key_id="x")}),
                (401, QUERY, {"authorization": "Bearer " + self.client.authorization(team_id="x")}),
                (401, QUERY, {"authorization":
                              "Bearer " + self.client.authorization(time.time() - 3700)}),
                (404, "/v1/attestation", {})]:
            before = len(self.apple.problems)
            self.assertEqual(self.ask(path, **options)[0], status, options)
            self.assertGreater(len(self.apple.problems), before, options)

    def test_a_token_that_is_none_or_of_the_other_environment(self):
        self.assertEqual(self.ask(QUERY, "AAAA")[0], 400)
        self.assertEqual(self.ask(QUERY, self.apple.token(environment="development"))[0], 400)
        token = self.apple.token()
        self.apple.expire(token)
        self.assertEqual(self.ask(QUERY, token)[0], 400)
        self.assertEqual(self.ask(QUERY, "AA\nAA")[0], 400)

    def test_a_transaction_that_came_before_and_unwise_writes_are_noted(self):
        self.ask(QUERY, transaction_id="one")
        self.ask(QUERY, transaction_id="one")
        self.ask(UPDATE, bit0=True)
        self.assertEqual(len(self.apple.problems), 3, self.apple.problems)

    def test_the_exchange_takes_base64_alone(self):
        self.apple.exchange = lambda receipt: receipt[::-1]
        status, text = self.client.post(EXCHANGE, base64.b64encode(b"receipt"))
        self.assertEqual((status, base64.b64decode(text)), (200, b"tpiecer"))
        for body in (b"", b"\x30\x80", b'{"a": 1}', base64.encodebytes(b"x" * 100)):
            self.assertEqual(self.client.post(EXCHANGE, body)[0], 400)
        for status in (304, 400, 401, 404, 429, 500, 503):
            def refuse(receipt, status=status):
                raise Answer(status)
            self.apple.exchange = refuse
            self.assertEqual(self.client.post(EXCHANGE, b"AAAA")[0], status)

    def test_faults_come_on_demand_and_go(self):
        for fault, (status, text) in peer_apple.FAULTS.items():
            self.apple.fail(fault, times=1)
            self.assertEqual(self.ask(QUERY), (status, text if status != 304 else ""))
        for fault in ("reset", "close"):
            self.apple.fail(fault, times=1)
            with self.assertRaises(OSError):
                self.ask(QUERY)
        self.apple.fail("slow:0.3", times=1, path=VALIDATE)
        started = time.monotonic()
        self.assertEqual(self.ask(QUERY)[0], 200)
        self.assertEqual(self.ask(VALIDATE)[0], 200)
        self.assertGreater(time.monotonic() - started, 0.3)
        self.apple.stop()
        with self.assertRaises(OSError):
            self.ask(QUERY)
        self.apple.start()
        self.assertEqual(self.ask(QUERY)[0], 200)
        self.assertEqual(self.apple.problems, [])
