"""Once and only once: the same proof many times, at once, and over a crash."""

import threading

import case
import gate as gates
import wire


def at_once(count, act):
    """Runs `act(number)` in as many threads, all let go together; the results in order."""
    gate, results = threading.Barrier(count), [None] * count

    def run(number):
        gate.wait(wire.DEADLINE)
        try:
            results[number] = act(number)
        except Exception as error:  # seen by the caller
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True)
               for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


class Copies(case.SharedGate):
    def race(self, count, request):
        """Sends the same bytes `count` times at once, on connections opened before."""
        connections = [wire.Connection(self.gate.address) for _ in range(count)]
        try:
            def send(number):
                connections[number].send(request)
                return connections[number].response("POST")
            return at_once(count, send)
        finally:
            for connection in connections:
                connection.close()

    def test_one_of_a_hundred_copies_passes(self):
        phone = self.app().enrolled()
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            for body in (b"{}", bytes(100_000)):
                with self.subTest(binding=binding, size=len(body)):
                    self.service.reset()
                    proof = phone.prove("POST", path, body, phone.challenge(), binding)
                    answers = self.race(100, wire.message("POST", path, proof, body))
                    self.assertEqual([a for a in answers if isinstance(a, Exception)], [])
                    passed = [answer for answer in answers if answer.status == 200]
                    refused = [answer for answer in answers if answer.status != 200]
                    self.assertEqual(len(passed), 1)
                    for answer in refused:
                        self.check_problem(answer, "challenge_required")
                    self.assertEqual(len(self.service.requests), 1)

    def test_one_challenge_admits_one_of_many_keys(self):
        phones = [self.app().enrolled() for _ in range(20)]
        challenge = phones[0].challenge()
        requests = [
            wire.message("POST", "/v1/data/a", phone.prove("POST", "/v1/data/a", b"x", challenge),
                         b"x") for phone in phones]
        connections = [wire.Connection(self.gate.address) for _ in phones]

        def send(number):
            connections[number].send(requests[number])
            return connections[number].response("POST").status
        statuses = at_once(len(phones), send)
        for connection in connections:
            connection.close()
        self.assertEqual(sorted(statuses), [200] + [401] * 19)
        self.assertEqual(len(self.service.requests), 1)

    def test_each_counter_passes_at_most_once_and_never_after_a_greater_one(self):
        phone = self.app().enrolled()
        challenges = phone.challenges(120)
        requests = [
            wire.message("POST", "/v1/data/a", phone.prove(
                "POST", "/v1/data/a", b"x", challenge, counter=1 + number // 3), b"x")
            for number, challenge in enumerate(challenges)]
        connections = [wire.Connection(self.gate.address) for _ in requests]

        def send(number):
            connections[number].send(requests[number])
            return connections[number].response("POST").status
        statuses = at_once(len(requests), send)
        for connection in connections:
            connection.close()
        self.assertEqual(set(statuses), {200, 401})
        counters = [int(request.get("App-Attest-Counter")) for request in self.service.requests]
        self.assertEqual(len(counters), statuses.count(200))
        self.assertEqual(len(set(counters)), len(counters))
        self.assertIn(40, counters)

    def test_a_key_enrols_once_however_often_it_is_sent(self):
        phone = self.app()
        challenge = phone.challenge("attestation")
        object_ = phone.attestation(challenge)
        answers = at_once(20, lambda number: phone.enrol(challenge, object_=object_).status)
        self.assertEqual(sorted(answers, key=str), [201] + [401] * 19)


class Crashes(case.Case):
    def test_a_replay_after_a_kill_is_refused(self):
        self.run_gate()
        phone = self.app().enrolled()
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            self.service.reset()
            proof = phone.prove("POST", path, b"{}", phone.challenge(), binding)
            self.assertEqual(phone.ask("POST", path, proof, b"{}").status, 200)
            self.gate.kill()
            self.gate.start()
            self.service.reset()
            answer = phone.ask("POST", path, proof, b"{}")
            self.check_problem(answer, "challenge_required")
            self.check_nothing_upstream()

    def test_killed_under_load_again_and_again(self):
        self.run_gate()
        phones = [self.app().enrolled() for _ in range(8)]
        for number in range(5):
            self.round(phones, f"round-{number}")

    def round(self, phones, name):
        """Load until some requests came through, a kill, a restart, and every proof again."""
        self.service.reset()
        sent, ending, lock = [], threading.Event(), threading.Lock()
        proofs = {}
        for at, phone in enumerate(phones):
            proofs[at] = [
                (f"/v1/data/{name}/{at}/{n}",
                 phone.prove("POST", f"/v1/data/{name}/{at}/{n}", b"x", challenge))
                for n, challenge in enumerate(phone.challenges(48))]

        def load(at):
            with wire.Connection(self.gate.address) as connection:
                for target, proof in proofs[at]:
                    if ending.is_set():
                        return
                    with lock:
                        sent.append((target, proof))
                    try:
                        connection.ask("POST", target, proof, b"x")
                    except (OSError, wire.Closed):
                        return

        threads = [threading.Thread(target=load, args=(at,), daemon=True) for at in proofs]
        for thread in threads:
            thread.start()
        self.service.wait(60)
        self.gate.kill()
        ending.set()
        for thread in threads:
            thread.join(wire.DEADLINE)
        self.service.wait_until(lambda: not self.service.open)
        arrived = {request.target for request in self.service.requests}
        self.assertGreaterEqual(len(arrived), 60)
        self.gate.start()
        self.service.reset()
        with wire.Connection(self.gate.address) as connection:
            for target, proof in sent:
                answer = connection.ask("POST", target, proof, b"x")
                if target in arrived:
                    self.check_problem(answer, "challenge_required")
                else:
                    self.assertIn(answer.status, (200, 401), answer)
        again = [request.target for request in self.service.requests]
        self.assertEqual(set(again) & arrived, set())


class Once(case.Case):
    """A gate that is alone on its store."""

    def test_a_second_gate_on_the_same_directory_is_refused_with_the_owners_pid(self):
        self.run_gate()
        settings = self.gate.settings
        twin = gates.Gate(settings)
        ports = settings.port, settings.admin_port
        settings.port, settings.admin_port = gates.port(), gates.port()
        with self.assertRaises(AssertionError):
            twin.start()
        settings.port, settings.admin_port = ports
        self.assertIn(str(self.gate.process.pid), twin.err.text)
        self.assertNotEqual(twin.process.returncode, 0)
        self.assertEqual(self.ask("GET", "/public").status, 200)
