#!/usr/bin/env python3
"""All groups against PyTorch, and how time grows with size: tables, JSON and plots.

bench/report.py [--groups NAME ...] [--rounds 3] [--seconds 0.3] [--json FILE]
                [--plots FOLDER] [--largest 1e8] [--markdown]

A group is a file of bench/ whose work harness.py times, or the models that curves.py trains. Each
package runs in a process of its own, and the processes take turns. A ratio above 1 means that
Facula is faster. The plots show the time per element of five operators from 1e4 elements to
``--largest``, one PNG each, where matplotlib is installed; ``--plots ""`` leaves this part out.
``--markdown`` prints the tables for docs/performance.md. Without PyTorch only Facula's times are
shown.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Times, take_turns

FOLDER = Path(__file__).resolve().parent
GROUPS = {
    "compare": "calls, large elementwise work, reductions, products",
    "operators": "order, scans, indexing, linear algebra",
    "layers": "layers, forward and backward",
    "convolution": "convolutions",
    "networks": "networks of transposed, dilated and 3-d convolutions",
    "halves": "bfloat16 and half",
    "fft": "Fourier transforms",
    "optim": "steps of optimisers",
    "transforms": "function transforms",
    "models": "training steps of models",
}
SMALLEST = 10_000
ROW = 1000  # elements that softmax normalises together


# ------------------------------------------------------------------------------------- measuring


def child(*command: str) -> list[dict[str, Any]]:
    """What a process prints, one JSON line each; a failure shows what it said."""
    words = [sys.executable, *command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=FOLDER)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def train(packages: list[str], rounds: int) -> tuple[Times, Times]:
    """The best step of each model of models.py, and the memory that training adds, in MB."""
    from models import MODELS

    best: Times = {package: {} for package in packages}
    peaks: Times = {package: {} for package in packages}
    with tempfile.TemporaryDirectory() as folder:
        save = str(Path(folder) / "state.pt")
        for name in [n for _ in range(rounds) for n in MODELS]:
            for package in packages:
                words = ["curves.py", "--child", package, "--only", name, "--steps", "20"]
                row = child(*words, "--save", save)[-1]
                best[package][name] = min(row["seconds"], best[package].get(name, math.inf))
                peaks[package][name] = min(row["peak"] / 1024, peaks[package].get(name, math.inf))
    return best, peaks


SCALED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda T, a: a + a,
    "exp": lambda T, a: T.exp(a),
    "sum": lambda T, a: a.sum(),
    "softmax": lambda T, a: T.softmax(a.view(-1, ROW), -1),
    "sort": lambda T, a: a.sort(),
}


def sizes(largest: int) -> list[int]:
    """Two for each power of ten, whole rows of softmax."""
    found = [SMALLEST * 10**k * f for k in range(9) for f in (1, 3)]
    return [n for n in found if n <= largest]


def measure_scaling(package: str, largest: int, seconds: float) -> None:
    """In the child: the best time of each operator at each size."""
    T = importlib.import_module(package)
    for n in sizes(largest):
        T.manual_seed(0)
        a = T.randn(n)
        for name, run in SCALED.items():
            run(T, a)
            start = time.perf_counter()
            run(T, a)
            once = max(time.perf_counter() - start, 1e-7)
            calls = max(1, min(10_000, int(seconds / 3 / once)))
            best = once
            for _ in range(3 if once < seconds else 1):
                start = time.perf_counter()
                for _ in range(calls):
                    run(T, a)
                best = min(best, (time.perf_counter() - start) / calls)
            print(json.dumps({"name": f"{name} {n}", "seconds": best}), flush=True)


# --------------------------------------------------------------------------------------- showing


def ratio(times: Times, name: str) -> float | None:
    if len(times) < 2 or any(name not in of for of in times.values()):
        return None
    ours = times["facula"][name]
    return times["torch"][name] / ours if ours else None  # no memory at all has no ratio


def summary(times: Times) -> dict[str, float]:
    """The geometric mean of the ratios and the lowest of them."""
    found = [r for name in times["facula"] if (r := ratio(times, name)) is not None]
    if not found:
        return {}
    mean = math.exp(sum(map(math.log, found)) / len(found))
    return {"geometric mean": mean, "lowest": min(found)}


def shown(seconds: float) -> str:
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds:.4g} s"


def table(times: Times, markdown: bool, memory: bool) -> str:
    """A line for each piece of work: the time (or memory) of each package, and the ratio."""
    text = "{:.0f}".format if memory else shown
    head = ["", *times, *(["ratio"] if len(times) == 2 else [])]
    lines = [head]
    for name in times["facula"]:
        cells = [name, *(text(of[name]) if name in of else "-" for of in times.values())]
        r = ratio(times, name)
        if len(times) == 2:
            cells.append("-" if r is None else f"{r:.2f}")
        lines.append(cells)
    if markdown:
        lines.insert(1, ["---", *["---:"] * (len(head) - 1)])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    width = max(len(cells[0]) for cells in lines) + 2
    return "\n".join(
        cells[0].ljust(width) + "".join(c.rjust(12) for c in cells[1:]) for cells in lines
    )


def print_group(title: str, times: Times, markdown: bool, memory: bool = False) -> None:
    print(f"## {title}\n" if markdown else f"== {title}")
    print(table(times, markdown, memory))
    found = {} if memory else summary(times)
    text = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    if text:
        print(f"\nRatios: {text}." if markdown else text)
    print(flush=True)


def machine() -> dict[str, Any]:
    """Where and with what it was measured."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": model,
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": platform.python_version(),
        "command": " ".join(["bench/report.py", *sys.argv[1:]]),
    }
    for package in ("torch", "facula"):
        if importlib.util.find_spec(package):
            found[package] = importlib.import_module(package).__version__
    return found


