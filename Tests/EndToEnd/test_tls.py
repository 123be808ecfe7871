"""TLS towards clients: versions, certificates, names, client certificates, tickets (T18)."""

import ctypes
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from concurrent import futures

import case
import gate as gates
import pki
import secure
import upstream
import wire

BETA = "beta.example.test"
GAMMA = "gamma.example.test"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def block(*lines):
    return ["tls {", *("    " + line for line in lines), "}"]


def other_host(name, listener="main"):
    return [f"host {name} {{", f"    listener {listener}", "    upstream service",
            "    unmatched off", "}"]


class Serving(case.SharedGate):
    """One listener: two certificates for one name, one for another, no client certificates."""

    @classmethod
    def configure(cls, settings):
        cls.authority = authority = pki.Authority(settings.directory, "tls")
        cls.ec = authority.issue("api-ec", gates.HOST, GAMMA)
        cls.rsa = authority.issue("api-rsa", gates.HOST, GAMMA, key="rsa")
        cls.beta = authority.issue("beta", BETA)
        cls.wild = authority.issue("wild", "*.wild.test")
        settings.listener += block(cls.ec.line, cls.rsa.line, cls.beta.line, cls.wild.line)
        settings.extra += other_host(BETA) + other_host(GAMMA) + other_host("a.wild.test")
        settings.routes["POST /v1/echo"] = ["mode off"]
        cls.tls = secure.context(authority)

    def connect(self, name=gates.HOST, tls=None, **options):
        connection = secure.Connection(self.gate.address, tls or self.tls, name, **options)
        self.addCleanup(connection.close)
        return connection

    def curl(self, *arguments):
        done = subprocess.run(
            ["curl", "-sS", "--cacert", self.authority.pem, "--http1.1", "--resolve",
             f"{gates.HOST}:{self.gate.settings.port}:127.0.0.1", *arguments,
             f"https://{gates.HOST}:{self.gate.settings.port}/x"],
            capture_output=True, text=True, timeout=wire.DEADLINE, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_versions_with_curl(self):
        for version, name in (("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")):
            self.service.reset()
            code, output, errors = self.curl(f"--tlsv{version}", "--tls-max", version)
            self.assertEqual((code, output), (0, "ok\n"), errors)
            request = self.service.wait(1)[0]
            self.assertEqual(request.get("X-Forwarded-Proto"), "https")
            entry = self.gate.log(
                lambda entry: entry.get("request_id") == request.get("X-Request-Id"))
            self.assertEqual(entry["tls"], name, entry)

    def test_old_versions_are_refused(self):
        for version in ("-tls1", "-tls1_1"):
            said = secure.s_client(
                self.gate.address, version, "-cipher", "ALL:@SECLEVEL=0", "-servername",
                gates.HOST)
            self.assertIn("alert protocol version", said)

    def test_weak_ciphers_are_refused(self):
        for cipher in ("AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "DHE-RSA-AES128-GCM-SHA256",
                       "ECDHE-RSA-AES256-SHA384"):
            said = secure.s_client(
                self.gate.address, "-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0", "-servername",
                gates.HOST)
            self.assertRegex(said, r"alert handshake failure|no cipher match", cipher)

    def test_the_certificate_follows_the_name(self):
        for name, wanted in ((gates.HOST, self.ec), (GAMMA, self.ec), (BETA, self.beta),
                             ("a.wild.test", self.wild)):
            connection = self.connect(name)
            self.assertEqual(connection.socket.getpeercert(True), wanted.der, name)
            answer = connection.ask("GET", "/x", host=name)
            self.assertEqual(answer.status, 200, answer)
        blind = secure.context(self.authority)
        blind.check_hostname = False
        for name in (None, "a.b.wild.test", "nobody.test", "EXAMPLE.test"):
            connection = self.connect(name, blind)
            self.assertEqual(connection.socket.getpeercert(True), self.ec.der, name)

    def test_the_algorithm_follows_the_client(self):
        for signatures, wanted in (
            ("RSA-PSS+SHA256", "RSA"), ("ECDSA+SHA256", "ECDSA"),
            ("ECDSA+SHA256:RSA-PSS+SHA256", "ECDSA"),
        ):
            for version in ("-tls1_2", "-tls1_3"):
                said = secure.s_client(
                    self.gate.address, version, "-servername", gates.HOST, "-sigalgs", signatures)
                found = re.search(r"Peer signature type: (\S+)", said)
                self.assertTrue(found, said)
                self.assertIn(wanted, found.group(1))

    def test_a_request_for_a_host_with_another_certificate_is_misdirected(self):
        connection = self.connect(BETA)
        answer = connection.ask("GET", "/x", host=gates.HOST)
        self.check_problem(answer, "misdirected")
        self.check_reason(answer, "host_unknown")
        # The connection is good for its own host all the same.
        self.assertEqual(connection.ask("GET", "/x", host=BETA).status, 200)
        self.assertEqual(len(self.service.wait(1)), 1)

    def test_over_http2_as_well(self):
        port = self.gate.settings.port
        for version in ("--http1.1", "--http2"):
            for name, host, status in ((BETA, BETA, "200"), (BETA, gates.HOST, "421"),
                                       (GAMMA, gates.HOST, "200"), (gates.HOST, BETA, "421")):
                done = subprocess.run(
                    ["curl", "-sS", "--cacert", self.authority.pem, version, "--resolve",
                     f"{name}:{port}:127.0.0.1", "-H", f"Host: {host}", "-o", os.devnull, "-w",
                     "%{http_code} %{http_version}", f"https://{name}:{port}/x"],
                    capture_output=True, text=True, timeout=wire.DEADLINE, check=False)
                spoken = version.removeprefix("--http")
                self.assertEqual(done.stdout, f"{status} {spoken}", (name, host, done.stderr))

    def test_hosts_with_the_same_certificate_share_a_connection(self):
        connection = self.connect(GAMMA)
        for host in (GAMMA, gates.HOST, gates.HOST.upper()):
            self.assertEqual(connection.ask("GET", "/x", host=host).status, 200, host)
        self.check_problem(connection.ask("GET", "/x", host=BETA), "misdirected")
        self.check_problem(connection.ask("GET", "/x", host="nobody.test"), "misdirected")

    def test_without_a_name_the_host_decides(self):
        tls = secure.context(self.authority)
        tls.check_hostname = False
        connection = self.connect(None, tls)
        for host in (gates.HOST, BETA):
            self.assertEqual(connection.ask("GET", "/x", host=host).status, 200, host)
        stranger = self.connect("stranger.test", tls)
        self.assertEqual(stranger.ask("GET", "/x", host=BETA).status, 200)

    def test_alpn(self):
        self.assertEqual(self.connect().socket.selected_alpn_protocol(), "http/1.1")
        none = self.connect(tls=secure.context(self.authority, alpn=()))
        self.assertIsNone(none.socket.selected_alpn_protocol())
        self.assertEqual(none.ask("GET", "/x").status, 200)
        said = secure.s_client(
            self.gate.address, "-servername", gates.HOST, "-alpn", "spdy/3,foo")
        self.assertIn("alert no application protocol", said)

    def test_no_renegotiation_no_early_data_no_compression(self):
        said = secure.s_client(
            self.gate.address, "-tls1_2", "-servername", gates.HOST, "-comp", text=b"R\n")
        self.assertIn("Secure Renegotiation IS supported", said)
        self.assertIn("Compression: NONE", said)
        self.assertIn("no renegotiation", said.split("RENEGOTIATING")[-1])
        path = os.path.join(self.directory.path, "session")
        text = f"GET /x HTTP/1.1\r\nHost: {gates.HOST}\r\nConnection: close\r\n\r\n".encode()
        said = secure.s_client(
            self.gate.address, "-tls1_3", "-servername", gates.HOST, "-sess_out", path,
            "-ign_eof", text=text)
        self.assertIn("Max Early Data: 0", said)
        self.assertIn("HTTP/1.1 200", said)

    def test_what_is_no_handshake_is_closed_without_an_answer(self):
        for data in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\0" * 64, b"\x16\x03\x01\xff\xff" * 9,
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"SSH-2.0-x\r\n"):
            with wire.Connection(self.gate.address) as connection:
                connection.send(data)
                try:
                    self.assertNotIn(b"HTTP", connection.rest(), data)
                except ConnectionResetError:
                    pass
        self.assertEqual(self.connect().ask("GET", "/x").status, 200)
        self.assertTrue(self.gate.err.wait(lambda line: "TLS: http request" in line))

    def test_bodies_of_megabytes_both_ways(self):
        self.service.respond = lambda request: upstream.answer(request.body)
        body = os.urandom(5_000_011)
        for tls in (secure.context(self.authority, newest=V12),
                    secure.context(self.authority, oldest=V13)):
            for chunked in (False, True):
                connection = self.connect(tls=tls)
                answer = connection.ask("POST", "/v1/echo", body=body, chunked=chunked)
                self.assertEqual(answer.status, 200, answer)
                self.assertEqual(answer.body, body)

    def test_an_end_is_said(self):
        connection = self.connect()
        answer = connection.ask("GET", "/x", fields=[("Connection", "close")])
        self.assertEqual(answer.get("Connection"), "close")
        # A stream that was cut would raise SSLEOFError.
        self.assertEqual(connection.socket.recv(1), b"")

    def test_a_client_that_only_closes_its_side_reads_its_answer(self):
        for version in (V12, V13):
            tls = secure.context(self.authority, newest=version, oldest=version)
            connection = self.connect(tls=tls)
            connection.send(wire.message("GET", "/x"))
            # Below TLS: an end without close_notify.
            socket.socket.shutdown(connection.socket, socket.SHUT_WR)
            self.assertEqual(connection.response().body, b"ok\n")

    def test_key_updates_without_end_are_ended(self):
        def flood():
            libssl = ctypes.CDLL("libssl.so.3")
            for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
                getattr(libssl, name).restype = ctypes.c_void_p
            made = ctypes.c_void_p(libssl.SSL_CTX_new(
                ctypes.c_void_p(libssl.TLS_client_method())))
            link = ctypes.c_void_p(libssl.SSL_new(made))
            with socket.create_connection(self.gate.address) as connection:
                libssl.SSL_set_fd(link, connection.fileno())
                self.assertEqual(libssl.SSL_connect(link), 1)
                for sent in range(100_000):
                    libssl.SSL_key_update(link, 0)
                    if libssl.SSL_do_handshake(link) != 1:
                        return sent
            return None

        worst = 0.0
        with futures.ThreadPoolExecutor(1) as pool:
            flooding = pool.submit(flood)
            bystander = self.connect()
            while not flooding.done():
                began = time.monotonic()
                self.assertEqual(bystander.ask("GET", "/x").status, 200)
                worst = max(worst, time.monotonic() - began)
            # 256 KiB of records of 27 bytes, and what was on its way.
            self.assertIsNotNone(flooding.result())
            self.assertGreater(flooding.result(), 9000)
        self.assertLess(worst, 2.0)

    def test_requests_in_one_record_and_one_in_many(self):
        connection = self.connect()
        connection.send(wire.message("GET", "/a") + wire.message("GET", "/b"))
        self.assertEqual([connection.response().status for _ in range(2)], [200, 200])
        for byte in wire.message("GET", "/c"):
            connection.send(bytes([byte]))
        self.assertEqual(connection.response().status, 200)

    def test_a_protected_request_passes_and_its_replay_does_not(self):
        phone = secure.App(self.gate.address, self.device(), self.tls).enrolled()
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            self.service.reset()
            proof = phone.prove("POST", path, b"{}", phone.challenge(), binding)
            self.check_upstream(phone.ask("POST", path, proof, b"{}"))
            again = phone.ask("POST", path, proof, b"{}")
            self.check_problem(again, "challenge_required")
            self.assertEqual(len(self.service.wait(1)), 1)

    def test_sslscan_finds_nothing(self):
        scan = shutil.which("sslscan")
        self.assertTrue(scan, "sslscan is not installed")
        host, port = self.gate.address
        done = subprocess.run(
            [scan, "--no-colour", f"--sni-name={gates.HOST}", f"{host}:{port}"],
            capture_output=True, text=True, timeout=120, check=False)
        said = done.stdout
        for version in ("SSLv2", "SSLv3", "TLSv1.0", "TLSv1.1"):
            self.assertRegex(said, rf"{version}\s+disabled", said)
        for version in ("TLSv1.2", "TLSv1.3"):
            self.assertRegex(said, rf"{version}\s+enabled", said)
        self.assertIn("Server supports TLS Fallback SCSV", said)
        self.assertIn("Session renegotiation not supported", said)
        for version in ("1.2", "1.3"):
            self.assertIn(f"TLSv{version} not vulnerable to heartbleed", said)
        ciphers = re.findall(r"^(?:Preferred|Accepted)\s+TLSv1\.[23]\s+\d+ bits\s+(\S+)", said,
                             re.MULTILINE)
        self.assertGreater(len(ciphers), 6, said)
        for cipher in ciphers:
            self.assertRegex(cipher, r"^(TLS_|ECDHE-).*(GCM|POLY1305)", said)
        groups = re.findall(r"^TLSv1\.[23]\s+\d+ bits\s+(\S+)", said, re.MULTILINE)
        self.assertLessEqual(set(groups), {"x25519", "secp256r1", "secp384r1"}, said)


