"""The store at its limits: no space, a lock, an epoch that stays (store.md, promises 5 and 6)."""

import os
import re
import subprocess

import cbor2

import case
import gate as gates
import wire

MIB = 1 << 20


class NoSpace(case.Case):
    """The store's file system, a small tmpfs, runs full while segments are allocated."""

    def mount(self, megabytes):
        path = self.temporary()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", path],
            capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("a tmpfs cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=False)
        return path

    def fill(self, path, leave):
        """A file that leaves so many bytes free."""
        info = os.statvfs(path)
        size = info.f_bavail * info.f_frsize - leave
        with open(os.path.join(path, "filler"), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)

    def enrol_until_refused(self, most=20000):
        """Enrols keys whose records are large until the store takes no more; the refusal."""
        extensions = cbor2.dumps({"apple_bundle_version_01": "1" * 9000})
        phone = self.app(self.device())
        with phone.connect() as connection:
            for _ in range(most):
                fresh = self.device()
                fresh.extensions = lambda: extensions
                fresh.receipt = lambda *arguments: b""
                phone.device = fresh
                answer = phone.enrol(connection=connection)
                if answer.status != 201:
                    return answer
        self.fail("the store never ran out of space")

    def test_out_of_space_and_back(self):
        volume = self.mount(48)

        def change(settings):
            settings.store = os.path.join(volume, "store")
            for path, share in (("inside", "100% by=address else=off"),
                                ("watched-part", "0% by=address else=monitor"),
                                ("open-part", "0% by=address else=off")):
                settings.routes[f"* /v1/{path}/*"] = [f"mode enforce {share}"]
            settings.routes["* /v1/unverified/*"] = ["fallback allow_unverified"]
        self.run_gate(change)
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
        self.fill(volume, 512 * 1024)
        refused = self.enrol_until_refused()
        self.check_problem(refused, "retry_later")
        self.check_reason(refused, "store_unavailable")

        self.service.reset()
        challenge = phone.challenge()
        self.check_problem(phone.send("GET", "/v1/data/a", challenge=challenge), "retry_later")
        self.check_problem(
            phone.send("POST", "/v1/signed/a", b"x", binding="request"), "retry_later")
        unsupported = [("App-Attest-Unsupported", "?1")]
        self.check_problem(self.ask("GET", "/v1/unverified/a", unsupported), "retry_later")
        self.check_problem(phone.send("GET", "/v1/inside/a"), "retry_later")
        self.check_nothing_upstream()
        self.assertEqual(self.ask("GET", "/public").status, 200)
        for count, (path, verdict) in enumerate(
                {"watched": "monitored", "watched-part": "monitored", "open-part": "off"}.items()):
            answer = phone.send("POST", f"/v1/{path}/a", b"x")
            self.assertEqual(answer.status, 200)
            self.assertEqual(
                self.service.wait(count + 2)[-1].get("App-Attest-Verdict"), verdict)
        self.assertEqual(self.gate.readyz(), 503)
        with wire.Connection(self.gate.admin) as connection:
            host = f"127.0.0.1:{self.gate.settings.admin_port}"
            self.assertEqual(connection.ask("GET", "/healthz", host=host).status, 200)

        os.unlink(os.path.join(volume, "filler"))
        self.assertTrue(gates.poll(lambda: self.gate.readyz() == 200))
        self.service.reset()
        proof = phone.prove("POST", "/v1/data/b", b"x", phone.challenge())
        self.assertEqual(phone.ask("POST", "/v1/data/b", proof, b"x").status, 200)
        self.gate.kill()
        self.gate.start()
        self.check_problem(phone.ask("POST", "/v1/data/b", proof, b"x"), "challenge_required")
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)


class Spool(case.Case):
    def test_a_full_spool_is_retry_later(self):
        def change(settings):
            settings.spool_lines = ["max 1m files=4"]
            settings.routes["* /v1/data/*"] = ["body max=4m memory=4k"]
        self.run_gate(change)
        phone = self.app().enrolled()
        answer = phone.send("POST", "/v1/data/a", bytes(2 * MIB))
        self.check_problem(answer, "retry_later")
        self.check_reason(answer, "spool_full")
        self.check_nothing_upstream()
        self.assertEqual(phone.send("POST", "/v1/data/a", bytes(900_000)).status, 200)
        self.assertEqual(self.ask("POST", "/public", body=bytes(2 * MIB)).status, 200)

    def test_the_spool_is_empty_to_the_eye_and_freed(self):
        def change(settings):
            settings.spool_lines = ["max 1m files=1"]
            settings.routes["* /v1/data/*"] = ["body max=1m memory=4k"]
        self.run_gate(change)
        phone = self.app().enrolled()
        for _ in range(5):
            self.assertEqual(phone.send("POST", "/v1/data/a", bytes(900_000)).status, 200)
            self.assertEqual(os.listdir(self.gate.settings.spool), [])
        proof = phone.prove("POST", "/v1/data/a", bytes(900_000), phone.challenge())
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("POST", "/v1/data/a", proof, bytes(900_000))[:-10])
            held = f"/proc/{self.gate.process.pid}/fd"

            def is_held():
                names = [gates.link(os.path.join(held, name)) for name in os.listdir(held)]
                return any(name.startswith(self.gate.settings.spool)
                           and name.endswith(" (deleted)") for name in names)
            self.assertTrue(gates.poll(is_held))
            self.assertEqual(os.listdir(self.gate.settings.spool), [])
        self.assertTrue(gates.poll(
            lambda: phone.send("POST", "/v1/data/a", bytes(900_000)).status == 200))

    def test_a_directory_that_others_may_write_to_is_named(self):
        def change(settings):
            for path in (settings.store, settings.spool):
                os.mkdir(path)
                os.chmod(path, 0o777)
        self.run_gate(change)
        for name, path in (("store", self.gate.settings.store),
                           ("spool", self.gate.settings.spool)):
            self.assertIsNotNone(self.gate.err.wait(
                lambda line, words=f"{name}: .* may write to {path}": re.search(words, line)))
        self.run_gate()
        self.assertNotIn("may write", self.gate.err.text)

    def test_directories_are_private(self):
        self.run_gate()
        for path in (self.gate.settings.store, self.gate.settings.spool):
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o700, path)
        for root, _, names in os.walk(self.gate.settings.store):
            for name in names:
                mode = os.stat(os.path.join(root, name)).st_mode & 0o077
                self.assertEqual(mode, 0, name)


class Capacity(case.Case):
    def test_max_keys(self):
        self.run_gate(lambda settings: settings.store_lines.append("max_keys 3"))
        phones = [self.app() for _ in range(4)]
        self.assertEqual([phone.enrol().status for phone in phones[:3]], [201] * 3)
        self.check_problem(phones[3].enrol(), "retry_later")
        self.assertEqual(phones[0].send("GET", "/v1/data/a").status, 200)
