"""Samples out of dates, matches, paths, members of enumerations, files in memory and the like, in
code that a loader reads to make them itself."""

import copy
import csv
import datetime
import enum
import hashlib
import heapq
import io
import itertools
import os
import pathlib
import re
import statistics

import numpy
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
from facula import _C
from facula.nn.utils import rnn
from facula.utils.data._utils.lookups import lookups_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")

PLACE = re.compile(r"(\w+)-(\d+)(!)?")
FIRST = datetime.date(2020, 2, 27)


class Mode(enum.Enum):
    TRAIN = "train"
    TEST = "test"


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


class Same(enum.Enum):
    """Members that have code of their own."""

    ONE = 1

    def __eq__(self, other):
        raise AssertionError("nobody may ask")

    __hash__ = object.__hash__


class Noisy:
    """Has code of its own, which the program may notice."""

    def __index__(self):
        raise AssertionError("nobody may ask")

    __float__ = __bool__ = __hash__ = __eq__ = __len__ = __str__ = __format__ = __index__
    __lt__ = __copy__ = __deepcopy__ = __iter__ = __reversed__ = __index__
    dtype = property(__index__)


class Zone(datetime.tzinfo):
    def utcoffset(self, moment):
        raise AssertionError("nobody may ask")

    dst = tzname = utcoffset


class Document:
    def __init__(self, words):
        self.words = words
        self.asked = 0

    def size(self, scale=1):
        return len(self.words) * scale

    def counted(self):
        self.asked += 1
        return self.asked


def saved(array):
    stream = io.BytesIO()
    numpy.save(stream, array)
    return stream.getvalue()


class Things(Base):
    def __init__(self, count=24):
        super().__init__(count)
        self.days = [FIRST + datetime.timedelta(days=i) for i in range(count)]
        self.moments = [
            (datetime.datetime(2020, 1, 1, i, tzinfo=datetime.timezone.utc), i)
            for i in range(count)
        ]
        self.texts = [f"2021-03-{i + 1:02d}T04:05:06" for i in range(count)]
        self.lines = [f"img-{i}{'!' if i % 2 else ''}" for i in range(count)]
        self.paths = [pathlib.Path(f"/there/{i % 3}/{i}.tar.gz") for i in range(count)]
        self.mode, self.level = Mode.TRAIN, Level.HIGH
        self.files = [saved(numpy.arange(i, i + 3)) for i in range(count)]
        self.tables = [f"a,b\n{i},x\n{i + 1},y" for i in range(count)]
        self.bytes = [b"a,b;%d" % i for i in range(count)]
        self.documents = [Document(["a"] * (i % 4)) for i in range(count)]
        self.others = [Document([]) for i in range(count)]
        self.others[2].size = os.getpid
        self.commands = [("add", i) if i % 2 else ["mul", i, 2] for i in range(count)]
        self.orders = [{"op": "add", "by": i} if i % 2 else {"op": "none"} for i in range(count)]
        self.rows_of_data = [{"t": self.rows[i], "n": [i]} for i in range(count)]
        self.by_label = {"a": [1, 2], "b": [3]}
        self.noisy = Noisy()
        self.several_noisy = [Noisy(), Noisy()]
        self.zone = Zone()
        self.zoned = [datetime.datetime(2020, 1, 1, tzinfo=self.zone)] * count
        self.zoned_rows = [(m, 1) for m in self.zoned]
        self.same = Same.ONE
        self.window = slice(1, 3)
        self.table = str.maketrans("i", "o")


def of(getitem):
    return type("Own", (Things,), {"__getitem__": getitem})()


def days(self, index):
    day = self.days[index]
    later = day + datetime.timedelta(days=2 * index) - datetime.timedelta(hours=24)
    ends = later.isoformat(), f"{later:%d.%m}", str(later - day)
    return day.year, day.weekday(), (later - day).days, *ends, later > day, day == FIRST


def moments(self, index):
    moment = datetime.datetime.fromisoformat(self.texts[index])
    other = datetime.datetime.strptime(self.texts[index][:10], "%Y-%m-%d")
    since = (moment - other) / datetime.timedelta(hours=1)
    fields = moment.timetuple()
    return since, moment.replace(day=1).strftime("%H:%M"), fields.tm_yday, fields[0], moment.hour


def zones(self, index):
    moment, number = self.moments[index]
    return moment.isoformat(), moment.timestamp() + number


def matches(self, index):
    found = PLACE.match(self.lines[index])
    other = re.search(r"\d+", self.lines[index])
    number = int(other.group()) if other else -1
    every = [m.start() for m in re.finditer("[im]", self.lines[index])]
    return found.group(1), int(found[2]), found.group(3) is None, number, found.span(), every


