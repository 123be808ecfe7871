#!/usr/bin/env python3
"""Runs the end-to-end tests: all, or those whose name contains one of the arguments.

    run.py [--no-skips] [NAME…]

A name is `module.Class.test`, without the leading `test_` of the module. With `--no-skips` a test
that is skipped fails the run, unless what it lacks is the directory `../shared`.
"""

import os
import signal
import sys
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True


# How a test says that it lacks what is shared beside the repository (case.py).
SHARED = "shared/"


class Result(unittest.TestResult):
    """One line a test, faults in full."""

    def __init__(self):
        super().__init__()
        self.passed = 0
        self.started = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def _line(self, word, test, note=""):
        seconds = time.monotonic() - self.started if self.started else 0
        name = test.id().removeprefix("test_")
        print(f"{word:4} {name} ({seconds:.2f} s){note}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        self._line("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line("skip", test, f": {reason}")

    def _fault(self, test, error):
        self._line("FAIL", test)
        print("".join(traceback.format_exception(*error)), flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._fault(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._fault(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            super().addSubTest(test, subtest, err)
            self._line("FAIL", subtest)
            print("".join(traceback.format_exception(*err)), flush=True)


def tests(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from tests(entry)
        else:
            yield entry


def main(arguments):
    is_strict = arguments[:1] == ["--no-skips"]
    names = arguments[1:] if is_strict else arguments
    if any(name.startswith("-") for name in names):
        print(__doc__)
        return 2
    # A shell may have started this with SIGINT ignored; what is started here must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = unittest.TestLoader().discover(HERE, pattern="test_*.py", top_level_dir=HERE)
    wanted = [
        test for test in tests(found)
        if not names or any(name in test.id().removeprefix("test_") for name in names)
    ]
    if not wanted:
        print(f"no test is named {' or '.join(names)}")
        return 2
    result = Result()
    unittest.TestSuite(wanted).run(result)
    failed = len(result.failures) + len(result.errors)
    unexpected = [test.id() for test, reason in result.skipped if not reason.startswith(SHARED)]
    if is_strict and unexpected:
        print(f"skipped, and may not be: {', '.join(unexpected)}")
        failed += len(unexpected)
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
