"""Runs the same work in PyTorch and in Facula and prints the ratios of their times.

Each package runs in a process of its own, and the processes take turns at each piece of work, so
that noise of the machine falls on both. A ratio above 1 means that Facula is faster. Without
PyTorch only Facula's times are shown.
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

TURNS = 5  # of each process at a piece of work
REST = 0.015  # seconds before the other's turn: PyTorch's threads spin for 10 ms after their work

Work = Callable[[], Any]
Times = dict[str, dict[str, float]]  # package -> name -> seconds
WORK: dict[str, Callable[[Any], Work]] = {}


def work(f: Callable[[Any], Work]) -> Callable[[Any], Work]:
    """Registers a piece of work: a function of the package that returns what is timed."""
    WORK[f.__name__] = f
    return f


# ------------------------------------------------------------------------------------ the child


def serve(package: str, seconds: float) -> None:
    """Says what work there is, then has a turn at what each line of the input names."""
    T = importlib.import_module(package)
    print(json.dumps(list(WORK)), flush=True)
    name, run, calls = "", None, 1
    for line in sys.stdin:
        if line.strip() != name:
            run = None  # its memory is free before the next piece of work is made
            name = line.strip()
            run = WORK[name](T)
            for _ in range(3):
                run()
            start = time.perf_counter()
            run()
            once = max(time.perf_counter() - start, 1e-7)
            calls = max(1, min(20000, int(seconds / TURNS / once)))
        assert run
        start = time.perf_counter()
        for _ in range(calls):
            run()
        taken = (time.perf_counter() - start) / calls
        time.sleep(REST)
        print(json.dumps(taken), flush=True)


# ----------------------------------------------------------------------------------- the parent


class Child:
    """A process that runs the work of ``script`` with one package."""

    def __init__(self, script: str, package: str, seconds: float) -> None:
        words = [sys.executable, script, "--child", package, "--seconds", str(seconds)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
        self.names: list[str] = self.answer()

    def answer(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(self.process.args)} has ended")
        return json.loads(line)

    def turn(self, name: str) -> float:
        """Seconds that one run of a piece of work took."""
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        self.process.communicate()


def take_turns(
    script: str, packages: list[str], rounds: int, seconds: float, only: list[str] | None = None
) -> Times:
    """The best times of all turns. Each round has new processes, with other memory."""
    best: Times = {package: {} for package in packages}
    for _ in range(rounds):
        children = {package: Child(script, package, seconds) for package in packages}
        for name in children[packages[0]].names:
            if only and name not in only:
                continue
            for _ in range(TURNS):
                for package, child in children.items():
                    before = best[package].get(name, math.inf)
                    best[package][name] = min(before, child.turn(name))
        for child in children.values():
            child.close()
    return best


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
    if args.child:
        serve(args.child, args.seconds)
        return
    packages = [x for x in ("torch", "facula") if importlib.util.find_spec(x)]
    best = take_turns(script, packages, args.rounds, args.seconds, args.only)
    ratios = []
    print(f"{'':26}" + "".join(f"{x:>14}" for x in packages) + f"{'ratio':>9}")
    for name in best[packages[0]]:
        times = [best[x][name] for x in packages]
        text = f"{name:26}" + "".join(f"{t * 1e6:12.2f}us" for t in times)
        if len(times) == 2:
            ratios.append(times[0] / times[1])
            text += f"{ratios[-1]:9.2f}"
        print(text)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.2f}, lowest {min(ratios):.2f}")