class Own(case.Case):
    """Tests with a listener of their own."""

    def setUp(self):
        self.pki = pki.Authority(self.temporary())
        self.api = self.pki.issue("api", gates.HOST)

    def serve(self, *lines, change=None, environment=None, listener=()):
        def configure(settings):
            settings.listener += block(*(lines or (self.api.line,))) + list(listener)
            if change:
                change(settings)

        return self.run_gate(configure, environment=environment)

    def connect(self, name=gates.HOST, tls=None, address=None, **options):
        connection = secure.Connection(
            address or self.gate.address, tls or secure.context(self.pki), name, **options)
        self.addCleanup(connection.close)
        return connection

    def fails(self, name=gates.HOST, tls=None, address=None):
        """Whether the connection does not get as far as an answer."""
        try:
            with secure.Connection(
                    address or self.gate.address, tls or secure.context(self.pki),
                    name) as connection:
                connection.ask("GET", "/x", host=name)
        except (OSError, wire.Closed):
            return True
        return False


class Settings(Own):
    def test_min_version(self):
        self.serve(self.api.line, "min_version 1.3")
        self.assertTrue(self.fails(tls=secure.context(self.pki, newest=V12)))
        self.assertEqual(self.connect().socket.version(), "TLSv1.3")

    def test_the_key_may_be_a_credential(self):
        directory = self.temporary()
        shutil.copy(self.api.key_pem, os.path.join(directory, "api.key"))
        self.serve(f"certificate file:{self.api.pem} credential:api.key",
                   environment={"CREDENTIALS_DIRECTORY": directory})
        self.assertEqual(self.connect().ask("GET", "/x").status, 200)

    def test_a_slow_handshake_is_closed(self):
        self.serve(listener=["timeouts handshake=400ms"])
        with wire.Connection(self.gate.address) as silent, \
                wire.Connection(self.gate.address) as slow:
            slow.send(b"\x16\x03\x01\x02\x00\x01\x00")
            self.assertTrue(silent.is_closed(5))
            self.assertTrue(slow.is_closed(5))
        # What has shaken hands waits longer. TLS 1.2, in which nothing comes behind the handshake.
        connection = self.connect(tls=secure.context(self.pki, newest=V12))
        self.assertTrue(connection.is_silent(0.8))
        self.assertEqual(connection.ask("GET", "/x").status, 200)

    def test_a_handshake_counts_against_the_connections(self):
        self.serve(listener=["limits per_address=2"])
        three = [wire.Connection(self.gate.address) for _ in range(3)]
        for connection in three:
            self.addCleanup(connection.close)

        def closed():
            return [connection for connection in three if connection.is_closed(0.05)]

        # Which of them depends on the loops that accept them.
        self.assertTrue(gates.poll(lambda: len(closed()) == 1))
        self.assertTrue(self.fails())
        for connection in three:
            connection.close()
        self.assertTrue(gates.poll(lambda: not self.fails()))

    def test_a_stop_ends_what_waits_and_what_shakes_hands(self):
        self.serve()
        idle = self.connect()
        self.assertEqual(idle.ask("GET", "/x").status, 200)
        with wire.Connection(self.gate.address):
            self.assertEqual(self.gate.stop(), 0)
        self.assertEqual(idle.socket.recv(1), b"")

    def test_clear_and_encrypted_listeners_side_by_side(self):
        port = gates.port()

        def change(settings):
            settings.host.append("listener clear")
            settings.extra += ["listener clear {", f"    address 127.0.0.1:{port}", "}"]

        self.serve(change=change)
        self.assertEqual(self.connect().ask("GET", "/x").status, 200)
        answer = wire.ask(("127.0.0.1", port), "GET", "/x")
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.service.wait(2)[1].get("X-Forwarded-Proto"), "http")
        self.assertNotIn("tls", self.gate.logged(answer))

    def test_a_proxy_header_before_the_handshake(self):
        self.serve(listener=["proxy_protocol require from 127.0.0.0/8"])
        tls = secure.context(self.pki)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        hello = tls.wrap_bio(incoming, outgoing, server_hostname=gates.HOST)
        with self.assertRaises(ssl.SSLWantReadError):
            hello.do_handshake()
        header = b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\r\n"
        with wire.Connection(self.gate.address) as connection:
            # The hello comes in the same packet as the header, and is not lost with it.
            connection.send(header + outgoing.read())
            while True:
                data = connection.socket.recv(1 << 16)
                self.assertTrue(data, "closed within the handshake")
                incoming.write(data)
                try:
                    hello.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    connection.send(outgoing.read())
            hello.write(wire.message("GET", "/x"))
            connection.send(outgoing.read())
            self.assertEqual(len(self.service.wait(1)), 1)
        request = self.service.requests[0]
        self.assertEqual(request.get("X-Forwarded-For"), "192.0.2.7")
        self.assertEqual(request.get("X-Forwarded-Proto"), "https")


