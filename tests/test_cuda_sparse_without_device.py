"""Sparse tensors on a CUDA driver that is none: nothing on the host touches the device's memory.

Kernels are not run there, so values mean nothing, and any Python exception will do; a crash will
not. test_cuda_sparse.py compares results on a device.
"""

import pytest
from fake_cuda import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def run(run_on_fake_cuda):
    def run(program, **variables):
        return run_on_fake_cuda(program, FAKE_CUDA_GUARD="1", **variables)

    return run


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_device_memory_is_left_to_the_device(run, layout):
    run(f"""
        import faulthandler
        from sparse_calls import Inputs, cases, gradients, outcome

        faulthandler.enable()
        for name, call in cases("{layout}").items():
            inputs = Inputs("{layout}", "cuda")
            results = outcome(call, inputs)
            assert "no kernel" not in str(results), name
            if not isinstance(results, Exception):
                gradients(results, inputs)
    """)


def test_positions_lie_where_the_values_do(run):
    run("""
        at, values = F.tensor([[0, 1], [1, 0]]), F.ones(2)
        for s in (
            F.sparse_coo_tensor(at, values.cuda(), (2, 2)),
            F.sparse_coo_tensor(at, values, (2, 2), device="cuda"),
            F.sparse_coo_tensor(at, values, (2, 2)).cuda(),
            F.sparse_coo_tensor(at, values, (2, 2)).to("cuda:0"),
            F.sparse_coo_tensor((2, 2), device="cuda"),
            F.eye(2, device="cuda").to_sparse(),
        ):
            assert s.is_cuda and s._indices().is_cuda and s._values().is_cuda, s
            assert str(s.device) == str(s._indices().device) == "cuda:0"
            assert not s.cpu().is_cuda and not s.cpu()._indices().is_cuda
        assert not F.sparse_coo_tensor(at.cuda(), values, (2, 2))._indices().is_cuda
        for layout in ("csr", "csc"):
            s = getattr(F.eye(2), f"to_sparse_{layout}")().cuda()
            assert s.is_cuda and s.values().is_cuda
            assert (s.crow_indices() if layout == "csr" else s.row_indices()).is_cuda
        with F.device("cuda"):
            assert F.sparse_coo_tensor((2, 2))._indices().is_cuda
            assert F.sparse_coo_tensor([[0], [1]], [1.0], (2, 2))._indices().is_cuda
        m = F.eye(2).to_sparse().cuda().to("meta")
        assert m.is_meta and m._nnz() == 0
    """)


def test_tensors_of_other_devices_are_refused(run):
    run(
        """
        def refused(f):
            try:
                f()
            except RuntimeError as error:
                assert "same device" in str(error), error
            else:
                raise AssertionError("not refused")

        s = F.eye(2).to_sparse()
        there, other = s.cuda(), s.to("cuda:1")
        assert str(other._indices().device) == "cuda:1"
        for f in (
            lambda: there @ F.eye(2),
            lambda: s @ F.eye(2, device="cuda"),
            lambda: there + s,
            lambda: there * F.eye(2),
            lambda: there @ other,
            lambda: F.eye(2).sparse_mask(there),
            lambda: there.index_select(0, F.tensor([0])),
            lambda: F.cat([there, s]),
            lambda: F._C._operators["_sparse_make"](
                s.indices(), None, there.values(), (2, 2), 1, True),
        ):
            refused(f)
        assert str(s.copy_(there).device) == "cpu" and other.copy_(s).is_cuda
    """,
        FAKE_CUDA_DEVICES="2",
    )


def test_products_do_not_wait_for_the_device(run):
    run("""
        for layout in ("csr", "csc", "coo"):
            s = getattr(F.eye(4), "to_sparse" + (f"_{layout}" if layout != "coo" else ""))()
            s, x = s.cuda().requires_grad_(), F.ones(4, 3, device="cuda", requires_grad=True)
            cuda.set_sync_debug_mode("error")
            (s @ x).sum().backward()
            (s.detach() * 2).to_dense(), s.detach().t(), s.detach().clone()
            F.sparse.sum(s.detach())
            cuda.set_sync_debug_mode("default")
            assert s.grad.layout == s.layout and x.grad.is_cuda
    """)


def test_products_of_rows_are_one_launch_without_copies(run):
    run("""
        from fake_cuda_library import launches
        s, x = F.eye(64).to_sparse_csr().cuda(), F.ones(64, 32, device="cuda")
        before, memory = launches(), cuda.memory_allocated()
        y = s @ x
        assert launches() == before + 1
        assert cuda.max_memory_allocated() - memory == y.numel() * 4
    """)


def test_memory_of_sparse_tensors_is_counted_and_given_back(run):
    run("""
        s = F.eye(1000).to_sparse().cuda()
        assert cuda.memory_allocated() >= 1000 * (2 * 8 + 4)
        del s
        assert cuda.memory_allocated() == 0
    """)


def test_lists_of_sparse_tensors_stay_sparse(run):
    run("""
        s = F.eye(4).to_sparse().cuda()
        for made in (F._foreach_mul([s, s], 2), F._foreach_add([s, s], [s, s])):
            assert all(t.is_sparse and t.is_cuda for t in made)
        p = F.nn.Parameter(F.ones(4, 4, device="cuda"))
        p.grad = s
        F.nn.utils.clip_grad_norm_([p], 1.0, foreach=True)
        assert p.grad.is_sparse
    """)


def test_memory_is_shown_by_the_parts_alone(run):
    run("""
        s = F.eye(4).to_sparse().cuda()
        assert not hasattr(s, "__cuda_array_interface__")
        assert s.values().__cuda_array_interface__["shape"] == (4,)
        side = cuda.Stream()
        s.record_stream(side)
        assert isinstance(F.eye(2).to_sparse().cuda(), cuda.sparse.FloatTensor)
        assert cuda.sparse.DoubleTensor(2, 3).is_cuda
        assert not isinstance(F.eye(2).to_sparse().cuda(), F.sparse.FloatTensor)
    """)


def test_work_is_done_where_the_tensors_are(run):
    run(
        """
        from fake_cuda_library import launches
        s, x = F.eye(4).to_sparse_csr().to("cuda:1"), F.ones(4, 2, device="cuda:1")
        there, here = launches(1), launches(0)
        y = s @ x
        F.sparse.sampled_addmm(s, x, x.t(), beta=0), s.to_dense(), s.to_sparse_csc()
        assert str(y.device) == "cuda:1" and launches(1) > there + 3 and launches(0) == here
        assert cuda.current_device() == 0
    """,
        FAKE_CUDA_DEVICES="2",
    )
