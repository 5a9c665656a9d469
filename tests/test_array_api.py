"""The array API namespace beside array-api-strict, the standard's reference on NumPy."""

import inspect
import itertools

import numpy
import pytest

import facula
import facula.array_api as xp

strict = pytest.importorskip("array_api_strict")

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMERIC = INTEGERS + FLOATS + COMPLEX
ALL = ["bool", *NUMERIC]
SHAPES = [(), (0,), (5,), (3, 4), (2, 0, 3), (2, 3, 2)]
IGNORED = {
    "ArrayAPIStrictFlags",
    "Device",
    "ModuleType",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
    "__version__",
}


@pytest.fixture(autouse=True)
def float64_by_default():
    before = facula.get_default_dtype()
    facula.set_default_dtype(facula.float64)
    yield
    facula.set_default_dtype(before)


def data(shape, dtype, seed=0, positive=False):
    """An array with small numbers, extremes and, for floats, special ones."""
    rng = numpy.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    if dtype in INTEGERS:
        info = numpy.iinfo(dtype)
        values = rng.integers(0 if positive or info.min == 0 else -20, 21, shape)
        return numpy.asarray(values).astype(dtype)
    values = rng.normal(size=shape) * 3
    values = numpy.abs(values) + 0.1 if positive else values
    if dtype in COMPLEX:
        values = values + 1j * rng.normal(size=shape)
    return numpy.asarray(values).astype(dtype)


def both(array):
    """The same array for both namespaces."""
    return strict.asarray(array), facula.tensor(numpy.asarray(array))


def name_of(dtype):
    return str(dtype).rpartition(".")[2]


