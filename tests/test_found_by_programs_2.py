"""What programs written for PyTorch once found to differ: calls, errors and protocols."""

import copy
import operator
import pickle

import pytest
from package_under_test import F

from facula import nn
from facula.nn import functional
from facula.overrides import TorchFunctionMode


class Recorder(TorchFunctionMode):
    """Notes the names of what it sees; getters and setters with that of their property."""

    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = func.__name__
        owner = getattr(func, "__self__", None)
        self.seen.append(f"{owner.__name__}.{name}" if name in ACCESS else name)
        return func(*args, **(kwargs or {}))


ACCESS = ("__get__", "__set__", "__delete__")


class Recording(F.Tensor):
    """A subclass that notes what it is asked."""

    seen: list[str] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


PROPERTIES = """
shape dtype device layout ndim grad grad_fn requires_grad is_leaf data T mT real is_cuda is_cpu
is_meta is_sparse is_quantized is_nested itemsize nbytes output_nr retains_grad _version _base
is_mps
"""


@pytest.mark.parametrize("name", PROPERTIES.split())
def test_modes_see_reads_of_properties(name):
    x = F.ones(2, 2)
    with Recorder() as mode:
        inside = getattr(x, name)
    assert mode.seen == [f"{name}.__get__"]
    outside = getattr(x, name)
    assert F.equal(inside, outside) if isinstance(inside, F.Tensor) else inside == outside


def test_modes_see_writes_and_deletions_of_properties():
    x, g = F.ones(2), F.zeros(2)
    with Recorder() as mode:
        x.requires_grad = True
        x.grad = g
        x.data = g
        del x.grad
    assert mode.seen == ["requires_grad.__set__", "grad.__set__", "data.__set__", "grad.__delete__"]
    assert x.requires_grad and x.grad is None and x.tolist() == [0.0, 0.0]


PROTOCOLS = [
    ("__len__", len, [3]),
    ("__bool__", bool, 3),
    ("__float__", float, 3),
    ("__int__", int, 3),
    ("__index__", operator.index, 3),
    ("__contains__", lambda x: 2 in x, [1, 2]),
    ("__repr__", repr, [3]),
    ("__format__", "{}".format, [3]),
    ("unbind", list, [3, 4]),
    ("__deepcopy__", copy.deepcopy, [3]),
    ("positive", operator.pos, [3]),
    ("add", lambda x: 1 + x, [3]),
    ("mul", lambda x: 2 * x, [3]),
    ("bitwise_and", lambda x: 1 & x, [3]),
    ("storage", lambda x: x.storage(), [3]),
    ("type", lambda x: x.type(), [3]),
    ("new_tensor", lambda x: x.new_tensor([1]), [3]),
]


@pytest.mark.parametrize(("name", "use", "data"), PROTOCOLS, ids=[p[0] for p in PROTOCOLS])
def test_modes_and_subclasses_see_the_protocols_of_python(name, use, data):
    x = F.tensor(data)
    with Recorder() as mode:
        use(x)
    assert mode.seen[0] == name
    Recording.seen.clear()
    use(x.as_subclass(Recording))
    assert Recording.seen[0] == name


