"""A store's directory written by hand, from the text at the top of LogFormat.swift and
ReceiptFormat.swift: keys by the thousand without a request each.

    files = StoreFiles(directory)
    files.enrol(key_id, point, app_id, environment, at, receipt=data, refresh_at=now)
    files.close()

and read again, once the gate has ended:

    keys = read_keys(directory)     # by key ID: Key(receipt, metric, metric_time, refresh_at)
"""

import os
import secrets
import struct

VERSION = 2
BLOCK = 512
LOG_SEGMENT = 4 << 20
RECEIPT_SEGMENT = 16 << 20


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def crc32c(data):
    """CRC-32C (Castagnoli) of `data`."""
    value, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def padded(data, size):
    return data + bytes(-len(data) % size)


def header(magic, body):
    """A block of a magic, the checksum of the rest, and the version and what follows it."""
    rest = (struct.pack(">I", VERSION) + body).ljust(BLOCK - 12, b"\0")
    return magic + struct.pack(">I", crc32c(rest)) + rest


def text(data):
    return struct.pack(">H", len(data)) + data


def place(segment, offset, length):
    """Where a receipt is, as a number."""
    return segment << 40 | offset // 16 << 16 | length


def receipt_entry(key_id, receipt):
    size = -(-(48 + len(receipt)) // 16) * 16
    rest = (struct.pack(">II", len(receipt), 0) + key_id + receipt).ljust(size - 8, b"\0")
    return b"AGR1" + struct.pack(">I", crc32c(rest)) + rest


def batch(records, first, synced, epoch=1):
    """A batch of the log: `records` are the bytes of each."""
    body = b"".join(records)
    head = struct.pack(">IIQQQ", 40 + len(body), epoch, first, first + len(records) - 1, synced)
    rest = padded(b"AGB1" + bytes(4) + head + body, BLOCK)[8:]
    return b"AGB1" + struct.pack(">I", crc32c(rest)) + rest


def enrol_record(key_id, point, app, environment, at, account=b"", counter=0, category=255,
                 version=None, receipt=0, refresh_at=0, challenge=None):
    challenge = challenge or secrets.token_bytes(16) + struct.pack(">I", at + 300)
    return (b"\x02" + key_id + point[1:] + struct.pack(">IIBB", counter, at, environment, category)
            + text(account) + text(app)
            + (b"\0" if version is None else b"\1" + text(version))
            + struct.pack(">QI", receipt, refresh_at) + challenge)


class StoreFiles:
    """A new store in `directory`, which must be empty; nothing is synced."""

    def __init__(self, directory):
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.directory = directory
        self.store_id = secrets.token_bytes(16)
        self.records, self.sequence, self.segments = [], 0, []
        self.receipts, self.receipt_segments = b"", 0
        self._log = b""
        self._log_first = 1

    def _write(self, name, data):
        with open(os.path.join(self.directory, name), "wb") as file:
            file.write(data)

    def keep(self, key_id, receipt):
        """Adds a receipt; its place."""
        entry = receipt_entry(key_id, receipt)
        if not self.receipts or len(self.receipts) + len(entry) > RECEIPT_SEGMENT:
            self._end_receipts()
            self.receipt_segments += 1
            self.receipts = bytearray(header(
                b"AGSTRCP1",
                self.store_id + struct.pack(">II", self.receipt_segments, RECEIPT_SEGMENT)))
        where = place(self.receipt_segments, len(self.receipts), len(receipt))
        self.receipts += entry
        return where

    def _end_receipts(self):
        if self.receipts:
            self._write(f"receipts-{self.receipt_segments:08x}",
                        bytes(self.receipts).ljust(RECEIPT_SEGMENT, b"\0"))

    def enrol(self, key_id, point, app_id, environment, at, receipt=None, refresh_at=0,
              account=b""):
        where = self.keep(key_id, receipt) if receipt else 0
        self.records.append(enrol_record(
            key_id, point, app_id.encode(), environment, at, account=account, receipt=where,
            refresh_at=refresh_at))
        if len(self.records) == 100:
            self._end_batch()

    def _end_batch(self):
        if not self.records:
            return
        data = batch(self.records, self.sequence + 1, self.sequence)
        if not self._log or len(self._log) + len(data) > LOG_SEGMENT:
            self._end_log()
            self._log_first = self.sequence + 1
            self.segments.append(self._log_first)
            self._log = bytearray(header(
                b"AGSTLOG1",
                self.store_id + struct.pack(">IIQ", 1, LOG_SEGMENT, self._log_first)))
        self._log += data
        self.sequence += len(self.records)
        self.records = []

    def _end_log(self):
        if self._log:
            self._write(f"log-{self._log_first:016x}", bytes(self._log).ljust(LOG_SEGMENT, b"\0"))

    def close(self):
        """Writes what is left, and the meta file last."""
        self._end_batch()
        self._end_log()
        self._end_receipts()
        newest = self.segments[-1] if self.segments else 0
        self._write("meta", header(
            b"AGSTMETA",
            self.store_id + struct.pack(">IIQ", 1, 0, newest) + secrets.token_bytes(32)))


class Key:
    """What the store says of a key and its receipt."""

    def __init__(self, receipt, refresh_at):
        self.place, self.refresh_at = receipt, refresh_at
        self.receipt, self.metric, self.metric_time = None, None, None


def _records(data):
    """The records of types 2 and 7 of a batch, as (type, fields); others are skipped."""
    at = 0

    def take(size):
        nonlocal at
        at += size
        return data[at - size:at]

    def take_text():
        return take(int.from_bytes(take(2), "big"))

    while at < len(data):
        kind = take(1)[0]
        if kind == 1:
            flags = take(41)[40]
            take(20 if flags & 2 else 0)
        elif kind == 2:
            key_id = take(32)
            take(64 + 10)
            take_text(), take_text()
            if take(1) == b"\1":
                take_text()
            where, refresh_at = struct.unpack(">QI", take(12))
            take(20)
            yield 2, (key_id, where, refresh_at)
        elif kind == 4:
            take(20)
        elif kind == 7:
            key_id, flags, refresh_at = take(32), *struct.unpack(">BI", take(5))
            where = struct.unpack(">Q", take(8))[0] if flags & 1 else None
            metric = struct.unpack(">HI", take(6)) if flags & 2 else None
            yield 7, (key_id, where, refresh_at, metric)
        else:
            raise ValueError(f"record of type {kind}")


def _batches(directory):
    expected = 1
    names = sorted(name for name in os.listdir(directory) if name.startswith("log-"))
    for name in names:
        with open(os.path.join(directory, name), "rb") as file:
            data = file.read()
        at = BLOCK
        while data[at:at + 4] == b"AGB1":
            length, _, first, last, _ = struct.unpack(">IIQQQ", data[at + 8:at + 40])
            end = at + -(-length // BLOCK) * BLOCK
            checksum, = struct.unpack(">I", data[at + 4:at + 8])
            if first != expected or checksum != crc32c(data[at + 8:end]):
                break
            yield data[at + 40:at + length]
            expected, at = last + 1, end


def read_keys(directory):
    """The keys of a store without receipts' bytes' own checks: the latest record of each holds."""
    keys = {}
    for batch_ in _batches(directory):
        for kind, fields in _records(batch_):
            if kind == 2:
                key_id, where, refresh_at = fields
                keys.setdefault(key_id, Key(where, refresh_at))
                continue
            key_id, where, refresh_at, metric = fields
            key = keys[key_id]
            key.refresh_at = refresh_at
            if where is not None:
                key.place = where
            if metric is not None:
                key.metric, key.metric_time = metric
    files = {}
    for key_id, key in keys.items():
        if not key.place:
            continue
        segment, offset, length = key.place >> 40, (key.place >> 16 & 0xFFFFFF) * 16, \
            key.place & 0xFFFF
        if segment not in files:
            with open(os.path.join(directory, f"receipts-{segment:08x}"), "rb") as file:
                files[segment] = file.read()
        entry = files[segment][offset:offset + 48 + length]
        if entry[:4] != b"AGR1" or entry[16:48] != key_id:
            raise ValueError(f"no receipt of {key_id.hex()} at {segment}:{offset}")
        key.receipt = entry[48:]
    return keys
