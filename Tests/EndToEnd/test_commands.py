"""The command line (cli.md): verify, inspect, demo, device, version, and how it fails."""

import base64
import glob
import json
import os
import re
import signal
import subprocess
import time

import cbor2

import app
import case
import gate as gates
import wire


# How many real objects there are; fewer would be tested in silence.
VECTORS = {"attestation": 25, "assertion": 16}


def stamp(text):
    return ["--at", text]


class Verify(case.Case):
    def vectors(self, kind):
        paths = sorted(glob.glob(os.path.join(case.shared("vectors", kind), "*.json")))
        self.assertEqual(len(paths), VECTORS[kind])
        for path in paths:
            with open(path, encoding="utf-8") as file:
                yield json.load(file)

    def file(self, data):
        path = os.path.join(self.temporary(), "object")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def attestation(self, vector, *arguments, **changes):
        data = {**vector, **changes}
        return gates.command(
            "verify", "attestation", self.file(base64.b64decode(data["attestation"])),
            "--app-id", data["appId"], "--key-id", data["keyId"], "--environment",
            data["environment"], *arguments)

    def test_real_attestations(self):
        for vector in self.vectors("attestation"):
            with self.subTest(vector=vector["id"]):
                digest = ["--client-data-hash", vector["clientDataHash"]]
                at = stamp(vector["validAt"])
                done = self.attestation(vector, *digest, *at)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(self.attestation(vector, *digest).returncode, 1, "leaf expired")
                other = {"development": "production", "production": "development"}
                done = self.attestation(
                    vector, *digest, *at, environment=other[vector["environment"]])
                self.assertEqual(done.returncode, 1)
                self.assertIn("aaguid_mismatch", done.stdout + done.stderr)
                wrong = base64.b64encode(bytes(32)).decode()
                done = self.attestation(vector, "--client-data-hash", wrong, *at)
                self.assertEqual(done.returncode, 1)
                self.assertIn("nonce_mismatch", done.stdout + done.stderr)

    def test_a_challenge_is_hashed_and_a_wrong_rule_is_named(self):
        for vector in self.vectors("attestation"):
            if not vector.get("challenge"):
                continue
            with self.subTest(vector=vector["id"]):
                done = self.attestation(
                    vector, "--challenge", vector["challenge"], *stamp(vector["validAt"]))
                if vector["clientDataHashRule"] == "sha256":
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                elif vector["clientDataHashRule"] == "raw":
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stdout + done.stderr, r"unhashed|not hashed")

    def test_a_file_may_be_base64_or_standard_input(self):
        vector = next(self.vectors("attestation"))
        arguments = ["--app-id", vector["appId"], "--key-id", vector["keyId"],
                     "--client-data-hash", vector["clientDataHash"], *stamp(vector["validAt"]),
                     "--environment", vector["environment"]]
        path = self.file(vector["attestation"].encode())
        self.assertEqual(
            gates.command("verify", "attestation", path, *arguments).returncode, 0)
        done = gates.command(
            "verify", "attestation", "-", *arguments, input=vector["attestation"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_real_assertions(self):
        for vector in self.vectors("assertion"):
            if not vector.get("publicKeyX963"):
                continue
            with self.subTest(vector=vector["id"]):
                def verify(*more, vector=vector):
                    return gates.command(
                        "verify", "assertion", self.file(base64.b64decode(vector["assertion"])),
                        "--app-id", vector["appId"], "--public-key", vector["publicKeyX963"],
                        *more)
                digest = ["--client-data-hash", vector["clientDataHash"]]
                counter = vector["counter"]
                done = verify(*digest, "--previous-counter", str(counter - 1))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                done = verify(*digest, "--previous-counter", str(counter))
                self.assertEqual(done.returncode, 1)
                self.assertIn("counter_not_greater", done.stdout + done.stderr)
                wrong = base64.b64encode(bytes(32)).decode()
                done = verify("--client-data-hash", wrong)
                self.assertEqual(done.returncode, 1)
                self.assertIn("signature_invalid", done.stdout + done.stderr)
                if vector.get("clientData"):
                    done = verify("--client-data", vector["clientData"])
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_our_own_device_under_its_root(self):
        root = app.new_root()
        path = self.file(root.pem().encode())
        for shape in app.SHAPES:
            device = app.new_device(root, shape)
            challenge = os.urandom(32)
            done = gates.command(
                "verify", "attestation", self.file(device.attest(app.sha256(challenge))),
                "--app-id", gates.APP_ID, "--key-id", app.b64(device.key_id), "--challenge",
                app.b64(challenge), "--root", path, "--environment", "production", "--json")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIsInstance(json.loads(done.stdout), dict)
            done = gates.command(
                "verify", "assertion", self.file(device.assert_(app.sha256(b"data"))), "--app-id",
                gates.APP_ID, "--public-key", app.b64(device.public_key), "--client-data",
                app.b64(b"data"), "--json")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_inspect_prints_without_judging(self):
        for kind, name in (("attestation", "attestation"), ("assertion", "assertion")):
            for vector in self.vectors(kind):
                done = gates.command("inspect", self.file(base64.b64decode(vector[name])))
                self.assertEqual(done.returncode, 0, (vector["id"], done.stderr))
                self.assertTrue(done.stdout)
        done = gates.command("inspect", self.file(b"junk"))
        self.assertEqual(done.returncode, 1)


class Command(case.Case):
    COMMANDS = (["run"], ["check"], ["demo"], ["device"], ["verify", "attestation"],
                ["verify", "assertion"], ["inspect"], ["version"])

    def test_version(self):
        done = gates.command("version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?i)attestgate .*\d+\.\d+")
        for name in ("Swift", "OpenSSL", "nghttp2"):
            self.assertRegex(done.stdout, rf"(?i){name}\D+\d+\.\d+")
        done = gates.command("version", "--json")
        self.assertIsInstance(json.loads(done.stdout), dict)

    def test_help_everywhere(self):
        for words in ([], *self.COMMANDS):
            done = gates.command(*words, "--help")
            self.assertEqual(done.returncode, 0, (words, done.stderr))
            self.assertRegex(done.stdout, r"(?i)usage")

    def test_every_help_tells_the_exit_codes(self):
        for words in (["run"], ["check"], ["demo"], ["verify", "assertion"],
                      ["verify", "attestation"], ["device", "request"], ["device", "enrol"]):
            done = gates.command(*words, "--help")
            self.assertRegex(" ".join(done.stdout.split()), r"Exit code 0 .*[123]", words)

    def test_usage_errors_are_2_and_go_to_stderr(self):
        for words in ([], ["nonsense"], ["run", "--nonsense"], ["verify"],
                      ["verify", "nonsense"], ["verify", "attestation"], ["check", "-c"],
                      ["inspect"], ["version", "extra"], ["check", "--directives", "--json"],
                      ["check", "--directives", "--dump"]):
            with self.subTest(words=words):
                done = gates.command(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, r"(?m)^attestgate: ")

    def test_an_empty_file_name_is_a_usage_error(self):
        for command in ("run", "check"):
            done = gates.command(command, "-c", "")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn('--config: expected a file, got ""', done.stderr)

    def test_a_file_that_holds_no_object_is_named(self):
        path = os.path.join(self.temporary(), "object")
        inspect = ["inspect", path]
        verify = ["verify", "assertion", path, "--app-id", "A.b", "--public-key", POINT,
                  "--client-data", ""]
        for data, command, words in ((b"", inspect, "empty"), (b"no object!\n", inspect, "text"),
                                     (b"-----BEGIN CERTIFICATE-----\n", verify, "not base64")):
            with open(path, "wb") as file:
                file.write(data)
            done = gates.command(*command)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, rf"(?m)^attestgate: {re.escape(path)}: .*{words}")

    def test_a_public_key_that_is_none_says_why(self):
        for text, words in (("AAAA", "65 bytes"), ("*", "65 bytes"),
                            (app.b64(b"\x02" + bytes(64)), "begin with 04"),
                            (app.b64(b"\x04" + bytes(64)), "not on P-256")):
            done = gates.command("verify", "assertion", "-", "--app-id", "A.b", "--public-key",
                                 text, "--client-data", "")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--public-key: ", done.stderr)
            self.assertIn(words, done.stderr)

    def test_a_missing_file_is_3(self):
        done = gates.command("inspect", "/nonexistent/file")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("/nonexistent/file", done.stderr)


class Demo(case.Case):
    # Code and reason of each attack: replay, body, path and query, counter, age, account, key.
    REFUSALS = [
        ("challenge_required", "challenge_spent", 1), ("rejected", "body_mismatch", 1),
        ("rejected", "target_mismatch", 2), ("challenge_required", "counter_not_greater", 1),
        ("challenge_required", "challenge_expired", 1), ("enrollment_required", "key_foreign", 1),
        ("enrollment_required", "key_unknown", 1),
    ]

    def test_the_demo_shows_a_pass_and_the_attacks(self):
        done = gates.command("demo", within=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\b200\b")
        self.assertRegex(done.stdout, r"\b201\b")
        for code, reason, count in self.REFUSALS:
            lines = re.findall(rf"(?m)^.*\b{code}\b.*\b{reason}\b.*$", done.stdout)
            self.assertGreaterEqual(len(lines), count, f"{reason}:\n{done.stdout}")


class DemoServed(case.Case):
    def test_the_demo_left_running_can_be_tried_as_it_says(self):
        place = self.temporary()
        process = subprocess.Popen(
            [gates.BINARY, "demo", "--serve"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": place, "NO_COLOR": "1"})
        self.addCleanup(process.kill)
        out, said = gates.Lines(process.stdout), gates.Lines(process.stderr)
        self.assertIsNotNone(said.wait(lambda line: "cat " in line, within=60), out.text)
        lines = [line.strip() for line in said.text.split("\n")]
        bare, signed, once, off, log = [
            line for line in lines if line.startswith(("curl", "cat")) or "device request" in line]
        self.assertIn("401", self.shell(bare).split("\n")[0])
        self.assertIn("App-Attest-Verdict: verified", self.shell(signed))
        # What `--curl` prints is good once.
        command = self.shell(once)
        self.assertIn("curl", command)
        first = self.shell(command.replace("curl ", "curl -s -w '%{http_code}' -o /dev/null ", 1))
        again = self.shell(command.replace("curl ", "curl -s -w '%{http_code}' -o /dev/null ", 1))
        self.assertEqual((first, again), ("200", "401"))
        self.assertIn("200", self.shell(off).split("\n")[0])
        reasons = [json.loads(line).get("reason") for line in self.shell(log).split("\n") if line]
        self.assertIn("challenge_spent", reasons)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(wire.DEADLINE), 0)
        self.assertEqual(os.listdir(place), [])

    def shell(self, line):
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=30,
                              check=False)
        self.assertEqual(done.returncode, 0, line + done.stdout + done.stderr)
        return done.stdout


class SimulatedDevice(case.SharedGate):
    """`attestgate device`: its state in one file, its root trusted by this gate."""

    @classmethod
    def configure(cls, settings):
        cls.state = os.path.join(settings.directory, "device")
        settings.root = f"{cls.state}.root.pem"
        done = gates.command("device", "new", "--state", cls.state, "--app-id", gates.APP_ID)
        assert done.returncode == 0, done.stderr

    def device_command(self, *words, **options):
        return gates.command("device", *words, "--state", self.state, **options)

    def url(self, path):
        return f"http://{gates.HOST}{path}"

    def test_it_enrols_and_sends_signed_requests(self):
        connect = ["--connect", f"127.0.0.1:{self.gate.settings.port}"]
        done = self.device_command("enrol", self.url("/v1/app-attest"), *connect)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            for _ in range(2):
                self.service.reset()
                done = self.device_command("request", "POST", self.url(path), "--data", "hello",
                                           "--binding", binding, *connect)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("ok", done.stdout)
                self.assertEqual(self.service.wait(1)[0].body, b"hello")
        self.service.reset()
        done = self.device_command("request", "POST", self.url("/v1/data/a"), "--data", "hello",
                                   "--binding", "request", *connect)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.check_nothing_upstream()

    def test_its_objects_pass_the_independent_verifier(self):

        challenge = os.urandom(32)
        done = self.device_command("attest", "--challenge", app.b64(challenge))
        self.assertEqual(done.returncode, 0, done.stderr)
        object_ = base64.b64decode(done.stdout)
        with open(self.gate.settings.root, encoding="ascii") as file:
            root = file.read()
        key_id = app.sha256(point(object_))
        facts = app.peer_attest.verify_attestation(
            object_, app.sha256(challenge), key_id, [gates.APP_ID], "production", root,
            time.time())
        self.assertEqual(facts["appID"], gates.APP_ID)
        done = self.device_command("assert", "--client-data", app.b64(b"data"))
        self.assertEqual(done.returncode, 0, done.stderr)
        app.peer_attest.verify_assertion(
            base64.b64decode(done.stdout), app.sha256(b"data"), point(object_), gates.APP_ID, 0)


# Some point of P-256: its generator.
POINT = app.b64(bytes.fromhex(
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"))


def point(attestation):
    """The public point in the COSE key of an attestation object."""
    data = cbor2.loads(attestation)["authData"]
    key = cbor2.loads(data[87:164])
    return b"\x04" + key[-2] + key[-3]
