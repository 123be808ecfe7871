"""The gate as a process: its configuration, its start, its log, its end."""

import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import wire
from wire import DEADLINE

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("ATTESTGATE", os.path.join(TOP, ".build", "debug", "attestgate"))
SHARED = os.path.join(os.path.dirname(TOP), "shared")

HOST = "api.example.test"
APP_ID = "ABCDE12345.com.example.shop"


PORTS = set()


def port():
    """A loopback port that is free and was not given before, outside the range the kernel gives to
    clients."""
    while True:
        number = random.randrange(20000, 31000)
        if number in PORTS:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", number))
                PORTS.add(number)
                return number
            except OSError:
                continue


class Settings:
    """A `proxy.conf` in parts; a test changes the parts it is about."""

    def __init__(self, directory, upstream):
        self.directory, self.upstream_port = directory, upstream
        self.port, self.admin_port = port(), port()
        self.store = os.path.join(directory, "store")
        self.spool = os.path.join(directory, "spool")
        self.root = os.path.join(directory, "root.pem")
        self.top = ["drain_timeout 5s"]
        self.store_lines = []
        self.spool_lines = []
        self.listener = []
        self.app = ["environment production"]
        self.app_ids = [APP_ID]
        self.upstream = []
        self.servers = [f"127.0.0.1:{upstream}"]
        self.listener_name = "main"
        self.names = HOST
        self.host_app = "shop"
        self.unmatched = "off"
        self.account = None
        self.host = []
        # Far above what a test does, so that only the tests of the limits meet them.
        self.rates = {
            "challenges": "per_account=1000000/1m",
            "attestations": "per_account=1000000/1h per_address=1000000/1h",
            "failed_signatures": "per_account=1000000/1m per_address=1000000/1m",
        }
        self.routes = {
            "* /v1/data/*": ["mode enforce"],
            "* /v1/signed/*": ["mode enforce", "bind request"],
            "POST /v1/exports": ["purpose export"],
            "POST,PUT /v1/redeem/*": [],
            "* /v1/watched/*": ["mode monitor"],
            "* /closed/*": ["mode deny 404"],
            "* /gone/*": ["mode deny 410"],
        }
        self.extra = []

    def text(self):
        def block(head, lines):
            return [f"{head} {{"] + ["    " + line for line in lines] + ["}"]

        host = [
            f"listener {self.listener_name}", f"app {self.host_app}", "upstream service",
            f"unmatched {self.unmatched}", "enroll /v1/app-attest",
        ]
        host += [f"rate {name} {limit}" for name, limit in self.rates.items()]
        if self.account:
            host.append(f"account {self.account}")
        host += self.host
        for route, lines in self.routes.items():
            host += block(f"route {route}", lines)
        app = [f"app_id {name}" for name in self.app_ids] + [f"root file:{self.root}"] + self.app
        lines = list(self.top)
        lines += block("store", [f"dir {self.store}"] + self.store_lines)
        lines += block("spool", [f"dir {self.spool}"] + self.spool_lines)
        lines += block("admin", [f"address 127.0.0.1:{self.admin_port}"])
        lines += block(
            f"listener {self.listener_name}",
            [f"address 127.0.0.1:{self.port}"] + self.listener)
        lines += block("app shop", app)
        lines += block("upstream service", [f"server {s}" for s in self.servers] + self.upstream)
        lines += block(f"host {self.names}", host)
        return "\n".join(lines + self.extra) + "\n"


class Lines:
    """The lines a process writes to a pipe, collected as they come."""

    def __init__(self, pipe):
        self.changed = threading.Condition()
        self.lines, self.ended = [], False
        self.pipe = pipe
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.pipe:
            with self.changed:
                self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.pipe.close()

    def wait(self, condition, within=DEADLINE):
        """The first line for which `condition` holds, waited for; None if none comes."""
        seen = 0
        end = time.monotonic() + within
        with self.changed:
            while True:
                for line in self.lines[seen:]:
                    if condition(line):
                        return line
                seen = len(self.lines)
                left = end - time.monotonic()
                if self.ended or left <= 0:
                    return None
                self.changed.wait(left)

    @property
    def text(self):
        with self.changed:
            return "\n".join(self.lines)


