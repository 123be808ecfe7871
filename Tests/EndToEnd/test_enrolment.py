"""The enrolment endpoints (protocol.md §1 and §2), account none."""

import base64
import json

import app
import case


class Challenges(case.SharedGate):
    def test_one_challenge_has_id_bytes_and_lifetime(self):
        answer = self.app().call("challenges", {"purpose": "request"})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.get("Content-Type"), "application/json")
        self.assertEqual(answer.get("Cache-Control"), "no-store")
        members = answer.json
        self.assertEqual(set(members), {"id", "bytes", "expiresIn"})
        self.assertRegex(members["id"], r"^[A-Za-z0-9_-]{1,64}$")
        self.assertRegex(members["bytes"], case.BASE64)
        self.assertEqual(len(base64.b64decode(members["bytes"])), 32)
        self.assertIn(members["expiresIn"], range(295, 301))
        self.check_nothing_upstream()

    def test_an_attestation_challenge_lives_a_day(self):
        answer = self.app().call("challenges", {"purpose": "attestation"})
        self.assertIn(answer.json["expiresIn"], range(86395, 86401))

    def test_count_gives_a_list_of_distinct_challenges(self):
        for count in (1, 2, 16):
            answer = self.app().call("challenges", {"purpose": "export", "count": count})
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(set(answer.json), {"challenges"})
            found = answer.json["challenges"]
            self.assertEqual(len(found), count)
            self.assertEqual(len({entry["id"] for entry in found}), count)
            self.assertEqual(len({entry["bytes"] for entry in found}), count)
            for entry in found:
                self.assertEqual(set(entry), {"id", "bytes", "expiresIn"})

    def test_good_purposes_are_the_reserved_ones_and_those_of_routes(self):
        for purpose in ("attestation", "revoke", "request", "export"):
            answer = self.app().call("challenges", {"purpose": purpose})
            self.assertEqual(answer.status, 200, (purpose, answer))
        for purpose in ("unknown", "", "EXPORT", "export ", "a" * 33, "ex\u00e9"):
            answer = self.app().call("challenges", {"purpose": purpose})
            self.check_problem(answer, "bad_request")

    def test_malformed_bodies_are_bad_requests(self):
        for body in MALFORMED_JSON + [
            b"{}", b'{"purpose":1}', b'{"purpose":null}', b'{"purpose":["request"]}',
            b'{"purpose":"request","purpose":"request"}',
            b'{"purpose":"request","\\u0070urpose":"request"}',
            b'{"purpose":"request","count":0}', b'{"purpose":"request","count":17}',
            b'{"purpose":"request","count":-1}', b'{"purpose":"request","count":"2"}',
            b'{"purpose":"request","count":1.5}', b'{"purpose":"request","count":true}',
            b'{"purpose":"request","count":99999999999999999999}',
            b'{"purpose":"request","other":{"a":1,"a":2}}',
        ]:
            with self.subTest(body=body[:60]):
                self.check_problem(self.app().call("challenges", body), "bad_request")

    def test_every_cut_of_a_good_body_is_a_bad_request(self):
        body = b'{"purpose": "request", "count": 2, "x": [1, {"y": "\\u00e9"}]}'
        phone = self.app()
        for size in range(len(body)):
            self.check_problem(phone.call("challenges", body[:size]), "bad_request")
        self.assertEqual(phone.call("challenges", body).status, 200)

    def test_other_members_are_ignored(self):
        body = b' {"z": [[[]]], "purpose" : "re\\u0071uest", "account": "me", "n": -1.5e+3} \r\n'
        self.assertEqual(self.app().call("challenges", body).status, 200)

    def test_a_body_over_64_kib_is_too_large(self):
        padding = b" " * (64 * 1024 - len(b'{"purpose":"request"}'))
        exact = b'{"purpose":"request"}' + padding
        self.assertEqual(self.app().call("challenges", exact).status, 200)
        self.check_problem(self.app().call("challenges", exact + b" "), "too_large", 413)
        answer = self.ask("POST", "/v1/app-attest/challenges", body=exact + b" ", chunked=True)
        self.check_problem(answer, "too_large", 413)

    def test_a_chunked_body_is_read(self):
        answer = self.ask(
            "POST", "/v1/app-attest/challenges", body=b'{"purpose":"request"}', chunked=True)
        self.assertEqual(answer.status, 200, answer)

    def test_other_methods_are_not_allowed_and_other_paths_not_found(self):
        for call in ("challenges", "keys", "keys/status", "keys/revoke", "verify"):
            for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
                answer = self.ask(method, f"/v1/app-attest/{call}")
                self.assertEqual(answer.status, 405, (method, call, answer))
                self.assertEqual(answer.get("Allow"), "POST", (method, call))
        answer = self.ask("POST", "/v1/app-attest/challenge", body=b"")
        self.check_problem(answer, "method_not_allowed")
        for path in ("/nothing", "/keys/other", "/keys/status/x", "/challengesx"):
            answer = self.ask("POST", "/v1/app-attest" + path, body=b"{}")
            self.check_problem(answer, "not_found")
        self.check_nothing_upstream()

    def test_endpoints_match_wide(self):
        for path in ("/V1/App-Attest/Challenges", "/v1/app-attest/challenges/",
                     "/v1/app-attest/%63hallenges", "/v1/app-attest/challenges."):
            answer = self.ask("POST", path, body=b'{"purpose":"request"}')
            self.assertEqual(answer.status, 200, (path, answer))
        self.check_nothing_upstream()

    def test_a_challenge_by_value_is_plain_text(self):
        for query, length in (("", 1), ("?purpose=attestation", 1), ("?purpose=export", 1)):
            answer = self.ask("GET", "/v1/app-attest/challenge" + query)
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(answer.get("Content-Type"), "application/octet-stream")
            self.assertEqual(answer.get("Cache-Control"), "no-store")
            self.assertRegex(
                answer.body.decode("ascii"), r"^[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{43}$")
            self.assertLessEqual(len(answer.body), 112)
        self.check_problem(
            self.ask("GET", "/v1/app-attest/challenge?purpose=nothing"), "bad_request")