class ClientCertificates(Own):
    def setUp(self):
        super().setUp()
        self.clients = pki.Authority(self.temporary(), "clients")
        strangers = pki.Authority(self.temporary(), "strangers")
        self.good = self.clients.issue("good", client=True)
        self.server = self.clients.issue("server", "client.test")
        self.ended = self.clients.issue("ended", client=True, begin=-9, end=-2)
        self.strange = strangers.issue("strange", client=True)

    def with_(self, identity, **options):
        return secure.context(self.pki, identity, **options)

    def test_require(self):
        self.serve(self.api.line, f"client_ca require file:{self.clients.pem}")
        for newest in (V12, V13):
            good = self.with_(self.good, newest=newest)
            self.assertEqual(self.connect(tls=good).ask("GET", "/x").status, 200)
            for identity in (None, self.server, self.ended, self.strange):
                self.assertTrue(self.fails(tls=self.with_(identity, newest=newest)))
        self.assertEqual(len(self.service.wait(2)), 2)
        self.assertTrue(self.gate.err.wait(
            lambda line: "peer did not return a certificate" in line))
        self.assertTrue(self.gate.err.wait(lambda line: "certificate has expired" in line))

    def test_optional(self):
        self.serve(self.api.line, f"client_ca optional file:{self.clients.pem}")
        for identity in (None, self.good):
            answer = self.connect(tls=self.with_(identity)).ask("GET", "/x")
            self.assertEqual(answer.status, 200)
        for identity in (self.ended, self.strange):
            self.assertTrue(self.fails(tls=self.with_(identity)))

    def two_listeners(self):
        """A clear policy on one port, `require` on another, the same certificate on both."""
        self.strict_port = gates.port()

        def change(settings):
            settings.extra += ["listener strict {", f"    address 127.0.0.1:{self.strict_port}"]
            settings.extra += block(self.api.line, f"client_ca require file:{self.clients.pem}")
            settings.extra += ["}"] + other_host(BETA, "strict")

        self.api = self.pki.issue("both", gates.HOST, BETA)
        self.serve(change=change)
        return ("127.0.0.1", self.strict_port)

    def test_a_host_behind_another_client_authority_is_misdirected(self):
        strict = self.two_listeners()
        good = self.with_(self.good)
        self.assertEqual(
            self.connect(BETA, good, strict).ask("GET", "/x", host=BETA).status, 200)
        # The same certificate, but the name is served under another rule elsewhere.
        answer = self.connect(BETA).ask("GET", "/x", host=gates.HOST)
        self.check_problem(answer, "misdirected")
        self.check_problem(self.connect().ask("GET", "/x", host=BETA), "misdirected")

    def test_no_session_passes_from_one_rule_to_another(self):
        strict = self.two_listeners()
        for newest in (V12, V13):
            tls = secure.context(self.pki, newest=newest)
            first = self.connect(tls=tls)
            first.ask("GET", "/x")
            session = first.socket.session
            self.assertTrue(session.has_ticket)
            again = self.connect(tls=tls, session=session)
            self.assertTrue(again.socket.session_reused)
            try:
                with secure.Connection(strict, tls, gates.HOST, session) as stolen:
                    stolen.ask("GET", "/x", host=BETA)
                    self.fail("a session without certificate was taken")
            except (OSError, wire.Closed):
                pass
        self.assertEqual(
            [request.get("Host") for request in self.service.requests], [gates.HOST] * 2)

    def reload(self, *listener):
        """Another `tls` block in place of the listener's."""
        self.gate.settings.listener[:] = list(listener)
        self.gate.notifications.clear()
        with open(self.gate.conf, "w", encoding="utf-8") as file:
            file.write(self.gate.settings.text())
        self.gate.signal(signal.SIGHUP)
        self.assertTrue(self.gate.wait_notification("RELOADING=1"))
        self.assertTrue(self.gate.wait_notification("READY=1"))

    def test_a_reload_asks_open_connections_for_a_certificate_too(self):
        other = pki.Authority(self.temporary(), "others")
        require = f"client_ca require file:{self.clients.pem}"
        self.serve(self.api.line, f"client_ca optional file:{self.clients.pem}")
        nobody, somebody = self.connect(), self.connect(tls=self.with_(self.good))
        for connection in (nobody, somebody):
            self.assertEqual(connection.ask("GET", "/x").status, 200)
        self.reload(*block(self.api.line, require))
        for connection in (nobody, somebody):
            self.check_problem(connection.ask("GET", "/x"), "misdirected")
        # Under the same authorities a certificate that was shown counts on.
        under = self.connect(tls=self.with_(self.good))
        self.reload(*block(self.api.line, require, "min_version 1.3"))
        self.assertEqual(under.ask("GET", "/x").status, 200)
        self.reload(*block(self.api.line, f"client_ca require file:{other.pem}"))
        self.check_problem(under.ask("GET", "/x"), "misdirected")
        self.assertEqual(len(self.service.wait(3)), 3)

    def test_a_reload_ends_clear_connections_to_an_encrypted_listener(self):
        self.run_gate()
        with wire.Connection(self.gate.address) as connection:
            self.assertEqual(connection.ask("GET", "/x").status, 200)
            self.reload(*block(self.api.line, f"client_ca require file:{self.clients.pem}"))
            self.check_problem(connection.ask("GET", "/x"), "misdirected")

    def test_a_session_keeps_its_certificate(self):
        self.serve(self.api.line, f"client_ca require file:{self.clients.pem}")
        for newest in (V12, V13):
            tls = self.with_(self.good, newest=newest)
            first = self.connect(tls=tls)
            first.ask("GET", "/x")
            again = self.connect(tls=tls, session=first.socket.session)
            self.assertEqual(again.ask("GET", "/x").status, 200)
            self.assertTrue(again.socket.session_reused)


