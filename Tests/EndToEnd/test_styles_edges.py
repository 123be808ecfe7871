"""What is counted, kept and let pass of the client styles; and the command that sends each."""

import json
import os

import case
import gate as gates
import styles
from style_case import BODY, StyleCase


class Limits(case.Case):
    """What is counted against whom tries keys and attestations."""

    def configure(self, settings):
        settings.listener.append("trusted_proxies 127.0.0.0/8")
        settings.account = "header X-Account-Id"
        settings.host += ["proof {", "key_id account", "}"]
        settings.rates["failed_signatures"] = "per_account=2/1h per_address=1000/1h"
        settings.rates["attestations"] = "per_account=6/1h per_address=1000/1h"
        settings.routes = {
            "POST /raw/*": ["bind body challenge=none", "purpose raw"],
            "POST /first/*": ["inline_enroll on", "purpose first"],
        }

    def style(self, kind, account="one"):
        client = kind(self.gate.address, self.device(), account)
        client.assertion_field = "App-Attest-Assertion"
        return client

    def test_a_proof_that_no_key_signed_counts_once(self):
        self.run_gate(self.configure)
        clients = [self.style(styles.RawBody).enrolled() for _ in range(4)]
        client = clients[0]
        message = client.request("POST", "/raw/a", BODY)
        for _ in range(2):
            self.check_problem(client.deliver(message.changed(body=b"other")), "rejected")
        self.check_problem(client.deliver(message.changed(body=b"other")), "rate_limited")
        answer = self.check_problem(client.deliver(message), "rate_limited")
        self.check_reason(answer, "rate_limited")

    def test_a_key_that_was_passed_over_does_not_hide_a_failure(self):
        self.run_gate(self.configure)
        ahead, client = [self.style(styles.RawBody).enrolled() for _ in range(2)]
        ahead.device.skip(1000)
        self.assertEqual(ahead.deliver(ahead.request("POST", "/raw/a", BODY)).status, 200)
        message = client.request("POST", "/raw/a", BODY).changed(body=b"other")
        for _ in range(2):
            self.check_problem(client.deliver(message), "challenge_required")
        self.check_problem(client.deliver(message), "rate_limited")

    def test_an_inline_attestation_counts_as_one(self):
        self.run_gate(self.configure)
        clients = [self.style(styles.FirstFields) for _ in range(7)]
        for client in clients[:6]:
            self.assertEqual(client.deliver(client.first("POST", "/first/a", BODY)).status, 200)
        # One whose key is known is none.
        again = clients[0].first("POST", "/first/a", BODY)
        self.assertEqual(clients[0].deliver(again).status, 200)
        self.check_problem(
            clients[6].deliver(clients[6].first("POST", "/first/a", BODY)), "rate_limited")

    def test_keys_per_account_bind_inline_too(self):
        def configure(settings):
            self.configure(settings)
            settings.app.append("keys_per_account 2")

        self.run_gate(configure)
        clients = [self.style(styles.FirstFields) for _ in range(3)]
        for client in clients[:2]:
            self.assertEqual(client.deliver(client.first("POST", "/first/a", BODY)).status, 200)
        answer = clients[2].deliver(clients[2].first("POST", "/first/a", BODY))
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "key_limit")
        self.service.reset()
        other = self.style(styles.FirstFields, "two")
        self.assertEqual(other.deliver(other.first("POST", "/first/a", BODY)).status, 200)


class Restart(case.Case):
    def test_a_counter_without_challenge_and_an_inline_key_survive_a_kill(self):
        def configure(settings):
            settings.routes = {
                "POST /raw/*": ["bind body challenge=none", "purpose raw"],
                "POST /first/*": ["inline_enroll on", "purpose first"],
            }

        self.run_gate(configure)
        client = styles.FirstFields(self.gate.address, self.device())
        first = client.first("POST", "/first/a", BODY)
        self.assertEqual(client.deliver(first).status, 200)
        body = client.sign(BODY)
        raw = styles.Message("POST", "/raw/a", [
            ("App-Attest-Key-Id", client.key_id), ("App-Attest-Assertion", body)], BODY)
        self.assertEqual(client.deliver(raw).status, 200)
        self.gate.kill()
        self.gate.start()
        for message in (first, raw):
            self.check_problem(client.deliver(message), "challenge_required")
        self.assertEqual(client.deliver(client.request("POST", "/first/a", BODY)).status, 200)


