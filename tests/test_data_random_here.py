"""Samples with random numbers: the loader draws them in the place of its workers."""

import os
import random
import threading

import numpy
import pytest

import facula
from facula import _C
from facula.utils import data
from facula.utils.data._utils import pace
from facula.utils.data._utils.array_random import as_of_numpy, can_exchange
from facula.utils.data._utils.harmless import finds_twister
from facula.utils.data._utils.lookups import lookups_of
from facula.utils.data._utils.process_worker import generators_of
from facula.utils.data._utils.reading import IS_READ
from facula.utils.data.sampler import drawn_seed

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")


@pytest.fixture(autouse=True)
def alone():
    if not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")


class Noise(data.Dataset):
    def __init__(self, count=40):
        self.rows = facula.arange(3.0 * count).view(count, 3)
        self.broken = -1

    def __len__(self):
        return len(self.rows)


def of(getitem):
    return type("Own", (Noise,), {"__getitem__": getitem})()


class Flip:
    def __init__(self, p):
        self.p = p

    def __call__(self, row):
        if facula.rand(1).item() < self.p:
            return row.flip(0)
        return row


flip = Flip(0.5)


def both(self, index):
    if random.random() < 0.5:
        return facula.rand(2), random.randint(0, 9)
    return facula.rand(2) + 1, index


def fails(self, index):
    noise = facula.rand(2), random.random()
    return noise[0], noise[1], 1 / (index - self.broken)


DRAWN = {
    "uniform": lambda self, index: facula.rand(3),
    "normal": lambda self, index: self.rows[index] + facula.randn(3),
    "one normal": lambda self, index: (facula.randn(1), index),
    "whole": lambda self, index: facula.randint(0, 9, (2,)),
    "order": lambda self, index: self.rows[index][facula.randperm(3)],
    "transform": lambda self, index: flip(self.rows[index]),
    "of Python": lambda self, index: (random.random(), random.uniform(2, 3), random.randrange(7)),
    "whole of Python": lambda self, index: random.randint(1, 3) + random.getrandbits(3),
    "both": both,
}


@pytest.fixture(autouse=True)
def _no_processes_because_of_load(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)


def nothing(worker):
    """Has processes make the batches, since it asks which one it is."""
    os.getpid()


def epochs(dataset, count=1, **options):
    facula.manual_seed(3)
    random.seed(4)
    loader = data.DataLoader(dataset, shuffle=True, **options)
    got = []
    for _ in range(count):
        iterator = iter(loader)
        got.append(list(iterator))
    return repr(got), [worker.pid for worker in iterator._workers]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", DRAWN)
def test_numbers_are_those_of_processes(name, workers, size, persistent):
    dataset = of(DRAWN[name])
    assert lookups_of(dataset) is not None
    options = {"batch_size": size, "num_workers": workers, "persistent_workers": persistent}
    expected, pids = epochs(dataset, 3, worker_init_fn=nothing, **options)
    assert None not in pids
    got, pids = epochs(dataset, 3, **options)
    assert got == expected
    assert pids == [None] * workers


@pytest.mark.parametrize("name", DRAWN)
def test_the_programs_own_numbers_go_on(name):
    dataset = of(DRAWN[name])

    def draw(**options):
        facula.manual_seed(3)
        random.seed(4)
        own = []
        for _ in data.DataLoader(dataset, 4, num_workers=2, **options):
            own.append((random.random(), facula.rand(1).item(), facula.randn(1).item()))
        return own

    assert draw() == draw(worker_init_fn=nothing)


@pytest.mark.parametrize("moved_after", [0, 1, 5, 9])
@pytest.mark.parametrize("workers", [1, 2])
def test_processes_go_on_with_the_numbers(workers, moved_after):
    dataset = of(both)
    expected, _ = epochs(dataset, batch_size=4, num_workers=workers, worker_init_fn=nothing)
    facula.manual_seed(3)
    iterator = iter(data.DataLoader(dataset, 4, shuffle=True, num_workers=workers))
    got = [next(iterator) for _ in range(moved_after)]
    iterator._settle()
    iterator._move_away()
    got += iterator
    assert repr([got]) == expected


