"""Operators that programs define."""

import gc
from collections.abc import Sequence
from typing import List, Optional, Tuple, Union  # noqa: UP035

import numpy
import pytest

import facula
from facula import Tensor, library
from facula.library import custom_op, infer_schema, opcheck

try:
    import torch
except ImportError:
    torch = None


def of(package):
    """Functions annotated with the types of a package."""
    T, dtype, device = package.Tensor, package.dtype, package.device

    def plain(x: T, y: float = 1.0, *, n: int = 3) -> T: ...
    def many(
        x: Optional[T],  # noqa: UP045
        ys: Sequence[T],
        k: List[int],  # noqa: UP006
        s: str = "ab",
        d: dtype = package.float32,
        where: device = package.device("cpu"),  # noqa: B008
    ) -> Tuple[T, T]: ...  # noqa: UP006
    def scalars(
        x: T,
        z: Union[int, float, bool],  # noqa: UP007
        w: float | None = None,
        t: bool = True,
        g: Sequence[int] | None = None,
    ) -> list[T]: ...
    def modern(x: T | None, y: list[T], o: list[T | None]) -> tuple[T, int, float, bool]: ...
    def numbers(x: T, b: Sequence[bool], f: list[float]) -> int | float | bool: ...
    def nothing(x: T, out: T) -> None: ...
    def untyped(x) -> T: ...
    def container(x: T, q: dict) -> T: ...
    def unsaid(x: T): ...
    def rest(x: T, *args: int) -> T: ...
    def pair(x: T, size: tuple[int, int]) -> T: ...
    def text(x: T) -> str: ...

    return {name: f for name, f in locals().items() if callable(f) and f not in (T, dtype, device)}


WANTED = {
    "plain": "(Tensor x, float y=1.0, *, SymInt n=3) -> Tensor",
    "many": '(Tensor? x, Tensor[] ys, SymInt[] k, str s="ab", ScalarType d=float32, '
    'Device where="cpu") -> (Tensor, Tensor)',
    "scalars": "(Tensor x, Scalar z, float? w=None, bool t=True, SymInt[]? g=None) -> Tensor[]",
    "modern": "(Tensor? x, Tensor[] y, Tensor?[] o) -> (Tensor, SymInt, float, bool)",
    "numbers": "(Tensor x, bool[] b, float[] f) -> Scalar",
    "nothing": "(Tensor x, Tensor(a1!) out) -> ()",
}


def mutated(name):
    return {"out"} if name == "nothing" else ()


@pytest.mark.parametrize("name", sorted(WANTED))
def test_schemas_are_inferred_from_annotations(name):
    assert infer_schema(of(facula)[name], mutates_args=mutated(name)) == WANTED[name]
    if torch is not None:
        theirs = torch.library.infer_schema(of(torch)[name], mutates_args=mutated(name))
        assert theirs == WANTED[name]


@pytest.mark.parametrize("name", ["untyped", "container", "unsaid", "rest", "pair", "text"])
def test_functions_without_a_schema_are_refused(name):
    with pytest.raises(ValueError, match=r"infer_schema\(func\)"):
        infer_schema(of(facula)[name], mutates_args=())
    if torch is not None:
        with pytest.raises(ValueError, match=r"infer_schema\(func\)"):
            torch.library.infer_schema(of(torch)[name], mutates_args=())


def test_mutates_args_must_name_tensors():
    functions = of(facula)
    with pytest.raises(ValueError, match="not found"):
        infer_schema(functions["plain"], mutates_args={"zz"})
    with pytest.raises(ValueError, match="mutable_args"):
        infer_schema(functions["scalars"], mutates_args={"z"})
    unknown = infer_schema(functions["nothing"], mutates_args="unknown")
    assert unknown == "(Tensor(a0!) x, Tensor(a1!) out) -> ()"


@pytest.mark.parametrize(
    "text",
    [
        "ns::f(Tensor x) -> Tensor",
        "ns::f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        'ns::f(Tensor? x=None, int[2] k=[1, 2], str s="a, b)", float p=-1e-3) -> (Tensor, int)',
        "ns::f(Tensor(a!)[] xs, ScalarType? d=None, Device? e=None) -> ()",
    ],
)
def test_schemas_are_read_and_written(text):
    from facula._library.schema import parse_schema

    assert str(parse_schema(text)) == text


@pytest.mark.parametrize(
    "text", ["f(Tensr x) -> Tensor", "f(Tensor) -> Tensor", "f(Tensor x)", "(Tensor x) -> Tensor",
             "f(Tensor x) -> Tensor extra", "f(Tensor x=what) -> Tensor"]
)  # fmt: skip
def test_wrong_schemas_are_refused(text):
    with pytest.raises(RuntimeError):
        library.Library("wrong", "FRAGMENT").define(text)


# ---- custom_op


def make_sin(name):
    @custom_op(f"tests::{name}", mutates_args=())
    def sin(x: Tensor, scale: float = 1.0) -> Tensor:
        """Computes by NumPy, which no tape sees."""
        return facula.tensor(numpy.sin(x.detach().numpy())) * scale

    @sin.register_fake
    def _(x, scale=1.0):
        return facula.empty_like(x)

    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * ctx.scale, None

    sin.register_autograd(backward, setup_context=setup_context)
    return sin


