#!/usr/bin/env python3
"""The same models trained in PyTorch and in Facula: loss curves, checkpoints, time and memory.

bench/curves.py [--only NAME ...] [--steps 40]

For each model of bench/models.py, from the same seed: the largest relative difference of the losses
(where the loss is above 0.1), beside it the difference between PyTorch on two threads and on one,
whether each package loads the other's checkpoint of model and optimiser bit for bit, the ratio of
the times of a step, and the peak memory of both. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from models import MODELS

PACKAGES = ("torch", "facula")


def flat(state: Any, path: str = "") -> dict[str, Any]:
    """A nested state as path -> leaf."""
    if isinstance(state, dict):
        items = state.items()
    elif isinstance(state, (list, tuple)):
        items = enumerate(state)
    else:
        return {path: state}
    found: dict[str, Any] = {}
    for key, value in items:
        found.update(flat(value, f"{path}/{key}"))
    return found


def bits(leaf: Any) -> Any:
    if hasattr(leaf, "numpy"):
        array = leaf.detach().contiguous().numpy()
        return [str(array.dtype), list(array.shape), array.tobytes().hex()]
    return repr(leaf)


def peak_memory() -> int:
    """The largest resident size of this process so far, in kB.

    The figure of getrusage is not it: there, Linux starts with the size of the process that started
    this one, which hides all that is smaller.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = [line.split() for line in status.read_text().splitlines()]
        return next(int(words[1]) for words in lines if words[0] == "VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def child(package: str, name: str, steps: int, save: str, load: str, threads: int) -> None:
    T = importlib.import_module(package)
    if threads:
        T.set_num_threads(threads)
    training = MODELS[name](T)
    before = peak_memory()
    losses, best = [], float("inf")
    for _ in range(steps):
        start = time.perf_counter()
        losses.append(training.step())
        best = min(best, time.perf_counter() - start)
    peak = peak_memory() - before
    state = {"model": training.model.state_dict(), "optimizer": training.optimizer.state_dict()}
    T.save(state, save)
    same = None
    if load:
        read = T.load(load)
        training.model.load_state_dict(read["model"])
        training.optimizer.load_state_dict(read["optimizer"])
        # Written again by this package, it is what the other one wrote.
        again = {
            "model": training.model.state_dict(),
            "optimizer": training.optimizer.state_dict(),
        }
        wanted, got = flat(read), flat(again)
        same = wanted.keys() == got.keys() and all(bits(wanted[k]) == bits(got[k]) for k in wanted)
    print(json.dumps({"losses": losses, "seconds": best, "peak": peak, "same": same}))


def run(
    package: str, name: str, steps: int, save: str, load: str = "", threads: int = 0
) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", package, "--only", name, "--steps", str(steps)]
    command += ["--save", save, "--load", load, "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{package}, {name}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def difference(wanted: list[float], got: list[float]) -> float:
    """The largest relative one, where there is something left to learn."""
    return max(abs(a - b) / abs(a) for a, b in zip(wanted, got, strict=True) if abs(a) > 0.1)


def compare(name: str, steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = (str(Path(folder) / f"{p}.pt") for p in PACKAGES)
        torch = run("torch", name, steps, theirs)
        facula = run("facula", name, steps, ours, theirs)
        back = run("torch", name, 1, str(Path(folder) / "again.pt"), ours)
        alone = run("torch", name, steps, str(Path(folder) / "alone.pt"), threads=1)
    return {
        "difference": difference(torch["losses"], facula["losses"]),
        "own": difference(torch["losses"], alone["losses"]),
        "loads theirs": facula["same"],
        "loaded by them": back["same"],
        "ratio": torch["seconds"] / facula["seconds"],
        "peak": (torch["peak"], facula["peak"]),
        "first": facula["losses"][0],
        "last": facula["losses"][-1],
    }


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--only", nargs="*", default=[], choices=[*MODELS, []])
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--threads", type=int, default=0, help=argparse.SUPPRESS)
    for hidden in ("--child", "--save", "--load"):
        p.add_argument(hidden, default="", help=argparse.SUPPRESS)
    args = p.parse_args()
    names = [n for n in MODELS if not args.only or n in args.only]
    if args.child:
        child(args.child, names[0], args.steps, args.save, args.load, args.threads)
        return
    heads = f"{'loss':>18}{'difference':>12}{'own':>9}{'checkpoints':>13}{'speed':>7}"
    print(f"{'':10}{heads}  peak memory (MB)")
    for name in names:
        r = compare(name, args.steps)
        both = "both ways" if r["loads theirs"] and r["loaded by them"] else "DIFFER"
        peaks = " against ".join(f"{k / 1024:.0f}" for k in r["peak"])
        print(
            f"{name:10}{r['first']:9.3f}{r['last']:9.3f}{r['difference']:12.1e}{r['own']:9.0e}{both:>13}"
            f"{r['ratio']:7.2f}  {peaks}",
            flush=True,
        )


if __name__ == "__main__":
    main()
