"""A gate for every client style (`styles.py`), and how what comes through it is judged."""

import case

BODY = b'{"level": 3,  "points":4200, "note":"\xc3\xa9"}'

PROOF_FIELDS = [
    "X-App-Assertion", "X-App-Key", "X-App-Data", "X-App-Challenge", "X-App-Attestation",
    "App-Attest-Key-Id", "App-Attest-Assertion", "App-Attest-Client-Data", "App-Attest-Challenge",
    "App-Attest-Attestation",
]


class StyleCase(case.SharedGate):
    """A gate with accounts, and fields and routes for every style."""

    proof = []
    app_lines = []

    @classmethod
    def configure(cls, settings):
        settings.listener.append("trusted_proxies 127.0.0.0/8")
        settings.account = "header X-Account-Id"
        settings.host += cls.proof
        settings.app += cls.app_lines
        settings.routes = {
            "POST /raw/*": ["bind body challenge=none", "purpose raw"],
            "POST /scores/*": ["bind body challenge=json:/challenge", "purpose score"],
            "POST /nested/*": ["bind body challenge=json:/a~1b/1/~0", "purpose nested"],
            "* /orders/*": ["bind envelope", "purpose order"],
            "* /fields/*": ["purpose fields"],
            "* /signed/*": ["bind request", "purpose signed"],
            "POST /first/*": ["inline_enroll on", "purpose first"],
            "POST /first-signed/*": ["bind request", "inline_enroll on", "purpose first-signed"],
            "POST /first-body/*": [
                "bind body challenge=json:/challenge", "inline_enroll on", "purpose first-body"],
            "POST /watched/first/*": ["mode monitor", "inline_enroll on", "purpose first"],
            "POST /watched/orders/*": ["mode monitor", "bind envelope", "purpose order"],
            "POST /watched/scores/*": [
                "mode monitor", "bind body challenge=json:/challenge", "purpose watched"],
        }

    accounts = 0

    def style(self, kind, account=None, device=None):
        StyleCase.accounts += 1
        return kind(self.gate.address, device or self.device(),
                    account or f"account-{StyleCase.accounts}")

    def passes(self, client, message, body=None):
        """It passes, and the service gets these bytes and no field of the proof."""
        self.service.reset()
        answer = client.deliver(message)
        request = self.check_upstream(answer)
        self.assertEqual(request.target, message.target)
        self.assertEqual(request.body, message.body or b"" if body is None else body)
        self.assertEqual(request.get("App-Attest-Verdict"), "verified")
        self.assertEqual(request.get("App-Attest-Verified-Key"), client.key_id)
        self.assertEqual(request.get("App-Attest-Counter"), str(client.device.counter))
        for name in PROOF_FIELDS:
            self.assertEqual(request.all(name), [], name)
        self.service.reset()
        return request

    def refused(self, client, message, code, reason=None):
        self.service.reset()
        answer = self.check_problem(client.deliver(message), code)
        self.check_nothing_upstream()
        if reason:
            self.check_reason(answer, reason)
            self.assertNotIn(reason, answer.body.decode().replace(code, ""))
        return answer
