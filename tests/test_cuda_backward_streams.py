"""Streams in the backward pass, on a driver that is none (fake_cuda.py): who runs where and when.

The driver writes down what is queued. That gradients are right is tested on devices, too
(test_cuda_runtime.py).
"""

import pytest
from fake_cuda import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def run(run_on_fake_cuda):
    import textwrap

    def run(program: str, **options) -> str:
        return run_on_fake_cuda(
            "from fake_cuda_library import *\n" + textwrap.dedent(program), **options
        )

    return run


def test_backward_runs_on_the_streams_of_forward(run):
    run("""
        a, b = cuda.Stream(), cuda.Stream()
        x = F.ones(64, device="cuda", requires_grad=True)
        def forward():
            with cuda.stream(a):
                y = x.exp()
            b.wait_stream(a)
            with cuda.stream(b):
                z = y.sin()
            cuda.current_stream().wait_stream(b)
            return z.cos().sum()
        forward().backward()  # kernels are there
        x.grad = None
        loss = forward()
        log = journal(loss.backward)
        places = [(n, w.stream) for n, w in enumerate(log) if w.kind in ("launch", "set", "copy")]
        streams = [s for _, s in places]
        order = [s for k, s in enumerate(streams) if k == 0 or s != streams[k - 1]]
        assert order == [0, b.cuda_stream, a.cuda_stream] or \\
            order == [0, b.cuda_stream, a.cuda_stream, 0], order
        for (n, s), (m, t) in zip(places, places[1:]):
            assert comes_before(log, n, m), (log[n], log[m])
        # What the program does next on its own stream comes after all of it.
        log += journal(lambda: x.grad.add_(1))
        assert comes_before(log, places[-1][0], len(log) - 1)
        assert cuda.current_stream() == cuda.default_stream()
    """)


def test_gradients_from_two_streams_meet_on_the_stream_of_their_node(run):
    run("""
        s = cuda.Stream(), cuda.Stream()
        x = F.ones(64, device="cuda", requires_grad=True)
        def forward():
            y = x * 2
            parts = []
            for stream in s:
                stream.wait_stream(cuda.current_stream())
                with cuda.stream(stream):
                    parts.append(y.exp())
                cuda.current_stream().wait_stream(stream)
            return (parts[0] * parts[1]).sum()
        forward().backward()
        x.grad = None
        loss = forward()
        log = journal(loss.backward)
        work = [n for n, w in enumerate(log) if w.kind == "launch"]
        ours = [n for n in work if log[n].stream in (s[0].cuda_stream, s[1].cuda_stream)]
        assert {log[n].stream for n in ours} == {t.cuda_stream for t in s}
        last = work[-1]
        assert log[last].stream == 0
        assert all(comes_before(log, n, last) for n in ours)
        assert all(comes_before(log, work[0], n) for n in ours)
    """)


def test_gradients_that_are_asked_for_are_ready_on_the_callers_stream(run):
    run("""
        a, caller = cuda.Stream(), cuda.Stream()
        x = F.ones(64, device="cuda", requires_grad=True)
        with cuda.stream(a):
            y = x.exp()
            z = y.sin()
        def grad():
            with cuda.stream(caller):
                caller.wait_stream(a)
                out = F.autograd.grad(z.sum(), [x, y], retain_graph=True)
                assert cuda.current_stream() == caller
                out[0] + out[1]
        grad()
        log = journal(grad)
        work = [n for n, w in enumerate(log) if w.kind == "launch"]
        assert log[work[-1]].stream == caller.cuda_stream
        theirs = [n for n in work if log[n].stream == a.cuda_stream]
        assert theirs and all(comes_before(log, n, work[-1]) for n in theirs)
    """)