def test_a_batch_that_fails_is_made_again_with_the_same_numbers():
    dataset = of(fails)

    def outcome(**options):
        facula.manual_seed(3)
        dataset.broken = 21
        iterator = iter(data.DataLoader(dataset, 4, num_workers=2, **options))
        got = []
        while True:
            try:
                got.append(repr(next(iterator)))
            except ZeroDivisionError as error:
                got.append(str(error))
            except StopIteration:
                return got

    assert outcome() == outcome(worker_init_fn=nothing)


draw_alone, gauss_alone = random.random, random.gauss  # as programs import them


def draws_long(self, index):
    """Of each generator more numbers than it has words, and of normal ones an odd count."""
    of_python = [draw_alone() for _ in range(400)][-1], gauss_alone(0, 1)
    of_numpy = numpy.random.rand(400)[-1], numpy.random.normal()
    return of_python, of_numpy, facula.rand(700)[-1], facula.randn(1), 1 / (index - self.broken)


@pytest.mark.parametrize("broken", [-1, 2, 21])
def test_generators_that_run_out_of_words_go_back_where_a_batch_fails(broken):
    dataset = of(draws_long)
    dataset.broken = broken
    assert lookups_of(dataset).draws == {"generator", "twister", "arrays"}

    def outcome(**options):
        facula.manual_seed(3)
        random.seed(4)
        numpy.random.seed(5)
        iterator = iter(data.DataLoader(dataset, 3, num_workers=2, **options))
        got = []
        while True:
            try:
                got.append(repr(next(iterator)))
            except ZeroDivisionError as error:
                got.append(str(error))
            except StopIteration:
                break
            got.append((random.random(), random.gauss(0, 1), numpy.random.randn()))
        return got, random.getstate(), repr(numpy.random.get_state())

    assert outcome() == outcome(worker_init_fn=nothing)


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0, (1 << 32) - 2, 1 << 62])
def test_workers_begin_with_the_numbers_of_their_seeds(seed, workers):
    draws = frozenset(("generator", "twister", "arrays"))
    assert finds_twister() and can_exchange()
    made = generators_of(seed, 1, workers, draws)
    assert len(made) == workers
    for number, (generator, twister, arrays) in enumerate(made, 1):
        expected = facula.Generator().manual_seed(seed + number)
        assert facula.equal(generator.get_state(), expected.get_state())
        assert twister.getstate() == random.Random(seed + number).getstate()
        words = [number, seed & 0xFFFFFFFF, seed >> 32, 0]
        of_numpy = numpy.random.RandomState(numpy.random.SeedSequence(words).generate_state(4))
        assert repr(as_of_numpy(arrays)) == repr(of_numpy.get_state())


def seeded_in_worker(self, index):
    os.getpid()
    source = numpy.random.get_bit_generator()
    return source._seed_seq is None, list(numpy.random.rand(2))


def test_processes_seed_numpy_as_numpy_does():
    facula.manual_seed(3)
    iterator = iter(data.DataLoader(of(seeded_in_worker), None, num_workers=2))
    got = [next(iterator) for _ in range(2)]
    assert None not in [worker.pid for worker in iterator._workers]
    for number, (is_seeded, drawn) in enumerate(got):
        words = [number, iterator._base_seed & 0xFFFFFFFF, iterator._base_seed >> 32, 0]
        expected = numpy.random.RandomState(numpy.random.SeedSequence(words).generate_state(4))
        assert is_seeded and drawn == list(expected.rand(2))


def test_the_seed_of_an_epoch_is_what_random_draws():
    for generator in (None, facula.Generator().manual_seed(8)):
        again = facula.random.default_generator if generator is None else generator
        state = again.get_state()
        seeds = [drawn_seed(generator) for _ in range(3)]
        again.set_state(state)
        expected = [facula.empty((), dtype=facula.int64) for _ in range(3)]
        assert seeds == [t.random_(generator=generator).item() for t in expected]
    with pytest.raises(TypeError):
        drawn_seed("no generator")


