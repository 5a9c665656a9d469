"""The CUDA runtime on a driver that is not one (cpp/fake_cuda_driver.cpp): memory, streams, graphs.

Kernels are not run there, so only what the host decides is tested; test_cuda_runtime.py has the
rest. The fake driver has 1 GiB of memory.
"""

import pytest
from fake_cuda import needs_compiler
from package_under_test import F

pytestmark = needs_compiler


@pytest.fixture
def run(run_on_fake_cuda):
    return run_on_fake_cuda


def test_tensors_travel_and_are_counted(run):
    run("""
        x = F.arange(10.0)
        y = x.cuda()
        assert y.is_cuda and y.cpu().tolist() == x.tolist()
        assert cuda.memory_allocated() == 512
        del y
        assert cuda.memory_allocated() == 0 and cuda.memory_reserved() == 2 << 20
        assert cuda.max_memory_allocated() == 512
        cuda.reset_peak_memory_stats()
        assert cuda.max_memory_allocated() == 0
        cuda.empty_cache()
        assert cuda.memory_reserved() == 0
    """)


def test_layouts_survive_the_journey(run):
    run("""
        x = F.arange(24).reshape(2, 3, 4)
        for view in (x.transpose(0, 2), x[:, ::2], x.permute(1, 2, 0)):
            there = view.transpose(0, 1).contiguous().transpose(0, 1).cuda()
            assert there.cpu().tolist() == view.tolist()
    """)


def test_freed_memory_serves_the_next_request(run):
    run("""
        x = F.empty(1 << 20, device="cuda")
        place = x.data_ptr()
        del x
        assert F.empty(1 << 20, device="cuda").data_ptr() == place
        assert cuda.memory_stats()["num_device_alloc"] == 1
    """)


def test_a_block_waits_for_other_streams_that_use_it(run):
    run("""
        side = cuda.Stream()
        x = F.empty(1 << 20, device="cuda")
        x.record_stream(side)
        del x
        stats = cuda.memory_stats()
        assert stats["allocated_bytes.all.current"] == 0
        assert stats["active_bytes.all.current"] == 4 << 20
        y = F.empty(1 << 20, device="cuda")
        assert cuda.memory_stats()["active_bytes.all.current"] == 4 << 20
    """)


def test_streams_have_memory_of_their_own(run):
    run("""
        side = cuda.Stream()
        x = F.empty(100, device="cuda")
        place = x.data_ptr()
        del x
        with cuda.stream(side):
            assert cuda.current_stream() == side
            assert F.empty(100, device="cuda").data_ptr() != place
        assert cuda.current_stream() == cuda.default_stream()
    """)


@pytest.mark.parametrize(
    "settings", ["", "expandable_segments:True", "max_split_size_mb:32"], ids=str
)
def test_live_blocks_never_overlap_and_all_is_given_back(run, settings):
    run(
        """
        import random
        random.seed(1)
        streams, live = [None, cuda.Stream(), cuda.Stream()], []
        for _ in range(2000):
            if live and (random.random() < 0.5 or len(live) > 40):
                live.pop(random.randrange(len(live)))
            with cuda.stream(random.choice(streams)):
                try:
                    size = int(2 ** random.uniform(0, 27))
                    live.append(F.empty(size, dtype=F.uint8, device="cuda"))
                except cuda.OutOfMemoryError:
                    live.clear()
            if live and random.random() < 0.1:
                live[0].record_stream(streams[1])
        places = sorted((t.data_ptr(), t.numel()) for t in live)
        assert all(p + n <= q for (p, n), (q, _) in zip(places, places[1:]))
        stats, segments = cuda.memory_stats(), cuda.memory_snapshot()
        blocks = [b for s in segments for b in s["blocks"]]
        assert sum(b["size"] for b in blocks) == stats["reserved_bytes.all.current"]
        pieces = [b for s in segments if len(s["blocks"]) > 1 for b in s["blocks"]]
        free = [b for b in pieces if b["state"] == "inactive"]
        assert len(free) == stats["inactive_split.all.current"]
        live.clear()
        cuda.empty_cache()
        assert cuda.memory_allocated() == cuda.memory_reserved() == 0
        """,
        FACULA_CUDA_ALLOC_CONF=settings,
    )


def test_growing_segments_need_fewer_pieces(run):
    run(
        """
        parts = [F.empty(100 << 20, dtype=F.uint8, device="cuda") for _ in range(8)]
        del parts
        whole = F.empty(800 << 20, dtype=F.uint8, device="cuda")
        assert cuda.memory_stats()["num_ooms"] == 0 and cuda.memory_reserved() == 800 << 20
        """,
        FACULA_CUDA_ALLOC_CONF="expandable_segments:True",
    )


