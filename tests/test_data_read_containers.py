"""Lists, sets, dicts and deques that samples are made with, in code that a loader reads to make
them itself."""

import collections
import functools
import os
import random
import types
from typing import NamedTuple

import pytest
from test_data_read_functions import (  # noqa: F401
    Base,
    _no_processes_because_of_load,
    batches,
    batches_are_those_of_processes,
    in_processes,
    outcome,
)

import facula
from facula.utils.data._utils.lookups import lookups_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")


class Noisy:
    """Has code of its own, which the program may notice."""

    def __index__(self):
        raise AssertionError("nobody may ask")

    __float__ = __hash__ = __eq__ = __len__ = __reduce__ = __index__


def called(a, b=None, *, scale=1):
    if b is None:
        return os.getpid()  # which is the worker's to tell
    return a + b * scale


class Couple(NamedTuple):
    first: facula.Tensor
    second: int


class Counts:
    def __init__(self):
        self.calls = 0

    def told(self):
        return self.calls


class Rows(Base):
    @functools.cached_property
    def half(self):
        return 0.5

    stop = frozenset(("b", "z"))

    def __init__(self, count=24):
        super().__init__(count)
        self.texts = [f"a b c {'abc'[i % 3]}" for i in range(count)]
        self.vocabulary = {"a": 0, "b": 1, "c": 2}
        self.tokens = [[i, i + 1, i + 2] for i in range(count)]
        self.dicts = [{"x": [float(i)], "y": i, "t": self.rows[i]} for i in range(count)]
        self.some_keys = [{"a": i} if i % 2 else {"a": 1, "b": i} for i in range(count)]
        self.settings = {"scale": 3}
        self.couples = [(i, i + 1) for i in range(count)]
        self.uneven = [(i,) if i % 2 else (i, 1) for i in range(count)]
        self.noisy = [Noisy() for _ in range(count)]
        self.known = {1, 2, 3}
        self.nested = [{"a": "x", "b": [i]} for i in range(count)]
        self.devices = [facula.device("cpu"), facula.device("cuda")]
        self.sets = {i: {i, i + 1} for i in range(count)}
        self.couples_by_name = {self.names[i]: (i, 1) for i in range(count)}
        self.words, self.options = Words(), types.SimpleNamespace(scale=3)
        self.counter, self.halves = Counts(), self.half
        self.counters, self.counters_by_number = (
            [self.counter] * count,
            {0: self.counter, 1: self.counter},
        )


def of(getitem):
    return type("Own", (Rows,), {"__getitem__": getitem})()


def counts(self, index):
    found = {}
    for word in self.texts[index].split():
        found[word] = found.get(word, 0) + 1
    made = [0] * 3
    for word, count in found.items():
        made[self.vocabulary[word]] = count
    return facula.tensor(made), "a" in found, len(found)


def groups(self, index):
    by_word = collections.defaultdict(list)
    for place, word in enumerate(self.texts[index].split()):
        by_word[word].append(place)
    seen = collections.defaultdict(int)
    for word in by_word:
        seen[word] += len(by_word[word])
    return facula.tensor(by_word["a"]), seen["b"], sorted(by_word.items())[0]


def keeps_in_turn(self, index):
    found = {}
    for number in self.tokens[index]:
        found.setdefault(number % 2, []).append(number)
    return [len(v) for v in found.values()], found.pop(0), found.pop(7, -1)


def masks(self, index):
    tokens = list(self.tokens[index])
    labels = [-100] * len(tokens)
    for k, token in enumerate(tokens):
        if random.random() < 0.5:
            labels[k] = token
            tokens[k] = 1
    del labels[-1:]
    labels += [0]
    tokens[:1] = [7]
    return facula.tensor(tokens), facula.tensor(labels)


def of_a_copy(self, index):
    row = dict(self.dicts[index])
    row["z"] = row["y"] * 2
    row.update(x=1.5)
    return row


def sets(self, index):
    words = set(self.texts[index].split())
    words.add("q")
    words |= {"r"}
    words.discard("c")
    kept = words - self.stop
    return (
        *(len(kept), len(words & self.stop), sorted(words | self.stop)[0], "a" in kept),
        *(len({w for w in kept if w > "a"}), kept <= words, sorted(kept.union("xy"))[-1]),
        len(self.known.intersection(self.tokens[index])) + len({*self.tokens[index], index}),
    )


def window(self, index):
    last = collections.deque(maxlen=3)
    for number in range(index + 5):
        last.append(number)
    last.rotate(1)
    return list(last), last[0], last.popleft(), len(last), 3 in last


