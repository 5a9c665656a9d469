"""Objects that samples make of the program's classes, functions that call themselves, members that
are looked up, and modules, in code that a loader reads to make batches itself."""

import collections
import dataclasses
import enum
import os
import random

import numpy
import pytest
from test_data_read_functions import (  # noqa: F401
    Base,
    _no_processes_because_of_load,
    batches_are_those_of_processes,
    outcome,
)

import facula
from facula import _C, nn
from facula.utils import data
from facula.utils.data._utils.lookups import lookups_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")


@dataclasses.dataclass
class Sample:
    row: facula.Tensor
    label: int
    tags: list = dataclasses.field(default_factory=list)
    weight: float = 1.0

    @property
    def double(self):
        return self.row * 2

    def moved(self, by=1):
        return Sample(self.row + by, self.label)

    @classmethod
    def first(cls, row):
        return cls(row=row, label=0)

    @staticmethod
    def halved(row):
        return row / 2


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a, b=3):
        self.a = a
        self.b = b if a > 2 else -b


class Counter:
    step = 2

    def __init__(self):
        self.value = 0

    def add(self, n):
        self.value += n
        return self.value

    def __call__(self, n):
        return self.value + n * self.step


class Steps:
    def __init__(self, *steps):
        self.steps = steps

    def __len__(self):
        return len(self.steps)

    def __iter__(self):
        return iter(self.steps)

    def __getitem__(self, at):
        return self.steps[at]


@dataclasses.dataclass(frozen=True)
class Fixed:
    a: int
    b: float = 0.5

    def total(self):
        return self.a + self.b


@dataclasses.dataclass
class Completed:
    a: int

    def __post_init__(self):
        self.twice = self.a * 2


class Named:
    def __init__(self, name):
        super().__init__()
        self.name = name
        self.begin(2)
        self.size = self.measured()

    def begin(self, by):
        self.by = by

    def measured(self):
        return len(self.name) * self.by


class NamedRow(Named):
    def __init__(self, name, row):
        super().__init__(name)
        self.row = row


class Checked:
    def __init__(self, a):
        self.a = a

    @property
    def a(self):
        return self._a

    @a.setter
    def a(self, value):
        os.getpid()
        self._a = value


class Watched:
    def __init__(self, a):
        self.a = a

    def __setattr__(self, name, value):
        os.getpid()
        object.__setattr__(self, name, value)


class Ends:
    def __del__(self):
        os.getpid()


class Asks:
    def __init__(self):
        self.a = os.getpid()


class Left:
    def __init__(self, to):
        to.append(self)


class Kind(enum.Enum):
    CAT = 0
    DOG = 1


class Code(str, enum.Enum):
    X = "x"
    Y = "y"


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Loose(enum.Enum):
    A = 0

    @classmethod
    def _missing_(cls, value):
        os.getpid()
        return cls.A


def set_after(self, i):
    sample = Sample(self.rows[i], i)
    sample.label = sample.label + 5
    sample.extra = i
    return sample.label, sample.extra, sample.row


def made_in_a_loop(self, i):
    samples = [Sample(self.rows[k], k) for k in range(3)]
    return sum(s.label for s in samples), samples[1].double


def set_in_a_loop(self, i):
    out = []
    for k in range(3):
        sample = Sample(self.rows[i], k)
        sample.label = k + i
        out.append(sample)
    return [s.label for s in out]


def tagged(self, i):
    sample = Sample(self.rows[i], i)
    sample.tags.append(i)
    sample.tags.append(7)
    return sum(sample.tags)


def one_of_two(self, i):
    sample = Sample(self.rows[i], i) if i % 2 else Sample(self.rows[0], -i, weight=2)
    return sample.label, sample.weight


def asked_for_its_class(self, i):
    steps = Steps(i, 2, 3)
    return isinstance(steps, Steps), type(steps) is Steps, not steps, len(steps), steps[1]


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def divisor(a, b):
    return a if b == 0 else divisor(b, a % b)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def halvings(row, n):
    return row if n == 0 else halvings(row / 2, n - 1)


def forever(n):
    return forever(n)


def seeded(self, i):
    facula.manual_seed(i)
    random.seed(i + 1)
    return facula.rand(2), random.random(), random.gauss(0, 1)


def seeded_for_a_while(self, i):
    state = facula.get_rng_state()
    facula.manual_seed(i)
    drawn = facula.rand(2)
    facula.set_rng_state(state)
    return drawn, facula.rand(1), random.random()


