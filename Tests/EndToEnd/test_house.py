"""The files around the binary: the entry script, the unit."""

import os
import re
import shutil
import subprocess

import case
import gate as gates

UNIT = os.path.join(gates.TOP, "systemd", "attestgate.service")


class Script(case.Case):
    def test_help_names_every_command(self):
        done = subprocess.run([os.path.join(gates.TOP, "dev"), "help"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0)
        for command in ("demo", "test", "bench", "fuzz", "format"):
            self.assertRegex(done.stdout, rf"(?m)^  {command} .*\S{{3}}")

    def test_an_unknown_command_is_a_usage_error(self):
        done = subprocess.run([os.path.join(gates.TOP, "dev"), "nonsense"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage", done.stderr)

    def test_shellcheck_is_content(self):
        if not shutil.which("shellcheck"):
            self.skipTest("no shellcheck")
        done = subprocess.run(
            ["shellcheck", "dev", ".ci/run"], cwd=gates.TOP, capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


class Unit(case.Case):
    def analyze(self, *arguments):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True,
                              check=False)

    def test_the_unit_verifies(self):
        # ExecStart must exist for verify: a copy of the unit that starts the binary built here.
        with open(UNIT, encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(self.temporary(), "attestgate.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"/usr/bin/attestgate", gates.BINARY, text))
        done = self.analyze("verify", "--man=no", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_unit_is_hardened(self):
        done = self.analyze("security", "--offline=true", "--threshold=15", UNIT)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)

    def test_each_hardening_line_has_its_reason(self):
        with open(UNIT, encoding="utf-8") as file:
            text = file.read()
        hardening = text.split("# Hardening")[1].split("[Install]")[0].split("\n")
        explained = False
        for line in hardening[1:]:
            if line.startswith("#"):
                explained = True
            elif line.strip():
                self.assertTrue(explained, f"no reason above {line}")
                explained = False
