"""`attestgate check`: every fault at once, with place and remedy (conf.md §1 and §7)."""

import json
import os
import re

from cryptography.hazmat.primitives import serialization

import app
import case
import gate as gates
import issuer
import wire

# Line, column, and what the message must say: the mistakes of MISTAKEN.
FAULTS = [
    (1, 15, r'"5" needs a unit', r"5s"),
    (4, 5, r'unknown directive "durabilty"', r"durability"),
    (10, 33, r'"15" needs a unit', r"15s"),
    (11, 5, r'unknown directive "key_alive"', r"keepalive"),
    (13, 1, r'"app_id" is missing', r"shop"),
    (14, 17, r"prodution", r"production"),
    (22, 14, r'upstream "order" is not defined', r"orders"),
    (24, 14, r'unknown mode "enforse"', r"enforce"),
    (26, 16, r"must be written decoded", r"%"),
    (29, 5, r"routes overlap", r"/v1/Redeem"),
    (38, 1, r'host "api.example.test" is already defined', r"19"),
]

MISTAKEN = """\
drain_timeout 5
store {
    dir STORE
    durabilty strict
}
admin {
    address 127.0.0.1:9901
}
listener public { # one
    timeouts keepalive=75s body=15 write=30s
    key_alive 75s
}
app shop {
    environment prodution
}
upstream orders {
    server 127.0.0.1:9000
}
host api.example.test {
    listener public
    app shop
    upstream order
    route POST /v1/exports {
        mode enforse
    }
    route POST /v1/a%2Fb {
        mode enforce
    }
    route POST /v1/redeem {
        mode enforce
    }
    route POST /v1/Redeem {
        mode off
    }
    unmatched deny
    enroll /v1/app-attest
}
host api.example.test {
    listener public
    app shop
    upstream orders
}
"""


