"""The files around the binary: the entry script, the unit."""

import os
import re
import shutil
import subprocess
import sys

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

    def test_an_argument_that_is_none_is_a_usage_error(self):
        # Each of them used to mean something else: rewrite the sources, run without end.
        for words in (["format", "--chek"], ["format", "--check", "x"], ["fuzz", "abc"],
                      ["fuzz", "0"], ["fuzz", "-5"], ["fuzz", ""], ["fuzz", "007"],
                      ["fuzz", "1000000"], ["fuzz", "5", "5"], ["test", "--no-skip"],
                      ["test", "--no-skips", "--x"], ["test", "--release"]):
            with self.subTest(words=words):
                done = subprocess.run([os.path.join(gates.TOP, "dev"), *words], timeout=20,
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("usage: ./dev", done.stderr)
                self.assertIn(f"dev: {words[0]}: ", done.stderr)

    def test_a_skip_fails_the_run_that_allows_none(self):
        # `Skipped` below is skipped always; run alone it must not count as success.
        runner = os.path.join(gates.TOP, "Tests", "EndToEnd", "run.py")
        for words, reason, status in (([], "no node", 0), (["--no-skips"], "no node", 1),
                                      (["--no-skips"], "shared/x is not there", 0),
                                      (["--nonsense"], "", 2)):
            done = subprocess.run(
                [sys.executable, runner, *words, "house.Skipped"],
                capture_output=True, text=True, check=False,
                env={**os.environ, "GATE_SKIPPED": reason})
            self.assertEqual(done.returncode, status, done.stdout)

    def test_shellcheck_is_content(self):
        if not shutil.which("shellcheck"):
            self.skipTest("no shellcheck")
        done = subprocess.run(
            ["shellcheck", "dev", ".ci/run"], cwd=gates.TOP, capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


class Skipped(case.Case):
    def test_for_the_runner(self):
        if reason := os.environ.get("GATE_SKIPPED"):
            self.skipTest(reason)


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

    def test_the_unit_says_when_it_is_ready_and_where_its_state_lies(self):
        with open(UNIT, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for line in ("Type=notify", "NotifyAccess=main", "StateDirectory=attestgate",
                     "ExecReload=/bin/kill -HUP $MAINPID",
                     "StateDirectoryMode=0700", "CacheDirectory=attestgate",
                     "CacheDirectoryMode=0700",
                     "ExecStart=/usr/bin/attestgate run -c /etc/attestgate/proxy.conf"):
            self.assertEqual(lines.count(line), 1, line)

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
