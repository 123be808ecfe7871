"""Programs that others wrote on either side: curl in front, nginx behind; sockets of systemd."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import case
import gate as gates
import wire

MIB = 1 << 20

SERVICE = """
worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/error.log warn;
events {{ worker_connections 256; }}
http {{
    access_log off; client_max_body_size 64m;
    client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxied;
    fastcgi_temp_path {directory}/fcgi; uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {directory}/www;
        location /echo {{ return 200 "$request_method $request_uri $http_app_attest_verdict\\n"; }}
        location /upload/ {{ dav_methods PUT; create_full_put_path on; }}
    }}
}}
"""


PASS = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="web")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Nginx:
    """nginx as the service, in a directory of its own."""

    def __init__(self, directory):
        self.port = gates.port()
        self.directory = directory
        os.makedirs(os.path.join(directory, "www", "upload"), exist_ok=True)
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "nginx.conf")
        text = SERVICE.format(directory=directory, port=self.port)
        with open(path, "w", encoding="ascii") as file:
            file.write("user root;\n" + text if os.getuid() == 0 else text)
        self.process = subprocess.Popen(
            [shutil.which("nginx") or "/usr/sbin/nginx", "-p", directory, "-c", path,
             "-g", "daemon off;"], stderr=subprocess.DEVNULL)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False

    def close(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(wire.DEADLINE)


def curl(*arguments):
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", "30", *arguments],
        capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@unittest.skipUnless(shutil.which("curl"), "no curl")
@unittest.skipUnless(
    shutil.which("nginx") or os.path.exists("/usr/sbin/nginx"), "no nginx")
class CurlAndNginx(case.Case):
    def setUp(self):
        self.nginx = Nginx(self.temporary())
        self.addCleanup(self.nginx.close)
        self.assertTrue(gates.poll(self.nginx.answers))

        def change(settings):
            settings.servers = [f"127.0.0.1:{self.nginx.port}"]
            settings.routes["PUT /upload/signed"] = []
        self.run_gate(change)

    def url(self, target):
        return ["-H", f"Host: {gates.HOST}", f"http://127.0.0.1:{self.gate.settings.port}{target}"]

    def test_get_head_and_keep_alive(self):
        self.assertEqual(curl(*self.url("/echo?x=1")), b"GET /echo?x=1 off\n")
        self.assertIn(b"200", curl("-I", *self.url("/echo")).split(b"\r\n")[0])
        twice = curl(*self.url("/echo"), "--next", *self.url("/echo?2"))
        self.assertEqual(twice, b"GET /echo off\nGET /echo?2 off\n")
        self.assertEqual(curl("-0", *self.url("/echo")), b"GET /echo off\n")

    def test_uploads_with_a_length_in_chunks_and_with_expect(self):
        path = os.path.join(self.temporary(), "file")
        data = os.urandom(5 * MIB)
        with open(path, "wb") as file:
            file.write(data)
        for name, extra in (
            ("length", []), ("chunked", ["-H", "Transfer-Encoding: chunked"]),
            ("expect", ["-H", "Expect: 100-continue"]),
        ):
            with self.subTest(name=name):
                status = curl("-T", path, "-o", os.devnull, "-w", "%{http_code}", *extra,
                              *self.url(f"/upload/{name}"))
                self.assertEqual(status, b"201")
                stored = os.path.join(self.nginx.directory, "www", "upload", name)
                with open(stored, "rb") as file:
                    self.assertEqual(
                        hashlib.sha256(file.read()).digest(), hashlib.sha256(data).digest())

    def test_a_refused_upload_is_answered_before_it_is_sent(self):
        path = os.path.join(self.temporary(), "file")
        with open(path, "wb") as file:
            file.truncate(64 * MIB)
        started = time.monotonic()
        text = curl("-T", path, "-o", os.devnull, "-w", "%{http_code} %{size_upload}",
                    "-H", "Expect: 100-continue", *self.url("/upload/signed"))
        self.assertEqual(text.split()[0], b"401")
        self.assertEqual(int(text.split()[1]), 0)
        self.assertLess(time.monotonic() - started, 10)

    def test_a_signed_upload_is_stored_as_it_was_signed(self):
        phone, body = self.app().enrolled(), os.urandom(300 * 1024)
        self.assertEqual(phone.send("PUT", "/upload/signed", body).status, 201)
        with open(os.path.join(self.nginx.directory, "www", "upload", "signed"), "rb") as file:
            self.assertEqual(file.read(), body)


class PassedSockets(case.Case):
    def test_a_socket_that_systemd_passed_is_served_by_its_name(self):
        with socket.socket() as passed:
            passed.bind(("127.0.0.1", 0))
            passed.listen(64)
            # As the service manager does it: descriptor 3, and variables that name the process.
            prefix = [sys.executable, "-c", PASS, str(passed.fileno())]
            self.run_gate(
                lambda settings: settings.listener.append("address systemd:web"),
                prefix=prefix, start=False)
            self.gate.passed = (passed.fileno(),)
            self.gate.start()
            with wire.Connection(("127.0.0.1", passed.getsockname()[1])) as connection:
                self.assertEqual(connection.ask("GET", "/public").status, 200)

    def test_a_name_that_was_not_passed_is_named(self):
        self.run_gate(
            lambda settings: settings.listener.append("address systemd:web"), start=False)
        with self.assertRaisesRegex(AssertionError, "systemd:web.*passed no such socket"):
            self.gate.start()


class Unix(case.Case):
    def test_a_unix_listener_serves_with_its_mode(self):
        path = os.path.join(self.temporary(), "gate.sock")
        self.run_gate(lambda settings: settings.listener.append(f"address unix:{path} mode=0600"))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(wire.DEADLINE)
            client.connect(path)
            client.sendall(f"GET /public HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n".encode())
            self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200 "))


class Sampling(case.Case):
    def test_lines_of_off_routes_are_left_out_and_refusals_are_kept(self):
        self.run_gate(lambda settings: settings.top.append("log {\n    sample off 0%\n}"))
        for _ in range(20):
            self.assertEqual(self.ask("GET", "/public").status, 200)
        refused = self.ask("GET", "/v1/data/a")
        self.assertIsNotNone(self.gate.logged(refused))
        self.assertNotIn("/public", self.gate.out.text)