def test_running_out_is_reported_and_survived(run):
    run("""
        cuda.memory._record_memory_history()
        x = F.empty(600 << 20, dtype=F.uint8, device="cuda")
        try:
            F.empty(600 << 20, dtype=F.uint8, device="cuda")
        except cuda.OutOfMemoryError as error:
            text = str(error)
        for words in ("Tried to allocate 600.00 MiB", "Fake GPU", "424.00 MiB is free",
                      "600.00 MiB is in live tensors", "fragmentation", "<string>:5"):
            assert words in text, (words, text)
        del x
        x = F.empty(900 << 20, dtype=F.uint8, device="cuda")
        assert cuda.memory_stats()["num_ooms"] == 1
    """)


def test_a_process_can_be_held_to_a_share_of_the_memory(run):
    run("""
        cuda.set_per_process_memory_fraction(0.25)
        try:
            F.empty(300 << 20, dtype=F.uint8, device="cuda")
        except cuda.OutOfMemoryError as error:
            assert "256.00 MiB" in str(error)
        else:
            raise AssertionError
        cuda.set_per_process_memory_fraction(1.0)
        F.empty(300 << 20, dtype=F.uint8, device="cuda")
    """)


def test_a_graph_keeps_its_memory(run):
    run("""
        x = F.zeros(1 << 20, device="cuda")
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            assert cuda.is_current_stream_capturing()
            y = F.empty(4 << 20, device="cuda")
            place = y.data_ptr()
            del y
        assert not cuda.is_current_stream_capturing()
        held = cuda.memory_reserved()
        cuda.empty_cache()
        assert cuda.memory_reserved() == held
        assert F.empty(4 << 20, device="cuda").data_ptr() != place
        g.replay()
        g.reset()
        cuda.empty_cache()
        assert cuda.memory_reserved() == 20 << 20
    """)


def test_a_capture_that_fails_leaves_the_stream_usable(run):
    run("""
        g = cuda.CUDAGraph()
        try:
            with cuda.graph(g):
                raise KeyError("in the middle")
        except KeyError:
            pass
        cuda.synchronize()
        with cuda.graph(g):
            pass
        g.replay()
        try:
            g.capture_begin()
        except RuntimeError as error:
            assert "reset()" in str(error)
        try:
            cuda.CUDAGraph().capture_begin()
        except RuntimeError as error:
            assert "non-default stream" in str(error)
        else:
            raise AssertionError
    """)


def test_replays_move_generators_on(run):
    run("""
        def work():
            return F.rand(1000, device="cuda"), F.randn(9, device="cuda", generator=own)

        own = F.Generator("cuda")
        default = cuda.default_generators[0]
        work()
        steps = default.get_offset(), own.get_offset()
        assert min(steps) > 0
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            work()
        assert (default.get_offset(), own.get_offset()) == steps
        for n in (2, 3):
            g.replay()
            assert (default.get_offset(), own.get_offset()) == tuple(n * s for s in steps)
        with cuda.graph(h := cuda.CUDAGraph()):
            work()
            work()
        h.replay()
        assert default.get_offset() == 5 * steps[0]
        g.register_generator_state(own)
        del own  # the graphs keep it
        g.replay()
        g.reset()
        work_without = F.rand(1000, device="cuda")
        assert default.get_offset() == 7 * steps[0]
    """)


def test_optimisers_that_count_on_the_device_read_nothing_back(run):
    run("""
        w = [F.ones(n, device="cuda", requires_grad=True) for n in (3, 5)]
        for p in w:
            p.grad = F.ones_like(p)
        rate = F.full((), 0.1, device="cuda")
        optimizers = [
            getattr(F.optim, name)(w, capturable=True)
            for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adadelta", "ASGD")
        ]
        optimizers += [F.optim.SGD(w, momentum=0.9), F.optim.Rprop(w, capturable=True)]
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
            version = w[0]._version
            with cuda.graph(cuda.CUDAGraph()):  # where waiting is an error
                optimizer.step()
            assert w[0]._version > version
        try:
            with cuda.graph(cuda.CUDAGraph()):
                w[0].sum().item()
        except RuntimeError:
            pass
        else:
            raise AssertionError
    """)


