"""TLS towards services: whom the gate takes for the service, and what it makes of a cut answer."""

import os
import queue
import ssl
import subprocess
import threading
import types

import app
import case
import gate as gates
import pki
import secure
import upstream
import wire

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def server_context(identity, clients=None, newest=None):
    """A service's context; with `clients` it takes only clients of that authority."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(identity.pem, identity.key_pem)
    if clients:
        made.load_verify_locations(clients.pem)
        made.verify_mode = ssl.CERT_REQUIRED
    if newest:
        made.maximum_version = newest
    return made


class Recorder(upstream.Recorder):
    """The recording service over TLS; `names` are the server names asked for."""

    def __init__(self, tls, says_end=True, **options):
        self.tls, self.says_end = tls, says_end
        self.names, self.subjects, self.refused = [], [], []
        tls.sni_callback = lambda _, name, __: self.names.append(name)
        super().__init__(**options)

    def _serve(self, connection, number):
        try:
            wrapped = self.tls.wrap_socket(connection, server_side=True)
        except OSError as error:
            with self.changed:
                self.refused.append(str(error))
                self.changed.notify_all()
            connection.close()
            return
        with self.changed:
            self.open.discard(connection)
            self.open.add(wrapped)
            self.subjects.append(wrapped.getpeercert())
        original = wrapped.close

        def close():
            if self.says_end:
                try:
                    wrapped.unwrap()
                except (OSError, ValueError):
                    pass
            original()

        wrapped.close = close
        super()._serve(wrapped, number)


class UpstreamTLS(case.Case):
    def setUp(self):
        self.pki = pki.Authority(self.temporary())
        self.identity = self.pki.issue("service", "service.test", "localhost", "127.0.0.1")

    def serve(self, *lines, tls=None, change=None, says_end=True, servers=None, **options):
        service = Recorder(tls or server_context(self.identity), says_end, **options)
        self.addCleanup(service.close)

        def configure(settings):
            settings.upstream += ["tls {", *lines, "}"]
            settings.routes["GET /off"] = ["mode off"]
            if servers:
                settings.servers = [server.replace("PORT", str(service.port))
                                    for server in servers]
            if change:
                change(settings)

        self.run_gate(configure, service)
        return service

    @property
    def ca(self):
        return f"ca file:{self.pki.pem}"

    def refused(self, says):
        answer = self.ask("GET", "/off")
        self.check_problem(answer, "upstream_unavailable")
        self.assertTrue(self.gate.err.wait(lambda line: says in line), self.gate.err.text)
        self.assertEqual(self.service.requests, [])

    def test_a_service_with_the_right_certificate(self):
        for newest in (V12, V13):
            self.serve(self.ca, "name service.test",
                       tls=server_context(self.identity, newest=newest))
            for _ in range(3):
                self.assertEqual(self.ask("GET", "/off").body, b"ok\n")
            self.assertEqual(self.service.names[0], "service.test")
            # Kept alive, whatever tickets came behind the handshake: one connection a loop.
            self.assertLessEqual(self.service.connections, os.cpu_count() or 1)

    def test_a_protected_request(self):
        self.serve(self.ca, "name service.test")
        phone = self.app().enrolled()
        request = self.check_upstream(phone.send("POST", "/v1/data/a", b"{}"))
        self.assertEqual(request.get("App-Attest-Verdict"), "verified")
        self.assertEqual(request.get("Host"), gates.HOST)

    def test_the_name_is_the_server_line_s_own(self):
        self.serve(self.ca, servers=["localhost:PORT"])
        self.assertEqual(self.ask("GET", "/off").status, 200)
        self.assertEqual(self.service.names, ["localhost"])
        # A numeric address is looked for among the certificate's addresses; no name is asked for.
        self.serve(self.ca)
        self.assertEqual(self.ask("GET", "/off").status, 200)
        self.assertEqual(self.service.names, [None])

    def test_each_server_has_its_own_name(self):
        other = Recorder(server_context(self.pki.issue("other", "127.0.0.1")))
        self.addCleanup(other.close)
        self.serve(self.ca, servers=["localhost:PORT", f"127.0.0.1:{other.port}"],
                   tls=server_context(self.pki.issue("local", "localhost")))
        for _ in range(6):
            self.assertEqual(self.ask("GET", "/off").status, 200)
        self.assertTrue(other.requests and self.service.requests)

    def test_health_checks_take_the_same_way(self):
        def change(settings):
            settings.upstream.append("health GET /healthz every=200ms fall=1 rise=1")
        service = self.serve(self.ca, "name service.test", change=change)
        self.assertTrue(service.wait_until(
            lambda: [r.target for r in service.requests[:2]] == ["/healthz"] * 2))
        self.assertEqual(self.ask("GET", "/off").status, 200)
        self.serve(self.ca, "name other.test", change=change)
        said = self.gate.err.wait(lambda line: " is down: " in line)
        self.assertIn("hostname mismatch", said or self.gate.err.text)
        self.assertEqual(self.ask("GET", "/off").status, 502)
        self.assertTrue(self.gate.err.wait(lambda line: "every server is down" in line))

    def test_a_wrong_name_is_refused(self):
        self.serve(self.ca, "name other.test")
        self.refused("hostname mismatch")

    def test_a_wrong_address_is_refused(self):
        self.serve(self.ca, tls=server_context(self.pki.issue("elsewhere", "127.0.0.9")))
        self.refused("ip address mismatch")

    def test_an_unknown_authority_is_refused(self):
        self.serve("name service.test")
        self.refused("unable to get local issuer certificate")

    def test_an_ended_certificate_is_refused(self):
        ended = self.pki.issue("ended", "service.test", begin=-9, end=-2)
        self.serve(self.ca, "name service.test", tls=server_context(ended))
        self.refused("certificate has expired")

    def test_a_client_s_certificate_is_none_of_a_server(self):
        client = self.pki.issue("client", "service.test", client=True)
        self.serve(self.ca, "name service.test", tls=server_context(client))
        self.refused("certificate purpose")

    def test_verify_off_takes_any(self):
        self.serve("verify off", tls=server_context(
            pki.Authority(self.temporary(), "other").issue("any", "else.test")))
        self.assertEqual(self.ask("GET", "/off").status, 200)
        self.assertIn("verify off takes any server", self.gate.err.text)

    def test_the_gate_s_own_certificate(self):
        gate = self.pki.issue("gate", client=True)
        tls = server_context(self.identity, clients=self.pki)
        self.serve(self.ca, "name service.test", gate.line, tls=tls)
        self.assertEqual(self.ask("GET", "/off").status, 200)
        self.assertIn("gate", str(self.service.subjects[0]["subject"]))
        for newest in (V12, V13):
            self.serve(self.ca, "name service.test",
                       tls=server_context(self.identity, clients=self.pki, newest=newest))
            self.check_problem(self.ask("GET", "/off"), "upstream_unavailable")
            self.assertEqual(self.service.requests, [])

    def test_a_unix_socket_with_a_name(self):
        path = os.path.join(self.temporary(), "service.sock")
        self.serve(self.ca, "name service.test", servers=[f"unix:{path}"], address=path)
        self.assertEqual(self.ask("GET", "/off").status, 200)

    def test_bodies_of_megabytes_both_ways(self):
        def change(settings):
            settings.routes["POST /echo"] = ["mode off"]

        self.serve(self.ca, "name service.test", change=change)
        self.service.respond = lambda request: upstream.answer(request.body)
        body = os.urandom(5_000_011)
        for chunked in (False, True):
            answer = self.ask("POST", "/echo", body=body, chunked=chunked)
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(answer.body, body)

    def test_an_answer_that_ends_with_its_connection(self):
        body = os.urandom(300_000)
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        for newest in (V12, V13):
            # Said to be at its end: whole.
            self.serve(self.ca, "name service.test",
                       tls=server_context(self.identity, newest=newest))
            self.service.respond, self.service.closes = (lambda request: head + body), True
            self.assertEqual(self.ask("GET", "/off").body, body)
            # Cut by whoever sits between: must not look whole.
            self.serve(self.ca, "name service.test", says_end=False,
                       tls=server_context(self.identity, newest=newest))
            self.service.respond, self.service.closes = (lambda request: head + body), True
            with self.assertRaises((wire.Closed, ConnectionError)):
                with wire.Connection(self.gate.address) as connection:
                    connection.ask("GET", "/off")
                    raise AssertionError("a cut answer passed for a whole one")

    def test_an_answer_before_the_end_of_the_request(self):
        refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        tls = server_context(self.identity)

        def play():
            plain, _ = stage.accept()
            connection = tls.wrap_socket(plain, server_side=True)
            connection.recv(1000)
            connection.sendall(refusal)
            connection.close()

        threading.Thread(target=play, daemon=True).start()

        def change(settings):
            settings.upstream += ["tls {", self.ca, "name service.test", "}"]
            settings.routes["POST /up"] = ["mode off"]

        self.run_gate(change, stage)
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("POST", "/up", body=bytes(8_000_000)))
            self.assertEqual(connection.response("POST").status, 413)

    def test_an_answer_with_a_length_needs_no_end(self):
        self.serve(self.ca, "name service.test", says_end=False)
        self.service.closes = True
        for _ in range(3):
            self.assertEqual(self.ask("GET", "/off").body, b"ok\n")

    def test_a_connection_that_the_service_closed_is_not_used_again(self):
        self.serve(self.ca, "name service.test")
        for _ in range(4):
            self.assertEqual(self.ask("GET", "/off").status, 200)
            self.service.drop()
            self.assertTrue(self.service.wait_until(lambda: not self.service.open))

    def test_what_speaks_no_tls(self):
        clear = upstream.Stage()
        self.addCleanup(clear.close)

        def answer():
            while True:
                try:
                    clear.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                except queue.Empty:
                    return

        threading.Thread(target=answer, daemon=True).start()
        self.run_gate(lambda settings: settings.upstream.extend(["tls {", self.ca, "}"]), clear)
        self.check_problem(self.ask("GET", "/x"), "upstream_unavailable")
        self.assertTrue(self.gate.err.wait(lambda line: "TLS: wrong version number" in line))

    def test_a_service_with_an_old_version_only(self):
        old = server_context(self.identity)
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        self.serve(self.ca, "name service.test", tls=old)
        self.refused("alert protocol version")

    def test_a_handshake_that_stands_still(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        self.run_gate(lambda settings: settings.upstream.extend(
            ["tls {", self.ca, "}", "timeouts connect=300ms"]), stage)
        self.check_problem(self.ask("GET", "/x"), "upstream_timeout")

    def test_both_sides_encrypted(self):
        front = self.pki.issue("front", gates.HOST)
        self.serve(self.ca, "name service.test",
                   change=lambda settings: settings.listener.extend(
                       ["tls {", front.line, "}"]))
        phone = secure.App(
            self.gate.address, self.device(), secure.context(self.pki)).enrolled()
        request = self.check_upstream(phone.send("POST", "/v1/data/a", b"{}"))
        self.assertEqual(request.get("X-Forwarded-Proto"), "https")


class Check(case.Case):
    def check(self, *lines, server="127.0.0.1:9"):
        settings = case.prepare(self.temporary(), 9, app.new_root())
        settings.servers = [server]
        settings.upstream += ["tls {", *lines, "}"]
        path = os.path.join(settings.directory, "proxy.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(settings.text())
        done = gates.command("check", "-c", path)
        return done.returncode, done.stdout + done.stderr

    def test_faults_and_warnings(self):
        directory = self.temporary()
        authority = pki.Authority(directory)
        good, other = authority.issue("good", client=True), authority.issue("other", client=True)
        for lines, status, says in (
            ([f"ca file:{authority.pem}", good.line], 0, "0 errors"),
            (["verify off"], 0, "warning: verify off takes any server"),
            ([f"ca file:{good.key_pem}"], 2, "holds no authorities"),
            ([f"ca file:{directory}/none"], 2, "cannot be read"),
            ([f"certificate file:{good.pem} file:{other.key_pem}"], 2, "does not belong"),
        ):
            code, output = self.check(*lines)
            self.assertEqual(code, status, output)
            self.assertIn(says, output)
        code, output = self.check(server="unix:/run/service.sock")
        self.assertEqual(code, 2, output)
        self.assertIn("has no name for its certificate", output)


class HTTP2(case.Case):
    """`protocol h2`: nghttpd behind the gate."""

    def setUp(self):
        self.pki = pki.Authority(self.temporary())
        self.identity = self.pki.issue("service", "service.test")
        self.files = self.temporary()
        self.body = os.urandom(2_000_003)
        with open(os.path.join(self.files, "file"), "wb") as file:
            file.write(self.body)

    def start(self, service):
        lines = ["protocol h2", "tls {", f"ca file:{self.pki.pem}", "name service.test", "}"]
        self.run_gate(lambda settings: settings.upstream.extend(lines), service)

    def test_answers_of_nghttpd(self):
        number = gates.port()
        process = subprocess.Popen(
            ["/usr/sbin/nghttpd", "-a", "127.0.0.1", "-d", self.files, str(number),
             self.identity.key_pem, self.identity.pem],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.start(types.SimpleNamespace(port=number))
        self.assertTrue(gates.poll(lambda: self.ask("GET", "/file").status == 200))
        self.assertEqual(self.ask("GET", "/file").body, self.body)
        self.assertEqual(self.ask("GET", "/none").status, 404)
        self.assertEqual(self.ask("HEAD", "/file").get("Content-Length"), str(len(self.body)))

    def test_a_service_that_only_speaks_http1_is_refused(self):
        tls = server_context(self.identity)
        tls.set_alpn_protocols(["http/1.1"])
        service = Recorder(tls)
        self.addCleanup(service.close)
        self.start(service)
        self.check_problem(self.ask("GET", "/x"), "upstream_unavailable")
        self.assertEqual(service.requests, [])
        # One that chooses nothing.
        silent = Recorder(server_context(self.identity))
        self.addCleanup(silent.close)
        self.start(silent)
        self.check_problem(self.ask("GET", "/x"), "upstream_unavailable")
        self.assertTrue(self.gate.err.wait(lambda line: "does not speak HTTP/2" in line))
