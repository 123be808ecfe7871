"""A gate with a stand-in of Apple's servers beside it."""

import os
import sys

import case
import gate as gates
import pki

sys.path.insert(0, os.path.join(gates.TOP, "Tests", "Peers"))
import peer_apple  # noqa: E402  the independent services

QUERY, UPDATE, VALIDATE = peer_apple.QUERY, peer_apple.UPDATE, peer_apple.VALIDATE
EXCHANGE = peer_apple.EXCHANGE


class Case(case.Case):
    """`self.apple` is the stand-in; `configure` names it in a gate's settings."""

    def setUp(self):
        self.apple_directory = self.temporary()
        self.authority = pki.Authority(self.apple_directory)
        identity = self.authority.issue("apple", "127.0.0.1")
        self.apple = peer_apple.Apple(identity.pem, identity.key_pem)
        self.addCleanup(self.apple.close)
        self.apple_key = os.path.join(self.apple_directory, "devicecheck.p8")
        with open(self.apple_key, "w", encoding="ascii") as file:
            file.write(self.apple.key_pem)

    def block(self, *lines):
        """The `apple` block; `lines` stand in it besides."""
        return [
            "apple {", f"team_id {self.apple.team_id}", f"key_id {self.apple.key_id}",
            f"key file:{self.apple_key}", f"devicecheck_url {self.apple.url}",
            f"attest_data_url {self.apple.url}", f"ca file:{self.authority.pem}", *lines, "}"]
