#!/usr/bin/env python3
"""Tests of the simulation: each fault below is put into a copy of the store, and the simulation has
to find it within the seeds that CI runs.

    mutations.py [--seeds N] [NAME…]

The faults are changes of the source, not switches in it: what ships has no place where it could be
told to be wrong. A change whose text is not found once, and only once, fails; so does one that
nobody notices.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / ".build" / "mutations"

# Name: file, text, what stands there instead.
MUTATIONS = {
    "the sync is dropped": (
        "LogWriter.swift",
        "        try storage.sync(open.file)\n        segment?.position",
        "        segment?.position"),
    "acknowledged early": (
        "Store+Calls.swift",
        "guard isRelaxed, !revoking else",
        "guard !revoking else"),
    "advanced before the challenge is spent": (
        "Store+Calls.swift",
        "            guard !table.contains(challenge) else { return spent }\n"
        "            let refusal = body()\n",
        "            let refusal = body()\n"
        "            guard !table.contains(challenge) else { return spent }\n"),
    "a counter that is not greater passes": (
        "Store+Calls.swift",
        "guard admit.counter > previous else",
        "guard admit.counter >= previous else"),
    "the record leaves the challenge out": (
        "Store+Calls.swift",
        "keyID: keyID, counter: counter, time: now, isRevoking: revoking, challenge: challenge)",
        "keyID: keyID, counter: counter, time: now, isRevoking: revoking, challenge: nil)"),
    "a failed sync is tried again": (
        "LogWriter.swift",
        "        try storage.sync(open.file)\n        segment?.position",
        "        do { try storage.sync(open.file) } catch { try storage.sync(open.file) }\n"
        "        segment?.position"),
    "a start takes the file cache for the disk": (
        "LogReader.swift",
        "if !unsynced.isEmpty, isOwner { try makeDurable",
        "if false { try makeDurable"),
    "a name is not synced": (
        "LogWriter.swift",
        "            try rename(temporaryName, to: name)\n            try syncDirectory()\n",
        "            try rename(temporaryName, to: name)\n"),
    "a torn tail leaves the epoch": (
        "LogFormat+Meta.swift",
        "return tornTail ? .tornTail : nil",
        "return nil"),
    "relaxed without the fence": (
        "Store.swift",
        "meta.isUncertain = isRelaxed",
        "meta.isUncertain = false"),
    "a snapshot is there before the log is synced": (
        "SnapshotWriter.swift",
        "guard durable >= lastSequence else",
        "guard durable >= 0 else"),
    "a snapshot's name is not synced": (
        "SnapshotWriter.swift",
        "        try storage.syncDirectory()\n        return Written(",
        "        return Written("),
    "a snapshot is not synced": (
        "SnapshotWriter.swift",
        '        guard let file else { preconditionFailure("a snapshot without a file") }\n'
        "        try storage.sync(file)\n",
        '        guard let file else { preconditionFailure("a snapshot without a file") }\n'),
    "a snapshot leaves the spent challenges out": (
        "SnapshotWriter.swift",
        "? .accounts(shard: shard + 1, index: 0) : .spent(shard: 0, SpentTable.Cursor())",
        "? .accounts(shard: shard + 1, index: 0) : .end"),
    "a segment that is needed goes": (
        "StoreLoader.swift",
        "let kept = Set(LogReader.starts(names, from: first))",
        "let kept = Set(LogReader.starts(names, from: .max))"),
    "the end of the log is not asked of the snapshot": (
        "LogReader.swift",
        "} else if let snapshot, expected <= snapshot.end.lastSequence {",
        "} else if let snapshot, expected < snapshot.header.firstSequence {"),
}

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
let tests: [SwiftSetting] = [.swiftLanguageMode(.v6)]
let package = Package(
    name: "mutations",
    targets: [
        .target(name: "CGateLinux"),
        .target(name: "GateBytes", swiftSettings: settings),
        .target(name: "GateLock", dependencies: ["CGateLinux"], swiftSettings: settings),
        .target(
            name: "GateStore", dependencies: ["GateBytes", "GateLock", "CGateLinux"],
            swiftSettings: settings),
        .target(
            name: "GateSimulation", dependencies: ["GateBytes", "GateLock", "GateStore"],
            swiftSettings: tests),
        .executableTarget(
            name: "simulate", dependencies: ["GateSimulation"], swiftSettings: tests),
    ])
"""


def copy():
    """The store and its simulation as a package of their own, which builds in seconds."""
    sources = COPY / "Sources"
    shutil.rmtree(sources, ignore_errors=True)
    for name in ("CGateLinux", "GateBytes", "GateLock", "GateStore"):
        shutil.copytree(ROOT / "Sources" / name, sources / name)
    shutil.copytree(ROOT / "Tests" / "GateSimulation", sources / "GateSimulation")
    shutil.copytree(ROOT / "Tests" / "Simulate", sources / "simulate",
                    ignore=shutil.ignore_patterns("*.py"))
    (COPY / "Package.swift").write_text(MANIFEST)


def simulate(seeds):
    """Builds the copy and lives `seeds` lives; the exit status and what was said."""
    built = subprocess.run(
        ["swift", "build", "-j", "2", "--package-path", COPY, "--product", "simulate"],
        capture_output=True, text=True, check=False)
    if built.returncode != 0:
        sys.exit("mutations: the copy does not build:\n" + built.stdout + built.stderr)
    ran = subprocess.run(
        [COPY / ".build" / "debug" / "simulate", "--seeds", str(seeds)],
        capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def main():
    """Tries each mutation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("names", nargs="*", help="only those whose name contains one of these")
    options = parser.parse_args()
    copy()
    missed = []
    tried = 0
    for name, (file, text, replacement) in MUTATIONS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        path = COPY / "Sources" / "GateStore" / file
        original = path.read_text()
        if original.count(text) != 1:
            sys.exit(f"mutations: {file} holds the text of \"{name}\" "
                     f"{original.count(text)} times")
        path.write_text(original.replace(text, replacement))
        started = time.monotonic()
        status, said = simulate(options.seeds)
        path.write_text(original)
        tried += 1
        found = re.search(r"seed (\d+), event \d+: .*", said)
        if status == 1 and found:
            print(f"caught  {name}: {found.group()[:140]} ({time.monotonic() - started:.0f} s)",
                  flush=True)
        elif status not in (0, 1):
            # A trap is noticed as well.
            print(f"caught  {name}: ended with {status}", flush=True)
        else:
            missed.append(name)
            print(f"MISSED  {name}: {said.strip().splitlines()[:1]}", flush=True)
    print(f"mutations: {tried - len(missed)} of {tried} caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
