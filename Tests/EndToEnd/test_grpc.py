"""gRPC through the gate, HTTP/2 on both sides: grpcio before it and behind it."""

import concurrent.futures
import threading

import grpc

import case
import gate as gates

SERVICE = "test.Echo"
MESSAGE_MAX = 8 << 20


class Handlers:
    """Methods over plain bytes."""

    def __init__(self):
        self.seen = threading.Event()
        self.cancelled = threading.Event()

    def unary(self, request, context):
        fields = {key: value for key, value in context.invocation_metadata()}
        context.set_trailing_metadata([
            ("verdict", fields.get("app-attest-verdict", "")), ("bin-bin", b"\x00\xff")])
        return request[::-1]

    def server_stream(self, request, context):
        for number in range(int(request)):
            yield b"%d" % number

    def client_stream(self, requests, context):
        return b"%d" % sum(len(request) for request in requests)

    def both(self, requests, context):
        for request in requests:
            yield request.upper()

    def fails(self, request, context):
        context.set_trailing_metadata([("field-bin", b"quantity\x00")])
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "quantity: 100% too much, größer")

    def fails_late(self, request, context):
        yield b"first"
        context.abort(grpc.StatusCode.DATA_LOSS, "the rest is gone")

    def waits(self, request, context):
        context.add_callback(self.cancelled.set)
        self.seen.set()
        self.cancelled.wait(15)
        return b""

    def table(self):
        return grpc.method_handlers_generic_handler(SERVICE, {
            "Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "ServerStream": grpc.unary_stream_rpc_method_handler(self.server_stream),
            "ClientStream": grpc.stream_unary_rpc_method_handler(self.client_stream),
            "Both": grpc.stream_stream_rpc_method_handler(self.both),
            "Fails": grpc.unary_unary_rpc_method_handler(self.fails),
            "FailsLate": grpc.unary_stream_rpc_method_handler(self.fails_late),
            "Waits": grpc.unary_unary_rpc_method_handler(self.waits),
        })


class Port:
    """What `run_gate` asks of a service."""

    def __init__(self, port):
        self.port = port


class GRPC(case.Case):
    def setUp(self):
        self.handlers = Handlers()
        options = [("grpc.max_receive_message_length", MESSAGE_MAX)]
        server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(8), [self.handlers.table()], options=options)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())

        def change(settings):
            settings.upstream.append("protocol h2c")
            settings.listener.append("http h2c")
        self.run_gate(change, service=Port(port))
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{self.gate.address[1]}",
            options=[*options, ("grpc.default_authority", gates.HOST),
                     ("grpc.enable_retries", 0)])
        self.addCleanup(self.channel.close)

    def path(self, name):
        return f"/{SERVICE}/{name}"

    def test_unary(self):
        call = self.channel.unary_unary(self.path("Unary"))
        for size in (0, 1, 70_000, 4 << 20):
            message = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            answer, state = call.with_call(message, timeout=20)
            self.assertEqual(answer, message[::-1])
            self.assertEqual(state.code(), grpc.StatusCode.OK)
            trailers = dict(state.trailing_metadata())
            self.assertEqual(trailers["verdict"], "off")
            self.assertEqual(trailers["bin-bin"], b"\x00\xff")

    def test_server_streaming(self):
        call = self.channel.unary_stream(self.path("ServerStream"))
        self.assertEqual(list(call(b"1000", timeout=20)), [b"%d" % n for n in range(1000)])
        self.assertEqual(list(call(b"0", timeout=20)), [])

    def test_client_streaming(self):
        call = self.channel.stream_unary(self.path("ClientStream"))
        self.assertEqual(call(iter([b"x" * 1000] * 500), timeout=20), b"500000")
        self.assertEqual(call(iter([]), timeout=20), b"0")

    def test_both_ways_one_by_one(self):
        turns, allowed = [], threading.Semaphore(1)

        def questions():
            for number in range(50):
                allowed.acquire()
                yield b"q%d" % number
        for answer in self.channel.stream_stream(self.path("Both"))(questions(), timeout=20):
            turns.append(answer)
            allowed.release()
        self.assertEqual(turns, [b"Q%d" % number for number in range(50)])

    def test_an_error_comes_with_its_words_and_details(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary(self.path("Fails"))(b"", timeout=20)
        error = caught.exception
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(error.details(), "quantity: 100% too much, größer")
        self.assertEqual(dict(error.trailing_metadata())["field-bin"], b"quantity\x00")

    def test_an_error_behind_messages(self):
        call = self.channel.unary_stream(self.path("FailsLate"))(b"", timeout=20)
        self.assertEqual(next(call), b"first")
        with self.assertRaises(grpc.RpcError) as caught:
            next(call)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DATA_LOSS)

    def test_an_unknown_method_and_a_deadline(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary(self.path("None"))(b"", timeout=20)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        call = self.channel.unary_unary(self.path("Waits")).future(b"", timeout=20)
        self.assertTrue(self.handlers.seen.wait(10))
        call.cancel()
        self.assertTrue(self.handlers.cancelled.wait(10), "the service was not told")

    def test_many_at_once(self):
        call = self.channel.unary_unary(self.path("Unary"))
        pending = [call.future(b"%d" % number, timeout=20) for number in range(300)]
        for number, future in enumerate(pending):
            self.assertEqual(future.result(), (b"%d" % number)[::-1])
