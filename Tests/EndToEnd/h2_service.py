"""A service that speaks HTTP/2 in clear, over PyPI's h2: requests recorded, answered by hand."""

import queue
import socket
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings


class Stream:
    """One request as it comes, and what a test answers."""

    def __init__(self, link, number, fields):
        self.link, self.number, self.fields = link, number, fields
        self.body, self.is_ended, self.reset = bytearray(), False, None
        self.trailers = None

    def get(self, name):
        values = [value for key, value in self.fields if key == name]
        assert len(values) < 2, f"{name} came {len(values)} times"
        return values[0] if values else None

    def respond(self, status=200, fields=(), end=False):
        pairs = [(":status", str(status)), *fields]
        self.link.run(lambda peer: peer.send_headers(self.number, pairs, end_stream=end))

    def send(self, data, end=False):
        """Sends as the windows allow."""
        while data or end:
            with self.link.changed:
                peer = self.link.peer
                window = peer.local_flow_control_window(self.number)
                room = min(window, peer.max_outbound_frame_size)
                if data and not room:
                    if not self.link.changed.wait(15):
                        raise TimeoutError("no window")
                    continue
            piece, data = data[:room], data[room:]
            is_last = end and not data
            self.link.run(lambda peer, p=piece, e=is_last: peer.send_data(
                self.number, p, end_stream=e))
            if is_last:
                return

    def answer(self, body=b"ok\n", status=200, fields=()):
        self.respond(status, [("content-length", str(len(body))), *fields])
        self.send(body, end=True)

    def trail(self, fields):
        self.link.run(lambda peer: peer.send_headers(self.number, fields, end_stream=True))

    def cancel(self, code):
        self.link.run(lambda peer: peer.reset_stream(self.number, code))


class Link:
    """One connection of the gate."""

    def __init__(self, service, connection):
        self.service, self.socket = service, connection
        self.changed = threading.Condition()
        self.streams = {}
        config = h2.config.H2Configuration(client_side=False, header_encoding="latin-1")
        self.peer = h2.connection.H2Connection(config)
        self.peer.local_settings = h2.settings.Settings(
            client=False, initial_values={
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: service.streams_max})
        self.is_open = True

    def run(self, action):
        with self.changed:
            action(self.peer)
            self.socket.sendall(self.peer.data_to_send())

    def serve(self):
        self.run(lambda peer: peer.initiate_connection())
        try:
            while data := self.socket.recv(1 << 16):
                with self.changed:
                    events = self.peer.receive_data(data)
                    for event in events:
                        self._take(event)
                    self.socket.sendall(self.peer.data_to_send())
                    self.changed.notify_all()
        except (OSError, h2.exceptions.ProtocolError) as error:
            self.service.faults.append(repr(error))
        finally:
            with self.changed:
                self.is_open = False
                self.changed.notify_all()
            self.socket.close()

    def _take(self, event):
        if isinstance(event, h2.events.RequestReceived):
            stream = Stream(self, event.stream_id, event.headers)
            self.streams[event.stream_id] = stream
            self.service.waiting.put(stream)
        elif isinstance(event, h2.events.DataReceived):
            self.streams[event.stream_id].body += event.data
            if self.service.consumes:
                self.peer.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.streams[event.stream_id].is_ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.streams[event.stream_id].reset = event.error_code

    def wait(self, condition, within=15):
        with self.changed:
            return self.changed.wait_for(condition, within)


class Service:
    """Listens; each request is put into `waiting`, or answered by `respond` in its own thread."""

    def __init__(self, respond=None, streams_max=100):
        self.respond, self.streams_max = respond, streams_max
        self.consumes = True
        self.waiting, self.faults, self.links = queue.Queue(), [], []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        if respond:
            threading.Thread(target=self._answer, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            link = Link(self, connection)
            self.links.append(link)
            threading.Thread(target=link.serve, daemon=True).start()

    def _answer(self):
        while True:
            stream = self.waiting.get()
            threading.Thread(target=self.respond, args=(stream,), daemon=True).start()

    def next(self, within=15):
        """The next request; its body may still be coming."""
        return self.waiting.get(timeout=within)

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for link in self.links:
            try:
                link.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