def paths(self, index):
    path = self.paths[index]
    other = (path.parent / "more").joinpath("x.txt").with_suffix(".png")
    return path.parts[-2], path.name, str(other), f"{other.stem}", path == other, os.fspath(path)


def modes(self, index):
    if self.mode == Mode.TRAIN and self.level is Level.HIGH:
        return index, Mode.TEST.value, self.mode.name
    return self.level.value, "", ""


def streams(self, index):
    with io.BytesIO(self.bytes[index]) as stream:
        start = stream.read(1)
    return numpy.load(io.BytesIO(self.files[index])), start, io.StringIO("a\nb").readline()


def tables(self, index):
    rows = csv.reader(io.StringIO(self.tables[index]))
    next(rows)
    named = csv.DictReader(io.StringIO(self.tables[index]))
    return [int(number) for number, _ in rows], [row["b"] for row in named]


def of_bytes(self, index):
    head, _, tail = self.bytes[index].partition(b";")
    return (
        *(int(tail), head.upper().decode(), head.hex(), int.from_bytes(head, "big")),
        *(
            index.to_bytes(2, "little"),
            index.bit_length(),
            head.split(b",")[0],
            bytes.fromhex("ff"),
        ),
    )


def hashes(self, index):
    made = hashlib.sha256()
    made.update(self.names[index].encode())
    return int(hashlib.md5(b"x").hexdigest()[:6], 16), made.digest()[0], made.copy().hexdigest()


def does(self, index):
    match self.commands[index]:
        case ("add", number):
            return number + 1
        case [_, number, by]:
            return number * by
    return 0


def orders(self, index):
    match self.orders[index]:
        case {"op": "add", "by": by}:
            return by
        case {"op": "none"}:
            return -1
    return -2


def copies(self, index):
    row = copy.deepcopy(self.rows_of_data[index])
    row["t"] += 1
    other = copy.copy(self.rows_of_data[index])
    other["n"] = len(copy.deepcopy(self.tensors[index]))
    return row, other, copy.copy(self.labels)[index]


def sorts_what_it_drew(self, index):
    drawn = numpy.random.choice(10, size=4, replace=False)
    drawn.sort()
    numpy.random.shuffle(drawn)
    mask = numpy.zeros(10, dtype=bool)
    mask[drawn] = True
    x, y = numpy.random.randint(0, 4, size=2)
    mask[x : x + y] = False
    order = self.labels[:]
    numpy.random.default_rng(index).shuffle(order)
    return drawn, mask, order


def of_arrays(self, index):
    row = self.array[index]
    return (
        *(numpy.nan_to_num(row), numpy.linalg.norm(row), numpy.split(row, 2)[0], row * [1, 2]),
        *(numpy.histogram(row, 3)[0], numpy.array(["1", "2"], dtype=numpy.int64), row.tobytes()),
        *(row.dtype == numpy.float64, row.astype(self.array.dtype), row.dtype.name),
    )


READ = {
    "days": days,
    "moments": moments,
    "zones": zones,
    "matches": matches,
    "paths": paths,
    "modes": modes,
    "streams": streams,
    "tables": tables,
    "bytes": of_bytes,
    "hashes": hashes,
    "match": does,
    "match of dicts": orders,
    "copies": copies,
    "sorted": sorts_what_it_drew,
    "arrays": of_arrays,
    "methods of objects": lambda self, i: self.documents[i].size(scale=2),
    "complex": lambda self, i: (abs(complex(i, 1)), (complex(i) * 2).real),
    "dtypes": lambda self, i: self.rows[i].to(self.rows.dtype) if self.rows.dtype else 0,
    "order": lambda self, i: (
        *heapq.nlargest(2, self.by_label["a"]),
        statistics.mean(self.by_label["a"]),
        list(reversed(self.names[i])),
        list(filter(None, [0, i, 1])),
    ),
    "chains": lambda self, i: (
        list(itertools.chain.from_iterable([[1, i], [3]])),
        list(itertools.accumulate([1, i])),
        list(itertools.product("ab", [i])),
        [sum(pair) for pair in itertools.combinations(range(3), 2)],
        dict.fromkeys("ab", i),
    ),
    "slices": lambda self, i: (self.rows[i][self.window], self.rows[i, slice(0, 2)]),
    "shown": lambda self, i: f"{self.rows[i].shape} {self.days[i]} {self.paths[i]}",
    "shapes": lambda self, i: (self.rows[i].shape == (4,), facula.einsum("i->", self.rows[i])),
    "types": lambda self, i: (
        type(i) == int,  # noqa: E721
        isinstance(i, (int, numpy.integer)),
        isinstance(self.array[i][0], numpy.float32),
        isinstance(self.array[i][0], numpy.floating),
    ),
    "pairs as keys": lambda self, i: {(0, 1): 2}.get(divmod(i, 8), -1),
    "translated": lambda self, i: self.lines[i].translate(self.table),
}


