"""CUDA graphs on a driver that is none (fake_cuda.py): captures that fail, pools, callables.

What replays compute is tested on devices (test_cuda_runtime.py).
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


def test_an_error_in_the_body_ends_the_capture(run):
    run("""
        x = F.ones(3, device="cuda")
        def interrupt():
            raise KeyboardInterrupt
        for error, work in (
            (RuntimeError, lambda: x + F.ones(4, device="cuda")),  # of the shapes
            (F.AcceleratorError, lambda: x.sum().item()),  # waits, which breaks the capture
            (F.AcceleratorError, cuda.synchronize),
            (KeyError, lambda: {}[1]),
            (KeyboardInterrupt, interrupt),
        ):
            g = cuda.CUDAGraph()
            try:
                with cuda.graph(g):
                    y = x * 2
                    work()
            except BaseException as raised:
                assert type(raised) is error, raised
            else:
                raise AssertionError
            assert not cuda.is_current_stream_capturing()
            assert cuda.current_stream() == cuda.default_stream()
            assert x.sum().item() is not None
            refused(RuntimeError, "without a preceding successful capture", g.replay)
            del y
            cuda.empty_cache()
            with cuda.graph(g):  # the same object can be used
                y = x * 2
            g.replay()
            g.reset()
    """)


def test_a_capture_that_the_driver_ends_with_an_error_gives_its_memory_back(run):
    run("""
        g, side = cuda.CUDAGraph(), cuda.Stream()
        def forked():
            with cuda.graph(g):
                side.wait_stream(cuda.current_stream())
                with cuda.stream(side):
                    F.ones(3, device="cuda") + 1  # and nobody waits for it
        refused(F.AcceleratorError, "cuStreamEndCapture", forked)
        assert cuda.current_stream() == cuda.default_stream() and not side.is_capturing()
        refused(RuntimeError, "without a preceding", g.replay)
        cuda.empty_cache()
        assert cuda.memory_reserved() == 0
        with cuda.graph(g):
            side.wait_stream(cuda.current_stream())
            with cuda.stream(side):
                y = F.ones(3, device="cuda") + 1
            cuda.current_stream().wait_stream(side)
        g.replay()
        fail("cuGraphInstantiateWithFlags", 2)
        h = cuda.CUDAGraph()
        def capture():
            with cuda.graph(h):
                pass
        refused(F.AcceleratorError, "cuGraphInstantiate", capture)
        h.reset()
        capture()
        h.replay()
        fail("cuGraphLaunch", 719)
        refused(F.AcceleratorError, "cuGraphLaunch", h.replay)
        h.replay()
        fail("cuGraphExecDestroy", 1), fail("cuGraphDestroy", 1)
        try:
            h.reset()
        except F.AcceleratorError:
            pass
        refused(RuntimeError, "without a preceding", h.replay)
        h.reset()
        capture()
        h.replay()
    """)


def test_captures_are_not_nested(run):
    run("""
        g, h = cuda.CUDAGraph(), cuda.CUDAGraph()
        x = F.ones(3, device="cuda")
        def inner():
            with cuda.graph(h):
                pass
        with cuda.graph(g):
            y = x + 1
            refused(RuntimeError, "nested", inner)
            refused(RuntimeError, "nested", h.capture_begin)
            refused(RuntimeError, "holds a capture", g.capture_begin)
            assert cuda.is_current_stream_capturing()
            z = y + 1
        g.replay()  # the outer one is whole
        refused(RuntimeError, "capture_end() without", h.capture_end)
        refused(RuntimeError, "Unknown capture error mode", lambda: h.capture_begin(None, "loud"))
    """)


def test_a_capture_ends_on_its_stream(run):
    run("""
        g, s = cuda.CUDAGraph(), cuda.Stream()
        with cuda.stream(s):
            g.capture_begin()
        refused(RuntimeError, "same stream", g.capture_end)
        with cuda.stream(s):
            g.capture_end()
        g.replay()
        del g
        h = cuda.CUDAGraph()
        with cuda.stream(s):
            h.capture_begin()
        del h  # abandoned
        assert not s.is_capturing()
        s.synchronize()
    """)


def test_graphs_share_a_pool(run):
    run("""
        pool = cuda.graph_pool_handle()
        assert pool != cuda.graph_pool_handle()
        graphs, places = [], []
        for _ in range(3):
            g = cuda.CUDAGraph()
            with cuda.graph(g, pool=pool):
                y = F.empty(30 << 20, dtype=F.uint8, device="cuda")
                places.append(y.data_ptr())
                del y
            assert g.pool() == pool
            graphs.append(g)
        assert len(set(places)) == 1  # one uses the memory of the other again
        other = cuda.CUDAGraph()
        with cuda.graph(other, pool=graphs[0].pool()):
            y = F.empty(30 << 20, dtype=F.uint8, device="cuda")
        assert y.data_ptr() == places[0]
        held = cuda.memory_reserved()
        assert F.empty(30 << 20, dtype=F.uint8, device="cuda").data_ptr() != places[0]
        cuda.empty_cache()
        del y
        for g in graphs:
            g.reset()
            cuda.empty_cache()
            assert cuda.memory_reserved() == held  # others still use it
        other.reset()
        cuda.empty_cache()
        assert cuda.memory_reserved() == 0
        mine = cuda.MemPool()
        with cuda.use_mem_pool(mine):
            x = F.empty(30 << 20, dtype=F.uint8, device="cuda")
        with cuda.graph(other, pool=mine.id):
            pass
        assert mine.use_count() == 2
        other.reset()
        assert mine.use_count() == 1
    """)


def test_graphed_callables_take_names_and_return_trees(run):
    run("""
        class Layer(F.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = F.nn.Parameter(F.ones(3, device="cuda"))
                self.unused = F.nn.Parameter(F.ones(3, device="cuda"))
            def forward(self, x, factor):
                y = x * self.weight * factor
                return {"y": y, "pair": (y + 1, None)}, x.detach(), "text"

        layer = Layer()
        sample = (F.ones(3, device="cuda", requires_grad=True), F.ones(3, device="cuda"))
        refused(RuntimeError, "unused", lambda: cuda.make_graphed_callables(Layer(), sample))
        graphed = cuda.make_graphed_callables(layer, sample, allow_unused_input=True)
        assert graphed is layer
        x = F.ones(3, device="cuda", requires_grad=True)
        factor = F.ones(3, device="cuda")
        for call in (lambda: layer(x, factor), lambda: layer(x, factor=factor),
                     lambda: layer(factor=factor, x=x)):
            log = journal(call)
            assert [w.kind for w in log if w.kind in ("graph", "launch")] == ["graph"], log
            result = call()
            assert result[2] == "text" and result[0]["pair"][1] is None
            assert result[0]["y"].requires_grad and not result[1].requires_grad
            x.grad = layer.weight.grad = None
            log = journal(result[0]["y"].sum().backward)
            assert "graph" in [w.kind for w in log]
            assert x.grad.shape == layer.weight.grad.shape == (3,)
            assert layer.unused.grad is None
        refused(TypeError, "missing", lambda: layer(x=x))
        refused(TypeError, "nothing", lambda: layer(x, factor, nothing=1))
        refused(ValueError, "argument 1", lambda: layer(x, F.ones(1, device="cuda")))
        refused(ValueError, "float64", lambda: layer(x, factor.double()))
        refused(TypeError, "built like", lambda: layer(x, [factor]))
        layer.eval()
        log = journal(lambda: layer(x, factor=factor))
        assert "graph" not in [w.kind for w in log]
    """)


def test_gradients_of_graphed_callables_are_not_the_graphs_memory(run):
    run("""
        linear = F.nn.LayerNorm(4).cuda()
        graphed = cuda.make_graphed_callables(linear, (F.ones(2, 4, device="cuda"),))
        def step():
            graphed(F.ones(2, 4, device="cuda")).sum().backward()
        step()
        first = linear.weight.grad.data_ptr()
        version = linear.weight.grad._version
        step()  # adds to what is there
        assert linear.weight.grad.data_ptr() == first
        assert linear.weight.grad._version == version + 1
        linear.zero_grad(set_to_none=True)
        linear.bias.requires_grad_(False)  # frozen after the capture
        step()
        assert linear.bias.grad is None and linear.weight.grad is not None
    """)


def test_several_callables_and_functions(run):
    run("""
        a, b = F.nn.LayerNorm(4).cuda(), lambda x: (x * 2, x + 1)
        x = F.ones(2, 4, device="cuda", requires_grad=True)
        ga, gb = cuda.make_graphed_callables((a, b), ((x,), (x,)))
        first, second = gb(ga(x))
        (first + second).sum().backward()
        assert x.grad.shape == x.shape and a.weight.grad is not None
        with F.no_grad():
            assert not gb(x)[0].requires_grad
        refused(ValueError, "2 callables", lambda: cuda.make_graphed_callables((a, b), ((x,),)))
        refused(TypeError, "only Tensors", lambda: cuda.make_graphed_callables(b, (3,)))
    """)