class Tickets(Own):
    def resume(self, newest, session=None, name=gates.HOST):
        """One connection; whether it took the session up, and a session to go on with."""
        tls = self.contexts.setdefault(newest, secure.context(self.pki, newest=newest))
        with secure.Connection(self.gate.address, tls, name, session) as connection:
            connection.ask("GET", "/x", host=name)
            return connection.socket.session_reused, connection.socket.session

    def setUp(self):
        super().setUp()
        self.contexts = {}

    def test_a_session_is_taken_up_again(self):
        self.serve()
        for newest in (V12, V13):
            reused, session = self.resume(newest)
            self.assertFalse(reused)
            self.assertTrue(self.resume(newest, session)[0])

    def test_tickets_off(self):
        self.serve(self.api.line, "tickets off")
        for newest in (V12, V13):
            _, session = self.resume(newest)
            self.assertFalse(session is not None and session.has_ticket)
            self.assertFalse(self.resume(newest, session)[0])
        said = secure.s_client(
            self.gate.address, "-tls1_3", "-servername", gates.HOST, "-ign_eof",
            text=f"GET /x HTTP/1.1\r\nHost: {gates.HOST}\r\nConnection: close\r\n\r\n".encode())
        self.assertNotIn("Post-Handshake New Session Ticket", said)

    def test_keys_rotate_and_old_ones_open_for_one_more_period(self):
        self.serve(self.api.line, "tickets rotate 2s")
        # A session is refused by its own age as well; here it is the key that is gone.
        for newest in (V12, V13):
            _, session = self.resume(newest)
            self.assertTrue(self.resume(newest, session)[0])
            self.assertTrue(gates.poll(lambda: not self.resume(newest, session)[0], every=0.3))

    def test_no_session_passes_from_one_certificate_to_another(self):
        beta = self.pki.issue("beta", BETA)
        self.serve(self.api.line, beta.line,
                   change=lambda settings: settings.extra.extend(other_host(BETA)))
        for newest in (V12, V13):
            _, session = self.resume(newest)
            self.assertFalse(self.resume(newest, session, BETA)[0])
            self.assertTrue(self.resume(newest, session)[0])

    def test_another_process_does_not_know_the_tickets(self):
        self.serve()
        _, session = self.resume(V13)
        self.assertEqual(self.gate.stop(), 0)
        self.gate.start()
        self.assertFalse(self.resume(V13, session)[0])