def compare(got, want, rtol=1e-5):
    """``got`` of Facula beside ``want`` of the reference."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        if hasattr(want, "_fields"):
            assert got._fields == want._fields
        for g, w in zip(got, want, strict=True):
            compare(g, w, rtol)
        return
    if not isinstance(want, type(strict.asarray(0))):
        assert got == want
        return
    want_array = numpy.asarray(want._array)
    assert isinstance(got, facula.Tensor), got
    assert name_of(got.dtype) == str(want_array.dtype), (got.dtype, want_array.dtype)
    assert tuple(got.shape) == want_array.shape
    array = got.detach().resolve_conj().numpy()
    if want_array.dtype.kind in "fc":
        tolerance = rtol if want_array.dtype in ("float32", "complex64") else 1e-12
        numpy.testing.assert_allclose(array, want_array, rtol=tolerance, atol=tolerance)
        if want_array.dtype.kind == "f":
            zero = (want_array == 0) & (array == 0)
            numpy.testing.assert_array_equal(
                numpy.signbit(array)[zero], numpy.signbit(want_array)[zero]
            )
    else:
        numpy.testing.assert_array_equal(array, want_array)


# ---- names and signatures


def functions(module):
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return [n for n in names if n not in IGNORED]


@pytest.mark.parametrize("path", ["", "linalg", "fft"])
def test_every_name_has_the_standards_signature(path):
    theirs = getattr(strict, path) if path else strict
    ours = getattr(xp, path) if path else xp
    missing, different = [], []
    for name in functions(theirs):
        value = getattr(theirs, name)
        if not hasattr(ours, name):
            missing.append(name)
        elif inspect.isfunction(value):
            wanted = inspect.signature(value).parameters.values()
            found = inspect.signature(getattr(ours, name)).parameters.values()
            shape = [
                [(p.name, p.kind, p.default is p.empty) for p in parameters]
                for parameters in (wanted, found)
            ]
            if shape[0] != shape[1]:
                different.append((name, shape))
    assert missing == [] and different == []


def test_tensors_know_the_namespace():
    x = facula.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="versions"):
        x.__array_namespace__(api_version="1999.1")
    assert xp.__array_api_version__ == strict.__array_api_version__
    assert x.to_device("cpu").device.type == "cpu"


def test_what_the_namespace_says_of_itself():
    ours, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert set(ours.capabilities()) == set(theirs.capabilities())
    assert set(ours.default_dtypes()) == set(theirs.default_dtypes())
    assert set(ours.dtypes()) == set(theirs.dtypes())
    for kind in ("bool", "integral", "numeric", ("real floating", "unsigned integer")):
        assert set(ours.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind))
    assert ours.default_device() in ours.devices()


# ---- dtypes


@pytest.mark.parametrize("a, b", [*itertools.combinations_with_replacement(ALL, 2)])
def test_promotion(a, b):
    try:
        want = strict.result_type(getattr(strict, a), getattr(strict, b))
    except TypeError:
        return  # the standard leaves it open
    assert name_of(xp.result_type(getattr(xp, a), getattr(xp, b))) == str(want._np_dtype)
    got = xp.can_cast(getattr(xp, a), getattr(xp, b))
    assert got == strict.can_cast(getattr(strict, a), getattr(strict, b))
    # Arrays without dimensions count as any other, unlike PyTorch's.
    x, y = facula.ones(3, dtype=getattr(xp, a)), facula.ones((), dtype=getattr(xp, b))
    assert name_of(xp.multiply(x, y).dtype if a != "bool" else xp.result_type(x, y)) == str(
        want._np_dtype
    )


@pytest.mark.parametrize("dtype", ALL)
def test_kinds_and_limits_of_dtypes(dtype):
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating",
             "complex floating", "numeric"]  # fmt: skip
    for kind in [*kinds, ("bool", "integral")]:
        want = strict.isdtype(getattr(strict, dtype), kind)
        assert xp.isdtype(getattr(xp, dtype), kind) == want
    if dtype in INTEGERS:
        ours, theirs = xp.iinfo(getattr(xp, dtype)), strict.iinfo(getattr(strict, dtype))
        assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)
    elif dtype != "bool":
        ours, theirs = xp.finfo(getattr(xp, dtype)), strict.finfo(getattr(strict, dtype))
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, field) == pytest.approx(getattr(theirs, field)), field
        assert name_of(ours.dtype) == str(theirs.dtype._np_dtype)


@pytest.mark.parametrize("a, b", [*itertools.product(ALL, ALL)])
def test_astype(a, b):
    if a in COMPLEX and b not in (*COMPLEX, "bool"):
        with pytest.raises(TypeError):
            xp.astype(facula.ones(1, dtype=getattr(xp, a)), getattr(xp, b))
        return
    s, x = both(data((3, 4), a, positive=True))
    if a in COMPLEX and b == "bool":  # the reference refuses what the standard leaves open
        assert facula.equal(xp.astype(x, xp.bool), x != 0)
        return
    compare(xp.astype(x, getattr(xp, b)), strict.astype(s, getattr(strict, b)))
    assert (xp.astype(x, getattr(xp, b), copy=False) is x) == (a == b)


# ---- elementwise


def _each(names, dtypes):
    return dict.fromkeys(names.split(), dtypes)


UNARY = {
    **_each("acos acosh asin asinh atan atanh cos cosh exp expm1 log log10", FLOATS + COMPLEX),
    **_each("log1p log2 sin sinh sqrt tan tanh", FLOATS + COMPLEX),
    **_each("abs negative positive sign square isfinite isinf isnan", NUMERIC),
    **_each("ceil floor trunc", INTEGERS + FLOATS),
    "round": NUMERIC, "signbit": FLOATS, "reciprocal": FLOATS, "logical_not": ["bool"],
    "bitwise_invert": ["bool", *INTEGERS], "conj": NUMERIC, "real": NUMERIC, "imag": COMPLEX,
}  # fmt: skip
BINARY = {
    **_each("add multiply subtract equal not_equal", NUMERIC),
    **_each("bitwise_and bitwise_or bitwise_xor", ["bool", *INTEGERS]),
    **_each("atan2 copysign hypot logaddexp nextafter", FLOATS),
    **_each("greater greater_equal less less_equal", INTEGERS + FLOATS),
    **_each("floor_divide remainder maximum minimum", INTEGERS + FLOATS),
    **_each("logical_and logical_or logical_xor", ["bool"]),
    **_each("bitwise_left_shift bitwise_right_shift", INTEGERS),
    "divide": FLOATS + COMPLEX, "pow": NUMERIC,
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, numpy.inf, -numpy.inf, numpy.nan]


@pytest.mark.parametrize("name", sorted(UNARY))
def test_functions_of_one_array(name):
    for dtype, shape in itertools.product(UNARY[name], SHAPES):
        array = data(shape, dtype)
        if name in ("acos", "asin", "atanh") and dtype in FLOATS:
            array = array / 100
        if name in ("acosh", "log", "log10", "log1p", "log2", "sqrt") and dtype in FLOATS:
            array = numpy.abs(array) + 1
        s, x = both(array.astype(dtype))
        with numpy.errstate(all="ignore"):
            compare(getattr(xp, name)(x), getattr(strict, name)(s))
    if "float64" in UNARY[name]:
        s, x = both(numpy.array(SPECIAL))
        with numpy.errstate(all="ignore"):
            compare(getattr(xp, name)(x), getattr(strict, name)(s))


@pytest.mark.parametrize("name", sorted(BINARY))
def test_functions_of_two_arrays(name):
    ours, theirs = getattr(xp, name), getattr(strict, name)
    dtypes = BINARY[name]
    whole = name in ("floor_divide", "remainder", "divide")
    small = name.endswith("shift") or name == "pow"
    for i, (a, b) in enumerate(itertools.product(dtypes, dtypes)):
        try:
            strict.result_type(getattr(strict, a), getattr(strict, b))
        except TypeError:
            continue
        if (a in INTEGERS) != (b in INTEGERS):
            continue  # the standard leaves it open
        shapes = [((3, 4), (4,)), ((2, 1), ()), ((), (3,)), ((0, 2), (1, 2))][i % 4 :][:1]
        for first, second in shapes:
            left = data(first, a, positive=name == "pow" and a in FLOATS)
            right = data(second, b, seed=1, positive=small)
            if small:
                right = (right % 4).astype(b) if b in INTEGERS else right
            if whole and b in INTEGERS:
                right = numpy.where(right == 0, 3, right).astype(b)
            (s, x), (t, y) = both(left), both(right)
            with numpy.errstate(all="ignore"):
                compare(ours(x, y), theirs(s, t), rtol=1e-4)


@pytest.mark.parametrize("name", sorted(n for n, d in BINARY.items() if "float64" in d))
def test_special_numbers_in_functions_of_two_arrays(name):
    grid = numpy.array(list(itertools.product(SPECIAL, SPECIAL)))
    (s, x), (t, y) = both(grid[:, 0]), both(grid[:, 1])
    with numpy.errstate(all="ignore"):
        compare(getattr(xp, name)(x, y), getattr(strict, name)(s, t))


@pytest.mark.parametrize("dtype", ALL)
def test_python_numbers_take_the_dtype_of_the_array(dtype):
    s, x = both(data((3,), dtype))
    for number in (True, 2, 1.5, 1 + 2j):
        try:
            want = strict.equal(s, number)
        except (TypeError, OverflowError):
            continue
        compare(xp.equal(x, number), want)
        if dtype != "bool":
            compare(xp.multiply(number, x), strict.multiply(number, s))
    if dtype in INTEGERS:
        with pytest.raises(TypeError, match="float"):
            xp.add(x, 1.5)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_clip(dtype):
    s, x = both(data((3, 4), dtype))
    (ls, lx), (hs, hx) = both(numpy.full((4,), 2, dtype)), both(numpy.full((3, 1), 9, dtype))
    for ours, theirs in (((2, 9), (2, 9)), ((None, 5), (None, 5)), ((lx, hx), (ls, hs))):
        compare(xp.clip(x, *ours), strict.clip(s, *theirs))
    compare(xp.clip(x), strict.clip(s))
    assert xp.clip(facula.tensor([200], dtype=facula.uint8), -5, 1000).tolist() == [200]


# ---- creation


def test_creation():
    cases = [
        ("arange", (5,), {}), ("arange", (5, 0, -2), {}), ("arange", (0.0, 1.0, 0.25), {}),
        ("arange", (3, 3), {}), ("arange", (1, 7, 3), {"dtype": "uint16"}),
        ("ones", (3,), {}), ("ones", ((),), {"dtype": "uint8"}), ("zeros", ((2, 0),), {}),
        ("full", ((2,), 7), {}), ("full", (3, 1.5), {"dtype": "float32"}), ("full", ((), True), {}),
        ("eye", (3,), {}), ("eye", (2, 4), {"k": 1, "dtype": "int16"}), ("eye", (3, 2), {"k": -2}),
        ("eye", (2, 2), {"k": 5}), ("eye", (0, 3), {}),
        ("linspace", (0, 1, 5), {}), ("linspace", (0, 1, 4), {"endpoint": False}),
        ("linspace", (3.0, -1.0, 1), {}), ("linspace", (0, 1, 0), {}),
        ("asarray", ([[1, 2], [3, 4]],), {}), ("asarray", ([1.5, 2],), {"dtype": "float32"}),
        ("asarray", (True,), {}), ("asarray", ([1j],), {}), ("asarray", ([],), {}),
    ]  # fmt: skip
    for name, args, kwargs in cases:
        named = [
            {k: getattr(m, v) if k == "dtype" else v for k, v in kwargs.items()}
            for m in (xp, strict)
        ]
        compare(getattr(xp, name)(*args, **named[0]), getattr(strict, name)(*args, **named[1]))
    s, x = both(data((2, 3, 4), "float32"))
    for name, kwargs in (
        ("tril", {"k": 1}),
        ("triu", {"k": -1}),
        ("zeros_like", {}),
        ("ones_like", {}),
    ):
        compare(getattr(xp, name)(x, **kwargs), getattr(strict, name)(s, **kwargs))
    compare(xp.full_like(x, 2, dtype=xp.int8), strict.full_like(s, 2, dtype=strict.int8))
    assert xp.empty((2, 3)).shape == xp.empty_like(x[0, :2]).shape[:1] + (3,)
    (s1, x1), (s2, x2) = both(data((3,), "int8")), both(data((2,), "int8", 1))
    for indexing in ("xy", "ij"):
        compare(
            tuple(xp.meshgrid(x1, x2, indexing=indexing)),
            tuple(strict.meshgrid(s1, s2, indexing=indexing)),
        )


def test_asarray_copies_as_asked():
    x = facula.ones(3)
    assert xp.asarray(x, copy=False) is x or xp.asarray(x, copy=False).data_ptr() == x.data_ptr()
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1, 2], copy=False)
    assert xp.asarray(1 << 63).dtype is facula.uint64
    assert xp.asarray([facula.tensor(1), 2.5]).tolist() == [1, 2.5]
    assert facula.equal(xp.from_dlpack(numpy.arange(3)), facula.arange(3))


# ---- reductions


@pytest.mark.parametrize("name, dtypes", [
    ("sum", NUMERIC), ("prod", NUMERIC), ("max", INTEGERS + FLOATS), ("min", INTEGERS + FLOATS),
    ("mean", FLOATS + COMPLEX), ("var", FLOATS), ("std", FLOATS), ("all", ALL), ("any", ALL),
    ("count_nonzero", ALL),
])  # fmt: skip
def test_reductions(name, dtypes):
    for dtype, shape in itertools.product(dtypes, SHAPES):
        s, x = both(data(shape, dtype))
        axes = [None, 0, -1, (0, -1), ()] if len(shape) > 1 else [None, *([0] if shape else [])]
        for axis, keepdims in itertools.product(axes, (False, True)):
            if name in ("max", "min") and x.numel() == 0:
                continue
            options = {"axis": axis, "keepdims": keepdims}
            with numpy.errstate(all="ignore"):
                try:
                    want = getattr(strict, name)(s, **options)
                except (ValueError, TypeError):
                    continue
            compare(getattr(xp, name)(x, **options), want, rtol=1e-4)
    if name in ("sum", "prod"):
        s, x = both(data((3,), "uint8"))
        compare(
            getattr(xp, name)(x, dtype=xp.float32), getattr(strict, name)(s, dtype=strict.float32)
        )
    if name in ("var", "std"):
        s, x = both(data((3, 4), "float64"))
        want = getattr(strict, name)(s, axis=1, correction=1.0)
        compare(getattr(xp, name)(x, axis=1, correction=1.0), want)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative(name):
    for dtype, shape in itertools.product(NUMERIC, [(5,), (0,), (2, 3), (2, 0)]):
        s, x = both(data(shape, dtype))
        for axis, initial in itertools.product(
            [None] if len(shape) == 1 else [0, -1], (False, True)
        ):
            options = {"axis": axis, "include_initial": initial}
            with numpy.errstate(all="ignore"):
                want = getattr(strict, name)(s, **options)
            compare(getattr(xp, name)(x, **options), want, rtol=1e-4)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_diff(dtype):
    s, x = both(data((3, 4), dtype))
    p, y = both(data((3, 1), dtype, 2))
    for options in ({}, {"axis": 0}, {"n": 2}, {"n": 0}):
        compare(xp.diff(x, **options), strict.diff(s, **options))
    compare(xp.diff(x, prepend=y, append=y), strict.diff(s, prepend=p, append=p))


# ---- manipulation


@pytest.mark.parametrize("dtype", ["bool", "uint16", "int64", "float32", "complex128"])
def test_manipulation(dtype):
    s, x = both(data((2, 3, 4), dtype))
    (os, ox) = both(data((1, 3, 1), dtype))
    cases = [
        ("broadcast_to", ((5, 2, 3, 4),), {}), ("expand_dims", (1,), {}),
        ("expand_dims", (-1,), {}),
        ("flip", (), {}), ("flip", (), {"axis": 1}), ("flip", (), {"axis": (0, -1)}),
        ("moveaxis", (0, -1), {}), ("moveaxis", ((0, 1), (1, 2)), {}),
        ("permute_dims", ((2, 0, 1),), {}), ("repeat", (3,), {}), ("repeat", (2,), {"axis": 1}),
        ("reshape", ((6, 4),), {}), ("reshape", ((-1,),), {"copy": True}),
        ("roll", (2,), {}), ("roll", (1,), {"axis": -1}), ("roll", ((1, 2),), {"axis": (0, 2)}),
        ("tile", ((2, 1, 3),), {}), ("tile", ((2, 1, 1, 1),), {}), ("tile", ((2,),), {}),
        ("unstack", (), {}), ("unstack", (), {"axis": -1}), ("matrix_transpose", (), {}),
    ]  # fmt: skip
    for name, args, kwargs in cases:
        compare(getattr(xp, name)(x, *args, **kwargs), getattr(strict, name)(s, *args, **kwargs))
    compare(xp.squeeze(ox, (0, 2)), strict.squeeze(os, (0, 2)))
    for options in ({}, {"axis": 1}, {"axis": -1}, {"axis": None}):
        compare(xp.concat([x, x], **options), strict.concat([s, s], **options))
    compare(xp.stack([x, x], axis=-1), strict.stack([s, s], axis=-1))
    compare(xp.broadcast_arrays(x, ox), tuple(strict.broadcast_arrays(s, os)))
    rs, rx = both(numpy.array([1, 0, 2]))
    compare(xp.repeat(x, rx, axis=1), strict.repeat(s, rs, axis=1))
    assert xp.broadcast_shapes((3, 1), (4,), ()) == strict.broadcast_shapes((3, 1), (4,), ())
    with pytest.raises(ValueError, match="squeeze"):
        xp.squeeze(x, 0)
    with pytest.raises(ValueError, match="copy"):
        xp.reshape(x.mT, (-1,), copy=False)


def test_concat_promotes():
    parts = [data((2,), "uint8"), data((3,), "int8"), data((), "int32").reshape(1)]
    compare(xp.concat([both(p)[1] for p in parts]), strict.concat([both(p)[0] for p in parts]))


@pytest.mark.parametrize("step", [-1, -2, -3, 2])
def test_negative_steps(step):
    s, x = both(data((7, 4), "int64"))
    compare(x[::step], s[::step, ...])
    compare(x[5:1:step, ::-1], s[5:1:step, ::-1])


# ---- searching, sorting, sets


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_searching(dtype):
    s, x = both(data((3, 6), dtype))
    for axis, keepdims in itertools.product((None, 0, -1), (False, True)):
        for name in ("argmax", "argmin"):
            options = {"axis": axis, "keepdims": keepdims}
            compare(getattr(xp, name)(x, **options), getattr(strict, name)(s, **options))
    for axis, descending in itertools.product((0, -1), (False, True)):
        options = {"axis": axis, "descending": descending}
        compare(xp.sort(x, **options), strict.sort(s, **options))
        compare(xp.argsort(x, **options), strict.argsort(s, **options))
    compare(xp.nonzero(x), strict.nonzero(s))
    ordered = numpy.sort(data((9,), dtype))
    (so, xo), (sv, xv) = both(ordered), both(data((2, 3), dtype, 4))
    for side in ("left", "right"):
        compare(xp.searchsorted(xo, xv, side=side), strict.searchsorted(so, sv, side=side))
    sorter = numpy.argsort(data((9,), dtype))
    (ss, xs), (su, xu) = both(sorter), both(data((9,), dtype))
    compare(xp.searchsorted(xu, xv, sorter=xs), strict.searchsorted(su, sv, sorter=ss))
    where = both(numpy.array([2, 0, 5]))
    compare(xp.take(x, where[1], axis=1), strict.take(s, where[0], axis=1))
    picked = both(numpy.array([[0, -1], [2, 3], [5, 5]]))
    compare(xp.take_along_axis(x, picked[1], axis=1), strict.take_along_axis(s, picked[0], axis=1))
    mask = both(data((6,), "bool"))
    compare(xp.where(mask[1], x, 1), strict.where(mask[0], s, 1))


@pytest.mark.parametrize("dtype", ALL)
def test_sets(dtype):
    for shape in [(0,), (), (12,), (4, 5)]:
        array = data(shape, dtype)
        if dtype in FLOATS + COMPLEX:
            array = numpy.round(array) + 0.0  # zeros of one sign
        s, x = both(array.astype(dtype))
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
            got, want = getattr(xp, name)(x), getattr(strict, name)(s)
            if name == "unique_values":
                got, want = (got,), (want,)
            compare(tuple(got), tuple(want))
    if dtype in INTEGERS:
        (s, x), (t, y) = both(data((3, 4), dtype)), both(data((5,), dtype, 7))
        compare(xp.isin(x, y), strict.isin(s, t))
        # The reference (2.6.1) forgets this argument.
        assert facula.equal(xp.isin(x, y, invert=True), ~xp.isin(x, y))


def test_every_nan_is_a_value_of_its_own():
    s, x = both(numpy.array([numpy.nan, 1.0, numpy.nan]))
    compare(xp.unique_counts(x), strict.unique_counts(s))


# ---- linear algebra and Fourier transforms


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products(dtype):
    (s, x), (t, y) = both(data((2, 3, 4), dtype)), both(data((4, 5), dtype, 1))
    compare(xp.matmul(x, y), strict.matmul(s, t), rtol=1e-4)
    compare(xp.matmul(x[0], y[:, 0]), strict.matmul(s[0, ...], t[:, 0]), rtol=1e-4)
    compare(xp.tensordot(x, y, axes=1), strict.tensordot(s, t, axes=1), rtol=1e-4)
    compare(
        xp.tensordot(x, y, axes=((2,), (0,))), strict.tensordot(s, t, axes=((2,), (0,))), rtol=1e-4
    )
    (u, v) = both(data((3, 4), dtype, 2))
    compare(xp.vecdot(x, v), strict.vecdot(s, u), rtol=1e-4)
    compare(xp.vecdot(x, x, axis=-2), strict.vecdot(s, s, axis=-2), rtol=1e-4)
    compare(xp.linalg.outer(v[0], y[:, 0]), strict.linalg.outer(u[0, :], t[:, 0]))
    (c, d) = both(data((4, 3), dtype, 3))
    compare(
        xp.linalg.cross(d, d[0]),
        strict.linalg.cross(c, strict.broadcast_to(c[0, :], (4, 3))),
        rtol=1e-4,
    )
    compare(xp.linalg.diagonal(x, offset=1), strict.linalg.diagonal(s, offset=1))
    compare(xp.linalg.trace(x), strict.linalg.trace(s))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_decompositions(dtype):
    rtol = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    m = data((2, 3, 3), dtype) + 4 * numpy.eye(3, dtype=dtype)
    h = m @ m.conj().swapaxes(-1, -2)
    (s, x), (hs, hx) = both(m), both(h.astype(dtype))
    L, R = xp.linalg, strict.linalg
    compare(L.cholesky(hx), R.cholesky(hs), rtol)
    compare(L.cholesky(hx, upper=True), R.cholesky(hs, upper=True), rtol)
    compare(L.det(x), R.det(s), rtol)
    compare(L.inv(x), R.inv(s), rtol)
    compare(L.slogdet(x), R.slogdet(s), rtol)
    compare(L.svdvals(x), R.svdvals(s), rtol)
    compare(L.eigvalsh(hx), R.eigvalsh(hs), rtol)
    compare(L.pinv(x), R.pinv(s), rtol)
    compare(L.matrix_power(x, 3), R.matrix_power(s, 3), rtol)
    compare(L.matrix_rank(x), R.matrix_rank(s))
    for order in ("fro", "nuc", 1, -1, 2, -2, numpy.inf, -numpy.inf):
        compare(L.matrix_norm(x, ord=order), R.matrix_norm(s, ord=order), rtol)
    for order in (0, 1, 2, 3.5, numpy.inf, -numpy.inf):
        compare(L.vector_norm(x, ord=order), R.vector_norm(s, ord=order), rtol)
        compare(
            L.vector_norm(x, axis=(0, 2), keepdims=True, ord=order),
            R.vector_norm(s, axis=(0, 2), keepdims=True, ord=order),
            rtol,
        )
    for shape in ((3,), (3, 2), (2, 3, 2), (2, 3, 3)):
        t, y = both(data(shape, dtype, 5))
        compare(L.solve(x, y), R.solve(s, t), rtol)
    q = L.qr(x)
    assert q._fields == ("Q", "R") and facula.allclose(q.Q @ q.R, x, atol=1e-4)
    u = L.svd(x, full_matrices=False)
    assert u._fields == ("U", "S", "Vh")
    assert facula.allclose((u.U * u.S.unsqueeze(-2).to(u.U.dtype)) @ u.Vh, x, atol=1e-4)
    e = L.eigh(hx)
    assert e._fields == ("eigenvalues", "eigenvectors")
    w, v = L.eig(x)
    wide = x.to(v.dtype)
    assert facula.allclose(wide @ v, v * w.unsqueeze(-2), atol=1e-3)
    got = facula.sort(L.eigvals(x).abs())[0]
    assert facula.allclose(got, facula.sort(w.abs())[0], atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_fourier_transforms(dtype):
    real = dtype in FLOATS
    wide = "complex64" if dtype in ("float32", "complex64") else "complex128"
    s, x = both(data((3, 6), dtype))
    c, z = both(data((3, 6), wide))
    for norm in ("backward", "ortho", "forward"):
        for name in ("fft", "ifft", "hfft", "irfft"):
            for options in ({}, {"n": 4}, {"n": 9, "axis": 0}):
                got = getattr(xp.fft, name)(z, norm=norm, **options)
                compare(got, getattr(strict.fft, name)(c, norm=norm, **options), rtol=1e-4)
        for name in ("rfft", "ihfft") if real else ():
            compare(
                getattr(xp.fft, name)(x, norm=norm), getattr(strict.fft, name)(s, norm=norm), 1e-4
            )
        for name in ("fftn", "ifftn", "irfftn"):
            for options in ({}, {"axes": (0,)}, {"s": (2, 8), "axes": (0, 1)}):
                got = getattr(xp.fft, name)(z, norm=norm, **options)
                compare(got, getattr(strict.fft, name)(c, norm=norm, **options), rtol=1e-4)
        if real:
            compare(xp.fft.rfftn(x, norm=norm), strict.fft.rfftn(s, norm=norm), rtol=1e-4)
    for name in ("fftshift", "ifftshift"):
        compare(getattr(xp.fft, name)(x), getattr(strict.fft, name)(s))
        compare(getattr(xp.fft, name)(x, axes=1), getattr(strict.fft, name)(s, axes=1))
    for name in ("fftfreq", "rfftfreq"):
        compare(getattr(xp.fft, name)(7, d=0.5), getattr(strict.fft, name)(7, d=0.5))
        got = getattr(xp.fft, name)(4, dtype=xp.float32)
        compare(got, getattr(strict.fft, name)(4, dtype=strict.float32))