def test_arithmetic_on_lists_is_one_launch(run):
    run("""
        import fake_cuda_library

        def launches(name, *args, **options):
            before = fake_cuda_library.launches()
            result = getattr(F, "_foreach_" + name)(*args, **options)
            assert len(result) == 3
            return fake_cuda_library.launches() - before

        def new():
            return [F.empty(n, 4, device="cuda") for n in (3, 5, 7)]

        x, y, z = new(), new(), new()
        version = x[1]._version
        for name, args in {
            "add": (y,), "sub": (2.0,), "mul": (y,), "div": ([1, 2.0, 3],), "maximum": (y,),
            "addcmul": (y, z, 0.5), "addcdiv": (y, z, [1.0, 2.0, 3.0]), "lerp": (y, 0.3),
            "sqrt": (), "neg": (), "abs": (), "reciprocal": (),
        }.items():
            assert launches(name, x, *args) == 1, name
            assert launches(name + "_", x, *args) == 1, name
        assert x[1]._version == version + 12
        assert launches("add_", x, y, alpha=2) == 1
        assert launches("add", x, x) == 1 and launches("mul_", x, x) == 1

        # One after the other: results that others read, dtypes that differ, gradients.
        assert launches("add_", [x[0], x[0], x[1]], [z[0], z[0], z[1]]) == 3
        assert launches("add_", x, [x[0], x[0][:1].expand(5, 4), z[2]]) == 3
        assert launches("clamp_min", x, 1.0) == 3 and launches("pow", x, 2.0) == 3
        assert launches("add", x, [t.half() for t in y]) == 3
        assert launches("add", x, [t.t().contiguous().t() for t in y]) == 3
        x[0].requires_grad_()
        assert launches("mul", x, y) == 3
        assert F._foreach_mul(x, y)[0].requires_grad
        with F.no_grad():
            assert launches("mul_", x, y) == 1
    """)


def test_pinned_memory_and_copies_that_return_early(run):
    run("""
        x = F.arange(100.0)
        p = x.pin_memory()
        assert p.is_pinned() and not x.is_pinned() and p.tolist() == x.tolist()
        assert p.pin_memory().data_ptr() == p.data_ptr()
        y = p.to("cuda", non_blocking=True)
        back = y.to("cpu", non_blocking=True)
        assert back.is_pinned() and back.tolist() == x.tolist()
        assert F.tensor([1.0, 2.0], pin_memory=True).is_pinned()
        assert F.empty(3, pin_memory=True).is_pinned() and F.zeros(3, pin_memory=True).is_pinned()
        try:
            y.pin_memory()
        except RuntimeError as error:
            assert "only dense CPU tensors can be pinned" in str(error)
        else:
            raise AssertionError
    """)


def test_events_order_streams_and_tell_the_time(run):
    run("""
        a, b = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        assert a.query()
        a.record()
        side = cuda.Stream(priority=-1)
        assert side.priority == -1 and side != cuda.current_stream()
        side.wait_event(a)
        side.wait_stream(cuda.current_stream())
        b.record(side)
        b.synchronize()
        assert a.elapsed_time(b) > 0
        try:
            cuda.Event().elapsed_time(b)
        except ValueError as error:
            assert "recorded" in str(error)
        external = cuda.ExternalStream(side.cuda_stream)
        assert external == side and hash(external) == hash(side)
    """)


def test_interfaces_name_the_stream(run):
    run("""
        x = F.zeros(3, device="cuda")
        assert x.__cuda_array_interface__["version"] == 3
        assert x.__cuda_array_interface__["stream"] == 1
        side = cuda.Stream()
        with cuda.stream(side):
            assert x.__cuda_array_interface__["stream"] == side.cuda_stream
        assert x.__dlpack_device__() == (2, 0)
        y = F.from_dlpack(x)
        assert y.data_ptr() == x.data_ptr() and y.is_cuda
    """)


def test_resizing_keeps_the_content(run):
    run("""
        x = F.arange(4.0).cuda()
        x.resize_(1000)
        assert x[:4].cpu().tolist() == [0, 1, 2, 3] and x.shape == (1000,)
    """)


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="Unrecognized CachingAllocator option: nonsense"):
        F.cuda.memory._set_allocator_settings("nonsense:1")
    with pytest.raises(ValueError, match="more than 20"):
        F.cuda.memory._set_allocator_settings("max_split_size_mb:1")


def test_what_the_driver_refuses_is_an_accelerator_error(run):
    run("""
        assert cuda.AcceleratorError is F.AcceleratorError
        try:
            F.zeros(1, device="cuda:5")
        except F.AcceleratorError as error:
            assert error.error_code == 101 and "device 5 does not exist" in str(error)
        else:
            raise AssertionError
    """)


def test_a_device_without_a_number_is_the_current_one(run):
    run("""
        made = [F.tensor(3.0, device="cuda"), F.tensor([], device=F.device("cuda")),
                F.hann_window(7, device="cuda"), F.empty(2, device="cuda"),
                F.zeros(3, device="cuda").new_tensor([1.0], device="cuda"),
                F.as_tensor([1], device="cuda")]
        with F.device("cuda"):
            made += [F.tensor(1.0), F.tensor([]), F.zeros(2), F.as_tensor([1]), F.hann_window(5)]
        assert {str(t.device) for t in made} == {"cuda:0"}, made
        F.set_default_device("cuda")
        assert F.get_default_device() == F.device("cuda", 0) == F.tensor([1.0]).device
        """)


