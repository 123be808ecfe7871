"""What the tests have in common: a gate with a recording service, and how answers are judged."""

import os
import re
import unittest

import app
import gate
import upstream
import wire

STATUS = {
    "proof_required": {401}, "challenge_required": {401}, "enrollment_required": {401},
    "rejected": {403}, "unsupported": {403}, "account_required": {401}, "retry_later": {503},
    "rate_limited": {429}, "bad_request": {400}, "path_ambiguous": {400}, "not_found": {404},
    "method_not_allowed": {405}, "request_timeout": {408}, "too_large": {413, 414, 431},
    "expectation_failed": {417}, "misdirected": {421}, "too_early": {425}, "internal": {500},
    "not_implemented": {501}, "upstream_unavailable": {502}, "upstream_timeout": {504},
    "version_not_supported": {505},
}


class Case(unittest.TestCase):
    """A test with helpers; those that need a gate of their own call `run_gate`."""

    def temporary(self):
        directory = gate.Directory()
        self.addCleanup(directory.remove)
        return directory.path

    def recorder(self, **options):
        recorder = upstream.Recorder(**options)
        self.addCleanup(recorder.close)
        return recorder

    def run_gate(self, change=None, service=None, environment=None, prefix=(), start=True):
        """A gate for this test alone; `change(settings)` makes its configuration."""
        service = service or self.recorder()
        self.service = service
        self.root = app.new_root()
        settings = prepare(self.temporary(), service.port, self.root)
        if change:
            change(settings)
        running = gate.Gate(settings, environment, prefix)
        self.addCleanup(running.kill)
        if start:
            running.start()
        self.gate = running
        return running

    def device(self, shape=app.SHAPES[0], **options):
        return app.new_device(self.root, shape, **options)

    def app(self, device=None, **options):
        return app.App(self.gate.address, device or self.device(), **options)

    def ask(self, method, target, fields=(), body=None, **options):
        return wire.ask(self.gate.address, method, target, fields, body, **options)

    def raw(self, text, **options):
        data = text if isinstance(text, bytes) else text.encode("latin-1")
        return wire.raw(self.gate.address, data, **options)

    def check_problem(self, answer, code, status=None):
        """The answer is the problem `code`, whole and well formed (protocol.md §5)."""
        self.assertEqual(answer.get("Content-Type"), "application/problem+json", answer)
        members = answer.json
        self.assertEqual(members.get("code"), code, answer)
        expected = {status} if status else STATUS[code]
        self.assertIn(answer.status, expected, answer)
        self.assertEqual(members["status"], answer.status)
        self.assertEqual(members["type"], f"urn:attestgate:{code}")
        self.assertTrue(members["title"])
        self.assertEqual(members["requestId"], answer.get("X-Request-Id"))
        if answer.status == 401:
            self.assertEqual(answer.get("WWW-Authenticate"), f'App-Attest error="{code}"')
        if answer.status in (429, 503):
            seconds = answer.get("Retry-After") or ""
            self.assertRegex(seconds, r"^[0-9]+$", answer)
            self.assertEqual(members["retryAfter"], int(seconds))
        if answer.status == 405:
            self.assertTrue(answer.get("Allow"), answer)
        if code == "challenge_required":
            self.check_next_challenge(answer)
        return answer

    def check_next_challenge(self, answer):
        text = answer.get("App-Attest-Next-Challenge") or ""
        self.assertRegex(text, r"^[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{43}$", answer)
        self.assertLessEqual(len(text), 112)
        return app.Challenge.from_value(text)

    def check_nothing_upstream(self, service=None):
        service = service or self.service
        self.assertEqual(service.requests, [])
        self.assertEqual(service.raw, b"")

    def check_upstream(self, answer, count=1):
        """The answer is the service's, and the service saw `count` requests; the last of them."""
        self.assertEqual((answer.status, answer.body), (200, b"ok\n"), answer)
        requests = self.service.wait(count)
        self.assertEqual(len(requests), count)
        return requests[-1]

    def check_reason(self, answer, reason):
        entry = self.gate.logged(answer)
        self.assertIsNotNone(entry, "no log line")
        self.assertEqual(entry.get("reason"), reason, entry)
        return entry


class SharedGate(Case):
    """Tests of one class share a gate; `configure` makes its configuration.

    After each test the gate is still the same process, and has said nothing of a crash.
    """

    @classmethod
    def configure(cls, settings):
        """Changes the settings; none here."""

    @classmethod
    def setUpClass(cls):
        cls.service = upstream.Recorder()
        cls.directory = gate.Directory()
        cls.root = app.new_root()
        settings = prepare(cls.directory.path, cls.service.port, cls.root)
        cls.configure(settings)
        cls.gate = gate.Gate(settings)
        try:
            cls.gate.start()
        except BaseException:
            cls.service.close()
            cls.directory.remove()
            raise

    @classmethod
    def tearDownClass(cls):
        status = cls.gate.stop()
        cls.service.close()
        cls.directory.remove()
        assert status == 0, f"ended with {status}:\n{cls.gate.err.text}"

    def setUp(self):
        self.service.respond = lambda request: upstream.answer()
        self.service.closes = False
        self.service.keeps_raw = True
        self.service.reset()

    def tearDown(self):
        self.assertTrue(self.gate.is_alive, self.gate.err.text)
        self.assertEqual(self.service.faults, [])


def prepare(directory, port, root):
    """Settings in `directory`, with the devices' root beside them."""
    settings = gate.Settings(directory, port)
    with open(settings.root, "wb") as file:
        file.write(root.pem().encode())
    return settings


def shared(*parts):
    """The path of a file that is shared beside the repository; the test is skipped without it."""
    path = os.path.join(gate.SHARED, *parts)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{os.path.join('shared', *parts)} is not there")
    return path


BASE64 = re.compile(r"^[A-Za-z0-9+/]+={0,2}$")