@pytest.mark.parametrize("name", READ)
def test_batches_are_those_of_processes(name):
    if name == "sorted" and not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")
    collate = (lambda samples: samples) if name in ("arrays", "copies", "streams") else None
    options = {"collate_fn": collate} if collate else {}
    dataset = of(READ[name])
    batches_are_those_of_processes(dataset, 1, **options)


def packs(samples):
    return rnn.pack_sequence(samples, enforce_sorted=False), len(samples)


def test_packed_sequences_are_those_of_processes():
    dataset = of(lambda self, i: self.rows[i][: 1 + i % 4])
    expected, pids = batches(dataset, worker_init_fn=in_processes, collate_fn=packs)
    assert None not in pids
    assert batches(dataset, collate_fn=packs) == (expected, [None, None])


# ---- what others would notice


def tells_no_match(self, index):
    if re.match("z", self.lines[index]) is None:
        return os.getpid()
    return 1


def tells_an_empty_group(self, index):
    found = PLACE.match(self.lines[index])
    if found and found.group(3) is None:
        return os.getpid()
    return 1


def writes_to_a_mapped_file(self, index):
    mapped = numpy.memmap(self.names[index], numpy.uint8, "r")
    mapped[0] = 1
    return mapped


def writes_to_what_was_copied(self, index):
    row = copy.copy(self.rows_of_data[index])
    row["t"] += 1
    return row


def writes_to_a_part(self, index):
    first, _ = numpy.split(self.array[index], 2)
    first += 1
    return first


def finds_no_key(self, index):
    match self.orders[index]:
        case {"op": "add", "by": _}:
            return 1
    return os.getpid()


NOT_READ = {
    "no match": tells_no_match,
    "empty group": tells_an_empty_group,
    "mapped": writes_to_a_mapped_file,
    "copied": writes_to_what_was_copied,
    "part": writes_to_a_part,
    "no key": finds_no_key,
    "zones with code": lambda self, i: self.zoned[i].isoformat(),
    "zones in rows": lambda self, i: str(self.zoned_rows[i][0]),
    "given zone": lambda self, i: str(datetime.datetime(2020, 1, 1, tzinfo=self.zone)),
    "another zone": lambda self, i: str(datetime.datetime.now(self.zone)),
    "members with code": lambda self, i: self.same == Same.ONE,
    "compared with a day": lambda self, i: self.days[i] == self.noisy,
    "compared with a dtype": lambda self, i: self.array.dtype == self.noisy,
    "pattern with code": lambda self, i: len(re.findall(self.noisy, "a")),
    "copied objects": lambda self, i: len(copy.copy(self.several_noisy)),
    "copied all": lambda self, i: len(copy.deepcopy(self.several_noisy)),
    "method that counts": lambda self, i: self.documents[i].counted(),
    "method of one": lambda self, i: self.others[i].size(),
    "asked for an order": lambda self, i: len(heapq.nlargest(1, self.several_noisy)),
    "asked for the last": lambda self, i: len(list(reversed(self.noisy))),
    "asked if true": lambda self, i: len(list(filter(None, self.several_noisy))),
    "asked for numbers": lambda self, i: statistics.mean(self.several_noisy),
    "written path": lambda self, i: self.paths[i].write_text("x"),
    "opened to write": lambda self, i: self.paths[i].open("w").close(),
    "mapped to write": lambda self, i: numpy.memmap(self.names[i], numpy.uint8)[0],
    "sorted array": lambda self, i: self.array[i].sort(),
    "without nan": lambda self, i: numpy.nan_to_num(self.array[i], copy=False),
    "begins with an object": lambda self, i: self.bytes[i].startswith(self.noisy),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_others_would_notice_is_left_to_workers(name):
    assert lookups_of(of(NOT_READ[name])) is None


def test_zones_are_looked_at_before_each_epoch():
    dataset = of(lambda self, i: self.moments[i][0].hour)
    dataset.moments = [m for m, _ in dataset.moments]
    own = type(dataset)
    own.__getitem__ = lambda self, i: self.moments[i].isoformat()
    assert batches(dataset)[1] == [None, None]

    class Utc(datetime.tzinfo):
        def utcoffset(self, moment):
            return datetime.timedelta(0)

    dataset.moments[3] = dataset.moments[3].replace(tzinfo=Utc())
    assert None not in batches(dataset)[1]
