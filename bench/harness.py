"""Runs the same work in PyTorch and in Facula and prints the ratios of their times.

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
    """Registers a piece of work: a function of the package that returns what is timed."""
    WORK[f.__name__] = f
    return f


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


def main(script: str, description: str | None) -> None:
    """The command line of a file of ``bench/``: ``script`` is that file."""
    p = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
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
            command = [sys.executable, script, "--child", package]
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