def test_persistent_processes_keep_the_numbers():
    dataset = of(both)
    options = {"batch_size": 4, "num_workers": 2, "persistent_workers": True}
    expected, _ = epochs(dataset, 3, worker_init_fn=nothing, **options)
    facula.manual_seed(3)
    loader = data.DataLoader(dataset, shuffle=True, **options)
    iterator = iter(loader)
    got = [[next(iterator) for _ in range(4)]]
    iterator._settle()
    iterator._move_away()
    got[0] += iterator
    got += [list(loader), list(loader)]
    assert repr(got) == expected
    assert None not in [worker.pid for worker in loader._iterator._workers]


def test_other_threads_keep_pythons_generator():
    """It is theirs as well."""
    dataset = of(DRAWN["of Python"])
    expected, _ = epochs(dataset, batch_size=4, num_workers=1, worker_init_fn=nothing)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert lookups_of(dataset) is None
        assert lookups_of(of(DRAWN["uniform"])) is not None
    finally:
        done.set()
        thread.join()
    # One that begins in the middle has processes go on.
    done.clear()
    facula.manual_seed(3)
    iterator = iter(data.DataLoader(dataset, 4, shuffle=True, num_workers=1))
    got = [next(iterator) for _ in range(3)]
    assert iterator._workers[0].pid is None
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        got += iterator
    finally:
        done.set()
        thread.join()
    assert repr([got]) == expected


def test_numbers_of_other_generators_are_left_to_workers():
    own = facula.Generator()
    patched = random.Random(3)
    assert lookups_of(of(lambda self, index: facula.rand(2, generator=own))) is None
    assert lookups_of(of(lambda self, index: patched.random())) is None
    assert lookups_of(of(lambda self, index: random.SystemRandom().random())) is None
    assert lookups_of(of(lambda self, index: numpy.random.seed(index))) is None
    assert lookups_of(of(lambda self, index: facula.seed())) is None
    assert lookups_of(of(lambda self, index: facula.initial_seed())) is None


def test_a_dataset_that_begins_to_draw_has_processes():
    dataset = of(lambda self, index: self.noise(index))
    dataset.noise = lambda index: index
    loader = data.DataLoader(dataset, 4, num_workers=1, persistent_workers=True)
    facula.manual_seed(3)
    list(loader)
    dataset.noise = lambda index: facula.rand(1)
    list(loader)
    assert loader._iterator._workers[0].pid is not None


class _Rolls(data.Dataset):
    """Numbers drawn where the sample is made, one of which may fail."""

    def __init__(self, fails_at=None):
        self.fails_at = fails_at

    def __len__(self):
        return 8

    def __getitem__(self, i):
        number = facula.rand(1).item()
        if i == self.fails_at:
            raise ValueError("no sample")
        return number


@pytest.mark.parametrize("fails_at", [None, 1, 2])
def test_an_epoch_that_is_left_early_moves_generators_on_by_what_workers_were_given(fails_at):
    options = {"batch_size": None, "num_workers": 1, "prefetch_factor": 2}
    facula.manual_seed(5)
    drawn = list(data.DataLoader(_Rolls(), **options))
    facula.manual_seed(5)
    loader = data.DataLoader(_Rolls(fails_at), persistent_workers=True, **options)
    assert next(iter(loader)) == drawn[0]  # by then the worker has tasks for two more
    assert next(iter(loader)) == drawn[3]


def test_an_epoch_that_is_left_early_moves_the_worker_s_copy_on():
    class Counts(data.Dataset):
        def __init__(self):
            self.count = 0

        def __len__(self):
            return 8

        def __getitem__(self, i):
            self.count += 1
            return self.count

    loader = data.DataLoader(
        Counts(), batch_size=None, num_workers=1, prefetch_factor=2, persistent_workers=True
    )
    assert next(iter(loader)) == 1
    assert next(iter(loader)) == 4
