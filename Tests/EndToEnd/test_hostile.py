"""The shared probes of ways past a gate, run against ours: not one unexpected outcome.

One row a listener and protocol. A row's vectors are dealt to a few gates of their own, since a
probe mostly waits: for what must not come.
"""

import json
import os
import subprocess
import sys

import case
import gate as gates

# How many vectors the corpus has for a protocol; a changed corpus is looked at before it counts.
VECTORS = {"h1": 216, "h2": 53}
GATES = 4


class Probes(case.Case):
    def test_http1_in_the_clear(self):
        self.probe("h1")

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