def turned(self, i):
    angle = numpy.float64(i)
    turn = numpy.array(
        [[numpy.cos(angle), -numpy.sin(angle)], [numpy.sin(angle), numpy.cos(angle)]]
    )
    return self.array[i] @ turn.T


SIMPLE = {
    "frozen": lambda self, i: (Fixed(i).total(), Fixed(a=1, b=i).b),
    "completed": lambda self, i: Completed(i).twice,
    "derived": lambda self, i: (NamedRow(self.names[i], self.rows[i]).size, Named("a").by),
    "derived row": lambda self, i: NamedRow(self.names[i], self.rows[i]).row,
    "turned": turned,
    "pairs": lambda self, i: (self.rows[i].sort().values, facula.max(self.rows, 0).indices),
    "aminmax": lambda self, i: facula.aminmax(self.rows[i]).max,
    "dict by a number of NumPy": lambda self, i: self.places[numpy.int64(i % 3)],
    "deque": lambda self, i: (self.queue[i][0], len(self.queue), sum(v for _, v in self.queue)),
    "choice of a deque": lambda self, i: random.choice(self.queue)[1],
    "seeded": seeded,
    "seeded for a while": seeded_for_a_while,
    "attributes": lambda self, i: [Sample(self.rows[i], i).row, Sample(self.rows[i], i).weight],
    "property": lambda self, i: Sample(self.rows[i], i).double,
    "method": lambda self, i: Sample(self.rows[i], i).moved(by=3).row,
    "class method": lambda self, i: Sample.first(self.rows[i]).label,
    "static method": lambda self, i: Sample(1, 2).halved(self.rows[i]),
    "slots": lambda self, i: (Slots(i).b, Slots(a=i, b=1).a),
    "called": lambda self, i: Counter()(i),
    "written to": set_after,
    "in a loop": made_in_a_loop,
    "written to in a loop": set_in_a_loop,
    "a list of its own": tagged,
    "one of two": one_of_two,
    "class": asked_for_its_class,
    "gone over": lambda self, i: [k + i for k in Steps(1, 2, 3)],
    "factorial": lambda self, i: float(factorial(i % 7)),
    "divisor": lambda self, i: divisor(i, 12),
    "by turns": lambda self, i: is_even(i % 5),
    "rows": lambda self, i: halvings(self.rows[i], i % 3),
    "not at all": lambda self, i: forever(i) if i < 0 else i,
    "by value": lambda self, i: Kind(i % 2).name,
    "by name": lambda self, i: Code["XY"[i % 2]].value,
    "members": lambda self, i: [m.value + i for m in Kind],
}


class Things(Base):
    def __init__(self):
        super().__init__()
        self.places = {k: self.rows[k] for k in range(3)}
        self.queue = collections.deque([(self.rows[i], i) for i in range(24)], maxlen=24)


def of(getitem):
    return type("Own", (Things,), {"__getitem__": getitem})()


@pytest.mark.parametrize("name", SIMPLE)
def test_batches_are_those_of_processes(name):
    if not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")
    batches_are_those_of_processes(of(SIMPLE[name]))


def test_the_programs_generators_are_not_those_that_a_sample_seeds():
    facula.manual_seed(3)
    random.seed(3)
    dataset = of(seeded)
    iterator = iter(data.DataLoader(dataset, 4, num_workers=2))
    before = facula.get_rng_state(), random.getstate()
    for _ in iterator:
        assert facula.initial_seed() == 3
    assert iterator._workers[0].pid is None
    assert facula.equal(facula.get_rng_state(), before[0])
    assert random.getstate() == before[1]


def test_what_a_failed_batch_has_seeded_is_as_it_was_for_the_worker():
    def fails_later(self, i):
        drawn = facula.rand(1), random.random()
        if i == 9:
            seeded(self, 0)
            raise ValueError("nine")
        return drawn

    def outcome_of(**options):
        facula.manual_seed(1)
        got = []
        iterator = iter(data.DataLoader(of(fails_later), 2, num_workers=2, **options))
        for _ in range(12):
            try:
                got.append(repr(next(iterator)))
            except ValueError as error:
                got.append(str(error)[:40])
        return got

    assert outcome_of() == outcome_of(worker_init_fn=lambda number: os.getpid() and None)


def stacked(samples):
    return facula.stack([s.row for s in samples]), [s.label + s.weight for s in samples]