class Check(Own):
    """What `check` and a start say of certificates (conf.md §7)."""

    def check(self, *lines):
        settings = case.prepare(self.temporary(), 9, case.app.new_root())
        settings.listener += block(*lines)
        path = os.path.join(settings.directory, "proxy.conf")
        text = settings.text()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = gates.command("check", "-c", path)
        place = text.split("\n").index("    tls {") + 2
        return done, done.stdout + done.stderr, place

    def test_good_ones_pass(self):
        done, output, _ = self.check(self.api.line)
        self.assertEqual(done.returncode, 0, output)

    def test_faults_name_their_place(self):
        other = self.pki.issue("other", BETA)
        ended = self.pki.issue("ended", gates.HOST, begin=-40, end=-28)
        early = self.pki.issue("early", gates.HOST, begin=3, end=9)
        weak = self.temporary()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:1024", "-nodes", "-subj", "/CN=weak",
             "-keyout", f"{weak}/weak.key", "-out", f"{weak}/weak.pem"],
            check=True, capture_output=True)
        day = (ended.certificate.not_valid_after_utc).strftime("%Y-%m-%d")
        for line, column, says in (
            (f"certificate file:{self.api.pem} file:{other.key_pem}", None,
             f"key {other.key_pem} does not belong to certificate root-api.pem"),
            (ended.line, 21, f"certificate {ended.pem} ended on {day} (28 days ago)"),
            (early.line, 21, f"certificate {early.pem} is not valid before"),
            (f"certificate file:{self.api.key_pem} file:{self.api.key_pem}", 21,
             f"certificate {self.api.key_pem} cannot be used: no BEGIN CERTIFICATE in it"),
            (f"certificate file:{weak}/weak.pem file:{weak}/weak.key", 21, "ee key too small"),
            (f"certificate file:{self.api.pem} file:/nonexistent", None, "cannot be read"),
            (f"certificate file:{self.api.pem} MIGHAgEAMBMG", None, "private key given as text"),
        ):
            done, output, place = self.check(line)
            self.assertEqual(done.returncode, 2, output)
            self.assertIn(says, output)
            column = column or 9 + len(line.rsplit(" ", 1)[0]) + 1
            self.assertIn(f"proxy.conf:{place}:{column}: error:", output)
            self.assertNotIn("MIGH", output.replace(line, ""))

    def test_authorities_of_clients(self):
        done, output, place = self.check(self.api.line, f"client_ca require file:{self.pki.pem}")
        self.assertEqual(done.returncode, 0, output)
        done, output, place = self.check(
            self.api.line, f"client_ca require file:{self.api.key_pem}")
        self.assertEqual(done.returncode, 2, output)
        self.assertIn(f"proxy.conf:{place + 1}:27: error: {self.api.key_pem} holds no authorities",
                      output)
