"""A client over TLS: Python's ssl, below the raw client of `wire`."""

import ssl
import subprocess

import app
import gate as gates
import wire


def context(authority, identity=None, alpn=("http/1.1",), newest=None, oldest=None):
    """A client's context that trusts `authority` and shows `identity`."""
    made = ssl.create_default_context(cafile=authority.pem)
    if identity:
        made.load_cert_chain(identity.pem, identity.key_pem)
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if newest:
        made.maximum_version = newest
    if oldest:
        made.minimum_version = oldest
    return made


class Connection(wire.Connection):
    """A connection that is encrypted from its first byte on."""

    def __init__(self, address, tls, name=gates.HOST, session=None, **options):
        self.tls, self.name, self.session = tls, name, session
        super().__init__(address, **options)

    def _open(self):
        super()._open()
        # A cut stream is an error here: the gate ends what it closes.
        self.socket = self.tls.wrap_socket(
            self.socket, server_hostname=self.name, session=self.session,
            suppress_ragged_eofs=False)

    def more(self):
        try:
            super().more()
        except ssl.SSLError as error:
            raise wire.Closed(str(error)) from error


class App(app.App):
    """The app on the phone, over TLS."""

    def __init__(self, address, device, tls, **options):
        super().__init__(address, device, **options)
        self.tls = tls

    def connect(self):
        return Connection(self.address, self.tls, self.host, source=self.source)


def s_client(address, *arguments, text=b"", within=wire.DEADLINE):
    """What `openssl s_client` says; `text` is typed to it, and then its input ends."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"{address[0]}:{address[1]}", *arguments],
        input=text, capture_output=True, timeout=within, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")
