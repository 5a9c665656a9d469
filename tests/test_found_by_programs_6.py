"""Differences from PyTorch that programs written for it have shown, sixth part."""

import contextlib
import importlib
import io
import math
import pickle
import sys
import warnings

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

nn = F.nn
f = F.nn.functional
D = F.distributions


@contextlib.contextmanager
def every_warning():
    """Also those that are shown once in a program."""
    before = F.is_warn_always_enabled()
    F.set_warn_always(True)
    try:
        yield
    finally:
        F.set_warn_always(before)


# ---- nodes show gradients of outputs that have one

X = [[1.0, 3.0], [5.0, 4.0], [0.0, 2.0]]
WITH_INDICES_OR_STATISTICS = {
    "max": lambda x: x.max(1)[0],
    "sort": lambda x: x.sort()[0],
    "topk": lambda x: x.topk(1)[0],
    "kthvalue": lambda x: x.kthvalue(1)[0],
    "mode": lambda x: x.mode()[0],
    "cummax": lambda x: x.cummax(0)[0],
    "max_pool1d": lambda x: f.max_pool1d(x[None], 2),
    "max_pool2d": lambda x: f.max_pool2d(x[None, None], 2),
    "layer_norm": lambda x: f.layer_norm(x, (2,)),
    "batch_norm": lambda x: nn.BatchNorm1d(2)(x),
}


@pytest.mark.parametrize("name", WITH_INDICES_OR_STATISTICS)
def test_hooks_of_nodes_do_not_see_indices_and_statistics(name):
    x = F.tensor(X, requires_grad=True)
    y = WITH_INDICES_OR_STATISTICS[name](x)
    node = y.grad_fn
    while node.name().startswith("Squeeze"):  # of the dimension that a pooling row was given
        node = node.next_functions[0][0]
    seen = []
    node.register_prehook(lambda grads: seen.append(len(grads)))
    node.register_hook(lambda inputs, grads: seen.append(len(grads)))
    y.sum().backward()
    assert seen == [1, 1] and len(node._input_metadata) == 1


def test_two_differentiable_results_are_both_seen():
    matrix = F.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    seen = []
    logarithm = F.linalg.slogdet(matrix)[1]
    logarithm.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    logarithm.backward()
    values = F.tensor(X, requires_grad=True).aminmax(dim=0)[0]
    values.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    values.sum().backward()
    assert seen == [2, 2]


