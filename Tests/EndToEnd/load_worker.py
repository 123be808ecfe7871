"""One of the processes that press on a gate: enrols its devices, then signs requests until told.

Standard input is one JSON object: address, root, devices, threads, seconds, prefix. Prints a line
when enrolled, waits for a line, then prints one JSON object with what it counted.
"""

import json
import sys
import threading
import time

import app
import wire


def run(task):
    root = app.peer_attest.Root.from_json(task["root"])
    address = tuple(task["address"])
    phones = []
    with wire.Connection(address) as connection:
        for number in range(task["devices"]):
            shape = app.SHAPES[number % len(app.SHAPES)]
            phone = app.App(address, app.new_device(root, shape))
            phones.append(phone.enrolled(connection))
    print("enrolled", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + task["seconds"]
    lock, counts, faults = threading.Lock(), {"ok": 0}, []

    def client(number):
        mine = phones[number :: task["threads"]]
        passed = 0
        try:
            with wire.Connection(address) as connection:
                while time.monotonic() < end:
                    for phone in mine:
                        if time.monotonic() >= end:
                            break
                        for challenge in phone.challenges(4, connection=connection):
                            target = f"{task['prefix']}/{number}/{passed}"
                            body = b'{"n": %d}' % passed
                            answer = phone.send("POST", target, body, challenge=challenge,
                                                connection=connection)
                            if answer.status != 200:
                                raise AssertionError(repr(answer))
                            passed += 1
        except Exception as error:  # reported to the test
            with lock:
                faults.append(repr(error))
        with lock:
            counts["ok"] += passed

    threads = [threading.Thread(target=client, args=(number,)) for number in range(task["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"ok": counts["ok"], "faults": faults}), flush=True)


if __name__ == "__main__":
    run(json.loads(sys.stdin.readline()))
