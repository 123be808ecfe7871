"""Each check at its own place: cheap before dear, and none that only a later one would catch."""

import itertools

import app
import case
import gate as gates
import test_enrolment
import wire


class Order(case.Case):
    def test_an_account_field_is_read_before_the_proof(self):
        def change(settings):
            settings.account = "header X-Account-Id"
            settings.listener.append("trusted_proxies 127.0.0.0/8")
        self.run_gate(change)
        self.check_problem(self.ask("GET", "/v1/data/a"), "account_required")
        self.check_problem(
            self.ask("GET", "/v1/data/a", [("X-Account-Id", "alice")]), "proof_required")

    def test_a_revoked_key_is_told_before_its_signature_is_looked_at(self):
        self.run_gate()
        phone = self.app().enrolled()
        answer = test_enrolment.Revocation.revoke(self, phone)
        self.assertEqual(answer.status, 204, answer)
        challenge = phone.challenge()
        proof = phone.prove("GET", "/v1/data/a", None, challenge)
        # The signature is over another challenge: it would be rejected if it were verified.
        other = phone.prove("GET", "/v1/data/a", None, phone.challenge())
        mixed = [other[1] if name == "App-Attest-Assertion" else (name, value)
                 for name, value in proof]
        answer = phone.ask("GET", "/v1/data/a", mixed)
        self.check_problem(answer, "enrollment_required")
        self.check_reason(answer, "key_revoked")

    def test_a_key_of_the_other_environment_is_no_key_here(self):
        self.run_gate()
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
        self.assertEqual(self.gate.stop(), 0)
        self.gate.settings.app = ["environment development"]
        self.gate.start()
        answer = phone.send("GET", "/v1/data/a")
        self.check_problem(answer, "enrollment_required")
        self.check_reason(answer, "key_foreign")
        status = phone.call("keys/status", {"keyID": phone.key_id})
        self.assertEqual(status.json, {"registered": False})

    def test_early_data_is_refused_on_protected_routes_alone(self):
        self.run_gate()
        early = [("Early-Data", "1")]
        answer = self.ask("GET", "/v1/data/a", early)
        self.check_problem(answer, "too_early", 425)
        self.check_nothing_upstream()
        self.assertEqual(self.ask("GET", "/public", early).status, 200)
        watched = self.ask("GET", "/v1/watched/a", early)
        self.assertEqual(watched.status, 200)

    def test_a_declared_length_over_the_limit_is_refused_before_a_byte_of_it(self):
        self.run_gate()
        phone = self.app().enrolled()
        proof = phone.prove("POST", "/v1/data/a", None, phone.challenge())
        with wire.Connection(self.gate.address) as connection:
            head = wire.message("POST", "/v1/data/a", proof).decode("latin-1")
            head = "\r\n".join(
                line for line in head.split("\r\n")
                if not line.lower().startswith("content-length"))
            connection.send(
                head.replace("\r\n\r\n", "\r\nContent-Length: 1048577\r\n\r\n").encode())
            answer = connection.response()
            self.check_problem(answer, "too_large", 413)
        self.check_nothing_upstream()


# The checks of a proof in the order of protocol.md §4: the fault, the reason, the code.
FAULTS = {
    "fields": ("proof_malformed", "bad_request"),
    "length": ("too_large", "too_large"),
    "challenge": ("challenge_unknown", "challenge_required"),
    "key": ("key_unknown", "enrollment_required"),
    "rp id": ("rp_id_mismatch", "rejected"),
    "counter": ("counter_not_greater", "challenge_required"),
    "method": ("method_mismatch", "rejected"),
    "target": ("target_mismatch", "rejected"),
    "signature": ("signature_invalid", "rejected"),
    "body": ("body_mismatch", "rejected"),
}