MALFORMED_JSON = [
    b"", b" ", b"null", b"[]", b'"purpose"', b"1", b"{", b"}", b'{"purpose"}', b"{'purpose':'x'}",
    b'\xef\xbb\xbf{"purpose":"request"}', b'{"purpose":"request"}x', b'{"purpose":"request"}{}',
    b'{"purpose":"request",}', b'{"purpose":"request" "count":1}', b'{"purpose":"\xff"}',
    b'{"purpose":"\xc0\xaf"}', b'{"purpose":"\xed\xa0\x80"}', b'{"purpose":"a\nb"}',
    b'{"purpose":"\\x"}', b'{"purpose":"\\u12"}', b'{"purpose":"\\ud800"}',
    b'{"purpose":"request","n":01}', b'{"purpose":"request","n":1.}',
    b'{"purpose":"request","n":.5}', b'{"purpose":"request","n":+1}',
    b'{"purpose":"request","n":NaN}', b'{"purpose":"request","n":tru}',
    b'{"purpose":"request","n":' + b"[" * 17 + b"]" * 17 + b"}",
    b'{"purpose":"request"}\x00', b'//\n{"purpose":"request"}', b'{"purpose":"request"/**/}',
]


class Keys(case.SharedGate):
    def test_every_shape_enrols(self):
        for shape in app.SHAPES:
            with self.subTest(shape=shape):
                phone = self.app(self.device(shape))
                answer = phone.enrol()
                self.assertEqual(answer.status, 201, answer)
                self.assertEqual(answer.json, {"registered": True})
                self.assertEqual(answer.get("Cache-Control"), "no-store")
                status = phone.call("keys/status", {"keyID": phone.key_id})
                self.assertEqual((status.status, status.json), (200, {"registered": True}))
        self.check_nothing_upstream()

    def test_base64url_without_padding_is_read_as_well(self):
        phone = self.app()
        challenge = phone.challenge("attestation")
        answer = phone.call("keys", {
            "keyID": app.unpadded(phone.device.key_id), "challengeID": challenge.id,
            "object": app.unpadded(phone.attestation(challenge))})
        self.assertEqual(answer.status, 201, answer)
        status = phone.call("keys/status", {"keyID": app.unpadded(phone.device.key_id)})
        self.assertEqual(status.json, {"registered": True})

    def test_an_unknown_key_is_not_registered(self):
        phone = self.app()
        answer = phone.call("keys/status", {"keyID": phone.key_id})
        self.assertEqual((answer.status, answer.json), (200, {"registered": False}))

    def test_a_known_key_again_is_200_and_keeps_its_counter(self):
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/v1/data/a", counter=40).status, 200)
        challenge = phone.challenge("attestation")
        answer = phone.enrol(challenge)
        self.assertEqual((answer.status, answer.json), (200, {"registered": True}), answer)
        self.check_problem(phone.enrol(challenge), "challenge_required")
        self.check_problem(phone.send("GET", "/v1/data/a", counter=40), "challenge_required")
        self.assertEqual(phone.send("GET", "/v1/data/a", counter=41).status, 200)

    def test_a_challenge_enrols_once(self):
        phone, other = self.app(), self.app()
        challenge = phone.challenge("attestation")
        self.assertEqual(phone.enrol(challenge).status, 201)
        self.check_reason(other.enrol(challenge), "challenge_spent")
        self.check_problem(other.enrol(challenge), "challenge_required")

    def test_a_refused_attestation_spends_nothing(self):
        phone = self.app()
        challenge = phone.challenge("attestation")
        wrong = phone.attestation(phone.challenge("attestation"))
        answer = phone.enrol(challenge, object_=wrong)
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "nonce_mismatch")
        self.assertEqual(phone.enrol(challenge).status, 201)

    def test_what_does_not_verify_is_rejected_with_its_reason(self):
        faults = {
            "rp_id_mismatch": app.App(
                self.gate.address, app.new_device(self.root, app_id="ABCDE12345.com.other")),
            "aaguid_mismatch": app.App(
                self.gate.address, app.new_device(self.root, environment="development")),
            "certificate_chain": app.App(self.gate.address, app.new_device(app.new_root())),
        }
        for reason, phone in faults.items():
            with self.subTest(reason=reason):
                answer = phone.enrol()
                self.check_problem(answer, "rejected")
                self.check_reason(answer, reason)
                self.assertNotIn(reason, answer.body.decode())
        phone = self.app()
        challenge = phone.challenge("attestation")
        old = phone.device.attest(app.sha256(challenge.bytes), at=1_700_000_000)
        answer = phone.enrol(challenge, object_=old)
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "certificate_expired")

    def test_another_key_id_than_the_attested_one_is_rejected(self):
        phone, other = self.app(), self.app()
        challenge = phone.challenge("attestation")
        answer = phone.call("keys", {
            "keyID": other.key_id, "challengeID": challenge.id,
            "object": app.b64(phone.attestation(challenge))})
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "key_id_mismatch")

    def test_malformed_calls_are_bad_requests(self):
        phone = self.app()
        challenge = phone.challenge("attestation")
        good = {"keyID": phone.key_id, "challengeID": challenge.id,
                "object": app.b64(phone.attestation(challenge))}
        for call, members in (("keys", good), ("keys/status", {"keyID": phone.key_id})):
            for body in MALFORMED_JSON:
                with self.subTest(call=call, body=body[:40]):
                    self.check_problem(phone.call(call, body), "bad_request")
            for name in members:
                for value in (None, 1, True, [], {}, [good[name]]):
                    with self.subTest(call=call, name=name, value=value):
                        answer = phone.call(call, {**members, name: value})
                        self.check_problem(answer, "bad_request")
                without = {key: value for key, value in members.items() if key != name}
                self.check_problem(phone.call(call, without), "bad_request")
                twice = json.dumps(members)[:-1] + f', "{name}": "{members[name]}"}}'
                self.check_problem(phone.call(call, twice.encode()), "bad_request")
        for name in ("keyID", "object"):
            text = good[name]
            for wrong in ("", "=", text + "=", " " + text, text + "\n", text[:-5] + "*" + text[-4:],
                          "\u00e9" + text, "A" * (len(text) - 3) + "=A=="):
                with self.subTest(name=name, wrong=wrong[:20]):
                    answer = phone.call("keys", {**good, name: wrong})
                    self.check_problem(answer, "bad_request")
        for size in (0, 16, 31, 33, 64):
            answer = phone.call("keys", {**good, "keyID": app.b64(bytes(size))})
            self.check_problem(answer, "bad_request")
        self.assertEqual(phone.call("keys", good).status, 201)

    def test_a_challenge_that_is_not_good_is_required_anew(self):
        phone = self.app()
        good = phone.challenge("attestation")
        object_ = app.b64(phone.attestation(good))
        other = phone.challenge("request")
        for text in ("x", "-" * 64, "A" * 64, "A" * 65, good.id[:-1], good.id + "A", other.id,
                     good.id.swapcase(), "!" + good.id[1:], good.by_value + "A"):
            with self.subTest(text=text):
                answer = phone.call(
                    "keys", {"keyID": phone.key_id, "challengeID": text, "object": object_})
                self.check_problem(answer, "challenge_required")
        for at in range(len(good.id)):
            text = good.id[:at] + ("A" if good.id[at] != "A" else "B") + good.id[at + 1 :]
            answer = phone.call(
                "keys", {"keyID": phone.key_id, "challengeID": text, "object": object_})
            self.check_problem(answer, "challenge_required")

    def test_every_cut_of_an_attestation_object_is_refused(self):
        phone = self.app()
        challenge = phone.challenge("attestation")
        object_ = phone.attestation(challenge)
        with phone.connect() as connection:
            for size in [*range(1, 64), *range(64, len(object_), 37), len(object_) - 1]:
                answer = phone.enrol(challenge, connection, object_[:size])
                self.check_problem(answer, "rejected")
            self.check_problem(phone.enrol(challenge, connection, object_ + b"\0"), "rejected")
            self.assertEqual(phone.enrol(challenge, connection, object_).status, 201)

    def test_flipped_bytes_of_an_attestation_object_never_enrol(self):
        phone = self.app()
        challenge = phone.challenge("attestation")
        object_ = phone.attestation(challenge)
        data = object_.index(b"authData")
        receipt = object_.index(b"receipt")
        with phone.connect() as connection:
            # The receipt is not judged here; all else is.
            for at in [*range(0, receipt, 23), *range(data, len(object_), 3)]:
                changed = bytearray(object_)
                changed[at] ^= 0x01
                answer = phone.enrol(challenge, connection, bytes(changed))
                self.check_problem(answer, "rejected")

    def test_a_challenge_by_value_enrols_through_verify(self):
        for name in ("key_id", "keyId"):
            for encode in (lambda text: text.decode(), app.b64, app.unpadded):
                with self.subTest(name=name, encode=encode):
                    phone = self.app()
                    text = phone.ask("GET", "/v1/app-attest/challenge").body
                    object_ = phone.device.attest(app.sha256(text))
                    members = {name: phone.key_id, "challenge": encode(text),
                               "attestation": app.b64(object_)}
                    answer = phone.call("verify", members)
                    self.assertEqual((answer.status, answer.json), (200, {"registered": True}))
                    self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
                    self.check_problem(
                        self.app().call("verify", members), "challenge_required")

    def test_verify_refuses_what_keys_refuses(self):
        phone = self.app()
        text = phone.ask("GET", "/v1/app-attest/challenge").body
        good = {"key_id": phone.key_id, "challenge": text.decode(),
                "attestation": app.b64(phone.device.attest(app.sha256(text)))}
        for body in MALFORMED_JSON:
            self.check_problem(phone.call("verify", body), "bad_request")
        for name in good:
            without = {key: value for key, value in good.items() if key != name}
            self.check_problem(phone.call("verify", without), "bad_request")
            self.check_problem(phone.call("verify", {**good, name: 7}), "bad_request")
        unhashed = app.b64(phone.device.attest(text))
        self.check_problem(phone.call("verify", {**good, "attestation": unhashed}), "rejected")
        other = phone.ask("GET", "/v1/app-attest/challenge?purpose=request").body.decode()
        self.check_problem(
            phone.call("verify", {**good, "challenge": other}), "challenge_required")
        self.assertEqual(phone.call("verify", good).status, 200)