def draw(scaling: Times, folder: Path) -> list[Path]:
    """A PNG for each operator: nanoseconds per element over the size. Flat is good."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in SCALED:
        figure, axes = pyplot.subplots(figsize=(6, 4))
        for package, times in scaling.items():
            points = [(int(k.split()[1]), t) for k, t in times.items() if k.split()[0] == name]
            points.sort()
            axes.plot([n for n, _ in points], [t / n * 1e9 for n, t in points], "o-", label=package)
        axes.set(xscale="log", yscale="log", xlabel="elements", ylabel="ns per element", title=name)
        axes.grid(True, which="both", alpha=0.3)
        axes.legend()
        figure.tight_layout()
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=120)
        pyplot.close(figure)
        written.append(path)
    return written


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--groups", nargs="*", default=list(GROUPS), choices=list(GROUPS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3, help="for each piece of work and round")
    p.add_argument("--json", type=Path, metavar="FILE", help="write all times here")
    p.add_argument("--plots", default=str(FOLDER / "out"), metavar="FOLDER")
    p.add_argument("--largest", type=float, default=1e8, help="elements of the largest tensor")
    p.add_argument("--markdown", action="store_true", help="tables for docs/performance.md")
    p.add_argument("--child", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.child:
        measure_scaling(args.child, int(args.largest), args.seconds)
        return
    packages = [x for x in ("torch", "facula") if importlib.util.find_spec(x)]
    if "facula" not in packages:
        sys.exit("bench/report.py: facula is not installed here; tools/dev bench report builds it")
    result: dict[str, Any] = {"machine": machine(), "groups": {}}
    print("\n".join(f"{name}: {value}" for name, value in result["machine"].items()), "\n")
    for group in args.groups:
        if group == "models":
            times, peaks = train(packages, args.rounds)
            result["groups"][group] = {"times": times, "peak MB": peaks, **summary(times)}
            print_group(GROUPS[group], times, args.markdown)
            print_group("memory that their training adds, in MB", peaks, args.markdown, memory=True)
            continue
        script = str(FOLDER / f"{group}.py")
        times = take_turns(script, packages, args.rounds, args.seconds)
        result["groups"][group] = {"times": times, **summary(times)}
        print_group(GROUPS[group], times, args.markdown)
    if args.plots:
        options = ["--largest", str(args.largest), "--seconds", str(args.seconds)]
        scaling = {
            package: {
                row["name"]: row["seconds"]
                for row in child("report.py", "--child", package, *options)
            }
            for package in packages
        }
        result["scaling"] = scaling
        print_group("time and size", scaling, args.markdown)
        if importlib.util.find_spec("matplotlib"):
            for path in draw(scaling, Path(args.plots)):
                print("wrote", path)
        else:
            print("no plots: matplotlib is not installed")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print("wrote", args.json)


if __name__ == "__main__":
    main()