def test_memory_of_gradients_waits_for_the_streams_that_read_them(run):
    run("""
        a = cuda.Stream()
        x = F.ones(1 << 18, device="cuda", requires_grad=True)
        y = x * 2
        a.wait_stream(cuda.current_stream())
        with cuda.stream(a):
            z = (y * y).sum()
        cuda.current_stream().wait_stream(a)
        seen = []
        y.register_hook(lambda grad: seen.append(grad.data_ptr()))
        hold(True)
        z.backward()
        with cuda.stream(a):
            fresh = [F.empty(1 << 18, device="cuda") for _ in range(4)]
        assert not {t.data_ptr() for t in fresh} & set(seen)
        hold(False)
    """)


def test_hooks_see_the_stream_of_their_node(run):
    run("""
        a, caller = cuda.Stream(), cuda.Stream()
        x = F.ones(4, device="cuda", requires_grad=True)
        with cuda.stream(a):
            y = x * 2
        streams = {}
        y.register_hook(lambda grad: streams.update(y=cuda.current_stream()))
        x.register_hook(lambda grad: streams.update(x=cuda.current_stream()))
        x.register_post_accumulate_grad_hook(lambda t: streams.update(after=cuda.current_stream()))
        with cuda.stream(caller):
            y.sum().backward()
            assert cuda.current_stream() == caller
        assert streams == {"y": a, "x": caller, "after": caller}, streams

        class Mine(F.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()
            @staticmethod
            def backward(ctx, grad):
                streams["mine"] = cuda.current_stream()
                raise KeyError("on the way")
        with cuda.stream(a):
            y = Mine.apply(x)
        refused(KeyError, "on the way", y.sum().backward)
        assert streams["mine"] == a and cuda.current_stream() == cuda.default_stream()
    """)


def test_threads_have_streams_of_their_own(run):
    run("""
        import threading
        problems = []
        def work():
            try:
                s = cuda.Stream()
                w = F.ones(32, device="cuda", requires_grad=True)
                with cuda.stream(s):
                    for _ in range(50):
                        (w * 2).exp().sum().backward()
                        assert cuda.current_stream() == s
            except BaseException as error:
                problems.append(error)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not problems, problems
    """)


def test_forward_and_backward_in_a_capture_with_side_streams(run):
    run("""
        side = cuda.Stream()
        x = F.ones(64, device="cuda", requires_grad=True)
        def step():
            main = cuda.current_stream()
            side.wait_stream(main)
            with cuda.stream(side):
                y = x.exp()
            main.wait_stream(side)
            F.autograd.grad((y * 2).sum(), [x])
        step()
        g = cuda.CUDAGraph()
        with cuda.graph(g):  # the side stream joins in forward and in backward
            step()
        g.replay()
    """)


def test_default_streams_need_no_events(run):
    run("""
        x = F.ones(64, device="cuda", requires_grad=True)
        log = journal(lambda: (x * 2).exp().sum().backward())
        assert {w.kind for w in log} <= {"launch", "set", "copy"}
        with cuda.stream(cuda.Stream()):
            pass
        log = journal(lambda: (x * 2).exp().sum().backward())
        assert {w.kind for w in log} <= {"launch", "set", "copy"}
    """)


def test_second_derivatives_and_checkpoints_stay_on_their_streams(run):
    run("""
        from facula.utils.checkpoint import checkpoint
        a = cuda.Stream()
        x = F.ones(64, device="cuda", requires_grad=True)
        def on_stream(work):
            work()
            log = journal(work)
            return {w.stream for w in log if w.kind == "launch"}
        with cuda.stream(a):
            y = (x * x).exp()
        (first,) = F.autograd.grad(y, [x], F.ones_like(y), create_graph=True)
        assert a.cuda_stream in on_stream(
            lambda: F.autograd.grad(first, [x], F.ones_like(first), retain_graph=True))
        for reentrant in (True, False):
            with cuda.stream(a):
                z = checkpoint(lambda t: (t * t).exp(), x, use_reentrant=reentrant)
            log = journal(lambda: F.autograd.backward(z, F.ones_like(z)))
            streams = [w.stream for w in log if w.kind == "launch"]
            assert a.cuda_stream in streams  # the forward work that is done again, and its backward
            assert cuda.current_stream() == cuda.default_stream()
    """)
