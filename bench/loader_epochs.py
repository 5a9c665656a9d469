#!/usr/bin/env python3
"""What a whole epoch costs with worker processes, over the same without: where samples are tiny,
having workers must not cost anything, however few samples there are.

``python bench/loader_epochs.py [--only TEXT] [--samples 1,64,512,4096] [--sizes 1,8,256]
[--workers 2] [--threads] [--rounds 3] [--seconds 0.25]`` goes over datasets of many kinds. Epochs
with and without workers take turns; of each round the median counts, and of those the best. Each
epoch makes a new iterator, so all that begins and ends with it is in the figure: microseconds
without workers and with them, and the second over the first. Kinds whose name ends in "!" need
processes; with ``--threads``, workers are threads, and only what prepares one needs it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import time
import warnings
from typing import Any

import numpy

import facula
from facula.utils import data


def collate_pairs(batch: list[Any]) -> Any:
    return facula.tensor([a for a, _ in batch]), facula.tensor([b for _, b in batch])


def pad(batch: list[Any]) -> Any:
    batch.sort(key=lambda sample: sample[1], reverse=True)
    padded = facula.zeros(len(batch), max(length for _, length in batch))
    for i, (row, length) in enumerate(batch):
        padded[i, :length] = row
    return padded


def seed_numpy(worker: int) -> None:
    numpy.random.seed(worker)


# Not made anew for each loader: Python makes the code of a method fast for one class.
class Numbers(data.Dataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return float(index), index


class Computed(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.rows, self.scale = facula.rand(count, 4), 2.0

    def __getitem__(self, index: int) -> Any:
        return self.rows[index] * self.scale + 1, index


class Arrays(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.rows = numpy.random.rand(count, 4).astype(numpy.float32)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index], index


class Dicts(Computed):
    def __getitem__(self, index: int) -> Any:
        return {"row": self.rows[index], "label": index}


class Texts(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.items = [(f"text {i}", i) for i in range(count)]

    def __getitem__(self, index: int) -> Any:
        text, label = self.items[index]
        return text.upper(), label


class Transformed(Computed):
    transform = staticmethod(lambda row: row / 2)

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.rows[index]), index


class Drawn(Numbers):
    def __getitem__(self, index: int) -> Any:
        return random.random(), index


class DrawnTensors(Numbers):
    def __getitem__(self, index: int) -> Any:
        return facula.rand(3), index


class DrawnArrays(Numbers):
    def __getitem__(self, index: int) -> Any:
        return numpy.random.rand(3), index


class Counts(Numbers):
    """Changes, of which the program must not notice."""

    seen = 0

    def __getitem__(self, index: int) -> Any:
        self.seen += 1
        return self.seen, index


class Cached(Computed):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.cache: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if index not in self.cache:
            self.cache[index] = self.rows[index] * self.scale
        return self.cache[index]


class Logged(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.log: list[int] = []

    def __getitem__(self, index: int) -> Any:
        self.log.append(index)
        return float(index), len(self.log)


class OwnGenerator(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.generator = random.Random(0)

    def __getitem__(self, index: int) -> Any:
        return self.generator.random(), index


class Rows(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.rows = [{"text": f"text {i}", "label": i % 3, "at": [i, 2]} for i in range(count)]

    def __getitem__(self, index: int) -> Any:
        row = self.rows[index]
        return {"words": len(row["text"].split()), "label": row["label"], "at": row["at"][0]}


class Lines(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.lines = [json.dumps({"x": [i, i + 1], "label": i % 3}) for i in range(count)]

    def __getitem__(self, index: int) -> Any:
        row = json.loads(self.lines[index])
        return facula.tensor(row["x"]), row["label"]


class Ragged(Numbers):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.rows = [facula.arange(1 + i % 9) for i in range(count)]

    def __getitem__(self, index: int) -> Any:
        return self.rows[index], len(self.rows[index])


class Process(Numbers):
    """Asks for what only a process has."""

    def __getitem__(self, index: int) -> Any:
        return os.getpid(), index


class Stream(data.IterableDataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Any:
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(first, self.count, step):
            yield i, float(i)


class CountingStream(Stream):
    seen = 0

    def __iter__(self) -> Any:
        for sample in super().__iter__():
            self.seen += 1
            yield *sample, self.seen


def kinds(count: int) -> dict[str, tuple[Any, dict[str, Any]]]:
    """By name: a dataset of so many samples, and options of its loader."""
    rows = data.TensorDataset(facula.rand(count, 16), facula.arange(count))
    return {
        "rows": (rows, {}),
        "rows, shuffled": (rows, {"shuffle": True}),
        "list": ([(float(i), i) for i in range(count)], {}),
        "numbers": (Numbers(count), {}),
        "numbers, shuffled": (Numbers(count), {"shuffle": True}),
        "numbers, generator": (Numbers(count), {"shuffle": True, "generator": facula.Generator()}),
        "numbers, persistent": (Numbers(count), {"persistent_workers": True}),
        "numbers, worker_init_fn": (Numbers(count), {"worker_init_fn": seed_numpy}),
        "numbers, collate_fn": (Numbers(count), {"collate_fn": collate_pairs}),
        "numbers, one by one": (Numbers(count), {"batch_size": None}),
        "subset": (data.Subset(Numbers(count), list(range(count))), {}),
        "computed": (Computed(count), {}),
        "arrays": (Arrays(count), {}),
        "dicts": (Dicts(count), {}),
        "texts": (Texts(count), {}),
        "transformed": (Transformed(count), {}),
        "rows of dicts": (Rows(count), {}),
        "lines of JSON": (Lines(count), {}),
        "padded": (Ragged(count), {"collate_fn": pad}),
        "drawn": (Drawn(count), {}),
        "drawn tensors": (DrawnTensors(count), {}),
        "drawn arrays": (DrawnArrays(count), {}),
        "stream": (Stream(count), {}),
        "counts": (Counts(count), {}),
        "counts, persistent": (Counts(count), {"persistent_workers": True}),
        "counts, collate_fn": (Counts(count), {"collate_fn": collate_pairs}),
        "cached, persistent": (Cached(count), {"persistent_workers": True}),
        "logged": (Logged(count), {}),
        "own generator": (OwnGenerator(count), {}),
        "counting stream": (CountingStream(count), {}),
        "process!": (Process(count), {}),
    }


def seconds_of_epoch(loader: Any) -> float:
    began = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - began


def measure(loaders: list[Any], rounds: int, seconds: float) -> list[float]:
    """The best median of each, over rounds that take so long together."""
    for loader in loaders:
        seconds_of_epoch(loader)
    gc.collect()
    gc.freeze()  # else the same one of two that take turns may pay for each look at all objects
    longest = max(map(seconds_of_epoch, loaders))
    epochs = max(3, min(400, int(seconds / rounds / len(loaders) / longest)))
    best = [float("inf")] * len(loaders)
    for _ in range(rounds):
        times = [[seconds_of_epoch(loader) for loader in loaders] for _ in range(epochs)]
        best = list(map(min, best, map(statistics.median, zip(*times, strict=True))))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Time short epochs with and without workers.")
    parser.add_argument("--only", default="", help="kinds whose names contain this")
    parser.add_argument("--samples", default="1,64,512,4096", help="samples of an epoch")
    parser.add_argument("--sizes", default="1,8,256", help="samples of a batch")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", action="store_true", help="workers are threads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.25, help="spent on each figure")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    facula.set_num_threads(1)
    ratios = []
    for count in map(int, options.samples.split(",")):
        others = kinds(count)  # what one loader's epochs write, the other's do not find
        for name, (dataset, more) in kinds(count).items():
            if options.only not in name:
                continue
            for size in map(int, options.sizes.split(",")):
                chosen = {"batch_size": size, **more}
                kind = {"worker_type": "thread"} if options.threads else {}
                with_workers = data.DataLoader(
                    dataset, num_workers=options.workers, **chosen, **kind
                )
                chosen.pop("persistent_workers", None)
                without = data.DataLoader(others[name][0], **chosen)
                alone, helped = measure([without, with_workers], options.rounds, options.seconds)
                batches = "one by one" if chosen["batch_size"] is None else f"batches of {size}"
                print(
                    f"{name:26}{count:8} samples, {batches:16}"
                    f"{1e6 * alone:10.1f} {1e6 * helped:10.1f} us{helped / alone:8.2f}",
                    flush=True,
                )
                needed = "worker_init_fn" in name if options.threads else name.endswith("!")
                if not needed:
                    ratios.append(helped / alone)
                if chosen["batch_size"] is None:
                    break
    if ratios:
        median, most = statistics.median(ratios), max(ratios)
        print(f"where no worker is needed: median {median:.2f}, most {most:.2f}")


if __name__ == "__main__":
    main()