def chained(self, index):
    """Lists that were made at several places, in one dict."""
    batch = {"a": [], "b": []}
    for number in self.tokens[index]:
        batch["a"].append([number] + [0] * 2)
        batch["b"].append(number)
    return {key: facula.tensor(value) for key, value in batch.items()}


def counted(self, index):
    found = collections.Counter(self.texts[index].split())
    found["a"] += 2
    return found["a"], found["none"], [count for _, count in found.most_common(1)]


def columns(self, index):
    rows = [(k, k * 0.5) for k in self.tokens[index]]
    numbers, halves = zip(*rows, strict=True)
    pairs = tuple(zip(*[self.tokens[index][k:] for k in range(2)], strict=False))
    return facula.tensor(numbers), sum(halves), pairs, [len(c) for c in zip(*rows, strict=True)]


class Words:
    def __init__(self):
        self.places = {"a": 0}

    def __contains__(self, word):
        return word in self.places


READ = {
    "columns": columns,
    "contains": lambda self, i: ("a" in self.words, self.names[i] in self.words),
    "sets in a dict": lambda self, i: sorted({1, 2, 9} - self.sets[i]) + list(self.sets[i])[:1],
    "in values": lambda self, i: i in self.couples_by_name[self.names[i]],
    "named": lambda self, i: Couple(self.rows[i], second=i).second,
    "attributes": lambda self, i: self.options.scale * i + self.halves,
    "on the host": lambda self, i: facula.zeros(2, device=self.rows.device),
    "counts": counts,
    "groups": groups,
    "in turn": keeps_in_turn,
    "masks": masks,
    "of a copy": of_a_copy,
    "sets": sets,
    "window": window,
    "chained": chained,
    "counted": counted,
    "copied": lambda self, i: {**self.dicts[i], "z": i},
    "a method copies": lambda self, i: self.dicts[i].copy() | {"z": i},
    "some keys": lambda self, i: sorted(self.some_keys[i] | {"z": i}),
    "pairs": lambda self, i: dict(zip("abc", self.tokens[i], strict=True))["b"],
    "by names": lambda self, i: called(i, 1, **self.settings),
    "one by one": lambda self, i: called(*self.couples[i]),
    "sum of lists": lambda self, i: self.tokens[i][:1] + [0] * (i % 3),
    "copy of a list": lambda self, i: [*self.tokens[i].copy(), *self.tokens[i][::-1]],
    "in own": lambda self, i: (i in [1, 2, i], (i, 1) in {(1, 1): 2}, i in (3, "a")),
}


@pytest.mark.parametrize("name", READ)
def test_batches_are_those_of_processes(name):
    dataset = of(READ[name])
    batches_are_those_of_processes(dataset, 1)


def by_key(samples):
    found = collections.defaultdict(list)
    for sample in samples:
        for key, value in sample.items():
            found[key].append(value)
    return {"y": facula.tensor(found["y"]), "names": found["name"]}


def padded(samples):
    most = max(len(s["ids"]) for s in samples)
    batch = {"ids": [], "mask": []}
    for s in samples:
        rest = most - len(s["ids"])
        batch["ids"].append(s["ids"] + [0] * rest)
        batch["mask"].append([1] * len(s["ids"]) + [0] * rest)
    return {key: facula.tensor(value) for key, value in batch.items()}


@pytest.mark.parametrize("collate", [by_key, padded])
def test_batches_of_dicts_are_those_of_processes(collate):
    def row(self, i):
        return {"ids": self.tokens[i][: 1 + i % 3], "y": i, "name": self.names[i]}

    expected, pids = batches(of(row), worker_init_fn=in_processes, collate_fn=collate)
    assert None not in pids
    assert batches(of(row), collate_fn=collate) == (expected, [None, None])


# ---- what others would notice


def writes_to_one_of_two(self, index):
    first, second = [1], [2]
    both = [first, second]
    first.append(self.noisy[index])
    return facula.tensor(both[0])


def writes_to_one_of_a_sum(self, index):
    first = [1]
    both = [first] + [[2]]
    first.append(self.noisy[index])
    return facula.tensor(both[0])


def writes_by_the_values(self, index):
    found = {"a": [1], "b": [2]}
    for value in found.values():
        value.append(self.noisy[index])
    return facula.tensor(found["a"])


def writes_under_any_key(self, index):
    found = {"a": 1}
    found[self.names[index]] = self.noisy[index]
    return facula.tensor(found["a"])


