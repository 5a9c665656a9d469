#!/usr/bin/env python3
"""What loading costs: microseconds of a batch without workers, with two of them, with two threads.

``python bench/loader.py [facula|torch]`` goes over a dataset of two numbers a sample, with batches
of 1 to 256, and over one of small pictures; then over datasets of classes of its own, whose samples
are made one by one. Workers are started before the clock.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import warnings
from typing import Any


def own_datasets(data: Any, pictures: Any) -> tuple[Any, Any]:
    class Numbers(data.Dataset):
        def __len__(self) -> int:
            return 20000

        def __getitem__(self, index: int) -> tuple[float, int]:
            return float(index), index

    class Pictures(data.Dataset):
        def __len__(self) -> int:
            return len(pictures)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            return pictures[index], index

    return Numbers(), Pictures()


def microseconds(loader: Any, batches: int) -> float:
    """Of one batch; the best of three passes, in which the workers are there already."""
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        for _ in loader:
            pass
        best = min(best, time.perf_counter() - start)
    return best / batches * 1e6


def main() -> None:
    warnings.simplefilter("ignore")
    chosen = sys.argv[1:] or [p for p in ("torch", "facula") if importlib.util.find_spec(p)]
    kinds: dict[str, dict[str, Any]] = {
        "none": {},
        "2 processes": {"num_workers": 2, "persistent_workers": True},
        "2 threads": {"num_workers": 2, "persistent_workers": True, "worker_type": "thread"},
    }
    for name in chosen:
        package = importlib.import_module(name)
        data = importlib.import_module(f"{name}.utils.data")
        numbers = data.TensorDataset(package.arange(20000.0), package.arange(20000))
        pictures = data.TensorDataset(package.rand(1024, 3, 64, 64), package.arange(1024))
        own_numbers, own_pictures = own_datasets(data, pictures.tensors[0])
        print(f"{name:20}" + "".join(f"{kind:>14}" for kind in kinds))
        for title, dataset, size in (
            *((f"numbers, {n} a batch", numbers, n) for n in (1, 4, 32, 256)),
            ("pictures, 32 a batch", pictures, 32),
            *((f"own numbers, {n}", own_numbers, n) for n in (1, 32)),
            ("own pictures, 32", own_pictures, 32),
        ):
            batches = -(-len(dataset) // size)
            cells = []
            for options in kinds.values():
                if name == "torch" and "worker_type" in options:
                    cells.append("-")
                    continue
                loader = data.DataLoader(dataset, batch_size=size, shuffle=True, **options)
                cells.append(f"{microseconds(loader, batches):.1f} us")
            print(f"{title:20}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