def test_samples_of_a_dataclass_are_collated_by_the_programs_function():
    dataset = of(lambda self, i: Sample(self.rows[i], i))
    batches_are_those_of_processes(dataset, collate_fn=stacked)


def writes_to_what_is_frozen(self, i):
    fixed = Fixed(i)
    try:
        fixed.a = 2
    except dataclasses.FrozenInstanceError:
        return os.getpid()
    return fixed.a


class Returns:
    def __init__(self):
        self.a = self.begin()

    def begin(self):
        self.b = 2
        return os.getpid()


NOT_SIMPLE = {
    "frozen": writes_to_what_is_frozen,
    "writes and returns": lambda self, i: Returns().b,
    "setter": lambda self, i: Checked(i).a,
    "watched": lambda self, i: Watched(i).a,
    "end": lambda self, i: Ends() is None,
    "asks": lambda self, i: Asks().a,
    "left behind": lambda self, i: Left(self.labels) is None,
    "changes in a method": lambda self, i: Counter().add(i),
    "asks at last": lambda self, i: asks_at_last(i),
    "flags": lambda self, i: Right(i % 3).value,
    "missing": lambda self, i: Loose(i).value,
    "fills a list": lambda self, i: fills(i, []),
}


def asks_at_last(n):
    return os.getpid() if n > 1000 else asks_at_last(n + 1)


def fills(n, to):
    to.append(n)
    return to if n < 1 else fills(n - 1, to)


@pytest.mark.parametrize("name", NOT_SIMPLE)
def test_what_others_would_notice_is_left_to_workers(name):
    assert lookups_of(of(NOT_SIMPLE[name])) is None


def test_a_class_that_changes_is_read_anew():
    class Box:
        def __init__(self, a):
            self.a = a

    dataset = of(lambda self, i: Box(i).a)
    loader = data.DataLoader(dataset, 3, num_workers=2)
    assert next(iter(loader)).tolist() == [0, 1, 2]

    def doubled(self, a):
        self.a = 2 * a

    Box.__init__ = doubled
    assert next(iter(loader)).tolist() == [0, 2, 4]
    Box.a = property(lambda self: os.getpid(), lambda self, value: None)
    assert os.getpid() not in next(iter(loader)).tolist()


def test_a_deque_that_changes_is_looked_at_again():
    dataset = of(lambda self, i: self.queue[i][1])
    loader = data.DataLoader(dataset, 3, num_workers=2)
    assert next(iter(loader)).tolist() == [0, 1, 2]
    dataset.queue.append((None, 7.5))
    iterator = iter(loader)
    assert next(iterator).tolist() == [1, 2, 3] and iterator._workers[0].pid is None
    dataset.queue[1] = (None, Fixed(3))
    with pytest.raises(RuntimeError, match="worker process 0"):
        next(iter(loader))


class Plus(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, row):
        return row + self.by


def test_modules_are_looked_at_before_each_epoch():
    dataset = of(lambda self, i: self.steps(self.rows[i] * 0))
    dataset.steps = nn.Sequential(Plus(1), Plus(2))
    loader = data.DataLoader(dataset, 2, num_workers=2)

    def first_and_process():
        iterator = iter(loader)
        found = next(iterator)[0, 0].item()
        return found, iterator._workers[0].pid is not None

    assert first_and_process() == (3, False)
    assert loader._terms.hold(loader)  # nothing has to be read again
    dataset.steps[1].by = 5
    assert first_and_process() == (6, False)
    dataset.steps[0] = Plus(-1)
    assert first_and_process() == (4, False)
    dataset.steps[0].forward = lambda row: row + os.getpid() * 0 + 7
    assert first_and_process() == (12, True)
    del dataset.steps[0].forward
    seen = []
    dataset.steps[1].register_forward_hook(lambda *_: seen.append(os.getpid()))
    assert first_and_process()[0] == 4
    assert seen == []


def test_a_buffer_that_is_replaced_is_found():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("by", facula.ones(4))

        def forward(self, row):
            return row * self.by

    dataset = of(lambda self, i: self.scaled(self.rows[i] * 0 + 1))
    dataset.scaled = Scaled()
    loader = data.DataLoader(dataset, 2, num_workers=2)
    assert next(iter(loader))[0, 0] == 1
    dataset.scaled.by = facula.full((4,), 3.0)
    assert next(iter(loader))[0, 0] == 3
