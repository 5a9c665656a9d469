"""Tensors between processes."""

import gc
import multiprocessing
import os
import signal

import numpy as np
import pytest

import facula
import facula.multiprocessing as mp


@pytest.fixture(autouse=True)
def within_minutes():
    def stop(number, frame):
        raise TimeoutError("the test took longer than four minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def add_one(inbox, outbox):
    t = inbox.get()
    t += 1
    outbox.put(t.sum().item())
    inbox.get()  # stay until the other side has seen it


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_queue_hands_memory_over(method):
    context = mp.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=add_one, args=(inbox, outbox), daemon=True)
    process.start()
    t = facula.zeros(3)
    inbox.put(t)
    assert outbox.get(timeout=50) == 3
    assert t.tolist() == [1, 1, 1] and t.is_shared()  # it is the same memory
    inbox.put(None)
    process.join(50)
    assert process.exitcode == 0


def send_many(queue, done):
    base = facula.arange(6.0).view(2, 3)
    parameter = facula.nn.Parameter(facula.ones(2))
    queue.put((base, base[:, 1:].t(), parameter, facula.ones(0), base.untyped_storage()))
    queue.put(base)
    done.wait(50)


def test_views_parameters_and_identity_survive():
    context = mp.get_context("fork")
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=send_many, args=(queue, done), daemon=True)
    process.start()
    base, view, parameter, empty, storage = queue.get(timeout=50)
    again = queue.get(timeout=50)
    done.set()
    process.join(50)
    assert view.tolist() == [[1, 4], [2, 5]] and view.stride() == (1, 3)
    assert isinstance(parameter, facula.nn.Parameter) and parameter.requires_grad
    assert empty.shape == (0,)
    again[0, 1] = 9  # one storage, however often it came
    assert base[0, 1] == 9 and view[0, 0] == 9 and storage.data_ptr() == base.data_ptr()


def test_what_cannot_cross_is_refused():
    t = facula.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="non-leaf"):
        multiprocessing.reduction.ForkingPickler.dumps(t)


def test_sharing_keeps_values_and_takes_no_name():
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    t = facula.arange(5)
    assert not t.is_shared()
    assert t.share_memory_() is t and t.is_shared() and t.tolist() == [0, 1, 2, 3, 4]
    t.share_memory_()
    if os.path.isdir("/dev/shm"):
        assert set(os.listdir("/dev/shm")) <= before
    with pytest.raises(RuntimeError, match="not resizable"):
        t.resize_(100)


def test_tensors_over_arrays_are_shared_as_copies():
    array = np.arange(3.0)
    t = facula.from_numpy(array).share_memory_()
    assert t.is_shared() and t.tolist() == [0.0, 1.0, 2.0]
    t[0] = 7.0
    assert array.tolist() == [0.0, 1.0, 2.0]


def test_arrays_of_a_tensor_stay_readable_when_it_is_shared():
    t = facula.arange(100_000)
    array, bytes_of = t.numpy(), memoryview(t.untyped_storage())
    assert t.share_memory_().is_shared()
    others = [facula.zeros(100_000, dtype=facula.int64) for _ in range(4)]
    assert array[-1] == 99_999 == int(t[-1]) and bytes_of[8] == 1
    del others, bytes_of
    with pytest.raises(RuntimeError, match="not resizable"):
        t.resize_(200_000)


def test_descriptors_go_with_their_tensors():
    def count():
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("there is no list of descriptors")
    gc.collect()
    before = count()
    tensors = [facula.ones(10).share_memory_() for _ in range(50)]
    assert count() == before + 50
    del tensors
    gc.collect()
    assert count() == before


def test_mapping_more_than_there_is_is_refused():
    from facula import _C

    descriptor = _C._make_shared_file(4096)
    with pytest.raises(RuntimeError, match="cannot map"):
        _C._map_shared(descriptor, 8192)


def write_rank(rank, results):
    results[rank] = rank + 1


def fail_at_one(rank):
    if rank == 1:
        raise ValueError("this one fails")


def die(rank):
    os.kill(os.getpid(), signal.SIGKILL)


def test_spawned_processes_share_their_arguments():
    results = facula.zeros(2).share_memory_()
    mp.spawn(write_rank, (results,), nprocs=2)
    assert results.tolist() == [1, 2]


def test_failures_of_started_processes_are_reported():
    with pytest.raises(mp.ProcessRaisedException, match="this one fails") as raised:
        mp.start_processes(fail_at_one, nprocs=2, start_method="fork")
    assert raised.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL") as exited:
        mp.start_processes(die, nprocs=1, start_method="fork")
    assert exited.value.exit_code == -9 and exited.value.signal_name == "SIGKILL"


def test_sharing_strategies_are_accepted():
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="sharing strategy"):
        mp.set_sharing_strategy("telepathy")