class Revocation(case.SharedGate):
    """`keys/revoke` under `account none`: with a proof by the key itself."""

    def revoke(self, phone, key_id=None, signer=None, challenge=None, target=None):
        signer = signer or phone
        body = json.dumps({"keyID": key_id or phone.key_id}).encode()
        target = target or f"{phone.prefix}/keys/revoke"
        challenge = challenge or phone.challenge("revoke")
        proof = signer.prove("POST", target, body, challenge, "request")
        return phone.ask("POST", target, proof, body)

    def test_a_revoked_key_is_gone_for_good(self):
        phone = self.app().enrolled()
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
        answer = self.revoke(phone)
        self.assertEqual((answer.status, answer.body), (204, b""), answer)
        self.check_problem(phone.send("GET", "/v1/data/a"), "enrollment_required")
        status = phone.call("keys/status", {"keyID": phone.key_id})
        self.assertEqual(status.json, {"registered": False})
        self.check_problem(phone.enrol(), "rejected")
        self.assertEqual(self.revoke(phone).status, 204)

    def test_without_proof_one_is_required(self):
        phone = self.app().enrolled()
        answer = phone.call("keys/revoke", {"keyID": phone.key_id})
        self.check_problem(answer, "proof_required")
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)

    def test_an_unknown_key_with_a_good_challenge_has_nothing_to_revoke(self):
        self.assertEqual(self.revoke(self.app()).status, 204)

    def test_another_key_than_the_one_named_is_rejected(self):
        phone, other = self.app().enrolled(), self.app().enrolled()
        self.check_problem(self.revoke(phone, other.key_id), "rejected")
        self.assertEqual(other.send("GET", "/v1/data/a").status, 200)

    def test_a_challenge_of_another_purpose_or_a_spent_one_is_not_good(self):
        phone = self.app().enrolled()
        answer = self.revoke(phone, challenge=phone.challenge("request"))
        self.check_problem(answer, "challenge_required")
        fresh = self.check_next_challenge(answer)
        self.assertEqual(self.revoke(phone, challenge=fresh).status, 204)
        self.check_problem(self.revoke(phone, challenge=fresh), "challenge_required")

    def test_a_proof_of_another_body_revokes_nothing(self):
        phone = self.app().enrolled()
        challenge = phone.challenge("revoke")
        target = f"{phone.prefix}/keys/revoke"
        proof = phone.prove("POST", target, b"{}", challenge, "request")
        body = json.dumps({"keyID": phone.key_id}).encode()
        self.check_problem(phone.ask("POST", target, proof, body), "rejected")
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)


