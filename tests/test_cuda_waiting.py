"""Threads and CUDA, on a driver that is none (fake_cuda.py): who waits holds nobody up.

The driver's device is held, so that whatever waits for it waits until another thread of the program
lets it go. A program that cannot run that thread hangs, and its time limit is the failure.
"""

import pytest
from fake_cuda import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def run(run_on_fake_cuda):
    return run_on_fake_cuda


@pytest.mark.parametrize(
    "work",
    [
        "cuda.synchronize()",
        "x.sum().item()",
        "float(x[0])",
        "bool(x[0] > 0)",
        "x.tolist()",
        "x.cpu()",
        "x.to('cpu')",
        "host.cuda()",
        "x.copy_(host)",
        "host.copy_(x)",
        "x[x > 0]",
        "x.numpy(force=True)",
        "repr(x)",
        "event.synchronize()",
        "side.synchronize()",
        "cuda.current_stream().synchronize()",
        "F.nn.functional.one_hot(x.long())",
        "F.equal(x, x)",
        "cuda.empty_cache()",
        "F.tensor([1.0, 2.0], device='cuda')",
        "F.isfinite(x).all().item()",
        "F.save(x, __import__('io').BytesIO())",
    ],
)
def test_other_threads_run_while_one_waits_for_the_device(run, work):
    run(f"""
        import threading, time
        from fake_cuda_library import hold
        x, host, side, event = F.zeros(4, device="cuda"), F.zeros(4), cuda.Stream(), cuda.Event()
        unused = F.empty(1 << 24, device="cuda")
        del unused
        event.record()
        began, ended, steps = threading.Event(), [], []

        def wait():
            began.set()
            {work}
            ended.append(True)

        hold(True)
        thread = threading.Thread(target=wait)
        thread.start()
        began.wait()
        for _ in range(20):  # this thread goes on
            time.sleep(0.005)
            steps.append(len(ended))
        assert steps == [0] * 20, "it did not wait"
        hold(False)
        thread.join()
        assert ended
    """)


def test_lines_are_recorded_without_waiting_for_the_interpreter(run):
    """Work without the GIL allocates with locks held; threads with the GIL wait for these locks."""
    run("""
        import threading
        cuda.memory._record_memory_history()
        large = F.ones(1 << 18, device="cuda", requires_grad=True)
        side = [cuda.Stream() for _ in range(4)]

        def work(n):
            with cuda.stream(side[n]):
                for i in range(30):
                    a = large * 2  # without the GIL
                    b = F.rand(5, device="cuda")  # with it
                    c = large.cpu() if i % 10 == 0 else a.clone()
                    if i % 5 == 0:
                        a.sum().backward()
                        cuda.memory_snapshot(), cuda.memory_stats()
                    if i % 7 == 0:
                        cuda.empty_cache()
                        try:
                            F.empty(2 << 30, dtype=F.uint8, device="cuda")
                        except cuda.OutOfMemoryError as error:
                            assert "<string>:" in str(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        import sys
        kept, line = large + 1, sys._getframe().f_lineno
        (block,) = [b for s in cuda.memory_snapshot() for b in s["blocks"]
                    if b["address"] == kept.data_ptr()]
        assert block["frames"][0]["line"] == line, block
    """)


def test_random_numbers_in_captures_do_not_wait_for_the_interpreter(run):
    run("""
        import threading
        cuda.memory._record_memory_history()
        stop = []
        def other():
            while not stop:
                F.rand(3, device="cuda")
        thread = threading.Thread(target=other)
        thread.start()
        for _ in range(20):
            with cuda.graph(cuda.CUDAGraph(), capture_error_mode="thread_local"):
                F.rand(1 << 17, device="cuda")
        stop.append(True)
        thread.join()
    """)
