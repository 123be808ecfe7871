"""The shared probes of ways past a gate, run against ours: not one unexpected outcome.

One row a listener and protocol. A row's vectors are dealt to a few gates of their own, since a
probe mostly waits: for what must not come.
"""

import json
import os
import re
import subprocess
import sys

import case
import gate as gates
import pki

# How many vectors the corpus has for a protocol; a changed corpus is looked at before it counts.
VECTORS = {"h1": 216, "h2": 53}
GATES = 4


class Probes(case.Case):
    def test_http1_in_the_clear(self):
        self.probe("h1")

    def test_http1_beside_http2(self):
        self.probe("h1", lambda settings: settings.listener.append("http h1 h2c"))

    def test_http1_over_tls(self):
        self.probe("h1", encrypted(self.temporary()), ["--tls"])

    def test_http2_in_the_clear(self):
        self.probe("h2", lambda settings: settings.listener.append("http h2c"))

    def test_http2_over_tls(self):
        self.probe("h2", encrypted(self.temporary()), ["--tls"])

    def test_http1_where_every_route_may_open_a_websocket(self):
        self.probe("h1", lambda settings: settings.top.append(
            "defaults {\n    upgrade websocket\n}"))

    def probe(self, protocol, change=lambda settings: None, options=()):
        program = case.shared("hostile", "gateprobe.py")
        lines = vectors(case.shared("hostile", "vectors.jsonl"), protocol)
        self.assertEqual(len(lines), VECTORS[protocol])
        running = [self.begin(program, lines[at::GATES], change, options) for at in range(GATES)]
        results = []
        for gate, process, report in running:
            text, _ = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, text)
            with open(report, encoding="utf-8") as file:
                results += json.load(file)
            self.assertEqual(gate.stop(), 0)
        # None was left out, and none is good only because it could not be sent.
        self.assertEqual(len(results), VECTORS[protocol])
        self.assertEqual([result for result in results if result["err"]], [])

    def begin(self, program, lines, change, options):
        """A gate, and the program that probes it and is its service."""
        directory, port = self.temporary(), gates.port()
        chosen = os.path.join(directory, "vectors.jsonl")
        report = os.path.join(directory, "report.json")
        with open(chosen, "w", encoding="utf-8") as file:
            file.writelines(lines)

        def prepared(settings):
            # As the vectors' first line says.
            settings.servers = [f"127.0.0.1:{port}"]
            settings.routes = {"POST /v1/exports": [], "POST,PUT /v1/redeem/*": []}
            change(settings)
        gate = self.run_gate(prepared)
        process = subprocess.Popen(
            [sys.executable, "-B", program, chosen, "--target",
             f"127.0.0.1:{gate.settings.port}", "--upstream-port", str(port), "--json", report,
             *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(end, process)
        return gate, process, report


def encrypted(directory):
    """What makes the listener one with TLS."""
    identity = pki.Authority(directory).issue("api", gates.HOST)
    return lambda settings: settings.listener.extend(["tls {", "    " + identity.line, "}"])


def vectors(path, protocol):
    """The lines of the corpus that are for `protocol`."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.strip() and not line.startswith("//")]
    return [line for line in lines if json.loads(line)["proto"] == protocol]


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait(10)
    process.stdout.close()


class Floods(case.Case):
    """`h2abuse.py`: each misuse ends or is bounded, and nobody beside it notices."""

    # Each sends as fast as it can for so long.
    SECONDS = 2
    ENDED = {
        "continuation_empty", "continuation_flood", "cookie_crumbs", "empty_data", "hpack_bomb",
        "made_you_reset", "ping_flood", "priority_flood", "rapid_reset", "refused_streams",
        "settings_flood", "tiny_data", "unknown_frames", "window_stall",
    }
    LINE = re.compile(
        r"(?P<name>\w+) +(?P<how>closed|survived|write blocked) +goaway=(?P<goaway>\S+) .*"
        r"bystander n=(?P<count>\d+) fail=(?P<fail>\d+) median=\S+ worst=(?P<worst>[0-9.]+)ms "
        r"rss(?P<rss>[+-][0-9.]+)MB")

    def misuse(self, options, *cases):
        """What `h2abuse.py` says of each case."""
        done = subprocess.run(
            [sys.executable, "-B", case.shared("hostile", "h2abuse.py"), "--target",
             f"127.0.0.1:{self.gate.settings.port}", "--pid", str(self.gate.process.pid),
             "--seconds", str(self.SECONDS), *options, *cases],
            capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [self.LINE.match(line) for line in done.stdout.splitlines()]
        self.assertNotIn(None, found, done.stdout)
        return {entry["name"]: entry for entry in found}

    def test_in_the_clear(self):
        self.run_gate(lambda settings: settings.listener.append("http h2c"))
        self.check([])

    def test_over_tls(self):
        self.run_gate(encrypted(self.temporary()))
        self.check(["--tls"])

    def check(self, options):
        seen = self.misuse(options)
        self.assertEqual(set(seen) - self.ENDED, {"slow_headers", "slow_preface"})
        for name, found in seen.items():
            with self.subTest(line=found[0]):
                # What the gate is to blame for shows again.
                for _ in range(3):
                    if self.is_unnoticed(found, seen["slow_preface"]):
                        break
                    again = self.misuse(options, *sorted({name, "slow_preface"}))
                    found, seen["slow_preface"] = again[name], again["slow_preface"]
                self.assertTrue(self.is_unnoticed(found, seen["slow_preface"]), found[0])
                self.assertEqual(int(found["fail"]), 0)
                self.assertGreater(int(found["count"]), 0)
                if name in self.ENDED:
                    self.assertEqual(found["how"], "closed")
        self.assertTrue(self.gate.is_alive)
        self.assertEqual(self.gate.stop(), 0)

    @staticmethod
    def is_unnoticed(found, quiet):
        """Whether nobody waited: 50 ms, or what this machine takes just now where nobody misuses
        anything but his own time."""
        return float(found["worst"]) < max(50, 2 * float(quiet["worst"])) and \
            float(found["rss"]) < 8
