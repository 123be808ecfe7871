#!/usr/bin/env python3
"""CPU microseconds a request: nginx and the gate in front of the same nginx service.

Both proxies are driven by wrk over loopback in turns; CPU is user and system time of the proxy's
processes from /proc/PID/stat. The protected route gets real signed requests, signed beforehand by
the Python device over challenges of the gate, each key's at least a thousand requests apart, so
that none overtakes another of its key. Beside it stands a bare EVP_PKEY_verify through libcrypto.
"""

import argparse
import ctypes
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
os.environ.setdefault("ATTESTGATE", os.path.join(TOP, ".build", "release", "attestgate"))
sys.path.insert(0, os.path.join(TOP, "Tests", "EndToEnd"))
sys.dont_write_bytecode = True

import app  # noqa: E402
import case  # noqa: E402
import gate as gates  # noqa: E402
import wire  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")

SERVICE = """
worker_processes 1; pid {directory}/service.pid; error_log {directory}/service.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off; client_body_temp_path {directory}/service-body; keepalive_requests 1000000;
    server {{ listen 127.0.0.1:{port} reuseport; location / {{ return 200 "hello, world\\n"; }} }}
}}
"""

PROXY = """
worker_processes {loops}; pid {directory}/proxy.pid; error_log {directory}/proxy.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off; client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxied;
    keepalive_requests 1000000;
    upstream service {{ server 127.0.0.1:{service}; keepalive 64; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port} reuseport;
        location / {{
            proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr;
        }}
    }}
}}
"""

# wrk's script for signed requests: each once, in order. Says so when the last one is sent, since
# wrk itself would go on waiting.
SIGNED = """
local texts, at = {}, 0
function init(arguments)
    local file = io.open(arguments[1], "rb")
    local from, to = tonumber(arguments[2]), tonumber(arguments[3])
    local number = 0
    while true do
        local size = file:read("*l")
        if not size then break end
        local text = file:read(tonumber(size))
        number = number + 1
        if number > from and number <= to then texts[#texts + 1] = text end
    end
    file:close()
end
function request()
    at = at + 1
    if at > #texts then
        if at == #texts + 1 then io.stderr:write("sent\\n") end
        wrk.thread:stop()
        return texts[#texts]
    end
    return texts[at]
end
"""


