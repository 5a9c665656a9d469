"""Samples out of lists, tuples and dicts in one another, of texts and bytes, in code that a loader
reads to make them itself."""

import base64
import bisect
import enum
import functools
import json
import logging
import operator
import os
import pathlib
import pickle
import re
import struct
import zlib
from collections import Counter
from typing import NamedTuple

import numpy
import pytest
from test_data_read_functions import (  # noqa: F401
    Base,
    Compose,
    Stream,
    _no_processes_because_of_load,
    batches,
    batches_are_those_of_processes,
    in_processes,
    outcome,
)

import facula
from facula import _C, nn
from facula.utils import data
from facula.utils.data._utils.lookups import lookups_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")

WORDS = re.compile(r"\w+")
LABELS = ["cat", "dog", "bird"]


class Point(NamedTuple):
    x: float
    y: int


class Noisy:
    """Has code of its own, which the program may notice."""

    def __add__(self, other):
        raise AssertionError("nobody may ask")

    __radd__ = __eq__ = __hash__ = __len__ = __iter__ = __add__


class OwnNumber(float):
    def __mul__(self, other):
        raise AssertionError("nobody may ask")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


QUIET = logging.getLogger("facula.tests.quiet")
QUIET.setLevel(logging.ERROR)


def not_logged(self, index):
    QUIET.debug("sample %d of %s", index, self)
    return index


class Rows(Base):
    def __init__(self, count=24):
        super().__init__(count)
        self.dicts = [
            {"text": f"row {i}", "label": i % 3, "meta": {"id": i, "at": [i, 2.5]}}
            for i in range(count)
        ]
        self.some_keys = [{"a": i} if i % 2 else {"b": [i]} for i in range(count)]
        self.lines = [json.dumps({"x": [i, 1.5], "y": {"z": None}}) for i in range(count)]
        self.table = [f"{i},{i + 1},{i % 3}" for i in range(count)]
        self.packed = [struct.pack("<2h", i, -i) for i in range(count)]
        self.small = [zlib.compress(p) for p in self.packed]
        self.coded = [base64.b64encode(p) for p in self.packed]
        self.pairs_of = [[(3, "c"), (i % 5, "a"), (2, "b")] for i in range(count)]
        self.by_pair = {(i, i + 1): float(i) for i in range(count)}
        self.seen = {(0, 1), (3, 4)}
        self.paths = [pathlib.Path(f"/there/{i}.png") for i in range(count)]
        self.points = [Point(i / 2, i) for i in range(count)]
        self.mixed_rows = [{"a": i} if i else {"a": Noisy()} for i in range(count)]
        self.with_noisy_keys = {Noisy.__add__: 1}
        self.some_nones = [{"a": None if i % 2 else i} for i in range(count)]
        self.tensors_or_none = [self.rows[i] if i % 2 else None for i in range(count)]
        self.own_numbers = [OwnNumber(i) for i in range(count)]
        self.edges = [0, 5, 11, 20]
        self.colors = [Color.RED if i % 2 else Color.BLUE for i in range(count)]
        self.arrays_in_dicts = [
            {"a": numpy.arange(3.0) + i, "t": self.rows[i]} for i in range(count)
        ]


def of(getitem):
    return type("Own", (Rows,), {"__getitem__": getitem})()


def words(self, index):
    found = WORDS.findall(self.dicts[index]["text"])
    return len(found), re.sub("row", "line", " ".join(found)), "-".join(w.upper() for w in found)


def of_json(self, index):
    row = json.loads(self.lines[index])
    return facula.tensor(row["x"]), row["x"][1] * 2, row.get("none", 3), row["y"]["z"] is None


def of_table(self, index):
    *values, label = map(float, self.table[index].split(","))
    first, *rest = values
    return facula.tensor(values), int(label), first + len(rest)


def in_order(self, index):
    by_number = sorted(self.pairs_of[index], key=lambda pair: pair[0], reverse=True)
    least = min(self.pairs_of[index], key=operator.itemgetter(1))
    return by_number[0][1], least[0], max(v for v, _ in self.pairs_of[index])


def sorts_its_own(self, index):
    found = [pair for pair in self.pairs_of[index] if pair[0] > 1]
    found.sort(key=lambda pair: (pair[0], pair[1]))
    return found[0][1], found[-1][0]


def takes_names(**given):
    return given["a"] + given["b"]


def of_bytes(self, index):
    whole = zlib.decompress(self.small[index])
    low, high = struct.unpack("<2h", whole)
    again = base64.b64decode(self.coded[index])
    return low + high, list(again[:2]), again[0], len(whole), list(self.table[index].encode())