class Memory(case.Case):
    def test_an_envelope_never_goes_to_a_file(self):
        def configure(settings):
            settings.routes = {"POST /orders/*": ["bind envelope", "purpose order"],
                               "POST /signed/*": ["bind request", "purpose signed"]}
            settings.spool_lines.append("max 1m files=2")

        self.run_gate(configure)
        os.rmdir(self.gate.settings.spool)
        client = styles.Envelope(self.gate.address, self.device()).enrolled()
        body = b"x" * 300_000
        request = self.check_upstream(client.deliver(client.request("POST", "/orders/a", body)))
        self.assertEqual(request.body, body)
        signed = styles.RequestLines(self.gate.address, client.device)
        self.check_problem(
            signed.deliver(signed.request("POST", "/signed/a", body)), "retry_later")


class Fallback(case.Case):
    def test_an_envelope_route_lets_a_plain_body_pass_where_its_fallback_says_so(self):
        def configure(settings):
            settings.routes = {
                "POST /orders/*": ["bind envelope", "purpose order",
                                   "fallback allow_unverified"],
            }

        self.run_gate(configure)
        client = styles.Envelope(self.gate.address, self.device()).enrolled()
        for body in (BODY, b"{}", b"", b"plain \xff text"):
            message = styles.Message("POST", "/orders/a", [
                ("App-Attest-Unsupported", "?1"), ("Content-Type", "text/x")], body)
            self.service.reset()
            request = self.check_upstream(client.deliver(message))
            self.assertEqual((request.body, request.get("App-Attest-Verdict")),
                             (body, "unverified"))
            self.assertEqual(request.get("Content-Type"), "text/x")
        self.service.reset()
        message = client.request("POST", "/orders/a", BODY)
        message.fields.append(("App-Attest-Unsupported", "?1"))
        request = self.check_upstream(client.deliver(message))
        self.assertEqual((request.body, request.get("App-Attest-Verdict")), (BODY, "verified"))
        self.service.reset()
        answer = client.deliver(message)
        self.check_problem(answer, "challenge_required")
        self.check_nothing_upstream()


class DeviceCommand(StyleCase):
    """`attestgate device request` in each style."""

    proof = ["proof {", "key_id account", "}"]

    @classmethod
    def configure(cls, settings):
        super().configure(settings)
        cls.state = os.path.join(settings.directory, "device")
        settings.root = f"{cls.state}.root.pem"
        done = gates.command("device", "new", "--state", cls.state, "--app-id", gates.APP_ID)
        assert done.returncode == 0, done.stderr

    def run_command(self, *words, code=0):
        done = gates.command(
            "device", *words, "--state", self.state, "-H", "X-Account-Id: me", "--connect",
            f"127.0.0.1:{self.gate.settings.port}")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_each_style_passes(self):
        def send(path, *words):
            self.service.reset()
            self.run_command("request", "POST", f"http://{gates.HOST}{path}", *words)
            request = self.service.wait(1)[0]
            self.assertEqual(request.get("App-Attest-Verdict"), "verified")
            return request.body

        data = ["--data", '{"a": 1}']
        self.assertEqual(send("/first/a", "--inline", *data), b'{"a": 1}')
        for _ in range(2):
            self.assertEqual(send("/fields/a", "--purpose", "fields", *data), b'{"a": 1}')
            self.assertEqual(
                send("/signed/a", "--binding", "request", "--purpose", "signed", *data),
                b'{"a": 1}')
            self.assertEqual(
                send("/orders/a", "--binding", "envelope", "--purpose", "order", *data),
                b'{"a": 1}')
            self.assertEqual(
                send("/raw/a", "--binding", "body", "--no-key-id", *data), b'{"a": 1}')
            body = send("/scores/a", "--binding", "body", "--purpose", "score",
                        "--challenge-pointer", "/challenge", *data)
            self.assertEqual(json.loads(body)["a"], 1)
        send("/first-signed/a", "--inline", "--binding", "request", *data)
        send("/first-body/a", "--inline", "--binding", "body", "--challenge-pointer",
             "/challenge", *data)
        self.service.reset()
        self.run_command("request", "POST", f"http://{gates.HOST}/orders/a", *data, code=1)
        self.check_nothing_upstream()