class Check(case.Case):
    def check(self, text, *arguments, name="proxy.conf", environment=None):
        """Runs check on this text; the process, and its messages as tuples."""
        directory = self.temporary()
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = gates.command("check", "-c", path, *arguments, environment=environment)
        output = done.stdout + done.stderr
        found = re.findall(rf"(?m)^(?:attestgate: )?\S*{re.escape(name)}:(\d+):(\d+): (\w+): (.*)$",
                           output)
        return done, output, [(int(a), int(b), c, d) for a, b, c, d in found]

    def settings(self):
        directory = self.temporary()
        return case.prepare(directory, 9, app.new_root())

    def test_ten_mistakes_are_reported_at_once(self):
        text = MISTAKEN.replace("STORE", self.temporary() + "/store")
        done, output, found = self.check(text)
        self.assertEqual(done.returncode, 2, output)
        errors = [entry for entry in found if entry[2] == "error"]
        for line, column, says, remedy in FAULTS:
            with self.subTest(line=line):
                here = [entry for entry in errors if entry[0] == line]
                self.assertTrue(here, output)
                self.assertIn(column, [entry[1] for entry in here], output)
                start = output.index(f":{line}:{column}: error:")
                end = re.search(r"(?m)^\S*proxy\.conf:\d+:\d+: |^\d+ file", output[start + 1 :])
                message = output[start : start + 1 + end.start() if end else None]
                self.assertRegex(message, says)
                self.assertRegex(message, remedy)
                source = text.split("\n")[line - 1].strip()
                self.assertIn(source.split("#")[0].strip(), message)
                if not re.search("overlap|already defined", says):  # those show two lines
                    self.assertIn("^", message)
        # The listener has no address: that is a fault as well, and the only one not listed above.
        others = {entry[0] for entry in errors} - {fault[0] for fault in FAULTS}
        self.assertLessEqual(others, {9}, output)
        summary = re.search(r"(?m)^1 file, (\d+) errors?, \d+ warnings?", output)
        self.assertIsNotNone(summary, output)
        self.assertEqual(int(summary.group(1)), len(errors))

    def test_a_good_file_passes_and_binds_nothing(self):
        settings = self.settings()
        held = wire.socket.socket()
        self.addCleanup(held.close)
        held.bind(("127.0.0.1", settings.port))
        held.listen()
        done, output, found = self.check(settings.text())
        self.assertEqual(done.returncode, 0, output)
        self.assertEqual([entry for entry in found if entry[2] == "error"], [])

    def test_dump_shows_defaults_and_where_each_value_was_set(self):
        done, output, _ = self.check(self.settings().text(), "--dump")
        self.assertEqual(done.returncode, 0, output)
        self.assertRegex(output, r"(?m)^\s*bind\s+client_data")
        self.assertRegex(output, r"keepalive=75s")
        self.assertRegex(output, r"proxy\.conf:\d+")

    def test_a_block_left_open_is_named_with_its_line(self):
        done, output, _ = self.check("store {\n    dir /x\n\nhost a.test {\n}\n")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(output, r'"}" missing')
        self.assertRegex(output, r"line 1\b")

    def test_faults_one_by_one(self):
        for where, line, says in (
            ("listener", "limits connections=x", "count"),
            ("listener", "limits header_size=48", "unit"),
            ("listener", "trusted_proxies 10.0.0.0", "prefix"),
            ("listener", "proxy_protocol require", "from"),
            ("listener", "proxy_protocol require from 10.0.0.0", "prefix"),
            ("listener", "proxy_protocol on", "require"),
            ("listener", "timeouts tunnel=60", "unit"),
            ("routes", "upgrade h2c", "websocket"), ("routes", "timeouts tunnel_max=1", "unit"),
            ("top", "drain_timeout 5s 6s", "drain_timeout"),
            ("top", "drain_timeout ${GATE_NOT_SET}", "not set"),
            ("host", "rate challenges per_account=60/1", "unit"),
            ("host", "rate challenges", "has no limit"),
            ("host", "enroll v1/app-attest", "/"),
            ("host", "unmatched perhaps", "deny"),
            ("host", "account header X-Account-Id", "trusted_proxies"),
            ("host", "app other", "shop"),
            ("upstream", "timeouts connect=2s connect=3s", "connect"),
            ("upstream", "server 127.0.0.1", "port"),
            ("upstream", "server 127.0.0.1:1 weight=0", "out of range"),
            ("upstream", "health GET /healthz every=5", "unit"),
            ("upstream", "eject 5", "after="), ("upstream", "max_active 0", "out of range"),
            ("app", "root file:/nonexistent/root.pem", "/nonexistent/root.pem"),
            ("routes", "mode deny 99", "99"), ("routes", "body max=1 memory=64k", "unit"),
            ("routes", "purpose UPPER", "purpose"),
            ("routes", "purpose attestation", "attestation"),
        ):
            with self.subTest(line=line):
                settings = self.settings()
                if where == "routes":
                    settings.routes["GET /one"] = [line]
                elif where == "top":
                    settings.top = [line]
                elif line.startswith("root"):
                    settings.root = "/nonexistent/root.pem"
                elif line.startswith("unmatched"):
                    settings.unmatched = "perhaps"
                elif line.startswith("enroll"):
                    settings.extra = []
                    settings.host.append(line)
                else:
                    getattr(settings, where).append(line)
                done, output, found = self.check(settings.text())
                self.assertEqual(done.returncode, 2, output)
                self.assertTrue([entry for entry in found if entry[2] == "error"], output)
                self.assertIn(says, output)

    def test_warnings_do_not_fail(self):
        done, output, found = self.check(self.settings().text())
        self.assertEqual(done.returncode, 0, output)
        self.assertIn("warning", [entry[2] for entry in found], "the root is not Apple's")

    def test_includes_name_their_own_file(self):
        settings = self.settings()
        directory = os.path.dirname(settings.root)
        with open(os.path.join(directory, "more.conf"), "w", encoding="utf-8") as file:
            file.write("upstream extra {\n    sever 127.0.0.1:1\n}\n")
        path = os.path.join(directory, "proxy.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(settings.text() + "include more.conf\n")
        done = gates.command("check", "-c", path)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, 2, output)
        self.assertRegex(output, r'more\.conf:2:5: error: unknown directive "sever"')
        self.assertRegex(output, r"(?m)^2 files, ")

    def test_a_name_that_does_not_resolve_is_reported(self):
        settings = self.settings()
        settings.servers = ["nobody.invalid:80"]
        _, output, found = self.check(settings.text())
        line = settings.text().split("\n").index("    server nobody.invalid:80") + 1
        self.assertIn((line, 12), [entry[:2] for entry in found], output)
        self.assertIn("nobody.invalid", output)

    def test_every_directive_is_listed_with_its_default(self):
        done = gates.command("check", "--directives")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("drain_timeout DURATION", "trusted_proxies", "30s"):
            self.assertIn(text, done.stdout)

    def test_blocks_are_listed_by_their_place(self):
        done = gates.command("check", "--directives")
        self.assertIn("\nhost › account jwt\n", done.stdout)
        self.assertIn("\nhost › proof\n", done.stdout)

    def test_the_keys_of_tokens_are_read(self):
        settings = self.settings()
        good, other = issuer.Key("ES256", "k1"), issuer.Key("RS256", "k2")
        private = good.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()).decode()
        secret = {"keys": [{"kty": "oct", "k": "AAAA"}, good.jwk]}
        for line, text, code, wanted in (
                ("key", good.pem, 0, ""), ("key", private, 2, "it holds a private key"),
                ("key", "", 2, "no PEM stands in it"),
                ("key", issuer.key_set(good), 2, "no PEM stands in it"),
                ("jwks", issuer.key_set(good, other), 0, ""),
                ("jwks", good.pem, 2, "it is no strict JSON object"),
                ("jwks", '{"keys": []}', 2, "it holds no keys"),
                ("jwks", json.dumps(secret), 0, "key 1: it is no public key"),
                ("jwks", json.dumps({"keys": secret["keys"][:1]}), 2, "it is no public key")):
            with self.subTest(text=text[:40]):
                path = os.path.join(settings.directory, "keys")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                settings.account = f"jwt {{\n {line} file:{path}\n issuer a\n audience b\n}}"
                done, output, _ = self.check(settings.text())
                self.assertEqual(done.returncode, code, output)
                self.assertIn(wanted, output)

    def test_a_file_that_is_not_there(self):
        done = gates.command("check", "-c", "/nonexistent/proxy.conf")
        self.assertIn(done.returncode, (2, 3))
        self.assertIn("/nonexistent/proxy.conf", done.stderr)

    def test_odd_bytes_never_crash(self):
        for text in ("", "\n", "{", "}", "a", "a {", "\"", "a \"b", "\\", "a \\", "a\\\nb", "#",
                     "\0", "\u00e9 {\n}\n", "a" * 100_000, "{\n" * 1000, "x {\n" * 1000,
                     "include *\n", "include proxy.conf\n", "${", "a ${", "a ${B", "a ${B:-",
                     "\r\n", "\ufeffloops 1\n"):
            with self.subTest(text=text[:20]):
                done, output, _ = self.check(text)
                self.assertIn(done.returncode, (0, 2), output[:2000])