class TwoFaults(case.SharedGate):
    """A request with two faults is answered for the earlier one."""

    def request(self, phone, faults, binding):
        """The answer to a request that has these faults and no other."""
        signer = self.device() if "signature" in faults else phone.device
        signer.app_id = "ABCDE12345.com.example.other" if "rp id" in faults else gates.APP_ID
        target = {"client_data": "/v1/data/a", "request": "/v1/signed/a"}[binding]
        body = bytes((1 << 20) + 1) if "length" in faults else b"good"
        self.counter += 1
        by = app.App(self.gate.address, signer)
        challenge = phone.challenge("export" if "challenge" in faults else "request")
        signed = ("PUT" if "method" in faults else "POST",
                  target + "?" if "target" in faults else target)
        proof = dict(by.prove(*signed, body, challenge, binding,
                              counter=1 if "counter" in faults else self.counter))
        stranger = self.app()
        proof["App-Attest-Key-Id"] = (stranger if "key" in faults else phone).key_id
        if "fields" in faults:
            proof["App-Attest-Assertion"] += "*"
        phone.device.app_id = gates.APP_ID
        sent = b"evil" + body[4:] if "body" in faults else body
        return phone.ask("POST", target, list(proof.items()), sent)

    def check(self, binding, faults):
        phone, self.counter = self.app().enrolled(), 10
        self.assertEqual(self.request(phone, (), binding).status, 200)
        self.service.reset()
        for earlier, later in itertools.combinations(faults, 2):
            with self.subTest(binding=binding, earlier=earlier, later=later):
                answer = self.request(phone, (earlier, later), binding)
                reason, code = FAULTS[earlier]
                self.check_problem(answer, code)
                self.check_reason(answer, reason)
        self.check_nothing_upstream()
        self.assertEqual(self.request(phone, (), binding).status, 200)

    def test_client_data(self):
        self.check("client_data", list(FAULTS))

    def test_request(self):
        # Method, target and body are in what is signed: one fault, that of the signature.
        self.check("request", [name for name in FAULTS
                               if name not in ("method", "target", "body")])


class Rates(case.Case):
    def test_failed_signatures_have_a_budget_and_good_ones_none(self):
        self.run_gate(lambda settings: settings.rates.update(
            failed_signatures="per_address=3/1m"))
        phone, other = self.app().enrolled(), self.app().enrolled()
        for _ in range(5):
            self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)

        def forged():
            challenge = phone.challenge()
            proof = phone.prove("GET", "/v1/data/a", None, challenge)
            wrong = other.prove("GET", "/v1/data/a", None, challenge,
                                counter=phone.device.counter)
            return phone.ask("GET", "/v1/data/a", [
                wrong[1] if name == "App-Attest-Assertion" else (name, value)
                for name, value in proof])
        for _ in range(3):
            answer = forged()
            self.check_problem(answer, "rejected")
            self.check_reason(answer, "signature_invalid")
        answer = forged()
        self.check_problem(answer, "rate_limited", 429)
        self.assertGreaterEqual(int(answer.get("Retry-After")), 1)
        self.check_reason(answer, "rate_limited")
        # The budget is the address's: a good signature from it waits as well.
        self.check_problem(phone.send("GET", "/v1/data/a"), "rate_limited")
        self.assertEqual(self.ask("GET", "/public").status, 200)

    def test_challenges_and_attestations_have_theirs(self):
        self.run_gate(lambda settings: settings.rates.update(
            challenges="per_address=20/1m", attestations="per_address=2/1h"))
        phone = self.app()
        self.assertEqual(phone.enrol().status, 201)
        self.assertEqual(self.app().enrol().status, 201)
        answer = self.app().enrol()
        self.check_problem(answer, "rate_limited", 429)
        ask = phone.call("challenges", {"purpose": "request", "count": 16})
        self.assertEqual(ask.status, 200)
        answer = phone.call("challenges", {"purpose": "request", "count": 16})
        self.check_problem(answer, "rate_limited", 429)
        self.assertGreaterEqual(int(answer.get("Retry-After")), 1)

    def test_accounts_have_budgets_of_their_own(self):
        def change(settings):
            settings.account = "header X-Account-Id"
            settings.listener.append("trusted_proxies 127.0.0.0/8")
            settings.rates["challenges"] = "per_account=2/1m"
        self.run_gate(change)
        alice, bob = self.app(account="alice"), self.app(account="bob")
        for _ in range(2):
            self.assertEqual(alice.call("challenges", {"purpose": "request"}).status, 200)
        self.check_problem(
            alice.call("challenges", {"purpose": "request"}), "rate_limited", 429)
        self.assertEqual(bob.call("challenges", {"purpose": "request"}).status, 200)
