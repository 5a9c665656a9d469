"""Loaders with workers: order, seeds, errors, deaths, memory, states."""

import gc
import os
import random
import signal
import time
import warnings

import numpy
import pytest

import facula

pytestmark = pytest.mark.usefixtures("workers_make_every_batch")

data = facula.utils.data


@pytest.fixture(autouse=True)
def within_minutes():
    """Nothing here may hang the suite."""

    def stop(number, frame):
        raise TimeoutError("the test took longer than four minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(240)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Squares(data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __getitem__(self, index):
        return index**2

    def __len__(self):
        return self.n


class Large(Squares):
    """Samples large enough for shared memory."""

    def __getitem__(self, index):
        return facula.full((200, 200), float(index)), facula.tensor(index)


class Share(data.IterableDataset):
    """Each worker counts through its share."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        if info is None:
            return iter(range(self.n))
        return iter(range(info.id, self.n, info.num_workers))


class Seeds(data.Dataset):
    def __getitem__(self, index):
        info = data.get_worker_info()
        return [
            info.id,
            info.seed,
            facula.initial_seed(),
            facula.rand(1).item(),
            random.random(),
            numpy.random.rand(),
        ]

    def __len__(self):
        return 6


class OddError(Exception):
    def __init__(self, code, where):
        super().__init__(f"{code} at {where}")
        self.code = code


class Failing(Squares):
    def __init__(self, error):
        super().__init__(8)
        self.error = error

    def __getitem__(self, index):
        if index == 4:
            raise self.error
        return index


class Dying(Squares):
    def __init__(self, how):
        super().__init__(8)
        self.how = how

    def __getitem__(self, index):
        if index == 4:
            if self.how == "exit":
                os._exit(3)
            os.kill(os.getpid(), getattr(signal, self.how))
        return index


def values(loader):
    return [b.tolist() for b in loader]


def squares(n, batch_size=1):
    return [[i**2 for i in range(b, min(b + batch_size, n))] for b in range(0, n, batch_size)]


KINDS = [{"worker_type": "thread"}, {"multiprocessing_context": "fork"}]


@pytest.mark.parametrize("options", [*KINDS, {"multiprocessing_context": "spawn"}])
def test_batches_come_in_order(options):
    loader = data.DataLoader(Squares(), batch_size=3, num_workers=2, **options)
    assert values(loader) == squares(10, 3)


def test_forkserver_workers():
    loader = data.DataLoader(Squares(), num_workers=1, multiprocessing_context="forkserver")
    assert values(loader) == squares(10)


@pytest.mark.parametrize("options", KINDS)
def test_many_small_batches_travel_in_groups_and_arrive_in_order(options):
    loader = data.DataLoader(Squares(3000), num_workers=2, **options)
    assert values(loader) == squares(3000)


@pytest.mark.parametrize("options", KINDS)
def test_persistent_workers_serve_several_epochs_also_after_a_break(options):
    loader = data.DataLoader(
        Squares(40), batch_size=3, num_workers=2, persistent_workers=True, **options
    )
    first = iter(loader)
    pids = [w.pid for w in first._workers]
    next(first)
    for _ in range(2):
        assert values(loader) == squares(40, 3)
    assert [w.pid for w in loader._iterator._workers] == pids


@pytest.mark.parametrize("options", KINDS)
def test_iterable_dataset_alternates_between_workers_until_each_is_done(options):
    loader = data.DataLoader(Share(7), batch_size=2, num_workers=2, **options)
    assert values(loader) == [[0, 2], [1, 3], [4, 6], [5]]
    three = data.DataLoader(Share(4), batch_size=None, num_workers=3, **options)
    assert list(three) == [0, 1, 2, 3]


@pytest.mark.parametrize("options", KINDS)
def test_without_order_every_batch_comes_once(options):
    loader = data.DataLoader(Squares(50), num_workers=2, in_order=False, **options)
    assert sorted(values(loader)) == squares(50)


@pytest.mark.parametrize("persistent", [False, True])
def test_large_tensors_lie_in_shared_memory_that_is_used_again(persistent):
    loader = data.DataLoader(Large(200), batch_size=2, num_workers=1, persistent_workers=persistent)
    iterator = iter(loader)
    for i, (x, y) in enumerate(iterator):
        assert y.tolist() == [2 * i, 2 * i + 1]
        assert x.shape == (2, 200, 200) and x[1, 7, 7].item() == 2 * i + 1
        x += 1  # it is the program's own
    assert len(iterator._workers[0].slots) <= 30  # of 100 batches
    held = [x for x, _ in loader]  # none of them may be overwritten while it is held
    assert [int(x[0, 0, 0]) for x in held] == list(range(0, 200, 2))


def test_structures_views_and_dtypes_survive_the_way():
    class Odd(Squares):
        def __getitem__(self, index):
            base = facula.arange(24).view(2, 3, 4)
            return {
                "strided": base.transpose(0, 2),
                "part": base[:, 1:, ::2],
                "half": facula.ones(3, dtype=facula.bfloat16),
                "empty": facula.ones(0, 3),
                "number": facula.tensor(2.5),
                "complex": facula.tensor([1 + 2j]).conj(),
                "grad": facula.ones(2, requires_grad=True),
                "array": numpy.arange(3),
                "text": "grün",
                7: (None, True, 2**70, b"bytes", 1.5),
            }

    loader = data.DataLoader(
        Odd(1), batch_size=None, num_workers=1, multiprocessing_context="fork", collate_fn=None
    )
    (got,) = list(loader)
    want = data.default_convert(Odd(1)[0])
    assert got.keys() == want.keys()
    for key in ("strided", "part", "half", "empty", "number", "complex", "array"):
        assert got[key].dtype is want[key].dtype and facula.equal(got[key], want[key]), key
    assert got["strided"].stride() == want["strided"].stride()
    assert got["grad"].requires_grad and got["grad"].is_leaf
    assert got["text"] == "grün" and got[7] == [None, True, 2**70, b"bytes", 1.5]


def test_the_short_form_of_batches_gives_back_what_it_took():
    from facula import _C

    batch = [facula.arange(6).view(2, 3), ("a", 1, -5, 2.5, None), {"k": b"\0", 3: [True, ()]}]
    back = _C._unpack_batch(_C._pack_batch(batch, 1 << 16))
    assert facula.equal(back[0], batch[0]) and back[1:] == batch[1:]
    shared = [1]
    for refused in ([shared, shared], 2**70, {1, 2}, facula.ones(9, 9).t()[1:], facula.ones(99999)):
        assert _C._pack_batch(refused, 1 << 16) is None
    loop = []
    loop.append(loop)
    assert _C._pack_batch(loop, 1 << 16) is None
    packed = _C._pack_batch(batch, 1 << 16)
    for end in range(len(packed)):
        with pytest.raises(ValueError, match="cannot be read"):
            _C._unpack_batch(packed[:end])


def test_nothing_is_left_in_shared_memory_files():
    def names():
        return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()

    before = names()
    loader = data.DataLoader(Large(8), batch_size=2, num_workers=2)
    iterator = iter(loader)
    held = next(iterator)
    assert names() <= before
    for worker in iterator._workers:
        os.kill(worker.pid, signal.SIGKILL)
    del iterator
    gc.collect()
    assert names() <= before and held[1].tolist() == [0, 1]


# ---- random numbers


def test_workers_have_seeds_of_their_own_that_follow_from_the_loaders():
    def draw():
        facula.manual_seed(5)
        return list(data.DataLoader(Seeds(), batch_size=None, num_workers=2))

    first, second = draw(), draw()
    assert first == second
    assert [s[0] for s in first] == [0, 1, 0, 1, 0, 1]
    assert all(s[1] == s[2] == first[0][1] + s[0] for s in first)
    assert len({s[3] for s in first}) == len({s[4] for s in first}) == 6


def test_seeds_are_pytorchs():
    torch = pytest.importorskip("torch")

    class TheirSeeds(torch.utils.data.Dataset):
        def __getitem__(self, index):
            info = torch.utils.data.get_worker_info()
            return [
                info.id,
                info.seed,
                torch.initial_seed(),
                torch.rand(1).item(),
                random.random(),
                numpy.random.rand(),
            ]

        def __len__(self):
            return 6

    facula.manual_seed(5)
    ours = list(data.DataLoader(Seeds(), batch_size=None, num_workers=2, shuffle=True))
    torch.manual_seed(5)
    theirs = list(
        torch.utils.data.DataLoader(TheirSeeds(), batch_size=None, num_workers=2, shuffle=True)
    )
    assert ours == theirs


def test_thread_workers_know_themselves():
    class Who(Squares):
        def __getitem__(self, index):
            generator = facula.random.thread_safe_generator()
            return data.get_worker_info().id, facula.rand(1, generator=generator).item()

    def draw():
        facula.manual_seed(1)
        loader = data.DataLoader(Who(6), batch_size=None, num_workers=2, worker_type="thread")
        return [tuple(x) for x in loader]

    first = draw()
    assert [i for i, _ in first] == [0, 1, 0, 1, 0, 1] and first == draw()
    assert data.get_worker_info() is None


def init_global(worker):
    global initialised
    initialised = worker + 100


def test_worker_init_fn_runs_in_each_worker():
    class Asks(Squares):
        def __getitem__(self, index):
            return initialised

    loader = data.DataLoader(Asks(4), num_workers=2, worker_init_fn=init_global)
    assert values(loader) == [[100], [101], [100], [101]]


# ---- what goes wrong


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize(
    "error", [ValueError("bad sample"), KeyError("bad sample"), OddError(7, "bad sample")]
)
def test_an_error_comes_with_its_type_and_traceback_and_the_loader_goes_on(error, options):
    loader = data.DataLoader(Failing(error), num_workers=2, **options)
    iterator = iter(loader)
    got = [next(iterator).item() for _ in range(4)]
    with pytest.raises(type(error)) as raised:
        next(iterator)
    text = str(raised.value) + str(raised.value.__cause__) + str(raised.traceback[-1].path)
    assert "bad sample" in text and "test_data_workers" in text
    if isinstance(error, OddError):
        assert "multiprocessing_context" not in options or raised.value.args
    assert got + [b.item() for b in iterator] == [0, 1, 2, 3, 5, 6, 7]


def test_an_error_in_worker_init_fn_arrives():
    def fail(worker):
        raise ValueError("no start")

    with pytest.raises(ValueError, match="no start"):
        list(data.DataLoader(Squares(), num_workers=1, worker_init_fn=fail))


def test_a_batch_that_cannot_be_pickled_is_an_error_of_that_batch():
    class Unpicklable(Squares):
        def __getitem__(self, index):
            return (lambda: index) if index == 1 else index

    iterator = iter(data.DataLoader(Unpicklable(3), batch_size=None, num_workers=1))
    assert next(iterator) == 0
    with pytest.raises((AttributeError, TypeError, RuntimeError), match="pickle"):
        next(iterator)
    assert next(iterator) == 2


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("SIGKILL", r"worker \(pid \d+\) is killed by signal: Killed \(SIGKILL; worker 0 of 2"),
        ("SIGTERM", "SIGTERM"),
        ("exit", r"exited unexpectedly with code 3 \(worker 0 of 2, DataLoader-worker-0\)"),
    ],
)
def test_a_dead_worker_is_reported_and_nothing_hangs(how, message):
    iterator = iter(data.DataLoader(Dying(how), num_workers=2))
    workers = iterator._workers
    with pytest.raises(RuntimeError, match=message):
        list(iterator)
    assert not any(w.process.is_alive() for w in workers)
    assert list(iterator) == []


def test_a_worker_that_dies_while_idle_is_reported_by_the_next_epoch():
    loader = data.DataLoader(Squares(6), num_workers=1, persistent_workers=True)
    assert values(loader) == squares(6)
    os.kill(loader._iterator._workers[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="SIGKILL"):
        list(loader)
    assert values(loader) == squares(6)  # with new workers


class Slow(Squares):
    def __getitem__(self, index):
        time.sleep(30 if index == 1 else 0)
        return index


@pytest.mark.parametrize("options", KINDS)
def test_timeout_is_an_error(options):
    iterator = iter(data.DataLoader(Slow(2), num_workers=1, timeout=0.5, **options))
    assert next(iterator).item() == 0
    if "worker_type" in options:
        iterator._workers[0].join = lambda: None  # a sleeping thread cannot be ended
    with pytest.raises(RuntimeError, match=r"timed out after 0.5 seconds"):
        next(iterator)


def test_workers_end_with_their_iterator():
    iterator = iter(data.DataLoader(Squares(10000), num_workers=2))
    next(iterator)
    workers = [w.process for w in iterator._workers]
    del iterator
    gc.collect()
    assert not any(w.is_alive() for w in workers)


def test_workers_end_when_the_program_is_killed():
    program = (
        "import os, time, facula\n"
        "from facula.utils.data import DataLoader\n"
        "it = iter(DataLoader(range(10**6), num_workers=2, worker_init_fn=os.strerror))\n"
        "next(it)\n"
        "print(*[w.pid for w in it._workers], flush=True)\n"
        "time.sleep(60)\n"
    )
    import subprocess
    import sys

    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    pids = [int(p) for p in child.stdout.readline().split()]
    child.kill()
    child.wait()
    child.stdout.close()
    deadline = time.monotonic() + 20
    while any(_runs(p) for p in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(pids) == 2 and not any(_runs(p) for p in pids)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- states


@pytest.mark.parametrize("options", [*KINDS, {"persistent_workers": True}])
@pytest.mark.parametrize("came", [0, 1, 4])
def test_state_with_workers_goes_on_where_it_was(options, came):
    def make():
        return data.DataLoader(Squares(20), batch_size=3, shuffle=True, num_workers=2, **options)

    facula.manual_seed(3)
    loader = make()
    iterator = iter(loader)
    for _ in range(came):
        next(iterator)
    state = loader.state_dict()
    rest = values(iterator)
    resumed = make()
    resumed.load_state_dict(state)
    assert values(resumed) == rest
    assert len(values(resumed)) == 7


@pytest.mark.parametrize("came", [1, 2, 5])
def test_state_of_an_iterable_dataset_with_workers(came):
    def make(workers=2):
        return data.DataLoader(Share(11), batch_size=2, num_workers=workers)

    loader = make()
    iterator = iter(loader)
    for _ in range(came):
        next(iterator)
    state = loader.state_dict()
    rest = values(iterator)
    resumed = make()
    resumed.load_state_dict(state)
    assert values(resumed) == rest
    with pytest.raises(ValueError, match="2 workers"):
        make(1).load_state_dict(state)


@pytest.mark.parametrize("came", [1, 130, 2000])
def test_state_in_the_middle_of_a_message_of_many_batches(came):
    loader = data.DataLoader(Squares(3000), num_workers=2, shuffle=True)
    facula.manual_seed(3)
    iterator = iter(loader)
    for _ in range(came):
        next(iterator)
    state = loader.state_dict()
    assert state["num_yielded"] == came
    rest = [batch.item() for batch in iterator]
    loader.load_state_dict(state)
    assert [batch.item() for batch in loader] == rest


def collate_and_remember(samples):
    """Changes, when it makes a batch, the one that it made before."""
    remembered = collate_and_remember.__dict__
    if "last" in remembered:
        remembered["last"][0].fill_(-1.0)
    remembered["last"] = data.default_collate(samples)
    return remembered["last"]


def test_a_batch_that_the_worker_holds_on_to_arrives_as_it_was():
    loader = data.DataLoader(Large(64), 2, num_workers=2, collate_fn=collate_and_remember)
    for i, (pictures, numbers) in enumerate(loader):
        assert numbers.tolist() == [2 * i, 2 * i + 1]
        assert pictures[:, 0, 0].tolist() == [2.0 * i, 2.0 * i + 1]


def test_slots_of_batches_that_nobody_took_are_used_again():
    loader = data.DataLoader(Large(40), 2, num_workers=2, persistent_workers=True)
    for _ in range(30):
        for pictures, numbers in loader:
            assert pictures[1, 5, 5] == numbers[1]
            break
    assert len(list(loader)) == 20
    for worker in loader._iterator._workers:
        assert len(worker.slots) <= 64  # of hundreds of batches


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("same", [True, False])
def test_state_goes_on_with_persistent_workers_that_are_there_and_with_new_ones(epoch, same):
    def make():
        return data.DataLoader(Squares(30), 2, True, num_workers=2, persistent_workers=True)

    facula.manual_seed(5)
    loader = make()
    for _ in range(epoch):
        list(loader)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = loader.state_dict()
    rest = values(iterator)
    resumed = loader if same else make()
    resumed.load_state_dict(state)
    assert values(resumed) == rest


def test_processes_end_when_their_last_batch_is_made():
    # An epoch that trains would else wait at its end until they are gone.
    iterator = iter(data.DataLoader(Squares(7), 2, num_workers=2))
    assert [next(iterator).tolist() for _ in range(4)] == [[0, 1], [4, 9], [16, 25], [36]]
    for worker in iterator._workers:
        worker.process.join(60)
        assert worker.process.exitcode == 0
    assert list(iterator) == []


def test_processes_do_not_end_before_what_they_share_was_taken():
    import facula.multiprocessing

    class WithGradients(Squares):
        def __getitem__(self, index):
            return {"leaf": facula.full((2,), float(index), requires_grad=True), "large": 2**70}

    found = []
    for sample in data.DataLoader(WithGradients(3), batch_size=None, num_workers=1):
        time.sleep(0.2)  # the process could be gone by now
        found.append(sample["leaf"].tolist())
    assert found == [[0, 0], [1, 1], [2, 2]]


def test_processes_that_stay_do_not_end_with_their_last_batch():
    loader = data.DataLoader(Squares(7), 2, num_workers=2, persistent_workers=True)
    epochs = [[batch.tolist() for batch in loader] for _ in range(3)]
    assert epochs == [[[0, 1], [4, 9], [16, 25], [36]]] * 3
    assert len({worker.pid for worker in loader._iterator._workers}) == 2
    assert all(worker.process.is_alive() for worker in loader._iterator._workers)