class Nginx:
    """nginx in the foreground, ended by its process id."""

    def __init__(self, directory, name, text):
        path = os.path.join(directory, f"{name}.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(text if os.getuid() else "user root;\n" + text)
        self.process = subprocess.Popen(
            ["/usr/sbin/nginx", "-c", path, "-p", directory, "-g", "daemon off;"])

    def pids(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return [self.process.pid, *map(int, file.read().split())]

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(10)


def cpu(pids):
    """Seconds of user and system time of these processes."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def wrk(url, *arguments, seconds, connections):
    """Runs wrk; requests, seconds, latencies at 50 and 99 percent in milliseconds, faults.

    Without `seconds` it runs until its script says that all is sent.
    """
    process = subprocess.Popen(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds or 600}s", "--latency", *arguments[:2],
         url, *arguments[2:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if seconds is None:
        if process.stderr.readline() != "sent\n":
            raise SystemExit(f"bench: wrk ended early: {process.communicate()}")
        process.send_signal(signal.SIGINT)
    text, said = process.communicate(timeout=660)
    if process.returncode != 0:
        raise SystemExit(f"bench: wrk: {said}")
    units = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}
    count, took, unit = re.search(r"(\d+) requests in ([\d.]+)(us|ms|s|m)\b", text).groups()
    took = float(took) * units[unit]

    def latency(percent):
        value, unit = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s|m)\b", text).groups()
        return float(value) * units[unit] * 1000
    faults = re.search(r"(?:Non-2xx.*: |Socket errors: .*)(\d*)", text)
    return int(count), took, latency(50), latency(99), faults and faults.group(0)


def measure(pids, url, *arguments, seconds, connections):
    before = cpu(pids)
    count, took, p50, p99, faults = wrk(
        url, *arguments, seconds=seconds, connections=connections)
    spent = cpu(pids) - before
    if faults:
        raise SystemExit(f"bench: {url}: {faults}")
    return {"cpu": spent * 1e6 / count, "rate": count / took, "p50": p50, "p99": p99}


def bare_verification(count=20000):
    """CPU microseconds of one EVP_PKEY_verify over P-256, key ready."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP256R1())
    signature = key.sign(b"message", ec.ECDSA(hashes.SHA256()))
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    crypto = ctypes.CDLL("libcrypto.so.3")
    for name in ("d2i_PUBKEY", "EVP_PKEY_CTX_new"):
        getattr(crypto, name).restype = ctypes.c_void_p
    data = ctypes.create_string_buffer(public, len(public))
    pointer = ctypes.c_char_p(ctypes.addressof(data))
    loaded = ctypes.c_void_p(crypto.d2i_PUBKEY(None, ctypes.byref(pointer), len(public)))
    context = ctypes.c_void_p(crypto.EVP_PKEY_CTX_new(loaded, None))
    if crypto.EVP_PKEY_verify_init(context) != 1:
        raise SystemExit("bench: EVP_PKEY_verify_init failed")
    digest = app.sha256(b"message")
    verify, sizes = crypto.EVP_PKEY_verify, (ctypes.c_size_t(len(signature)), ctypes.c_size_t(32))
    if verify(context, signature, sizes[0], digest, sizes[1]) != 1:
        raise SystemExit("bench: the signature does not verify")
    for _ in range(count // 10):
        verify(context, signature, sizes[0], digest, sizes[1])
    began = time.process_time()
    for _ in range(count):
        verify(context, signature, sizes[0], digest, sizes[1])
    return (time.process_time() - began) * 1e6 / count


class Signed:
    """Requests signed beforehand, in a file for wrk."""

    def __init__(self, running, root, path, count, keys=1000):
        self.path, self.count, self.next = path, count, 0
        phones = []
        with wire.Connection(running.address) as connection:
            for number in range(keys):
                device = app.new_device(root, app.SHAPES[number % len(app.SHAPES)])
                phones.append(app.App(running.address, device).enrolled(connection))
            challenges = iter(phones[0].challenges(count, connection=connection))
        with open(path, "wb") as file:
            for number in range(count):
                phone, body = phones[number % keys], b'{"order": %d}' % number
                proof = phone.prove("POST", "/v1/data/orders", body, next(challenges))
                text = wire.message("POST", "/v1/data/orders", proof, body)
                file.write(b"%d\n%s" % (len(text), text))

    def take(self, count):
        """wrk's arguments for the next `count` requests."""
        start, self.next = self.next, self.next + count
        assert self.next <= self.count, "signed requests ran out"
        return ["--", self.path, str(start), str(self.next)]


def show(rows):
    print(f"\n{'':44}{'CPU µs/request':>16}{'requests/s':>12}{'p50 ms':>9}{'p99 ms':>9}")
    for name, samples in rows:
        middle = {key: statistics.median(s[key] for s in samples) for key in samples[0]}
        low, high = min(s["cpu"] for s in samples), max(s["cpu"] for s in samples)
        print(f"{name:44}{middle['cpu']:>16.1f}{middle['rate']:>12.0f}{middle['p50']:>9.2f}"
              f"{middle['p99']:>9.2f}   ({low:.1f} to {high:.1f})")


def main():
    parser = argparse.ArgumentParser(prog="dev bench", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=5, help="of each run (5)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind, in turns (3)")
    parser.add_argument("--connections", type=int, default=64, help="in flight (64)")
    parser.add_argument("--loops", type=int, default=1, help="of the gate, workers of nginx (1)")
    parser.add_argument("--signed", type=int, default=15000, help="signed requests a run (15000)")
    parser.add_argument("--json", action="store_true", help="print all samples as JSON")
    options = parser.parse_args()
    directory = gates.Directory()
    running, processes = None, []
    try:
        service, peer = gates.port(), gates.port()
        processes.append(Nginx(directory.path, "service", SERVICE.format(
            directory=directory.path, port=service)))
        proxy = Nginx(directory.path, "proxy", PROXY.format(
            directory=directory.path, port=peer, service=service, loops=options.loops))
        processes.append(proxy)
        root = app.new_root()
        settings = case.prepare(directory.path, service, root)
        settings.top += [f"loops {options.loops}", "log {\n    access off\n}"]
        settings.listener.append("limits requests=100000000")
        settings.upstream.append("keepalive 64 idle=4s requests=1000000")
        running = gates.Gate(settings).start()
        for port in (service, peer, settings.port):
            if not gates.poll(lambda port=port: answers(port)):
                raise SystemExit(f"bench: nothing answers on port {port}")
        results = run(options, running, proxy, peer, root, directory.path)
    finally:
        if running:
            running.stop()
        for process in processes:
            process.stop()
        directory.remove()
    if options.json:
        print(json.dumps(results))
        return
    report(results)


def answers(port):
    try:
        return wire.ask(("127.0.0.1", port), "GET", "/public").status == 200
    except (OSError, wire.Closed):
        return False


def run(options, running, proxy, peer, root, directory):
    """All samples, by kind."""
    load = {"seconds": options.seconds, "connections": options.connections}
    script = os.path.join(directory, "signed.lua")
    with open(script, "w", encoding="ascii") as file:
        file.write(SIGNED)
    total = options.signed * options.rounds + 2000
    print(f"signing {total} requests of 1000 keys")
    signed = Signed(running, root, os.path.join(directory, "signed"), total)
    gate_pids, nginx_pids = [running.process.pid], proxy.pids()
    nginx_url = f"http://127.0.0.1:{peer}/public"
    gate_url = f"http://127.0.0.1:{running.settings.port}/public"
    host = ["-H", f"Host: {gates.HOST}"]
    url = f"http://127.0.0.1:{running.settings.port}/"
    warm = {**load, "seconds": 1}
    measure(nginx_pids, nginx_url, *host, **warm)
    measure(gate_pids, gate_url, *host, **warm)
    until_done = {**load, "seconds": None}
    measure(gate_pids, url, "-s", script, *signed.take(2000), **until_done)
    results = {"nginx": [], "off": [], "signed": [], "verify": []}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}")
        results["nginx"].append(measure(nginx_pids, nginx_url, *host, **load))
        results["off"].append(measure(gate_pids, gate_url, *host, **load))
        results["signed"].append(measure(
            gate_pids, url, "-s", script, *signed.take(options.signed), **until_done))
        results["verify"].append(bare_verification())
    return results


def report(results):
    show([("nginx proxy_pass", results["nginx"]),
          ("attestgate, off route", results["off"]),
          ("attestgate, protected route", results["signed"])])
    nginx, off, signed = (statistics.median(sample["cpu"] for sample in results[kind])
                          for kind in ("nginx", "off", "signed"))
    verify = statistics.median(results["verify"])
    print(f"{'EVP_PKEY_verify, P-256, key ready':44}{verify:>16.1f}")
    print(f"\noff route / nginx                           {off / nginx:>16.2f}")
    print(f"protected / (EVP_PKEY_verify + nginx)       {signed / (verify + nginx):>16.2f}")


if __name__ == "__main__":
    main()