def test_a_custom_operator_in_all_places():
    sin = make_sin("sin_all")
    x = facula.randn(4, 3, dtype=facula.float64)
    assert facula.allclose(sin(x), x.sin()) and facula.allclose(sin(x, scale=2.0), 2 * x.sin())
    assert facula.equal(facula.ops.tests.sin_all(x), sin(x))
    assert facula.equal(facula.ops.tests.sin_all.default(x), sin(x))
    assert sin(x.to("meta")).shape == x.shape and sin(x.to("meta")).device.type == "meta"
    x.requires_grad_()
    assert facula.autograd.gradcheck(sin, (x,)) and facula.autograd.gradgradcheck(sin, (x,))
    x = x.detach()
    assert facula.allclose(facula.vmap(sin)(x), x.sin())
    assert facula.allclose(facula.vmap(sin, in_dims=1, out_dims=1)(x), x.sin())
    assert facula.allclose(facula.func.grad(lambda x: sin(x).sum())(x), x.cos())
    assert facula.allclose(facula.vmap(facula.func.grad(lambda r: sin(r).sum()))(x), x.cos())
    second = facula.vmap(facula.vmap(facula.func.grad(facula.func.grad(sin))))(x)
    assert facula.allclose(second, -x.sin())
    assert opcheck(sin, (facula.randn(3, requires_grad=True),)) == dict.fromkeys(
        (
            "test_schema",
            "test_autograd_registration",
            "test_faketensor",
            "test_aot_dispatch_dynamic",
        ),
        "SUCCESS",
    )
    assert "NumPy" in sin.__doc__ and repr(sin) == "<CustomOpDef(tests::sin_all)>"


def test_a_batching_rule_is_used_where_there_is_one():
    calls = []

    @custom_op("tests::tripled", mutates_args=())
    def tripled(x: Tensor, *, by: float = 3.0) -> Tensor:
        calls.append(tuple(x.shape))
        return x * by

    x = facula.arange(6.0).view(2, 3)
    assert facula.equal(facula.vmap(tripled)(x), 3 * x) and calls == [(3,), (3,)]

    @tripled.register_vmap
    def _(info, in_dims, x, *, by=3.0):
        assert info.batch_size == 2 and in_dims == (0,)
        return tripled(x, by=by), in_dims[0]

    calls.clear()
    assert facula.equal(facula.vmap(lambda x: tripled(x, by=4.0))(x), 4 * x) and calls == [(2, 3)]


def test_lists_of_tensors_have_gradients():
    @custom_op("tests::weighted", mutates_args=())
    def weighted(xs: Sequence[Tensor], w: Tensor) -> list[Tensor]:
        return [x * w for x in xs]

    def setup_context(ctx, inputs, output):
        xs, w = inputs
        ctx.count = len(xs)
        ctx.save_for_backward(*xs, w)
        assert isinstance(output, list)

    def backward(ctx, grads):
        *xs, w = ctx.saved_tensors
        assert ctx.needs_input_grad == ([True, False], True)
        return [g * w for g in grads], sum(g * x for g, x in zip(grads, xs, strict=True))

    weighted.register_autograd(backward, setup_context=setup_context)
    a, b, w = facula.tensor([1.0, 2.0], requires_grad=True), facula.ones(2), facula.ones(2)
    w.requires_grad_()
    first, second = weighted([a, b], w)
    (first.sum() + 2 * second.sum()).backward()
    assert a.grad.tolist() == [1, 1] and b.grad is None and w.grad.tolist() == [3, 4]
    batch = facula.vmap(lambda x: weighted([x, x], w)[1])(facula.ones(3, 2))
    assert batch.shape == (3, 2)