class Readme(case.Case):
    def test_the_smallest_configuration_passes_check(self):
        with open(os.path.join(gates.TOP, "README.md"), encoding="utf-8") as file:
            text = re.search(r"```\n(store \{\n.*?)```", file.read(), re.S).group(1)
        path = os.path.join(self.temporary(), "proxy.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = gates.command("check", "-c", path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Shipped(case.Case):
    """The `proxy.conf` at the top of the repository."""

    def setUp(self):
        self.path = os.path.join(gates.TOP, "proxy.conf")
        directory = self.temporary()
        self.environment = {name: os.path.join(directory, name.split("_")[0].lower())
                            for name in ("STATE_DIRECTORY", "CACHE_DIRECTORY", "RUNTIME_DIRECTORY")}
        for path in self.environment.values():
            os.mkdir(path, 0o700)

    def test_it_passes_check(self):
        done = gates.command("check", "-c", self.path, environment=self.environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_it_passes_check_without_systemd(self):
        done = gates.command("check", "-c", self.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_it_serves(self):
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        service = self.recorder()
        settings = case.prepare(self.temporary(), 9, app.new_root())
        # As it stands but for the ports, which other programs may hold here.
        for shipped, port in ((8080, settings.port), (9901, settings.admin_port),
                              (9000, service.port)):
            self.assertEqual(text.count(f" 127.0.0.1:{shipped}\n"), 1)
            text = text.replace(f" 127.0.0.1:{shipped}\n", f" 127.0.0.1:{port}\n")
        running = gates.Gate(settings, self.environment)
        settings.text = lambda: text
        self.addCleanup(running.kill)
        running.start()
        self.assertEqual(running.readyz(), 200)
        for host in ("api.example.com", "localhost", "127.0.0.1"):
            for method, target, status in (
                    ("GET", "/public/a", 200), ("POST", "/v1/exports", 401),
                    ("PUT", "/v1/redeem/a", 401), ("GET", "/", 404), ("GET", "/internal/a", 404)):
                answer = wire.ask(running.address, method, target, host=host)
                self.assertEqual(answer.status, status, (host, method, target, answer))
        answer = wire.ask(running.address, "GET", "/public/a", host="another.example.com")
        self.assertEqual(answer.status, 421, answer)
        self.assertEqual(len(service.requests), 3)
        self.assertEqual(running.stop(), 0)

    def test_a_store_and_a_spool_whose_parents_are_missing(self):
        settings = case.prepare(self.temporary(), 9, app.new_root())
        settings.store = os.path.join(self.temporary(), "a", "b", "state")
        settings.spool = os.path.join(self.temporary(), "c", "d", "spool")
        running = gates.Gate(settings)
        self.addCleanup(running.kill)
        running.start()
        self.assertEqual(running.stop(), 0)
