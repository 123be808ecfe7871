"""Services in frameworks that others wrote: each tells, as JSON, what it was asked.

    peer_services.py uvicorn|gunicorn|aiohttp PORT

The answer has `method`, `target` (as the framework received it), `path` (as the framework decoded
it), `fields` (pairs, names in lower case) and `body` (its SHA-256, in hex).
"""

import hashlib
import json
import sys


def report(method, target, path, fields, body):
    fields = [[name.lower(), value] for name, value in fields]
    return json.dumps({"method": method, "target": target, "path": path, "fields": fields,
                       "body": hashlib.sha256(body).hexdigest()}).encode()


async def asgi(scope, receive, send):
    """For uvicorn."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    target = scope["raw_path"].decode()
    if scope["query_string"]:
        target += "?" + scope["query_string"].decode()
    fields = [(name.decode("latin-1"), value.decode("latin-1"))
              for name, value in scope["headers"]]
    text = report(scope["method"], target, scope["path"], fields, body)
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": text})


def uvicorn(port):
    import uvicorn as server

    server.run(asgi, host="127.0.0.1", port=port, log_level="error")


def gunicorn(port):
    import flask
    from gunicorn.app.base import BaseApplication

    app = flask.Flask(__name__)

    @app.route("/<path:_>", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
    def tell(_):
        request = flask.request
        return flask.Response(
            report(request.method, request.environ["RAW_URI"], request.path,
                   request.headers.items(), request.get_data()),
            content_type="application/json")

    class Server(BaseApplication):
        def load_config(self):
            for name, value in {"bind": f"127.0.0.1:{port}", "worker_class": "gthread",
                                "threads": 8, "loglevel": "error", "control_socket": ""}.items():
                if name in self.cfg.settings:
                    self.cfg.set(name, value)

        def load(self):
            return app

    Server().run()


def aiohttp(port):
    from aiohttp import web

    async def tell(request):
        body = await request.read()
        text = report(request.method, request.raw_path, request.path, request.headers.items(),
                      body)
        return web.Response(body=text, content_type="application/json")

    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{tail:.*}", tell)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    {"uvicorn": uvicorn, "gunicorn": gunicorn, "aiohttp": aiohttp}[sys.argv[1]](int(sys.argv[2]))
