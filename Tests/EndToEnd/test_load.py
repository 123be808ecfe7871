"""A thousand keys, sixty-four clients, half a minute: every answer 200, nothing grows.

GATE_LOAD_SECONDS sets the time (30).
"""

import json
import os
import subprocess
import sys
import threading
import time

import case

SECONDS = float(os.environ.get("GATE_LOAD_SECONDS", "30"))
WORKERS, KEYS, CLIENTS = 4, 1000, 64
MIB = 1 << 20


class Load(case.Case):
    def worker(self):
        here = os.path.dirname(os.path.abspath(__file__))
        process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(here, "load_worker.py")], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        task = {
            "address": self.gate.address, "root": self.root.to_json(),
            "devices": KEYS // WORKERS, "threads": CLIENTS // WORKERS, "seconds": SECONDS,
            "prefix": "/v1/data",
        }
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        return process

    def test_a_thousand_keys_and_64_clients(self):
        def change(settings):
            settings.top.append("log {\n    access off\n}")
        self.run_gate(change)
        self.service.keeps_raw = False
        workers = [self.worker() for _ in range(WORKERS)]
        for process in workers:
            self.assertEqual(process.stdout.readline(), "enrolled\n")
        for process in workers:
            process.stdin.write("go\n")
            process.stdin.flush()
        samples = self.sample(SECONDS)
        results = [json.loads(process.stdout.readline()) for process in workers]
        self.assertEqual([fault for result in results for fault in result["faults"]], [])
        passed = sum(result["ok"] for result in results)
        self.assertGreater(passed, 64)
        self.assertTrue(self.service.wait_until(lambda: self.service.served >= passed, 5))
        self.assertEqual(self.service.served, passed)
        memory, descriptors = zip(*samples)
        settled = max(1, len(samples) // 4)
        # A spent challenge may cost 40 B for an hour (store.md); nothing else may stay.
        allowed = max(memory[:settled]) + 6 * MIB + 64 * passed
        self.assertLess(max(memory[settled:]), allowed, memory)
        # Downstream and upstream connections of 64 clients, and what an idle gate has open.
        self.assertLessEqual(max(descriptors), 2 * CLIENTS + 80, descriptors)
        self.assertLessEqual(descriptors[-1], max(descriptors[:settled]) + 8, descriptors)
        print(f"     {passed} requests in {SECONDS:.0f} s, {max(memory) / MIB:.0f} MiB")

    def sample(self, seconds):
        """Memory and descriptors, twenty times over the run."""
        samples, event = [], threading.Event()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            event.wait(min(left, seconds / 20))
            if time.monotonic() < end:
                samples.append((self.gate.memory(), self.gate.descriptors()))
        return samples