class Hashes(case.SharedGate):
    """An app that hashes the base64 text of the challenge (`challenge_hash text`)."""

    @classmethod
    def configure(cls, settings):
        settings.app.append("challenge_hash text")

    def test_the_text_of_the_bytes_is_what_was_hashed(self):
        phone = self.app()
        challenge = phone.challenge("attestation")
        wrong = phone.device.attest(app.sha256(challenge.bytes))
        self.check_problem(phone.enrol(challenge, object_=wrong), "rejected")
        right = phone.device.attest(app.sha256(app.b64(challenge.bytes).encode()))
        self.assertEqual(phone.enrol(challenge, object_=right).status, 201)


class SeveralApps(case.SharedGate):
    """An app block that holds two App IDs."""

    @classmethod
    def configure(cls, settings):
        settings.app_ids.append("ABCDE12345.com.example.shop.beta")

    def test_each_app_id_enrols_and_signs(self):
        for app_id in self.gate.settings.app_ids:
            phone = self.app(app.new_device(self.root, app_id=app_id)).enrolled()
            self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)

    def test_an_assertion_of_the_other_app_id_is_rejected(self):
        device = self.device()
        phone = self.app(device).enrolled()
        device.app_id = self.gate.settings.app_ids[1]
        answer = phone.send("GET", "/v1/data/a")
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "rp_id_mismatch")


