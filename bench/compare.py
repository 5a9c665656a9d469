#!/usr/bin/env python3
"""The same work in PyTorch and in Facula, as ratios of their times.

    bench/compare.py [--only NAME ...] [--rounds 3] [--seconds 0.3]

Each package runs in a process of its own, and the processes take turns, so that noise of the
machine falls on both. A ratio above 1 means that Facula is faster. Without PyTorch only Facula's
times are shown.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Work = Callable[[], Any]
WORK: dict[str, Callable[[Any], Work]] = {}


def work(f: Callable[[Any], Work]) -> Callable[[Any], Work]:
    WORK[f.__name__] = f
    return f


# ---- what one call costs


@work
def add_4(T: Any) -> Work:
    a, b = T.randn(4), T.randn(4)
    return lambda: a + b


@work
def add_4_with_node(T: Any) -> Work:
    a, b = T.randn(4, requires_grad=True), T.randn(4)
    return lambda: a + b


@work
def views_4x6(T: Any) -> Work:
    a = T.randn(4, 6)
    return lambda: a[1:3].t().reshape(-1)


@work
def backward_chain_of_10(T: Any) -> Work:
    a, b = T.randn(4, requires_grad=True), T.randn(4)

    def run() -> None:
        x = a
        for _ in range(10):
            x = x * b
        x.sum().backward()

    return run


# ---- large tensors: 4 million floats


def _big(T: Any) -> Any:
    T.manual_seed(0)
    return T.randn(4096, 1024)


@work
def add_4m(T: Any) -> Work:
    a, b = _big(T), _big(T)
    return lambda: a + b


@work
def exp_4m(T: Any) -> Work:
    a = _big(T)
    return lambda: T.exp(a)


@work
def tanh_4m(T: Any) -> Work:
    a = _big(T)
    return lambda: T.tanh(a)


@work
def where_4m(T: Any) -> Work:
    a, b = _big(T), _big(T)
    mask = a > 0
    return lambda: T.where(mask, a, b)


@work
def transposed_add_4m(T: Any) -> Work:
    a, b = _big(T), _big(T).t().contiguous().t()
    return lambda: a + b


@work
def sum_of_columns(T: Any) -> Work:
    a = _big(T)
    return lambda: a.sum(0)


@work
def sum_of_rows(T: Any) -> Work:
    a = _big(T)
    return lambda: a.sum(1)


@work
def sum_of_all(T: Any) -> Work:
    a = _big(T)
    return lambda: a.sum()


@work
def max_of_all(T: Any) -> Work:
    a = _big(T)
    return lambda: a.max()


@work
def argmax_of_rows(T: Any) -> Work:
    a = _big(T)
    return lambda: a.argmax(1)


@work
def softmax_of_rows(T: Any) -> Work:
    a = _big(T)
    return lambda: T.softmax(a, -1)


# ---- matrix products


@work
def matmul_1024(T: Any) -> Work:
    a, b = T.randn(1024, 1024), T.randn(1024, 1024)
    return lambda: a @ b


@work
def matmul_1024_bfloat16(T: Any) -> Work:
    a = T.randn(1024, 1024).to(T.bfloat16)
    return lambda: a @ a


@work
def matmul_512_of_32(T: Any) -> Work:
    a = T.randn(512, 32, 32)
    return lambda: T.bmm(a, a)


def measure(package: str, names: list[str], seconds: float) -> None:
    """In the child: the best time of each piece of work, one JSON line each."""
    T = importlib.import_module(package)
    for name in names:
        run = WORK[name](T)
        for _ in range(3):
            run()
        start = time.perf_counter()
        run()
        once = max(time.perf_counter() - start, 1e-7)
        calls = max(1, min(20000, int(seconds / 5 / once)))
        best = math.inf
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(calls):
                run()
            best = min(best, (time.perf_counter() - start) / calls)
        print(json.dumps({"name": name, "seconds": best}), flush=True)


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--child", help=argparse.SUPPRESS)
    args = p.parse_args()
    names = [n for n in WORK if not args.only or n in args.only]
    if args.child:
        measure(args.child, names, args.seconds)
        return
    packages = [x for x in ("torch", "facula") if importlib.util.find_spec(x)]
    best: dict[str, dict[str, float]] = {x: {} for x in packages}
    for _ in range(args.rounds):
        for package in packages:
            command = [sys.executable, sys.argv[0], "--child", package]
            command += ["--seconds", str(args.seconds), "--only", *names]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            for line in done.stdout.splitlines():
                row = json.loads(line)
                before = best[package].get(row["name"], math.inf)
                best[package][row["name"]] = min(before, row["seconds"])
    ratios = []
    print(f"{'':26}" + "".join(f"{x:>14}" for x in packages) + f"{'ratio':>9}")
    for name in names:
        times = [best[x][name] for x in packages]
        text = f"{name:26}" + "".join(f"{t * 1e6:12.2f}us" for t in times)
        if len(times) == 2:
            ratios.append(times[0] / times[1])
            text += f"{ratios[-1]:9.2f}"
        print(text)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.2f}, lowest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
