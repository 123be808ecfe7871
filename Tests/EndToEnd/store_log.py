"""The store's log, as LogFormat.swift and Record.swift lay it out: appends what no call of the gate
can bring about, while no gate runs on it."""

import os
import struct

BLOCK = 512


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def text(value):
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def blocked(account, moment, is_blocked=True):
    """The record that blocks an account."""
    return b"\x05" + struct.pack(">IB", int(moment), is_blocked) + text(account)


def enrolled(device, account, moment, environment=1):
    """The record of a key that was enrolled at that moment and not used since."""
    point = device.public_key
    challenge = os.urandom(16) + struct.pack(">I", int(moment) + 300)
    return (b"\x02" + device.key_id + point[1:] + struct.pack(">II", 0, int(moment))
            + bytes([environment, 255]) + text(account) + text(device.app_id) + b"\x00"
            + struct.pack(">QI", 0, 0) + challenge)


def append(directory, *records):
    """Appends one batch with these records to the store in `directory`."""
    name = max(name for name in os.listdir(directory) if name.startswith("log-"))
    with open(os.path.join(directory, name), "r+b") as file:
        data = file.read()
        offset, last, epoch = BLOCK, int(name[4:], 16) - 1, struct.unpack(">I", data[32:36])[0]
        while data[offset:offset + 4] == b"AGB1":
            length, epoch = struct.unpack(">II", data[offset + 8:offset + 16])
            last = struct.unpack(">Q", data[offset + 24:offset + 32])[0]
            offset += -(-length // BLOCK) * BLOCK
        body = b"".join(records)
        batch = struct.pack(
            ">IIQQQ", 40 + len(body), epoch, last + 1, last + len(records), last) + body
        batch += bytes(-(len(batch) + 8) % BLOCK)
        file.seek(offset)
        file.write(b"AGB1" + struct.pack(">I", crc32c(batch)) + batch)