def collects(self, index):
    found = {}
    for key, value in self.dicts[index].items():
        found[key] = value
    meta = self.dicts[index]["meta"]
    return {"n": len(found), **{k: facula.tensor(v["at"]) for k, v in [("m", meta)]}}


def writes_to_what_it_made(self, index):
    row = facula.zeros(4)
    row[: len(self.dicts[index]["text"]) % 4] = self.dicts[index]["label"]
    row[0] = self.dicts[index]["meta"]["at"][1]
    return row


READ = {
    "keys": lambda self, i: (self.dicts[i]["label"] + 1, len(self.dicts[i]["text"].split())),
    "keys of keys": lambda self, i: (self.dicts[i]["meta"]["at"][0] * 2, self.dicts[i]["meta"]),
    "get": lambda self, i: (self.dicts[i].get("label", 7), self.dicts[i].get("none", 1.5)),
    "some keys": lambda self, i: float(self.some_keys[i].get("a", -1)) + ("b" in self.some_keys[i]),
    "items": lambda self, i: sorted(k for k, v in self.dicts[i]["meta"].items() if v != -1),
    "words": words,
    "json": of_json,
    "table": of_table,
    "order": in_order,
    "own list": sorts_its_own,
    "bytes": of_bytes,
    "collected": collects,
    "written to": writes_to_what_it_made,
    "tuples as keys": lambda self, i: (self.by_pair[i, i + 1], self.by_pair.get((i, 0), 0.0)),
    "in a set": lambda self, i: ((i, i + 1) in self.seen, (i, 0) not in self.seen),
    "paths": lambda self, i: (self.paths[i].stem, self.paths[i].suffix, self.paths[i].parent.name),
    "typed tuples": lambda self, i: Point(y=self.points[i].y, x=self.points[i].x * 2),
    "index": lambda self, i: LABELS.index(LABELS[i % 3]) + LABELS.count("cat"),
    "bisect": lambda self, i: bisect.bisect_right(self.edges, i),
    "names": lambda self, i: takes_names(a=i, b=self.labels[i]),
    "reduced": lambda self, i: functools.reduce(lambda a, b: a * b % 7, self.edges, i + 1),
    "formatted": lambda self, i: (
        format(i, "03d"),
        f"{self.dicts[i]}",
        "{:>9}".format(self.dicts[i]["text"]),
    ),
    "arrays": lambda self, i: (
        self.arrays_in_dicts[i]["a"].sum(),
        numpy.sin(self.dicts[i]["label"]),
    ),
    "tensors": lambda self, i: self.arrays_in_dicts[i]["t"].mean() + self.dicts[i]["meta"]["at"][1],
    "transforms of images": lambda self, i: nn.functional.interpolate(
        self.rows[i].view(1, 1, 2, 2), size=(3, 3), mode="nearest"
    )[0],
    "fft": lambda self, i: (
        facula.fft.rfft(self.rows[i]).abs(),
        numpy.abs(numpy.fft.fft([1.0, i])),
    ),
    "none or not": lambda self, i: (
        0 if self.some_nones[i]["a"] is None else self.some_nones[i]["a"]
    ),
    "one of several": lambda self, i: self.dicts[i]["meta"] if i % 2 else self.dicts[i],
    "counted": lambda self, i: sorted(Counter(self.names[i]).items())[0][1],
    "enumerations": lambda self, i: (self.colors[i].value + i, self.colors[i].name),
    "hashes": lambda self, i: hash((i, 1)) % 7 + hash(pickle.dumps([i, 2.5])) % 3,
    "unique": lambda self, i: (self.rows[i] // 2).unique().numel(),
    "not logged": not_logged,
    "another dtype": lambda self, i: self.arrays_in_dicts[i].get("t").to(facula.float64) + 1,
    "summed": lambda self, i: sum(v * v for v in self.dicts[i]["meta"]["at"]),
}


@pytest.mark.parametrize("name", READ)
def test_batches_are_those_of_processes(name):
    dataset = of(READ[name])
    batches_are_those_of_processes(dataset, 1)


# ---- what makes batches of samples


def by_key(samples):
    return {k: facula.tensor([s[k] for s in samples]) for k in samples[0] if k == "label"}


def by_default(samples):
    kept = [s for s in samples if s is not None]
    return data.default_collate(kept)


def by_length(samples):
    samples.sort(key=lambda s: len(s["text"]), reverse=True)
    return [s["text"] for s in samples], facula.tensor([s["label"] for s in samples])


class Pads:
    def __init__(self, value):
        self.value = value

    def __call__(self, samples):
        most = max(len(s["text"]) for s in samples)
        made = facula.full((len(samples), most), self.value)
        for k, s in enumerate(samples):
            made[k, : len(s["text"])] = facula.tensor([ord(c) for c in s["text"]])
        return made


def by_kind(samples):
    if isinstance(samples[0], numpy.ndarray):
        return numpy.stack(samples)
    if isinstance(samples[0], dict):
        return [len(s["text"]) for s in samples], by_kind([s["label"] for s in samples])
    return numpy.array(samples)


@pytest.mark.parametrize("collate", [by_key, by_default, by_length, Pads(-1), by_kind])
def test_batches_of_dicts_are_those_of_processes(collate):
    dataset = of(lambda self, i: {"text": self.dicts[i]["text"], "label": i})
    expected, pids = batches(dataset, worker_init_fn=in_processes, collate_fn=collate)
    assert None not in pids
    assert batches(dataset, collate_fn=collate) == (expected, [None, None])


class Numbers(Stream):
    def __iter__(self):
        for i in range(data.get_worker_info().id, self.count, 2):
            yield self.rows[i], i


def test_a_chain_of_streams_is_read():
    chain = data.ChainDataset([Numbers(7), Numbers(4)])
    expected, pids = batches(chain, worker_init_fn=in_processes)
    assert None not in pids
    assert batches(chain) == (expected, [None, None])
    assert None not in batches(data.ChainDataset(iter([Numbers(3)])))[1]


# ---- what others would notice


def changes_a_row(self, index):
    self.dicts[index]["label"] = 5
    return index


def changes_a_list_in_a_row(self, index):
    self.dicts[index]["meta"]["at"].append(index)
    return index


def changes_in_place(self, index):
    found = self.arrays_in_dicts[index]["t"]
    found += 1
    return found


def changes_through_numpy(self, index):
    found = numpy.asarray(self.arrays_in_dicts[index]["a"])
    found[0] = 1
    return found


def changes_what_it_may_have_made(self, index):
    """A list that may hold an object, by one of two names."""
    made = []
    either = made if index % 2 else self.dicts[index]["meta"]["at"]
    made.append(self.mixed[index])
    return either[0] + 1


def tells_none(value):
    """What it does for None is the worker's to tell."""
    if value is None:
        return os.getpid()
    return 1


def takes_what_was_taken(self, index):
    """The first loop leaves nothing for the second one."""
    numbers = iter((0,))
    for _ in numbers:
        pass
    for number in numbers:
        return number
    return os.getpid()


def compares_what_was_taken(self, index):
    values = iter((None, 2))
    next(values)
    for value in values:
        if value is None:
            return 1
        return os.getpid()
    return 2


NOT_READ = {
    "none in a row": lambda self, i: tells_none(self.some_nones[i]["a"]),
    "none in a list": lambda self, i: tells_none(self.tensors_or_none[i]),
    "none in json": lambda self, i: tells_none(json.loads(self.lines[i])["y"]["z"]),
    "none of a copy": lambda self, i: tells_none(self.some_nones[i].copy()["a"]),
    "nothing left": takes_what_was_taken,
    "another one left": compares_what_was_taken,
    "numbers with code": lambda self, i: self.own_numbers[i % 3] * 2,
    "row": changes_a_row,
    "list in a row": changes_a_list_in_a_row,
    "in place": changes_in_place,
    "through numpy": changes_through_numpy,
    "may have made": changes_what_it_may_have_made,
    "written method": lambda self, i: self.arrays_in_dicts[i]["t"].mul_(2),
    "sorted in place": lambda self, i: self.arrays_in_dicts[i]["a"].sort(),
    "taken out": lambda self, i: self.dicts[i].pop("label"),
    "in place by a number": lambda self, i: nn.functional.relu(
        self.rows[i], self.dicts[i]["label"]
    ),
    "out of an array": lambda self, i: self.array[i].sum(None, None, self.arrays_in_dicts[i]["a"]),
    "out of a nested array": lambda self, i: (
        self.arrays_in_dicts[i].get("a").max(0, self.arrays_in_dicts[i].get("a"))
    ),
    "another device": lambda self, i: self.arrays_in_dicts[i].get("t").to("cuda"),
    "code in a row": lambda self, i: self.mixed_rows[i]["a"] + 1,
    "code in keys": lambda self, i: self.with_noisy_keys.get((i, 1)),
    "code in an order": lambda self, i: sorted(self.mixed),
    "called for an order": lambda self, i: sorted(self.labels, key=print),
    "function in place of a text": lambda self, i: WORDS.sub(print, self.names[i]),
    "objects of json": lambda self, i: json.loads(self.lines[i], object_hook=print),
    "numbers of a file": lambda self, i: open(self.dicts[i]["label"]).read(),  # noqa: SIM115
    "logged": lambda self, i: QUIET.error("sample %d", i),
    "counted objects": lambda self, i: len(Counter(self.mixed)),
    "pickled objects": lambda self, i: len(pickle.dumps(self.mixed[i])),
    "hashed objects": lambda self, i: hash(self.mixed[i]),
    "instances": lambda self, i: isinstance(self.mixed[i], Compose),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_others_would_notice_is_left_to_workers(name):
    assert lookups_of(of(NOT_READ[name])) is None


def test_what_is_in_a_row_is_looked_at_before_each_epoch():
    dataset = of(lambda self, i: self.dicts[i]["label"] + self.dicts[i]["meta"]["at"][1])
    loader = data.DataLoader(dataset, num_workers=2)
    list(loader)
    assert [w.pid for w in loader._iterator._workers] == [None, None] if loader._iterator else True

    class Own(float):
        def __radd__(self, other):
            return other + float(self)

    dataset.dicts[3]["meta"]["at"][1] = Own(4.0)
    iterator = iter(loader)
    assert len(list(iterator)) == len(dataset)
    assert None not in [worker.pid for worker in iterator._workers]


def test_types_of_attributes_are_found_without_code():
    class Slots:
        __slots__ = ("x",)

        def __init__(self, x):
            self.x = x

    class Computed:
        @property
        def x(self):
            raise AssertionError("nobody may ask")

    class Guarded:
        def __getattribute__(self, name):
            raise AssertionError("nobody may ask")

    assert _C._attribute_types([Slots(1), Slots(2.0)], "x") == {int, float}
    assert _C._attribute_types([Point(1.0, 2)], "y") == {int}
    assert _C._attribute_types([Slots(1), Point(1.0, 2)], "x") is None
    assert _C._attribute_types([Slots(1)], "none") is None and _C._attribute_types([], "x") is None
    assert _C._attribute_types([Computed()], "x") is None
    assert _C._attribute_types([Guarded()], "x") is None


def test_data_is_told_from_what_has_code():
    assert _C._is_data(
        [1, "a", b"b", None, {"k": (facula.ones(2), numpy.ones(2), numpy.float32(1))}]
    )
    itself = []
    itself.append(itself)
    strange = [
        *([Noisy()], {"a": Noisy()}, {Noisy.__add__: 1}, {1, 2}, Point(1.0, 1), itself, slice(1)),
        *(
            [facula.ones(1, requires_grad=True)],
            numpy.array([Noisy()], object),
            numpy.datetime64(1, "s"),
        ),
    ]
    assert not any(map(_C._is_data, strange))
    assert _C._are_plain({(1, ("a", 2.0)), None}) and _C._are_plain({"a": Noisy()})
    assert not _C._are_plain([Noisy()]) and not _C._are_plain([[1]]) and not _C._are_plain(3)


def test_loggers_are_asked_before_each_epoch():
    dataset = of(not_logged)
    loader = data.DataLoader(dataset, num_workers=2)
    try:
        for level, pids in ((logging.ERROR, [None, None]), (logging.DEBUG, None)):
            QUIET.setLevel(level)
            iterator = iter(loader)
            list(iterator)
            found = [worker.pid for worker in iterator._workers]
            assert found == pids if pids else None not in found
    finally:
        QUIET.setLevel(logging.ERROR)


def test_no_more_is_looked_at_than_processes_take_to_start():
    row = [0] * 1000
    assert _C._is_data([row] * 4000) and not _C._is_data([row] * 5000)
    assert _C._item_types([row] * 4000, ...) == {int} and _C._item_types([row] * 5000, ...) is None
    assert _C._row_types([{"x": row}] * 4000) == {("x", True)}
    assert _C._row_types([{"x": row}] * 5000) == {("x", True), ("x", None)}
    dataset = of(lambda self, i: sum(self.long[i]))
    dataset.long = [row] * 5000
    assert lookups_of(dataset) is None
    dataset.long = [row] * 4000
    assert lookups_of(dataset) is not None