def test_gradients_of_copies_go_back_to_their_device(run):
    run("""
        z = F.zeros(4, device="cuda", requires_grad=True)
        F.zeros(4).copy_(z).sum().backward()
        assert z.grad.device == z.device
        z.grad = None
        w = F.zeros(8)
        w[2:6] = z
        w.sum().backward()
        assert z.grad.device == z.device
        """)


def test_pickles_keep_the_device(run):
    run("""
        import copy, pickle
        x = F.zeros(3, 2, device="cuda").t()
        for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x),
                      pickle.loads(pickle.dumps(F.nn.Parameter(x)))):
            assert again.device == x.device and again.stride() == x.stride()
        assert copy.copy(x).data_ptr() == x.data_ptr()
        """)


def test_memory_of_others_by_the_cuda_array_interface(run):
    run("""
        import weakref
        class Array:
            def __init__(self, of, **changes):
                self.__cuda_array_interface__ = {**of.__cuda_array_interface__, **changes}
        x = F.zeros(3, 2, device="cuda").t()
        array = Array(x)
        died = weakref.ref(array)
        for t in (F.as_tensor(array, device="cuda"), F.asarray(array)):
            assert t.data_ptr() == x.data_ptr() and t.stride() == x.stride() and t.shape == (2, 3)
            assert t.device == x.device and t.dtype == F.float32
        copied = F.tensor(array, device="cuda")
        assert copied.device == x.device and copied.data_ptr() != x.data_ptr()
        del array
        assert died() is not None  # its tensors keep it
        del t
        assert died() is None
        s = cuda.Stream()
        assert F.asarray(Array(x, stream=s.cuda_stream)).data_ptr() == x.data_ptr()
        assert F.asarray(Array(x, stream=None)).data_ptr() == x.data_ptr()
        assert F.asarray(Array(F.zeros(0, 3, device="cuda"))).shape == (0, 3)
        here = F.zeros(4)
        for changes in (dict(mask=[1]), dict(stream=0), dict(strides=(3, 8)), dict(shape=(-1, 2)),
                        dict(data=(0, False)), dict(data=(here.data_ptr(), False))):
            try:
                F.asarray(Array(x, **changes))
            except ValueError as error:
                assert "array" in str(error), error
            else:
                raise AssertionError(changes)
        """)


def test_cross_entropy_runs_in_float32_in_autocast(run):
    run("""
        x = F.zeros(4, 3, device="cuda", dtype=F.float16)
        labels = F.zeros(4, dtype=F.int64, device="cuda")
        with F.autocast("cuda", dtype=F.float16):
            assert F.nn.functional.cross_entropy(x, labels).dtype is F.float32
        """)


def test_waiting_for_values_is_reported_where_a_program_asks_for_it(run):
    run("""
        import warnings
        assert cuda.get_sync_debug_mode() == 0
        x = F.zeros(3, device="cuda")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x.sum().item(), x.cpu(), cuda.synchronize()
        for mode, number in (("warn", 1), (1, 1), ("error", 2), (2, 2), ("default", 0), (0, 0)):
            cuda.set_sync_debug_mode(mode)
            assert cuda.get_sync_debug_mode() == number
        cuda.set_sync_debug_mode("warn")
        for work in (lambda: x[0].item(), x.cpu, lambda: F.ones(2).cuda()):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                work()
            assert ["called a synchronizing CUDA operation"] == [str(w.message) for w in seen]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            x + 1, cuda.synchronize(), F.ones(2).pin_memory().to("cuda", non_blocking=True)
        assert not seen
        cuda.set_sync_debug_mode("error")
        try:
            x.cpu()
        except RuntimeError as error:
            assert "synchronizing" in str(error)
        else:
            raise AssertionError("it waited")
        cuda.set_sync_debug_mode(0)
        assert x.cpu().shape == (3,)
        for wrong in (3, "loud"):
            try:
                cuda.set_sync_debug_mode(wrong)
            except RuntimeError as error:
                assert "debug_mode" in str(error)
            else:
                raise AssertionError(wrong)
        """)


def test_facts_about_a_device(run):
    run("""
        p = cuda.get_device_properties("cuda")
        assert p.uuid == "abababab-abab-abab-abab-abababababab" and p.major == 9
        assert p.is_multi_gpu_board == 0 and p.shared_memory_per_multiprocessor >= 0
        try:
            cuda.get_device_properties(99)
        except AssertionError as error:
            assert "99" in str(error)
        else:
            raise RuntimeError("no error")
        """)
