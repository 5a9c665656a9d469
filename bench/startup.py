#!/usr/bin/env python3
"""What ``import`` costs: seconds and resident memory, best of several fresh processes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

PROGRAM = """
import sys, time
start = time.perf_counter()
__import__(sys.argv[1])
seconds = time.perf_counter() - start
import resource
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> None:
    for package in ("torch", "facula"):
        if not importlib.util.find_spec(package):
            continue
        runs = []
        for _ in range(5):
            command = [sys.executable, "-c", PROGRAM, package]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs.append(tuple(map(float, done.stdout.split())))
        seconds, megabytes = min(r[0] for r in runs), min(r[1] for r in runs)
        print(f"{package:8}{seconds * 1000:9.1f} ms{megabytes:9.1f} MB resident")


if __name__ == "__main__":
    main()