def test_a_subclass_decides_what_its_length_and_truth_are():
    class Wrapped(F.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func in (F.Tensor.__len__, F.Tensor.__int__):
                return 7
            if func in (F.Tensor.__bool__, F.Tensor.__contains__):
                return True
            raise ValueError(func.__name__)

    x = F.zeros(2).as_subclass(Wrapped)
    assert len(x) == 7 and bool(x) is True and 5 in x
    with pytest.raises(ValueError, match="__float__"):
        float(F.zeros(()).as_subclass(Wrapped))


def test_a_mode_that_fails_fails_the_protocol():
    class Refusing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    x = F.zeros(1)
    for use in (len, bool, float, lambda t: t.shape, lambda t: setattr(t, "grad", None)):
        with Refusing(), pytest.raises(KeyError):
            use(x)


@pytest.mark.parametrize("dtype", ["int64", "bool", "float64", "float16"])
def test_binary_cross_entropy_wants_targets_of_the_inputs_dtype(dtype):
    p, t = F.tensor([0.3, 0.6]), F.tensor([0, 1])
    with pytest.raises(RuntimeError, match=r"Found dtype .* but expected Float"):
        functional.binary_cross_entropy(p, t.to(getattr(F, dtype)))


def test_losses_refuse_integral_and_impossible_targets():
    p, t = F.tensor([0.3, 0.6]), F.tensor([0, 1])
    with pytest.raises(RuntimeError, match="target must be floating point"):
        functional.binary_cross_entropy_with_logits(p, t)
    with pytest.raises(RuntimeError, match="Integral inputs not supported: target"):
        functional.kl_div(p, t, reduction="sum")
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        functional.binary_cross_entropy(p, F.tensor([0.0, 2.0]))


@pytest.mark.parametrize("dtype", [F.float16, F.bfloat16])
def test_products_in_a_wider_dtype(dtype):
    F.manual_seed(0)
    a, b = F.randn(2, 3, 40).to(dtype), F.randn(2, 40, 5).to(dtype)
    start = F.randn(2, 3, 5).to(dtype)
    wide = a.float() @ b.float()
    f32 = F.float32
    assert F.equal(F.bmm(a, b, out_dtype=f32), F.bmm(a.float(), b.float()))
    assert F.equal(F.mm(a[0], b[0], f32), F.mm(a[0].float(), b[0].float()))
    got = F.baddbmm(start, a, b, out_dtype=f32, beta=2, alpha=0.5)
    F.testing.assert_close(got, 2 * start.float() + 0.5 * wide)
    got = F.addmm(start[0].float(), a[0], b[0], out_dtype=f32)
    F.testing.assert_close(got, start[0].float() + wide[0])
    out = F.empty(3, 5)
    assert F.mm(a[0], b[0], out_dtype=f32, out=out) is out and F.equal(out, F.mm(a[0], b[0], f32))
    assert F.mm(a[0].to("meta"), b[0].to("meta"), out_dtype=f32).dtype is f32
    x = a[0].clone().requires_grad_()
    F.mm(x, b[0], f32).sum().backward()
    assert x.grad.dtype is dtype
    assert F.mm(a[0], b[0], out_dtype=dtype).dtype is dtype
    with pytest.raises(RuntimeError, match="out_dtype must be"):
        F.mm(a[0], b[0], out_dtype=F.float64)


class Net(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.body = nn.ModuleDict({"layer": layer})

    def forward(self, *args, **kwargs):
        return self.body["layer"](*args, **kwargs)


x, q = F.zeros(5, 3, 4), F.zeros(5, 3, 8)
WRONG = {
    "features": (nn.LSTM(6, 8), (x,), RuntimeError, "Expected 6, got 4"),
    "rank": (nn.GRU(4, 8), (x[None],), ValueError, "to be 2D or 3D, got 4D"),
    "dtype": (nn.RNN(4, 8), (x.double(),), ValueError, "does not match weight dtype"),
    "state": (nn.GRU(4, 8), (x, F.zeros(2, 3, 8)), RuntimeError, "Expected hidden size"),
    "cell": (nn.LSTMCell(6, 8), (x[0],), RuntimeError, "inconsistent input_size"),
    "embedding": (nn.MultiheadAttention(8, 2), (x, x, x), AssertionError, "embed_dim|dimension"),
    "mask": (nn.MultiheadAttention(8, 2), (q, q, q, F.zeros(2, 5)), AssertionError, "shape"),
    "transformer": (nn.Transformer(8, 2, 1, 1, 16), (x, q), RuntimeError, "feature number"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_errors_about_arguments_of_layers_name_the_path(case):
    layer, args, kind, text = case
    with pytest.raises(kind, match=rf"^body\.layer: {type(layer).__name__}\(.*{text}"):
        Net(layer)(*args)


@pytest.mark.parametrize("method", ["size", "stride"])
def test_dims_that_are_no_numbers_raise(method):
    x = F.ones(3, 2, 2)
    for bad in (F.ones(2, 0), F.zeros(0, dtype=F.int64), F.tensor([1, 2]), F.tensor(1.0)):
        with pytest.raises(TypeError, match="single element"):
            getattr(x, method)(bad)
    with pytest.raises(TypeError, match="at most 1 argument"):
        getattr(x, method)(0, 1)
    with pytest.raises(TypeError, match="keyword argument 'axis'"):
        getattr(x, method)(axis=0)
    assert x.size(F.tensor(1)) == x.size(dim=1) == 2 and x.stride(dim=-1) == 1


OLDER = {
    "add": ((2, "y"), "x + 2 * y"),
    "add_": ((-0.5, "y"), "x - 0.5 * y"),
    "sub": ((2, "y"), "x - 2 * y"),
    "addcmul": ((0.5, "y", "y"), "x + 0.5 * y * y"),
    "addcdiv_": ((0.5, "x", "y"), "x + 0.5 * x / y"),
    "addmm": ((2, 3, "y", "y"), "2 * x + 3 * (y @ y)"),
    "addmm_": ((2, "y", "y"), "2 * x + y @ y"),
}


@pytest.mark.parametrize(("name", "case"), OLDER.items(), ids=OLDER)
def test_numbers_before_tensors_are_an_older_order(name, case):
    x, y = F.tensor([[1.0, 2.0], [3.0, 4.0]]), F.full((2, 2), 3.0)
    args, formula = case
    args = [{"x": x, "y": y}.get(a, a) if isinstance(a, str) else a for a in args]
    wanted = eval(formula, {"x": x, "y": y})
    with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
        got = getattr(x.clone(), name)(*args)
    F.testing.assert_close(got, wanted)
    if name in ("add", "sub", "addcmul"):
        with pytest.warns(UserWarning, match="deprecated"):
            F.testing.assert_close(getattr(F, name)(x, *args), wanted)
    with pytest.raises(TypeError):
        x.add(2, y, y)


def test_tensors_know_one_cpu():
    plain = F.device("cpu")
    assert F.device("cpu:0") != plain
    for t in (F.zeros(2, device="cpu:0"), F.tensor([1], device="cpu:0"), F.ones(1).to("cpu:0")):
        assert t.device == plain and str(t.device) == "cpu"


def test_truth_values_are_numbers():
    x = F.tensor([-1.0, 2.0])
    assert functional.leaky_relu(x, True).tolist() == [-1.0, 2.0]
    assert functional.dropout(x, False).tolist() == [-1.0, 2.0]


def test_wrong_kinds_of_arguments_are_type_errors():
    x = F.zeros(2)
    for call in (
        lambda: F.atleast_2d(x, 3),
        lambda: F.broadcast_tensors(x, "a"),
        lambda: x["a"],
        lambda: x.is_same_size((2,)),
    ):
        with pytest.raises(TypeError):
            call()


def test_pickled_results_become_leaves():
    y = F.ones(3, requires_grad=True) * 2
    z = pickle.loads(pickle.dumps(y))
    assert z.is_leaf and z.requires_grad and F.equal(z, y)


def test_functions_may_be_instantiated_but_not_called():
    class Double(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return "no tensor"

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Double()
    x = F.ones(1, requires_grad=True)
    assert made.apply(x).item() == 2
    with pytest.raises(RuntimeError, match="apply"):
        made(x)
    with pytest.raises(RuntimeError, match="position 0 that is no Tensor but str"):
        Double.apply(x).backward()


def test_absurd_numbers_of_pieces_are_refused():
    empty = F.zeros(0)
    for cut in (empty.hsplit, empty.tensor_split, empty.chunk, F.zeros(3).tensor_split):
        with pytest.raises(RuntimeError, match=r"not enough memory for .* pieces"):
            cut(2**62)
    assert len(F.zeros(3).chunk(2**63 - 1)) == 3
