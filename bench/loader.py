#!/usr/bin/env python3
"""What loading costs: microseconds of a batch without workers and with processes, against PyTorch.

``python bench/loader.py [--only TEXT] [--workers 0,1,2] [--rounds N] [--threads] [--in-order]
[--fresh] [--samples N]`` goes over tiny samples (rows of a TensorDataset, tuples in a list, classes
of one's own that give tuples, tensors or dicts, an iterable) and over pictures, some of which must
be unpacked first. Packages and numbers of workers take turns, the best round counts, and workers
are there before the clock starts, unless ``--fresh`` has each epoch start its own. "/" is the time
with workers over that without, "x" is PyTorch's time over ours; the figure in brackets is the
processor time that the loader's own process spends.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import random
import time
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import numpy

SAMPLES = {"facula": 16384, "torch": 512}  # tiny ones: about as many as a second is enough for


def datasets(package: Any, data: Any) -> dict[str, tuple[Callable[[], Any], tuple[int, ...]]]:
    """By name: how to make a dataset, and sizes of batches."""
    tiny = SAMPLES[package.__name__]

    class Tuples(data.Dataset):
        def __len__(self) -> int:
            return tiny

        def __getitem__(self, index: int) -> tuple[float, int]:
            return float(index), index

    class Drawn(Tuples):
        """Must be made in workers, whose random numbers are their own."""

        def __getitem__(self, index: int) -> tuple[float, int]:
            return random.random(), index

    class Threes(Tuples):
        def __getitem__(self, index: int) -> Any:
            return package.tensor([index, index, index]), index

    class DrawnArrays(Tuples):
        def __getitem__(self, index: int) -> Any:
            return numpy.random.rand(3).astype(numpy.float32), index

    class Catches(Threes):
        """What is written around a sample: a base class, a handler, a dict that is filled."""

        def __getitem__(self, index: int) -> Any:
            sample = {"label": index}
            try:
                sample["row"], _ = super().__getitem__(index)
            except IndexError:
                sample["row"] = package.zeros(3)
            return sample

    class Dicts(Tuples):
        rows = package.rand(tiny, 4)

        def __getitem__(self, index: int) -> Any:
            return {"row": self.rows[index], "label": index}

    class Count(data.IterableDataset):
        def __iter__(self) -> Any:
            info = data.get_worker_info()
            return iter(range(info.id, tiny, info.num_workers) if info else range(tiny))

    class Pictures(data.Dataset):
        def __init__(self, count: int, side: int, channels: int, whole: bool) -> None:
            pictures = package.rand(count, channels, side, side)
            self.pictures = (255 * pictures).to(package.uint8) if whole else pictures

        def __len__(self) -> int:
            return len(self.pictures)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            return self.pictures[index], index

    class PackedPictures(data.Dataset):
        """Must be unpacked, which takes about as long as decoding does."""

        def __init__(self, count: int, side: int) -> None:
            picture = (8 * package.rand(3, side, side)).to(package.uint8)
            self.shape, self.count = (3, side, side), count
            self.packed = zlib.compress(bytes(picture.flatten().tolist()))

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, index: int) -> tuple[Any, int]:
            raw = package.frombuffer(bytearray(zlib.decompress(self.packed)), dtype=package.uint8)
            return raw.reshape(self.shape).to(package.float32) / 255, index

    sizes = (1, 8, 64)

    def rows() -> Any:
        return data.TensorDataset(package.rand(tiny, 16), package.arange(tiny))

    return {
        "rows": (rows, (1, 32, 64, 256)),
        "list": (lambda: [(float(i), i) for i in range(tiny)], sizes),
        "tuples": (Tuples, (1, 8, 64, 256)),
        "drawn": (Drawn, (1, 8, 64, 256)),
        "drawn by numpy": (DrawnArrays, (1, 8, 64, 256)),
        "tensors of 3": (Threes, (1, 32, 256)),
        "caught": (Catches, (1, 32, 256)),
        "dicts": (Dicts, sizes),
        "iterable": (Count, sizes),
        "28 x 28": (lambda: Pictures(2048, 28, 1, False), sizes),
        "64 x 64 x 3 uint8": (lambda: Pictures(1024, 64, 3, True), sizes),
        "64 x 64 x 3": (lambda: Pictures(512, 64, 3, False), sizes),
        "224 x 224 x 3": (lambda: Pictures(128, 224, 3, False), (1, 8, 32)),
        "64 x 64 x 3 packed": (lambda: PackedPictures(512, 64), sizes),
        "224 x 224 x 3 packed": (lambda: PackedPictures(64, 224), (1, 8, 32)),
    }


def measure(loader: Any) -> tuple[float, float]:
    """Seconds of a batch, and those that this process was busy for."""
    count = 0
    clock, busy = time.perf_counter(), time.process_time()
    for _ in loader:
        count += 1
    return (time.perf_counter() - clock) / count, (time.process_time() - busy) / count


def main() -> None:
    parser = argparse.ArgumentParser(description="Time loaders with and without workers.")
    parser.add_argument("--only", default="", help="datasets whose names contain this")
    parser.add_argument("--workers", default="0,1,2", help="numbers of worker processes")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", action="store_true", help="two worker threads as well")
    parser.add_argument("--in-order", action="store_true", help="do not shuffle")
    parser.add_argument("--fresh", action="store_true", help="new workers for each epoch")
    parser.add_argument("--samples", type=int, help="tiny samples of an epoch, of both packages")
    options = parser.parse_args()
    if options.samples:
        SAMPLES.update(dict.fromkeys(SAMPLES, options.samples))
    stay = not options.fresh
    warnings.simplefilter("ignore")
    packages = [p for p in ("facula", "torch") if importlib.util.find_spec(p)]
    kinds: dict[str, dict[str, Any]] = {}
    for count in map(int, options.workers.split(",")):
        kinds[f"{count} workers"] = {"num_workers": count, "persistent_workers": stay and count > 0}
    if options.threads:
        kinds["2 threads"] = {
            "num_workers": 2,
            "persistent_workers": stay,
            "worker_type": "thread",
        }
    tables = {}
    for name in packages:
        data = importlib.import_module(f"{name}.utils.data")
        tables[name] = data, datasets(importlib.import_module(name), data)
    print(f"{'microseconds a batch':26}" + "".join(f"{kind:>32}" for kind in kinds))
    for title, (_, sizes) in tables["facula"][1].items():
        if options.only not in title:
            continue
        made = {name: table[title][0]() for name, (_, table) in tables.items()}
        for size in sizes:
            loaders = {}
            for name, dataset in made.items():
                for kind, chosen in kinds.items():
                    if name == "facula" or "worker_type" not in chosen:
                        shuffled = title != "iterable" and not options.in_order
                        order = {"shuffle": True} if shuffled else {}
                        loader = tables[name][0].DataLoader(dataset, size, **order, **chosen)
                        loaders[name, kind] = loader
                        measure(loader)
            best = dict.fromkeys(loaders, (float("inf"), float("inf")))
            for _ in range(options.rounds):
                for key, loader in loaders.items():
                    best[key] = tuple(map(min, best[key], measure(loader)))
            cells = []
            for kind in kinds:
                wall, busy = best["facula", kind]
                cell = f"{1e6 * wall:.2f} ({1e6 * busy:.2f})"
                if kind != "0 workers" and ("facula", "0 workers") in best:
                    cell += f" /{wall / best['facula', '0 workers'][0]:.2f}"
                if ("torch", kind) in best:
                    cell += f" x{best['torch', kind][0] / wall:.1f}"
                cells.append(cell)
            print(f"{title + ', ' + str(size):26}" + "".join(f"{c:>32}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