class Gate:
    """One gate on a directory of its own, started and ended by its process id."""

    def __init__(self, settings, environment=None, prefix=()):
        self.settings = settings
        self.environment = environment or {}
        self.prefix = list(prefix)
        self.process = None
        self.passed = ()
        self.notifications = []

    @property
    def address(self):
        return ("127.0.0.1", self.settings.port)

    @property
    def admin(self):
        return ("127.0.0.1", self.settings.admin_port)

    @property
    def conf(self):
        return os.path.join(self.settings.directory, "proxy.conf")

    def start(self, within=DEADLINE):
        """Starts and waits for READY=1, or fails with what the gate said."""
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(self.settings.text())
        path = os.path.join(self.settings.directory, f"notify-{time.monotonic_ns()}")
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(path)
        environment = {**os.environ, "NOTIFY_SOCKET": path, "NO_COLOR": "1", **self.environment}
        self.process = subprocess.Popen(
            [*self.prefix, BINARY, "run", "-c", self.conf], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            cwd=self.settings.directory, pass_fds=self.passed)
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        self.notify = notify
        self.notifications = []
        if not self.wait_notification("READY=1", within):
            self.kill()
            raise AssertionError(f"the gate did not get ready:\n{self.err.text}\n{self.out.text}")
        return self

    def wait_notification(self, line, within=DEADLINE):
        """Whether sd_notify brings `line` before the process ends or the time is up."""
        end = time.monotonic() + within
        exited = os.pidfd_open(self.process.pid)
        try:
            while line not in self.notifications:
                left = end - time.monotonic()
                ready = select.select([self.notify, exited], [], [], max(left, 0))[0]
                if self.notify in ready:
                    self.notifications += self.notify.recv(4096).decode().split("\n")
                elif exited in ready or left <= 0:
                    return False
            return True
        finally:
            os.close(exited)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """SIGKILL: what it had not made durable is gone."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait(DEADLINE)
            self._reap()

    def stop(self, within=DEADLINE):
        """SIGTERM; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"no end within {within} s of SIGTERM:\n{self.err.text}")
        self._reap()
        return self.process.returncode

    def _reap(self):
        self.out.thread.join(DEADLINE)
        self.err.thread.join(DEADLINE)
        self.notify.close()

    @property
    def is_alive(self):
        return self.process.poll() is None

    def log(self, condition=lambda entry: True, within=DEADLINE):
        """The first access log entry for which `condition` holds."""
        line = self.out.wait(lambda text: condition(json.loads(text)), within)
        return json.loads(line) if line else None

    def logged(self, response):
        """The access log entry of an answer, found by its request id."""
        identifier = response.get("X-Request-Id")
        return self.log(lambda entry: entry.get("request_id") == identifier)

    def readyz(self):
        """The status of the admin listener's /readyz."""
        with wire.Connection(self.admin) as connection:
            host = f"127.0.0.1:{self.settings.admin_port}"
            return connection.ask("GET", "/readyz", host=host).status

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Directory:
    """A directory for one gate, removed in the end."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="attestgate-")

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def command(*arguments, within=60, environment=None, **options):
    """Runs the binary with these arguments; output as text."""
    return subprocess.run(
        [BINARY, *arguments], capture_output=True, text=True, timeout=within,
        stdin=options.pop("stdin", subprocess.DEVNULL) if "input" not in options else None,
        env={**os.environ, "NO_COLOR": "1", **(environment or {})}, check=False, **options)


def link(path):
    """Where a link leads; empty when it has gone meanwhile."""
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def poll(condition, within=DEADLINE, every=0.02):
    """Whether `condition()` comes true; for what no event tells of (another process's files)."""
    end = time.monotonic() + within
    event = threading.Event()
    while not condition():
        if time.monotonic() > end:
            return False
        event.wait(every)
    return True


def pass_time(seconds):
    """Lets time pass: for what must *not* happen meanwhile, or that a time-out alone ends."""
    threading.Event().wait(seconds)


def wait_for_clock(moment):
    """Waits until the wall clock shows `moment`: for what expires by the clock alone."""
    event = threading.Event()
    while (left := moment - time.time()) > 0:
        event.wait(left)
