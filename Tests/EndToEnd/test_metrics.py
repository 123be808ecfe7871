"""`/metrics` on the admin listener, read by Prometheus' own parser."""

import signal

import case
import gate as gates
import wire
from prometheus_client import parser


class Metrics:
    """What a scrape says."""

    def __init__(self, address):
        with wire.Connection(address) as connection:
            self.answer = connection.ask("GET", "/metrics", host=f"127.0.0.1:{address[1]}")
        self.families = {
            family.name: family
            for family in parser.text_string_to_metric_families(self.answer.body.decode())}
        self.samples = [s for family in self.families.values() for s in family.samples]

    def value(self, name, **labels):
        """The sum of the samples of `name` that have these labels."""
        return sum(
            sample.value for sample in self.samples
            if sample.name == f"attestgate_{name}"
            and all(sample.labels.get(key) == text for key, text in labels.items()))


class Scrape(case.Case):
    def metrics(self):
        return Metrics(self.gate.admin)

    def counted(self, name, value, **labels):
        """Whether the metric gets there: a request is counted once its answer has left."""
        return gates.poll(lambda: self.metrics().value(name, **labels) == value)

    def test_the_text_is_what_prometheus_reads_and_every_family_has_help_and_type(self):
        self.run_gate()
        self.ask("GET", "/public")
        metrics = self.metrics()
        self.assertEqual(
            metrics.answer.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
        for family in metrics.families.values():
            self.assertTrue(family.documentation, family.name)
            self.assertIn(family.type, ("counter", "gauge", "histogram"), family.name)
            self.assertTrue(family.name.startswith("attestgate_"), family.name)
        self.assertEqual(metrics.value("store_ready"), 1)
        self.assertEqual(metrics.value("build_info"), 1)
        self.assertGreater(metrics.value("store_log_bytes"), 0)

    def test_requests_are_counted_by_route_method_status_and_verdict(self):
        self.run_gate()
        phone = self.app().enrolled()
        for _ in range(3):
            self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
        self.ask("GET", "/public")
        self.ask("GET", "/closed/a")
        self.assertTrue(self.counted("requests_total", 3, verdict="verified", code="200"))
        metrics = self.metrics()
        labels = [
            s.labels for s in metrics.samples
            if s.name == "attestgate_requests_total" and s.labels["verdict"] == "verified"]
        self.assertEqual({entry["method"] for entry in labels}, {"GET"})
        self.assertEqual({entry["route"] for entry in labels}, {f"{gates.HOST} * /v1/data/*"})
        self.assertTrue(self.counted("requests_total", 1, verdict="off", code="200"))
        self.assertTrue(self.counted("requests_total", 1, verdict="none", code="404"))
        self.assertEqual(metrics.value("verify_duration_seconds_count"), 3)
        self.assertEqual(metrics.value("store_commit_duration_seconds_count"), 3)
        self.assertGreaterEqual(metrics.value("store_fsync_duration_seconds_count"), 4)
        self.assertEqual(metrics.value("keys", app="shop"), 1)
        self.assertEqual(metrics.value("spent_challenges"), 4)
        self.assertEqual(metrics.value("enrolments_total", app="shop", result="enrolled"), 1)
        self.assertGreaterEqual(
            metrics.value("challenges_issued_total", purpose="attestation"), 1)
        self.assertEqual(
            metrics.value("upstream_requests_total", upstream="service", result="ok"), 4)
        self.assertEqual(metrics.value("upstream_duration_seconds_count", upstream="service"), 4)
        self.assertGreater(metrics.value("receive_bytes_total", listener="main"), 500)
        self.assertGreater(metrics.value("transmit_bytes_total", listener="main"), 500)

    def test_refusals_carry_the_internal_reason_and_monitored_ones_are_apart(self):
        self.run_gate()
        self.ask("GET", "/v1/data/a")
        self.ask("GET", "/v1/watched/a")
        self.ask("GET", "/v1/data/a", [("App-Attest-Unsupported", "?1")])
        self.assertTrue(self.counted("refusals_total", 1, reason="proof_absent"))
        self.assertTrue(self.counted("would_refuse_total", 1, reason="proof_absent"))
        self.assertTrue(self.counted("unsupported_total", 1))
        self.assertTrue(self.counted("fallback_total", 1, result="unsupported"))

    def test_a_service_that_is_down_shows_with_its_server_and_result(self):
        closed = gates.port()

        def change(settings):
            settings.servers = [f"127.0.0.1:{closed}"]
        self.run_gate(change)
        self.assertEqual(self.ask("GET", "/public").status, 502)
        self.assertTrue(
            self.counted(
                "upstream_requests_total", 1, server=f"127.0.0.1:{closed}", result="connect"))

    def test_no_label_is_what_a_client_sends(self):
        self.run_gate()
        secret = "wanderer-7f3a"
        self.ask("GET", f"/{secret}?{secret}", [("X-Account-Id", secret)])
        self.raw(f"{secret.upper()} / HTTP/1.1\r\nHost: {secret}\r\n\r\n")
        self.ask("GET", "/public", [("User-Agent", secret)], host=secret)
        self.assertTrue(self.counted("requests_total", 1, code="421"))
        self.assertNotIn(secret, self.metrics().answer.body.decode().lower())

    def test_counters_go_on_over_a_reload_and_say_how_it_went(self):
        self.run_gate()
        self.ask("GET", "/public")
        self.assertTrue(self.counted("requests_total", 1))
        before = self.metrics()
        self.assertEqual(before.value("config_last_reload_successful"), 1)
        with open(self.gate.conf, "a", encoding="ascii") as file:
            file.write("nonsense\n")
        self.gate.signal(signal.SIGHUP)
        self.assertTrue(self.counted("config_last_reload_successful", 0))
        with open(self.gate.conf, "w", encoding="ascii") as file:
            file.write(self.gate.settings.text())
        self.gate.signal(signal.SIGHUP)
        self.assertTrue(self.counted("config_last_reload_successful", 1))
        self.ask("GET", "/public")
        self.assertTrue(self.counted("requests_total", 2))
        self.assertGreaterEqual(
            self.metrics().value("config_last_reload_success_timestamp_seconds"),
            before.value("config_last_reload_success_timestamp_seconds"))

    def test_open_connections_are_gauged(self):
        self.run_gate()
        with wire.Connection(self.gate.address), wire.Connection(self.gate.address):
            self.assertTrue(self.counted("downstream_connections", 2, listener="main"))
        self.assertTrue(self.counted("downstream_connections", 0, listener="main"))
