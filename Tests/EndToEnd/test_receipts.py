"""Receipts: what is kept of an attestation's, and their exchange for Apple's fraud metric."""

import base64
import calendar
import os
import random
import secrets
import threading
import time

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import app
import apple
import case
import gate as gates
import store_files
from apple import peer_apple

import peer_attest

Answer = peer_apple.Answer


def time_of(text):
    """A receipt's time, in unix seconds."""
    whole, _, fraction = text.decode().rstrip("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return seconds + float("0." + (fraction or "0"))


class Kept(case.Case):
    """`receipts off|verify|require`: what becomes of good and bad ones."""

    def serve(self, mode, root=None):
        def change(settings):
            if mode:
                settings.app.append(f"receipts {mode}")
        self.run_gate(change)

    def kept(self):
        """The receipts in the store, by key ID."""
        self.gate.stop()
        keys = store_files.read_keys(self.gate.settings.store)
        return {key_id: key.receipt for key_id, key in keys.items()}

    def devices(self):
        """A device with a good receipt, and some whose receipts are bad, by what is wrong."""
        def made(change):
            device = self.device()
            receipt = device.receipt
            device.receipt = lambda leaf, digest, at: change(device, receipt, leaf, digest, at)
            return device

        def fields(change):
            def make(device, receipt, leaf, digest, at):
                found = dict(peer_attest.receipt_fields(receipt(leaf, digest, at)))
                change(found)
                return peer_attest.make_receipt(self.root, found.items())
            return made(make)

        other = peer_attest.Root()
        later = peer_attest.receipt_time(time.time() - 400)
        return {
            "good": self.device(),
            "another root": made(lambda device, receipt, *arguments: peer_attest.make_receipt(
                other, peer_attest.receipt_fields(receipt(*arguments)))),
            "nothing": made(lambda *arguments: b""),
            "no receipt": made(lambda *arguments: os.urandom(300)),
            "another App ID": fields(lambda found: found.update({2: b"ABCDE12345.com.other"})),
            "another environment": fields(lambda found: found.update({7: b"sandbox"})),
            "another client data hash": fields(lambda found: found.update({4: bytes(32)})),
            "another kind": fields(lambda found: found.update({6: b"RECEIPT"})),
            "another key": fields(lambda found: found.update(
                {3: peer_attest.der(self.root.receipt_signer)})),
            "six minutes old": fields(lambda found: found.update({12: later})),
            "no time": fields(lambda found: found.pop(12)),
        }

    def test_require_refuses_what_is_not_good(self):
        self.serve("require")
        for name, device in self.devices().items():
            with self.subTest(receipt=name):
                answer = self.app(device).enrol()
                if name == "good":
                    self.assertEqual(answer.status, 201)
                    continue
                self.check_problem(answer, "rejected")
                self.check_reason(answer, "receipt_invalid")
        self.assertEqual(len(self.kept()), 1)

    def test_verify_keeps_what_is_good_and_is_the_default(self):
        for mode in ("verify", None):
            self.serve(mode)
            devices = self.devices()
            for device in devices.values():
                self.app(device).enrolled()
            told = self.gate.err.text
            self.assertIn("receipt of a new key: ", told)
            kept = self.kept()
            for name, device in devices.items():
                with self.subTest(receipt=name, mode=mode):
                    self.assertEqual(kept[device.key_id] is not None, name == "good")

    def test_off_keeps_all_unread(self):
        self.serve("off")
        devices = self.devices()
        for device in devices.values():
            self.app(device).enrolled()
        kept = self.kept()
        for name, device in devices.items():
            with self.subTest(receipt=name):
                self.assertEqual(kept[device.key_id] is not None, name != "nothing")

    def test_a_bad_receipt_spends_nothing_under_require(self):
        self.serve("require")
        phone = self.app(self.devices()["nothing"])
        challenge = phone.challenge("attestation")
        self.check_problem(phone.enrol(challenge), "rejected")
        good = self.app()
        self.assertEqual(good.enrol(challenge).status, 201)


class Exchange:
    """What the stand-in's exchange does with a receipt: records it, and gives the next one."""

    def __init__(self, root, answer):
        self.root, self.answer = root, answer
        self.lock = threading.Lock()
        self.calls = []
        self.given = {}
        self.seen = {}

    def __call__(self, receipt):
        now = time.time()
        fields = dict(peer_attest.receipt_fields(receipt))
        key = self.key_id(fields[3])
        not_before = time_of(fields[19]) if 19 in fields else 0
        with self.lock:
            call = {"key": key, "at": now, "not_before": not_before, "made": fields[12],
                    "latest": self.given.get(key, 0), "status": None}
            self.calls.append(call)
        try:
            made, next_time = self.answer(call, receipt)
        except Answer as other:
            call["status"] = other.status
            raise
        with self.lock:
            call["status"] = 200
            self.given[key] = next_time
        return made

    def key_id(self, certificate):
        if certificate not in self.seen:
            key = peer_attest.x509.load_der_x509_certificate(certificate).public_key()
            self.seen[certificate] = app.sha256(key.public_bytes(
                serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint))
        return self.seen[certificate]

    def of(self, key_id):
        with self.lock:
            return [call for call in self.calls if call["key"] == key_id]


class Refresh(apple.Case):
    """`receipts refresh` with keys that a store was made with, all due at the start."""

    def serve(self, count, answer, refresh_at=None, **options):
        """A gate on a store with `count` keys."""
        def change(settings):
            settings.extra += self.block()
            settings.app.append("receipts refresh")
            self.fill(settings.store, count, refresh_at)
        self.run_gate(change, start=False, **options)
        self.exchange = Exchange(self.root, answer)
        self.exchange.seen.update(self.certificates)
        self.apple.exchange = self.exchange
        self.gate.start(within=60)

    def fill(self, directory, count, refresh_at=None):
        now = int(time.time())
        files = store_files.StoreFiles(directory)
        issuer = ec.generate_private_key(ec.SECP256R1())
        self.devices, self.certificates = [], {}
        for number in range(count):
            device = self.device()
            leaf = peer_attest.der(
                peer_attest.builder(
                    peer_attest.name(f"key {number}"), peer_attest.name("Peer Intermediate"),
                    device.key, number + 1, now - 86400, now + 86400,
                ).sign(issuer, hashes.SHA256()))
            receipt = peer_attest.make_receipt(self.root, [
                (2, device.app_id.encode()), (3, leaf), (4, secrets.token_bytes(32)),
                (5, base64.b64encode(secrets.token_bytes(64))), (6, b"ATTEST"),
                (7, b"production"), (12, peer_attest.receipt_time(now - 3600)),
                (21, peer_attest.receipt_time(now + 80 * 86400))])
            self.devices.append(device)
            self.certificates[leaf] = device.key_id
            files.enrol(device.key_id, device.public_key, device.app_id, 1, now - 3600, receipt,
                        refresh_at=refresh_at or now)
        files.close()

    def next_receipt(self, receipt, metric=3, after=3600.0):
        """The next receipt, and its not-before."""
        now = time.time()
        return peer_attest.refresh_receipt(
            self.root, receipt, metric, now, now + after), now + after

    def stored(self):
        self.gate.stop()
        return store_files.read_keys(self.gate.settings.store)

    def wait_calls(self, count, within=gates.DEADLINE):
        self.assertTrue(
            gates.poll(lambda: len(self.exchange.calls) >= count, within),
            f"{len(self.exchange.calls)} calls\n{self.gate.err.text[-2000:]}")

    def test_the_metric_and_its_age_reach_the_service(self):
        self.serve(3, lambda call, receipt: self.next_receipt(receipt, 7))
        phone = self.app(self.devices[0])
        self.wait_calls(3)

        def risk():
            answer = phone.send("GET", "/v1/data/a")
            self.assertEqual(answer.status, 200)
            return self.service.requests[-1].get("App-Attest-Risk") or ""
        self.assertTrue(gates.poll(lambda: "metric=7" in risk()), risk())
        self.assertRegex(risk(), r"\bmetric=7, metric-age=[0-9]\b")
        self.gate.kill()
        self.gate.start()
        self.assertRegex(risk(), r"\bmetric=7, metric-age=[0-9]{1,2}\b")
        self.assertEqual(len(self.exchange.calls), 3)
        self.assertEqual(self.apple.problems, [])
        self.assertEqual(self.apple.authorizations, 1)
        for key in self.stored().values():
            fields = dict(peer_attest.receipt_fields(key.receipt))
            self.assertEqual((fields[6], fields[17], key.metric), (b"RECEIPT", b"7", 7))
            self.assertGreaterEqual(key.refresh_at, time_of(fields[19]))

    def test_the_not_before_is_kept_to_and_then_it_goes_on(self):
        self.serve(5, lambda call, receipt: self.next_receipt(receipt, after=2.3))
        self.wait_calls(15, within=40)
        for call in self.exchange.calls:
            self.assertGreaterEqual(call["at"], call["not_before"])
            self.assertGreaterEqual(call["at"], call["latest"])
        for device in self.devices:
            made = [time_of(call["made"]) for call in self.exchange.of(device.key_id)]
            self.assertEqual(made, sorted(set(made)))

    def check_scheduled(self, status, least, most, metric=None):
        """After an answer with `status` the receipt stays and is asked for that much later."""
        def answer(call, receipt):
            raise Answer(status)
        self.serve(1, answer)
        before = store_files.read_keys(self.gate.settings.store)[self.devices[0].key_id].receipt
        self.wait_calls(1)
        # What must not happen for a while: another call.
        gates.pass_time(1.5)
        self.assertEqual(len(self.exchange.calls), 1)
        key = self.stored()[self.devices[0].key_id]
        self.assertEqual(key.receipt, before)
        later = key.refresh_at - self.exchange.calls[0]["at"]
        self.assertTrue(least - 2 <= later <= most + 2, later)
        return self.gate.err.text

    def test_one_that_cannot_be_read_is_tried_again_the_next_day(self):
        start = time.time()
        self.serve(1, lambda call, receipt: self.next_receipt(receipt),
                   refresh_at=int(start) + 4)
        store = self.gate.settings.store
        hidden = [name for name in os.listdir(store) if name.startswith("receipts")]
        self.assertTrue(hidden)
        away = self.temporary()
        for name in hidden:
            os.rename(os.path.join(store, name), os.path.join(away, name))
        self.assertTrue(self.gate.err.wait(lambda line: "cannot be read; tried again" in line))
        gates.pass_time(0.3)
        self.gate.kill()
        for name in hidden:
            os.replace(os.path.join(away, name), os.path.join(store, name))
        key = store_files.read_keys(store)[self.devices[0].key_id]
        self.assertIsNotNone(key.refresh_at)
        self.assertTrue(43_190 <= key.refresh_at - start <= 86_410 + 60, key.refresh_at - start)
        self.assertEqual(self.exchange.calls, [])

    def test_304_is_asked_again_after_hours(self):
        self.check_scheduled(304, 3 * 3600, 6 * 3600)

    def test_404_keeps_the_receipt_and_is_asked_rarely(self):
        self.check_scheduled(404, 3.5 * 86400, 7 * 86400)

    def test_400_is_not_asked_again_for_weeks_and_said(self):
        self.assertIn("answered 400", self.check_scheduled(400, 15 * 86400, 30 * 86400))

    def test_429_and_500_back_off(self):
        for status in (429, 500, 503):
            with self.subTest(status=status):
                self.check_scheduled(status, 30, 60)

    def test_401_stops_the_run_and_is_said(self):
        def answer(call, receipt):
            raise Answer(401)
        self.serve(200, answer)
        self.assertIsNotNone(self.gate.err.wait(lambda line: "answered 401" in line))
        gates.pass_time(1.5)
        # Those that were on their way; none of the others.
        self.assertLessEqual(len(self.exchange.calls), 40)
        self.assertTrue(any(
            "none is asked for in the next hour" in line for line in
            self.gate.err.text.split("\n")))
        keys = self.stored()
        self.assertTrue(all(key.refresh_at for key in keys.values()))

    def test_receipts_that_are_all_bad_stop_the_run(self):
        def answer(call, receipt):
            raise Answer(400)
        self.serve(200, answer)
        self.assertIsNotNone(
            self.gate.err.wait(lambda line: "none is asked for in an hour" in line))
        gates.pass_time(1.5)
        self.assertLessEqual(len(self.exchange.calls), 45)

    def test_an_answer_that_is_no_receipt_of_the_key_is_not_kept(self):
        def other(call, receipt):
            fields = dict(peer_attest.receipt_fields(receipt))
            wrong = {
                0: lambda: b"no receipt", 1: lambda: receipt,
                2: lambda: self.next_receipt(peer_attest.make_receipt(
                    self.root, {**fields, 2: b"ABCDE12345.com.other"}.items()))[0],
                3: lambda: self.next_receipt(peer_attest.make_receipt(
                    self.root, {**fields, 3: list(self.certificates)[0]}.items()))[0],
                4: lambda: peer_attest.refresh_receipt(
                    peer_attest.Root(), receipt, 3),
                5: lambda: peer_attest.refresh_receipt(
                    self.root, receipt, 3, time.time() - 400),
                6: lambda: peer_attest.refresh_receipt(
                    self.root, receipt, 3, time.time() - 7200),
            }
            number = [device.key_id for device in self.devices].index(call["key"])
            return wrong[number - 1](), 0
        self.serve(8, lambda call, receipt: (_ for _ in ()).throw(Answer(404))
                   if call["key"] == self.devices[0].key_id else other(call, receipt))
        before = {device.key_id: key.receipt for device, key in zip(
            self.devices, map(store_files.read_keys(self.gate.settings.store).get,
                              [device.key_id for device in self.devices]))}
        self.wait_calls(8)
        gates.pass_time(1)
        self.assertEqual(len(self.exchange.calls), 8)
        self.assertIn("the one that came is not good", self.gate.err.text)
        for key_id, key in self.stored().items():
            self.assertEqual(key.receipt, before[key_id])
            self.assertIsNone(key.metric)
            self.assertGreater(key.refresh_at, time.time() + 3600)

    def test_nothing_is_asked_before_it_is_due_or_of_a_revoked_key(self):
        soon = int(time.time()) + 4
        self.serve(3, lambda call, receipt: self.next_receipt(receipt), refresh_at=soon)
        answer = self.app(self.devices[0]).send(
            "POST", "/v1/app-attest/keys/revoke",
            b'{"keyID": "%s"}' % app.b64(self.devices[0].key_id).encode(), binding="request",
            purpose="revoke")
        self.assertEqual(answer.status, 204, answer)
        self.wait_calls(2)
        gates.pass_time(1)
        self.assertEqual(
            {call["key"] for call in self.exchange.calls},
            {device.key_id for device in self.devices[1:]})
        self.assertTrue(all(call["at"] >= soon for call in self.exchange.calls))

    def test_a_run_with_faults_and_a_kill_loses_no_key(self):
        """GATE_RECEIPTS says how many keys."""
        count = int(os.environ.get("GATE_RECEIPTS", "1000"))
        draw = random.Random(int(os.environ.get("GATE_SEED", "4")))
        throttled = set(draw.sample(range(count), 2))

        def answer(call, receipt):
            with self.exchange.lock:
                number = len(self.exchange.calls)
                roll, after = draw.random(), draw.choice([1.2, 2.5] + [3600] * 38)
            if number in throttled:
                raise Answer(429)
            if roll < 0.03:
                raise Answer(500)
            if roll < 0.06:
                raise Answer(503)
            if roll < 0.09:
                raise Answer(304)
            if roll < 0.12:
                raise Answer(404)
            if roll < 0.13:
                raise Answer(400)
            if roll < 0.16:
                raise OSError("no answer")
            return self.next_receipt(receipt, draw.randrange(5), after)

        began = time.monotonic()
        self.serve(count, answer)
        filled = time.monotonic()
        self.wait_calls(count * 2 // 5, within=120 + count / 8)
        killed = time.time()
        self.gate.kill()
        self.gate.start(within=60)

        def asked():
            with self.exchange.lock:
                return len({call["key"] for call in self.exchange.calls})
        self.assertTrue(
            gates.poll(lambda: asked() == count, within=120 + count / 8),
            f"{asked()} of {count} keys asked for")
        ended = time.monotonic()
        keys = self.stored()
        print(f"{count} keys: {filled - began:.1f} s to make, {ended - filled:.1f} s to refresh, "
              f"{len(self.exchange.calls)} calls", flush=True)

        # Asked before its not-before was none: neither by the receipt that was shown, nor by the
        # latest that was given, but for answers that the kill kept from being stored.
        early = []
        for call in self.exchange.calls:
            self.assertGreaterEqual(call["at"], call["not_before"])
            if call["at"] < call["latest"]:
                early.append(call)
        self.assertTrue(all(call["at"] > killed for call in early))
        self.assertLessEqual(len(early), 40)

        # And lost was none: each has a receipt of its own and its next time.
        self.assertEqual(set(keys), {device.key_id for device in self.devices})
        refreshed = 0
        for key_id, key in keys.items():
            fields = dict(peer_attest.receipt_fields(key.receipt))
            self.assertEqual(self.exchange.key_id(fields[3]), key_id)
            self.assertGreater(key.refresh_at, 0)
            if 19 in fields:
                refreshed += 1
                self.assertGreaterEqual(key.refresh_at, time_of(fields[19]))
                self.assertEqual(key.metric, int(fields[17]))
        self.assertGreater(refreshed, count * 0.75)
        self.assertEqual(self.apple.problems, [])
        self.assertLessEqual(self.apple.authorizations, 2)