def writes_through_a_copy(self, index):
    found = {"a": [1]}
    found.copy()["a"].append(self.noisy[index])
    return facula.tensor(found["a"])


def writes_to_what_a_defaultdict_made(self, index):
    found = collections.defaultdict(list)
    numbers = found[index]
    found[index].append(self.noisy[index])
    return facula.tensor(numbers)


def writes_in_a_copied_row(self, index):
    row = self.dicts[index].copy()
    row["t"] += 1
    return row


def adds_to_a_set_of_the_dataset(self, index):
    found = self.stop
    found |= {"q"}
    kept = self.known
    kept |= {index}
    return len(kept)


def passes_what_may_be_there(self, index):
    names = {}
    if index > 3:
        names["b"] = 1
    return called(index, **names)


def passes_what_is_there_in_another(self, index):
    made = []
    for k in range(2):
        names = {}
        made.append(names)
        if k:
            names["b"] = 1
    return called(index, **made[0])


def passes_what_was_taken_out(self, index):
    names = {"b": 1}
    names.pop("b")
    return called(index, **names)


def goes_over_what_was_empty(self, index):
    found = {}
    for k in range(2):
        for _ in found:
            print(k)
        found[k] = 1
    return index


def goes_over_no_rows(self, index):
    rows = [(1, 2) for k in range(index) if k < 0]
    for _ in zip(*rows, strict=True):
        return 1
    return os.getpid()


class Counting(Rows):
    """Counts in an object that it also finds otherwise."""

    def told(self, index):
        return self.counters[index].calls

    def __getitem__(self, index):
        self.counter.calls += 1
        return self.told(index)


@pytest.mark.parametrize(
    "told",
    [
        lambda self, i: self.counters[i].calls,
        lambda self, i: self.counters[i].told(),
        lambda self, i: self.counters_by_number[i % 2].calls,
    ],
)
def test_what_is_written_to_may_be_found_otherwise(told):
    dataset = type("Own", (Counting,), {"told": told})()
    expected, pids = outcome(dataset, 1, worker_init_fn=in_processes)
    assert None not in pids
    assert outcome(dataset, 1)[0] == expected


def adds_up_counters(self, index):
    counter = collections.Counter()
    counter.update([("a", self.noisy[index])])
    return len(counter)


def adds_up_values(self, index):
    counter = collections.Counter()
    counter["a"] = self.noisy[index]
    return len(counter.most_common()) + len(counter | collections.Counter("ab"))


def counts_what_is_there(self, index):
    """Of a dict, the values are the counts."""
    counter = collections.Counter(self.nested[index])
    return os.getpid() if isinstance(counter["a"], str) else 1


NOT_READ = {
    "counters": adds_up_counters,
    "counted values": adds_up_values,
    "counts": counts_what_is_there,
    "device with code": lambda self, i: facula.zeros(2, device=self.noisy[i]),
    "one of devices": lambda self, i: facula.zeros(2, device=self.devices[i % 2]),
    "no rows": goes_over_no_rows,
    "contains": lambda self, i: self.noisy[i] in self.words,
    "another device": lambda self, i: facula.zeros(2, device="cuda"),
    "one of two": writes_to_one_of_two,
    "one of a sum": writes_to_one_of_a_sum,
    "values": writes_by_the_values,
    "any key": writes_under_any_key,
    "copy": writes_through_a_copy,
    "defaultdict": writes_to_what_a_defaultdict_made,
    "copied row": writes_in_a_copied_row,
    "set of the dataset": adds_to_a_set_of_the_dataset,
    "may be there": passes_what_may_be_there,
    "another": passes_what_is_there_in_another,
    "taken out": passes_what_was_taken_out,
    "was empty": goes_over_what_was_empty,
    "uneven": lambda self, i: called(*self.uneven[i]),
    "hashed": lambda self, i: len({self.noisy[i]}),
    "hashed by a set": lambda self, i: len(set(self.noisy)),
    "hashed by a deque": lambda self, i: len(collections.deque([1], self.noisy[i])),
    "factory": lambda self, i: collections.defaultdict(print)[i],
}


def test_how_many_are_passed_is_looked_at_before_each_epoch():
    dataset = of(lambda self, i: called(*self.couples[i]))
    assert outcome(dataset, 1)[1] == [None, None]
    dataset.couples[:] = [(i,) for i in range(len(dataset))]
    assert None not in outcome(dataset, 1)[1]


@pytest.mark.parametrize("name", NOT_READ)
def test_what_others_would_notice_is_left_to_workers(name):
    assert lookups_of(of(NOT_READ[name])) is None
