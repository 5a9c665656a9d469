#!/usr/bin/env python3
"""Counts the instructions of small calls, which do not vary on a busy machine as times do.

bench/instructions.py [--check | --update] [--only NAME ...]

Each call runs under callgrind (valgrind) with few and with many repetitions; the difference, by
call, is its count. ``--check`` compares with bench/instructions.json and fails where one rose by
more than 5 %; ``--update`` writes that file. Counts hold for one compiler, one Python and the
portable build: valgrind does not know AVX-512, so the loops for AVX2 are used.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

STORED = Path(__file__).with_name("instructions.json")
FEW, MANY = 500, 1500
ALLOWED = 1.05

Call = Callable[[], Any]
CALLS: dict[str, Callable[[Any], Call]] = {}


def call(f: Callable[[Any], Call]) -> Callable[[Any], Call]:
    CALLS[f.__name__] = f
    return f


@call
def nothing(T: Any) -> Call:
    return lambda: None


@call
def add(T: Any) -> Call:
    a, b = T.ones(4), T.ones(4)
    return lambda: a + b


@call
def add_with_node(T: Any) -> Call:
    a, b = T.ones(4, requires_grad=True), T.ones(4)
    return lambda: a + b


@call
def add_number(T: Any) -> Call:
    a = T.ones(4)
    return lambda: a + 1


@call
def in_place(T: Any) -> Call:
    a, b = T.ones(4), T.ones(4)
    return lambda: a.mul_(b)


@call
def slice_and_transpose(T: Any) -> Call:
    a = T.ones(4, 6)
    return lambda: a[1:3].t()


@call
def sum_all(T: Any) -> Call:
    a = T.ones(4, 6)
    return lambda: a.sum()


@call
def matmul(T: Any) -> Call:
    a, b = T.ones(4, 4), T.ones(4, 4)
    return lambda: a @ b


@call
def linear_module(T: Any) -> Call:
    layer, x = T.nn.Linear(4, 4), T.ones(2, 4)
    return lambda: layer(x)


@call
def backward_of_three(T: Any) -> Call:
    a, b = T.ones(4, requires_grad=True), T.ones(4)

    def run() -> None:
        a.grad = None
        (a * b + b).sum().backward()

    return run


@call
def adam_step(T: Any) -> Call:
    parameters = [T.ones(4, requires_grad=True) for _ in range(4)]
    for p in parameters:
        p.grad = T.ones(4)
    optimizer = T.optim.Adam(parameters)
    return lambda: optimizer.step()


def repeat(name: str, times: int) -> None:
    """In the child, under valgrind."""
    import facula

    facula.set_num_threads(1)
    run = CALLS[name](facula)
    for _ in range(times):
        run()


def instructions(name: str, times: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [sys.executable, __file__, "--child", name, "--times", str(times)]
        # Hashes and addresses must not decide how long look-ups take.
        settings = {"FACULA_ISA": "v3", "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **settings}, check=False
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{name} under valgrind:\n{done.stderr[-2000:]}")
    return int(found.group(1))


def count(name: str) -> int:
    return round((instructions(name, MANY) - instructions(name, FEW)) / (MANY - FEW))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], choices=[*CALLS, []])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--times", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return repeat(options.child, options.times)
    if not shutil.which("valgrind"):
        sys.exit("bench/instructions.py needs valgrind")
    stored = json.loads(STORED.read_text()) if STORED.exists() else {"counts": {}}
    counts: dict[str, int] = {}
    risen = []
    print(f"{'':24}{'now':>10}{'stored':>10}{'change':>9}")
    for name in [n for n in CALLS if not options.only or n in options.only]:
        counts[name] = now = count(name)
        before = stored["counts"].get(name)
        change = f"{now / before - 1:+9.1%}" if before else ""
        print(f"{name:24}{now:10}{before or '-':>10}{change}", flush=True)
        if before and now > before * ALLOWED:
            risen.append(name)
    if options.update:
        record = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "counts": {**stored["counts"], **counts},
        }
        STORED.write_text(json.dumps(record, indent=1) + "\n")
    if options.check and risen:
        sys.exit(f"more than {ALLOWED - 1:.0%} more instructions: {', '.join(risen)}")
    return None


if __name__ == "__main__":
    main()