class Persistence(case.Case):
    def test_keys_counters_and_revocations_survive_a_kill(self):
        self.run_gate()
        phone, gone = self.app().enrolled(), self.app().enrolled()
        self.assertEqual(phone.send("GET", "/v1/data/a", counter=7).status, 200)
        self.assertEqual(
            Revocation.revoke(self, gone).status, 204)
        self.gate.kill()
        self.gate.start()
        self.check_problem(phone.send("GET", "/v1/data/a", counter=7), "challenge_required")
        self.assertEqual(phone.send("GET", "/v1/data/a", counter=8).status, 200)
        self.check_problem(gone.send("GET", "/v1/data/a"), "enrollment_required")

    def test_challenges_stay_good_over_a_restart(self):
        self.run_gate()
        phone = self.app().enrolled()
        challenge = phone.challenge()
        self.assertEqual(self.gate.stop(), 0)
        self.gate.start()
        self.assertEqual(phone.send("GET", "/v1/data/a", challenge=challenge).status, 200)

    def test_an_object_that_was_acknowledged_survives_at_once(self):
        self.run_gate()
        phone = self.app()
        answer = phone.enrol()
        self.gate.kill()
        self.assertEqual(answer.status, 201)
        self.gate.start()
        status = phone.call("keys/status", {"keyID": phone.key_id})
        self.assertEqual(status.json, {"registered": True})
