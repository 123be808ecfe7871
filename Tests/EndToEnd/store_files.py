"""A store's directory written by hand, from the text at the top of LogFormat.swift and
ReceiptFormat.swift: keys by the thousand without a request each.

    files = StoreFiles(directory)
    files.enrol(key_id, point, app_id, environment, at, receipt=data, refresh_at=now)
    files.close()
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