def test_a_prehook_replaces_the_gradient_of_the_values():
    x = F.tensor(X, requires_grad=True)
    y = x.max(1)[0]
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.sum().backward()
    assert_equal(x.grad, [[0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])


def test_a_node_is_called_with_the_gradient_of_the_values():
    x = F.tensor(X, requires_grad=True)
    assert_equal(x.topk(1)[0].grad_fn(F.ones(3, 1)), [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(TypeError):
        x.topk(1)[0].grad_fn(F.ones(3, 1), None)


def test_the_older_hooks_of_modules_see_the_gradient_of_a_pooling_layer():
    layer, seen = nn.MaxPool2d(2), []
    layer.register_backward_hook(lambda module, inputs, grads: seen.append([*grads]))
    layer(F.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()).sum().backward()
    ((grad,),) = seen
    assert grad.shape == (1, 1, 2, 2)


def test_saved_scales_of_interpolation_are_numbers():
    x = F.ones(1, 2, 8, requires_grad=True)
    node = f.interpolate(x, scale_factor=0.5, mode="linear").grad_fn
    assert node._saved_scales == 0.5 and node._saved_output_size == (4,)
    assert f.interpolate(x, size=4, mode="linear").grad_fn._saved_scales is None
    assert f.interpolate(x, scale_factor=0.5, mode="nearest").grad_fn._saved_scales == 0.5
    node = f.interpolate(x[None], scale_factor=(0.5, 2), mode="bilinear").grad_fn
    assert (node._saved_scales_h, node._saved_scales_w) == (0.5, 2.0)
    node = f.interpolate(x[None], size=4, mode="bicubic").grad_fn
    assert node._saved_scales_h is None and node._saved_scales_w is None


# ---- checkpoints


def saved(obj, **options):
    file = io.BytesIO()
    F.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("zip_archive", [True, False])
def test_local_objects_are_refused_as_pickle_refuses_them(zip_archive):
    class Local:
        pass

    error = pickle.PicklingError if sys.version_info >= (3, 14) else AttributeError
    for obj in (lambda x: x, Local, Local(), {"a": [Local()]}):
        with pytest.raises(error, match=r"local object .*<locals>\.(Local|<lambda>)"):
            saved(obj, _use_new_zipfile_serialization=zip_archive)


def test_another_pickle_is_a_runtime_error_where_code_is_trusted():
    data = pickle.dumps({"a": 1})
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        F.load(io.BytesIO(data), weights_only=False)
    with pytest.raises(pickle.UnpicklingError):
        F.load(io.BytesIO(data), weights_only=True)
    with pytest.raises(pickle.UnpicklingError):
        F.load(io.BytesIO(b"abc"), weights_only=False)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_sparse_tensors_can_be_loaded_without_data(kind):
    dense = F.eye(2)
    t = dense.to_sparse_bsr((1, 2)) if kind == "bsr" else dense.to_sparse(layout=LAYOUTS[kind])
    found = F.load(saved({"s": t}), map_location="meta")["s"]
    assert found.device.type == "meta" and found.layout == t.layout
    assert found.shape == (2, 2) and found.dtype == F.float32


LAYOUTS = {"coo": F.sparse_coo, "csr": F.sparse_csr, "csc": F.sparse_csc}


def jagged(*sizes, **options):
    parts = [F.arange(float(3 * n)).reshape(n, 3) for n in sizes]
    return F.nested.nested_tensor(parts, layout=F.jagged, **options)


@pytest.mark.parametrize("weights_only", [True, False])
def test_nested_tensors_are_loaded(weights_only):
    nt = jagged(2, 1, requires_grad=True)
    back = F.load(saved({"a": nt, "b": nt}), weights_only=weights_only)
    found = back["a"]
    assert found.is_nested and found.requires_grad and found is back["b"]
    assert_equal(found.values(), nt.values())
    assert_equal(found.offsets(), [0, 2, 3])
    assert found.shape[0] == 2 and found.shape[2] == 3


def test_nested_tensors_with_holes_are_loaded():
    x = F.arange(24.0).reshape(2, 4, 3)
    nt = F.nested.narrow(x, 1, F.tensor([0, 1]), F.tensor([2, 3]), layout=F.jagged)
    found = F.load(saved(nt))
    assert_equal(found.lengths(), [2, 3])
    assert_equal(found.unbind()[1], x[1, 1:4])


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch believes what a file says")
def test_parts_of_nested_tensors_are_checked():
    from facula._checkpoint import rebuild

    good = {"values": F.ones(3, 2), "offsets": F.tensor([0, 1, 3]), "lengths": None}
    assert rebuild.jagged_tensor(good).is_nested
    for wrong in (
        {"offsets": F.tensor([0, 1, 4])},
        {"offsets": F.tensor([0.0, 3.0])},
        {"offsets": None},
        {"values": [1]},
        {"_ragged_idx": "x"},
        {"lengths": F.tensor([5, 5])},
    ):
        with pytest.raises(RuntimeError, match="corrupt checkpoint"):
            rebuild.jagged_tensor(good | wrong)


# ---- nested tensors


def values_of(nt):
    assert nt.is_nested
    return nt.values().tolist()


def test_nested_tensors_are_compared_and_combined_with_symbols():
    n = jagged(1, 1)  # 0 1 2, 0 1 2
    assert values_of(n == n) == [[True] * 3] * 2
    assert values_of(1 == n) == [[False, True, False]] * 2  # noqa: SIM300
    assert values_of(~(n > 0)) == [[True, False, False]] * 2
    assert values_of((n > 0) & (n < 2)) == [[False, True, False]] * 2
    assert values_of(True & (n > 0)) == [[False, True, True]] * 2
    assert values_of((n > 1) | (n == 0)) == [[True, False, True]] * 2
    assert values_of((n > 0) ^ (n > 1)) == [[False, True, False]] * 2
    assert values_of(n.int() << 1) == [[0, 2, 4]] * 2
    assert values_of(1 << n.int()) == [[1, 2, 4]] * 2
    mask = n > 0
    mask &= n < 2
    assert values_of(mask) == [[False, True, False]] * 2


def test_nested_tensors_differ_from_other_objects():
    n = jagged(1, 2)
    assert (n == None) is False and (n != None) is True  # noqa: E711
    assert (n == "a") is False
    assert [n].index(n) == 0


def test_positions_of_the_largest_entries_of_nested_tensors():
    n = F.nested.nested_tensor(
        [F.tensor([[1.0, 4.0], [3.0, -2.0]]), F.tensor([[-5.0, -7.0]])], layout=F.jagged
    )
    assert values_of(n.argmax(-1)) == [1, 0, 0]
    assert values_of(n.argmin(-1, keepdim=True)) == [[0], [1], [1]]
    assert_equal(n.argmax(1), [[1, 0], [0, 0]])


def test_a_nested_tensor_may_have_no_components():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nt = F.nested.nested_tensor([])
        assert nt.size(0) == 0 and nt.numel() == 0 and len(nt.unbind()) == 0
        assert nt.dtype == F.float32
        assert F.nested.nested_tensor([], dtype=F.int32).dtype == F.int32
        assert F.nested.as_nested_tensor([]).size(0) == 0
    for make in (F.nested.nested_tensor, F.nested.as_nested_tensor):
        with pytest.raises(RuntimeError, match="from an empty tensor list"):
            make([], layout=F.jagged)


# ---- older orders of arguments

EYE = F.eye(2) * 3
COUNT = F.tensor([[1.0, 2.0], [3.0, 4.0]])
ONES = F.ones(2, 2)
OLDER = {
    "addmm": (lambda b, *a: F.addmm(b, ONES, *a, EYE, COUNT), [[3.0, 6.0], [9.0, 12.0]]),
    "addmv": (lambda b, *a: F.addmv(b, ONES[0], *a, EYE, COUNT[0]), [3.0, 6.0]),
    "addr": (lambda b, *a: F.addr(b, ONES, *a, EYE[0], COUNT[0]), [[3.0, 6.0], [0.0, 0.0]]),
    "baddbmm": (
        lambda b, *a: F.baddbmm(b, ONES[None], *a, EYE[None], COUNT[None]),
        [[[3.0, 6.0], [9.0, 12.0]]],
    ),
    "addbmm": (
        lambda b, *a: F.addbmm(b, ONES, *a, EYE[None], COUNT[None]),
        [[3.0, 6.0], [9.0, 12.0]],
    ),
}


@pytest.mark.parametrize("name", OLDER)
def test_functions_take_beta_in_front_of_the_input(name):
    function, product = OLDER[name]
    product = F.tensor(product)
    with every_warning():
        with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
            assert_close(function(2, 5), 2 + 5 * product)
        with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
            assert_close(function(2), 2 + product)


def test_numbers_behind_the_input_are_for_methods():
    with every_warning(), pytest.warns(UserWarning, match="This overload of addmm is deprecated"):
        assert_close(ONES.addmm(2, 5, EYE, COUNT), 2 + 5 * (EYE @ COUNT))
    with pytest.raises(TypeError):
        F.addmm(ONES, 2, 5, EYE, COUNT)
    out = F.empty(2, 2)
    with every_warning(), pytest.warns(UserWarning, match="This overload of addmm is deprecated"):
        assert F.addmm(2, ONES, EYE, COUNT, out=out) is out
    assert_close(out, 2 + EYE @ COUNT)


@pytest.mark.parametrize("name", ["add", "sub", "add_", "sub_"])
def test_of_two_numbers_the_last_is_alpha(name):
    x, sign = F.ones(2), 1 if name.startswith("add") else -1
    with every_warning():
        with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
            found = getattr(x.clone(), name)(3, 0.5)
        assert_close(found, F.full((2,), 1 + sign * 1.5))
        with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
            found = getattr(x.clone(), name)(3, F.arange(2.0))
        assert_close(found, F.tensor([1.0, 1 + sign * 3.0]))
    if not name.endswith("_"):
        with pytest.warns(UserWarning) if IS_FACULA else contextlib.nullcontext():
            assert_close(getattr(F, name)(x, 3, 0.5), F.full((2,), 1 + sign * 1.5))


def test_alpha_of_two_numbers_is_no_older_form_of_rsub_and_subtract():
    with warnings.catch_warnings(), every_warning():
        warnings.simplefilter("error")
        assert_close(F.rsub(F.ones(2), 3, 0.5), F.full((2,), 2.5))
        assert_close(F.subtract(F.ones(2), 3, 0.5), F.full((2,), -0.5))
    with pytest.raises(TypeError):
        F.mul(F.ones(2), 3, 0.5)


# ---- layouts


@pytest.mark.parametrize(
    "size, wanted, strides",
    [
        ((2, 2), (1, 2, 2), (4, 2, 1)),
        ((2, 2), (3, 2, 2), (0, 2, 1)),
        ((3,), (1, 1, 3), (3, 3, 1)),
        ((3,), (2, 1, 3), (0, 3, 1)),
        ((3,), (1, 2, 3), (0, 0, 1)),
        ((1, 3), (2, 1, 4, 3), (0, 0, 0, 1)),
        ((1,), (1, 5), (0, 0)),
        ((), (1, 1), (0, 0)),
        ((0,), (1, 0), (0, 1)),
        ((1, 3), (1, -1), (3, 1)),
    ],
)
def test_new_dimensions_of_size_one_have_the_stride_of_a_whole_tensor(size, wanted, strides):
    assert F.ones(size).expand(wanted).stride() == strides


# ---- small functions


def test_tensors_without_data_cannot_be_compared():
    x = F.ones(2, device="meta")
    for other in (x, F.ones(2, device="meta"), F.ones(3, device="meta")):
        with pytest.raises(NotImplementedError):
            F.equal(x, other)


def test_an_unknown_precision_of_products_changes_nothing():
    before = F.get_float32_matmul_precision()
    with every_warning(), pytest.warns(UserWarning, match="x is not one of 'highest', 'high', or"):
        F.set_float32_matmul_precision("x")
    assert F.get_float32_matmul_precision() == before
    with pytest.raises(RuntimeError, match="set_float32_matmul_precision expects a str, but got"):
        F.set_float32_matmul_precision(3)


def test_a_grad_mode_says_where_it_is_from():
    text = f"{F.__name__}.autograd.grad_mode.set_grad_enabled(mode=True)"
    assert repr(F.set_grad_enabled(True)) == str(F.set_grad_enabled(True)) == text


# ---- names that libraries import


def module(name):
    return importlib.import_module(f"{F.__name__}.{name}")


def test_functional_has_what_overridable_functions_ask():
    assert f.has_torch_function((F.ones(1),)) is False
    assert f.has_torch_function_unary(F.ones(1)) is False
    assert callable(f.handle_torch_function) and callable(f.has_torch_function_variadic)


def test_tensors_are_taken_in_chunks_of_bytes():
    a, b, c = F.ones(4), F.ones(2, dtype=F.float64), F.ones(4)
    chunks = [*module("_utils")._take_tensors([a, b, c], 16)]
    assert sorted([*map(id, chunk)] for chunk in chunks) == sorted([[id(t)] for t in (a, b, c)])
    (both, alone) = module("_utils")._take_tensors([a, b, c], 32)
    assert both[0] is a and both[1] is c and alone[0] is b


def test_errors_of_other_threads_are_raised_again():
    wrapper = module("_utils").ExceptionWrapper
    for error, kind in ((ValueError("seven"), ValueError), (KeyError("k"), KeyError)):
        try:
            raise error
        except Exception:
            kept = wrapper(where="in thread 1")
        with pytest.raises(kind, match=rf"Caught {kind.__name__} in thread 1\.\nOriginal "):
            kept.reraise()

    class Two(Exception):
        def __init__(self, a, b):
            super().__init__(a)

    try:
        raise Two(1, 2)
    except Two:
        kept = wrapper()
    with pytest.raises(RuntimeError, match="Caught Two in background"):
        kept.reraise()


def test_get_lr_may_be_called_inside_of_a_block():
    scheduler = F.optim.lr_scheduler.StepLR(F.optim.SGD([nn.Parameter(F.ones(1))], lr=0.5), 2)
    with warnings.catch_warnings(), F.optim.lr_scheduler._enable_get_lr_call(scheduler):
        warnings.simplefilter("error")
        assert scheduler.get_lr() == [0.5]
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


def test_initialisers_without_a_tape():
    w = nn.Parameter(F.empty(100))
    assert nn.init._no_grad_trunc_normal_(w, 0.0, 1.0, -0.5, 0.5) is w
    assert w.abs().max() <= 0.5
    assert nn.init._no_grad_fill_(w, 2.0).sum() == 200 and nn.init._no_grad_zero_(w).sum() == 0
    nn.init._no_grad_uniform_(w, 1.0, 2.0)
    assert w.min() >= 1 and w.max() <= 2


def test_context_managers_of_libraries_are_decorators():
    class Noting(module("utils._contextlib")._DecoratorContextManager):
        depth = 0

        def __enter__(self):
            Noting.depth += 1

        def __exit__(self, *exc):
            Noting.depth -= 1

    @Noting()
    def depth():
        return Noting.depth

    assert depth() == 1 and Noting.depth == 0
    assert isinstance(F.no_grad(), module("utils._contextlib")._DecoratorContextManager)


def test_a_device_context_puts_new_tensors_on_the_device():
    device = module("utils._device")
    with device.DeviceContext(F.device("meta")):
        assert F.ones(1).is_meta
    assert not F.ones(1).is_meta


def test_bases_and_generators_of_the_core():
    assert isinstance(F.ones(1), F._C._TensorBase)
    assert F._C.default_generator is F.default_generator


def test_cuda_is_initialised_by_its_inner_name():
    if F.cuda.is_available():
        F.cuda._lazy_init()
    else:
        with pytest.raises((RuntimeError, AssertionError)):
            F.cuda._lazy_init()


def test_fetchers_make_batches():
    fetch = module("utils.data._utils.fetch")
    samples = [F.tensor(float(i)) for i in range(5)]
    of_map = fetch._MapDatasetFetcher(samples, True, F.stack, False)
    assert of_map.fetch([3, 1]).tolist() == [3.0, 1.0]
    one = fetch._MapDatasetFetcher(samples, False, lambda x: x, False)
    assert one.fetch(2).item() == 2.0

    class Stream(F.utils.data.IterableDataset):
        def __iter__(self):
            return iter(samples)

    stream = fetch._IterableDatasetFetcher(Stream(), True, F.stack, True)
    assert stream.fetch([None] * 3).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(StopIteration):
        stream.fetch([None] * 3)


def test_small_names_of_libraries():
    assert next(iter(module("utils.data.dataloader")._InfiniteConstantSampler())) is None
    infer = module("utils.checkpoint")._infer_device_type
    assert infer(1, {"a": F.ones(1, device="meta")}) == "meta"
    assert module("_utils")._get_all_device_indices() is None or F.cuda.is_available()
    assert_equal(F.from_dlpack(F.utils.dlpack.from_dlpack(F.to_dlpack(F.ones(2)))), [1.0, 1.0])
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert F.ones(1).volatile is False


REMOVED = {
    "matrix_rank": "linalg.matrix_rank",
    "solve": "linalg.solve",
    "lstsq": "linalg.lstsq",
    "eig": "linalg.eig",
    "symeig": "linalg.eigh",
}


@pytest.mark.parametrize("name", REMOVED)
def test_removed_functions_name_the_one_to_use(name):
    start = "This function was deprecated since version 1.9 and is now removed."
    args = (F.eye(2), F.eye(2)) if name in ("solve", "lstsq") else (F.eye(2),)
    with pytest.raises(RuntimeError, match=start) as error:
        getattr(F, name)(*args)
    assert REMOVED[name] in str(error.value)
    if name == "matrix_rank":
        assert not hasattr(F.eye(2), name)
        return
    with pytest.raises(RuntimeError, match=start):
        getattr(args[0], name)(*args[1:])
    if len(args) == 2:
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'other'"):
            getattr(args[0], name)()


# ---- warnings about what is to be replaced

MATRIX = F.tensor([[4.0, 2.0], [2.0, 5.0]])
FACTORS = F.linalg.lu_factor(MATRIX)
DEPRECATED = {
    "x.T of a number": (lambda: F.tensor(1.0).T, "Tensor.T is deprecated on 0-D tensors"),
    "x.mT of a number": (lambda: F.tensor(1.0).mT, "Tensor.mT is deprecated on 0-D tensors"),
    "x.H of a number": (lambda: F.tensor(1.0).H, "Tensor.H is deprecated on 0-D tensors"),
    "x.T of a vector": (lambda: F.ones(2).T, "The use of `x.T` on tensors of dimension other"),
    "x.T of 3 dimensions": (
        lambda: F.ones(2, 3, 4).T,
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is dep",
    ),
    "qr": (lambda: F.qr(MATRIX), r"qr is deprecated in favor of (torch\.)?linalg\.qr"),
    "Tensor.qr": (lambda: MATRIX.qr(), r"qr is deprecated in favor of (torch\.)?linalg\.qr"),
    "cholesky": (lambda: F.cholesky(MATRIX), r"cholesky is deprecated in favor of"),
    "lu_solve": (
        lambda: F.lu_solve(F.ones(2, 1), *FACTORS),
        r"lu_solve is deprecated in favor of (torch\.)?linalg\.lu_solve",
    ),
    "triangular_solve": (
        lambda: F.triangular_solve(F.ones(2, 1), MATRIX),
        r"triangular_solve is deprecated in favor of (torch\.)?linalg\.solve_triangular",
    ),
    "chain_matmul": (
        lambda: F.chain_matmul(MATRIX, MATRIX),
        "chain_matmul is deprecated and will be removed in a future",
    ),
    "cross": (
        lambda: F.cross(F.eye(3), F.eye(3)),
        r"Using (torch\.)?cross without specifying the dim arg is deprecated",
    ),
    "complex modules": (
        lambda: nn.Linear(1, 1).to(F.complex64),
        "Complex modules are a new feature",
    ),
}


@pytest.mark.parametrize("name", DEPRECATED)
def test_what_is_to_be_replaced_is_said(name):
    function, start = DEPRECATED[name]
    with every_warning(), pytest.warns(UserWarning, match=start):
        function()


def test_what_takes_the_place_is_silent():
    with warnings.catch_warnings(), every_warning():
        warnings.simplefilter("error")
        assert F.ones(2, 3).T.shape == (3, 2) and F.ones(2, 3, 4).mT.shape == (2, 4, 3)
        F.cross(F.eye(3), F.eye(3), dim=1)
        F.linalg.cross(F.eye(3), F.eye(3))
        F.linalg.qr(MATRIX)
        F.linalg.lu_solve(*FACTORS, F.ones(2, 1))
        nn.Linear(1, 1).to(F.float64)


def test_a_deprecation_is_said_once():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            F.ones(3).T  # noqa: B018
    assert len(seen) <= 1


def test_nested_tensors_go_from_and_to_pytorch():
    torch = pytest.importorskip("torch")
    theirs = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=torch.jagged)
    theirs.note = "kept"
    file = io.BytesIO()
    torch.save([theirs], file)
    for weights_only in (True, False):
        file.seek(0)
        (found,) = F.load(file, weights_only=weights_only)
        assert found.values().tolist() == theirs.values().tolist()
        assert found.offsets().tolist() == [0, 2, 3] and found.note == "kept"
    back = torch.load(saved([found]), weights_only=True)[0]
    assert back.values().tolist() == found.values().tolist()
    assert back.requires_grad is False and back.note == "kept"


# ---- distributions inside of function transforms: their checks are of the whole batch

PLACES = F.tensor([0.5, 1.0, 1.7])
INSIDE = {
    "a normal value": (lambda x: D.Normal(0.0, 1.0).log_prob(x), [-1.0439, -1.4189, -2.3639]),
    "a normal place": (
        lambda x: D.Normal(x, 1.0).log_prob(F.zeros(())),
        [-1.0439, -1.4189, -2.3639],
    ),
    "a rate": (lambda x: D.Exponential(x).log_prob(x), [-0.9431, -1.0, -2.3594]),
    "log-odds": (
        lambda x: D.Categorical(logits=F.stack([x, 2 * x])).log_prob(F.tensor(1)),
        [-0.4741, -0.3133, -0.1678],
    ),
    "a vector": (
        lambda x: D.MultivariateNormal(F.stack([x, x]), F.eye(2)).log_prob(F.zeros(2)),
        [-2.0879, -2.8379, -4.7279],
    ),
    "a divergence": (
        lambda x: D.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, x)),
        [1.3069, 0.5, 0.7036],
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_distributions_take_elements_of_batches(name):
    function, expected = INSIDE[name]
    assert_close(F.vmap(function)(PLACES), F.tensor(expected), 1e-3)
    twice = F.vmap(F.vmap(function))(F.stack([PLACES, PLACES]))
    assert_close(twice, F.tensor([expected, expected]), 1e-3)
    slopes = F.vmap(F.func.grad(function))(PLACES)
    step = 1e-2
    differences = F.stack([(function(x + step) - function(x - step)) / (2 * step) for x in PLACES])
    assert_close(slopes, differences, 2e-3, 1e-3)


def test_one_bad_element_of_a_batch_is_refused():
    with pytest.raises(ValueError, match="Expected parameter scale"):
        F.vmap(lambda x: D.Normal(F.zeros(2), x).mean)(F.tensor([[1.0, 2.0], [1.0, -1.0]]))
    with pytest.raises(ValueError, match="to be within the support"):
        F.vmap(D.Exponential(F.ones(2)).log_prob)(F.tensor([[1.0, 2.0], [1.0, -1.0]]))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch asks for the truth of batches there")
def test_matrices_of_a_batch_are_checked():
    def function(x):
        return D.MultivariateNormal(F.zeros(2), F.eye(2) * x).log_prob(F.ones(2) * x)

    assert_close(F.vmap(function)(PLACES), F.tensor([-1.6447, -2.8379, -4.0685]), 1e-4)
    with pytest.raises(ValueError, match="PositiveDefinite"):
        F.vmap(function)(F.tensor([1.0, -1.0]))
    geometric = F.vmap(lambda p: D.Geometric(p).log_prob(F.tensor(1.0)))
    assert_close(geometric(F.tensor([0.5, 0.25])), F.tensor([0.25, 0.1875]).log(), 1e-6)


# ---- checkpoints inside of function transforms


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch does not get back from the checkpoint")
def test_checkpoints_take_elements_of_batches():
    checkpoint = importlib.import_module(F.__name__ + ".utils.checkpoint").checkpoint

    def function(x):
        return checkpoint(lambda y: y.sin() * 2, x, use_reentrant=False)

    x = F.tensor([0.0, 1.0], requires_grad=True)
    y = F.vmap(function)(x)
    assert_close(y, F.tensor([0.0, 1.6829]), 1e-4)
    y.sum().backward()
    assert_close(x.grad, F.tensor([2.0, 1.0806]), 1e-4)
    slope = F.func.jacfwd(function)(F.tensor([0.0, 1.0]))
    assert_close(slope, F.tensor([[2.0, 0.0], [0.0, 1.0806]]), 1e-4)


# ---- numbers that are read of tensors with history

READ = {
    "float": float,
    "complex": complex,
    "math.sqrt": math.sqrt,
    "a format": lambda x: "%f" % x,  # noqa: UP031
    "tensor": lambda x: F.tensor([x, 1.0]),
    "new_tensor": lambda x: x.new_tensor([[x]]),
}


@pytest.mark.parametrize("name", READ)
def test_that_gradients_end_at_a_number_is_said(name):
    x = F.tensor(4.0, requires_grad=True) * 1
    with every_warning(), pytest.warns(UserWarning, match="Converting a tensor with requires_grad"):
        READ[name](x)


def test_numbers_are_read_silently_where_no_gradient_ends():
    x = F.tensor(4.0, requires_grad=True) * 1
    with warnings.catch_warnings(), every_warning():
        warnings.simplefilter("error")
        assert x.item() == float(x.detach()) == int(x) == 4
        assert F.tensor([x.detach(), 1.0]).tolist() == [4.0, 1.0]
        with F.no_grad():
            assert float(x) == 4