def test_operators_that_change_their_arguments():
    @custom_op("tests::fill", mutates_args={"out"})
    def fill(x: Tensor, out: Tensor) -> None:
        out.numpy()[:] = x.numpy()

    out = facula.zeros(2)
    version = out._version
    assert fill(facula.ones(2), out) is None
    assert out.tolist() == [1, 1] and out._version > version
    with pytest.raises(RuntimeError, match="non-functional"):
        fill.register_autograd(lambda ctx, grad: None)
    opcheck(fill, (facula.ones(2), facula.zeros(2)), test_utils="test_schema")

    @custom_op("tests::sneaky", mutates_args=())
    def sneaky(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(library.OpCheckError, match="mutated"):
        opcheck(sneaky, (facula.ones(2),))


def test_kernels_by_device():
    @custom_op("tests::where_am_i", mutates_args=(), device_types="cpu")
    def where(x: Tensor) -> Tensor:
        return x + 1

    with pytest.raises(RuntimeError, match="fake impl"):
        where(facula.ones(1, device="meta"))
    where.register_kernel(None, lambda x: x - 1)
    assert where(facula.ones(1)).item() == 2
    with where.set_kernel_enabled("cpu", False):
        assert where(facula.ones(1)).item() == 0
    assert where(facula.ones(1)).item() == 2
    with pytest.raises(ValueError, match="device_types"):
        where.register_kernel("tpu", lambda x: x)


def test_wrong_uses_are_explained():
    @custom_op("tests::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    @custom_op("tests::view", mutates_args=())
    def view(x: Tensor) -> Tensor:
        return x[0]

    @custom_op("tests::number", mutates_args=())
    def number(x: Tensor) -> Tensor:
        return 3

    for op in (same, view):
        with pytest.raises(RuntimeError, match="may not alias"):
            op(facula.ones(2))
    with pytest.raises(RuntimeError, match="should return"):
        number(facula.ones(2))
    sin = make_sin("sin_wrong")
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x'"):
        sin(3)
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        sin()
    with pytest.raises(RuntimeError, match="unexpected keyword argument 'y'"):
        sin(facula.ones(1), y=2)
    with pytest.raises(AttributeError, match="nope"):
        facula.ops.tests.nope  # noqa: B018
    with pytest.raises(AttributeError, match="overload"):
        facula.ops.tests.sin_wrong.foo  # noqa: B018
    with pytest.raises(ValueError, match="namespace::name"):
        custom_op("bad", lambda x: x, mutates_args=())

    @custom_op("tests::opaque", mutates_args=())
    def opaque(x: Tensor) -> Tensor:
        return x * 2

    y = opaque(facula.ones(1, requires_grad=True))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.backward()


def test_autocast_casts_the_arguments():
    seen = []

    @custom_op("tests::seen", mutates_args=())
    def op(x: Tensor, n: int) -> Tensor:
        seen.append(x.dtype)
        return x.clone()

    op.register_autocast("cpu", facula.bfloat16)
    op(facula.ones(1), 2)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        assert op(facula.ones(1), 2).dtype is facula.bfloat16
    assert seen == [facula.float32, facula.bfloat16]


def test_subclasses_and_modes_see_the_operator():
    sin = make_sin("sin_seen")
    names = []

    class Mode(facula.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    class Sub(Tensor):
        pass

    with Mode():
        sin(facula.ones(1))
    assert "tests.sin_seen.default" in names
    x = facula.ones(1).as_subclass(Sub)
    library.register_torch_dispatch(sin, Sub, lambda cls, op, types, args, kwargs: (cls, str(op)))
    assert sin(x) == (Sub, "tests.sin_seen.default")


# ---- Library


def test_a_library_defines_and_forgets():
    lib = library.Library("tests_lib", "DEF")
    assert lib.define("foo(Tensor x, int n=1) -> Tensor") == "foo"
    assert lib.define("foo.two(Tensor x, Tensor y) -> Tensor") == "foo.two"
    with pytest.raises(NotImplementedError, match="Could not run 'tests_lib::foo'"):
        facula.ops.tests_lib.foo(facula.ones(1))
    lib.impl("foo", lambda x, n=1: x * n, "CPU")
    lib.impl("foo.two", lambda x, y: x - y, "CompositeImplicitAutograd")
    foo = facula.ops.tests_lib.foo
    x = facula.ones(1, requires_grad=True)
    assert foo(x, 3).tolist() == [3] and foo(x, facula.ones(1)).tolist() == [0]
    assert foo(x, 3).grad_fn is not None  # by the operators inside
    assert foo.overloads() == ["default", "two"] and str(foo.two._schema).startswith(
        "tests_lib::foo.two("
    )
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("foo(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single"):
        library.Library("tests_lib", "DEF")
    with pytest.raises(RuntimeError, match="dispatch key"):
        lib.impl("foo", abs, "Sideways")
    with pytest.raises(RuntimeError, match="no overload"):
        foo("text")
    library.register_autograd("tests_lib::foo", lambda ctx, grad: (grad * 7, None))
    foo(x, 3).backward()
    assert x.grad.item() == 7
    del lib
    gc.collect()
    with pytest.raises(AttributeError):
        facula.ops.tests_lib.foo  # noqa: B018
    library.Library("tests_lib", "DEF")._destroy()


def test_an_autograd_kernel_is_called_where_grad_is_needed():
    lib = library.Library("tests_autograd", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    lib.impl("twice", lambda x: x * 2 + 0 * x, "Autograd")
    twice = facula.ops.tests_autograd.twice
    assert twice(facula.ones(1)).grad_fn is None
    assert "Add" in twice(facula.ones(1, requires_grad=True)).grad_fn.name()


def test_faculas_own_operators_by_name():
    a = facula.randn(2, 2)
    aten = facula.ops.aten
    assert facula.equal(aten.mm.default(a, a), a.mm(a)) and facula.equal(aten.add(a, 1), a + 1)
    assert aten.add.Tensor is aten.add.Tensor and str(aten.mm.default) == "aten.mm.default"
    assert facula.equal(aten.add_.Tensor(a.clone(), 1), a + 1)
    assert facula.equal(aten.linalg_inv(a), a.inverse())
    with pytest.raises(ValueError, match="itself"):
        opcheck(aten.mm, (a, a))
