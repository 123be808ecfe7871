"""The shared probes of ways past a gate, run against ours: not one unexpected outcome."""

import json
import os
import subprocess
import sys

import case
import gate as gates
import upstream


class Probes(case.Case):
    def test_http1_vectors(self):
        program = case.shared("hostile", "gateprobe.py")
        vectors = case.shared("hostile", "vectors.jsonl")
        directory = self.temporary()
        chosen = os.path.join(directory, "vectors.jsonl")
        with open(vectors, encoding="utf-8") as file, open(chosen, "w", encoding="utf-8") as out:
            for line in file:
                if line.strip() and not line.startswith("//") and \
                        json.loads(line)["proto"] == "h1":
                    out.write(line)
        port = gates.port()

        def change(settings):
            # As the vectors' first line says.
            settings.servers = [f"127.0.0.1:{port}"]
            settings.routes = {"POST /v1/exports": [], "POST,PUT /v1/redeem/*": []}
        self.run_gate(change, service=upstream.Recorder())
        self.addCleanup(self.service.close)
        report = os.path.join(directory, "report.json")
        done = subprocess.run(
            [sys.executable, "-B", program, chosen, "--target",
             f"127.0.0.1:{self.gate.settings.port}", "--upstream-port", str(port),
             "--json", report],
            capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(report, encoding="utf-8") as file:
            results = json.load(file)
        self.assertGreater(len(results), 150)
        self.assertTrue(self.gate.is_alive)
        self.assertEqual(self.gate.stop(), 0)
