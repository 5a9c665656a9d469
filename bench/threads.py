#!/usr/bin/env python3
"""What a second thread brings: times on one thread and on two, and their ratio.

bench/threads.py [--only NAME ...] [--package facula] [--threads 2] [--seconds 0.3]

Work that computes should take half as long on two threads as on one, which needs two idle cores.
The two take turns, five each, and the best of either counts.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from collections.abc import Callable
from typing import Any

TURNS = 5


def works(T: Any) -> dict[str, Callable[[], Any]]:
    """Pieces of work that compute more than they read, by name."""
    F = T.nn.functional
    a, b = T.randn(1024, 1024), T.randn(1024, 1024)
    wide = T.randn(4_000_000)
    image, kernel = T.randn(8, 64, 56, 56), T.randn(64, 64, 3, 3)
    mixed, seen = T.randn(256, 64, 1, 1), image.clone().requires_grad_()
    heads = T.randn(2, 8, 512, 64)
    lstm, sequence = T.nn.LSTM(256, 256), T.randn(50, 32, 256)
    layer, rows = T.nn.Linear(1024, 4096), T.randn(256, 1024)
    double, half = a.double(), a.bfloat16()

    def gradient() -> Any:
        return T.autograd.grad(F.conv2d(seen, kernel, padding=1), seen, image)

    return {
        "product": lambda: a @ b,
        "product, float64": lambda: double @ double,
        "product, bfloat16": lambda: half @ half,
        "linear layer": lambda: layer(rows),
        "convolution 3x3": lambda: F.conv2d(image, kernel, padding=1),
        "convolution 3x3, gradient": gradient,
        "convolution 1x1": lambda: F.conv2d(image, mixed),
        "attention": lambda: F.scaled_dot_product_attention(heads, heads, heads, is_causal=True),
        "LSTM": lambda: lstm(sequence),
        "exp": lambda: wide.exp(),
        "gelu": lambda: F.gelu(wide),
        "softmax": lambda: a.softmax(-1),
        "lgamma": lambda: T.lgamma(wide[:400_000]),
        "Fourier transform": lambda: T.fft.fft(a),
        "distances": lambda: T.cdist(a, b),
    }


def turn(run: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=[], help="names that contain one of these")
    parser.add_argument("--package", default="facula")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3, help="spent on each figure")
    options = parser.parse_args()
    T = importlib.import_module(options.package)
    ratios = []
    print(f"{'':28}{'1 thread':>12}{f'{options.threads} threads':>12}{'ratio':>8}")
    for name, run in works(T).items():
        if options.only and not any(text in name for text in options.only):
            continue
        best = {1: math.inf, options.threads: math.inf}
        for threads in best:
            T.set_num_threads(threads)
            turn(run, 2)
        calls = max(1, int(options.seconds / TURNS / max(turn(run, 1), 1e-7)))
        for _ in range(TURNS):
            for threads in best:
                T.set_num_threads(threads)
                turn(run, 1)  # threads are started, and find what they work on
                best[threads] = min(best[threads], turn(run, calls))
        ratios.append(best[1] / best[options.threads])
        times = "".join(f"{1e3 * seconds:9.3f} ms" for seconds in best.values())
        print(f"{name:28}{times}{ratios[-1]:8.2f}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / max(1, len(ratios)))
    print(f"geometric mean {mean:.2f}, lowest {min(ratios, default=math.nan):.2f}")


if __name__ == "__main__":
    main()
