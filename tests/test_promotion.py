"""Type promotion: the tables, the rules for numbers and 0-dim tensors, in-place and out=."""

import math

import pytest
from package_under_test import F

SHORT = {
    "b1": "bool",
    "u1": "uint8",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "f2": "float16",
    "bf": "bfloat16",
    "f4": "float32",
    "f8": "float64",
    "c4": "complex64",
    "c8": "complex128",
    "e4": "float8_e4m3fn",
    "e5": "float8_e5m2",
}
ORDER = list(SHORT)

# Row and column in the order of SHORT. A dash: PyTorch refuses the pair, and COMPLETED below has
# what Facula makes of it.
PROMOTE = """
b1 u1 i1 i2 i4 i8 -- -- -- f2 bf f4 f8 c4 c8 -- --
u1 u1 i2 i2 i4 i8 -- -- -- f2 bf f4 f8 c4 c8 -- --
i1 i2 i1 i2 i4 i8 -- -- -- f2 bf f4 f8 c4 c8 -- --
i2 i2 i2 i2 i4 i8 -- -- -- f2 bf f4 f8 c4 c8 -- --
i4 i4 i4 i4 i4 i8 -- -- -- f2 bf f4 f8 c4 c8 -- --
i8 i8 i8 i8 i8 i8 -- -- -- f2 bf f4 f8 c4 c8 -- --
-- -- -- -- -- -- u2 -- -- f2 bf f4 f8 -- -- -- --
-- -- -- -- -- -- -- u4 -- f2 bf f4 f8 -- -- -- --
-- -- -- -- -- -- -- -- u8 f2 bf f4 f8 -- -- -- --
f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c4 c8 -- --
bf bf bf bf bf bf bf bf bf f4 bf f4 f8 c4 c8 -- --
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c4 c8 -- --
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c8 c8 -- --
c4 c4 c4 c4 c4 c4 -- -- -- c4 c4 c4 c8 c4 c8 -- --
c8 c8 c8 c8 c8 c8 -- -- -- c8 c8 c8 c8 c8 c8 -- --
-- -- -- -- -- -- -- -- -- -- -- -- -- -- -- e4 --
-- -- -- -- -- -- -- -- -- -- -- -- -- -- -- -- e5
"""

# Unsigned integers: the smallest integer type that holds both, and int64 where none holds uint64
# and a sign (integers never become floats). 8-bit floats give way to every other float.
COMPLETED = """
b1 u2 u2 | b1 u4 u4 | b1 u8 u8
u1 u2 u2 | u1 u4 u4 | u1 u8 u8
i1 u2 i4 | i1 u4 i8 | i1 u8 i8
i2 u2 i4 | i2 u4 i8 | i2 u8 i8
i4 u2 i4 | i4 u4 i8 | i4 u8 i8
i8 u2 i8 | i8 u4 i8 | i8 u8 i8
u2 u4 u4 | u2 u8 u8 | u4 u8 u8
c4 u2 c4 | c4 u4 c4 | c4 u8 c4
c8 u2 c8 | c8 u4 c8 | c8 u8 c8
e4 e5 f4 | e4 f2 f2 | e5 bf bf | e4 f4 f4 | e5 f8 f8
e4 b1 e4 | e5 i8 e5 | e4 u8 e4 | e4 c4 c4 | e5 c8 c8
"""

# Rows cast from, columns to.
CAN_CAST = """
yyyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.yyyyyyyyyyyyyyyy
.........yyyyyyyy
.........yyyyyyyy
.........yyyyyyyy
.........yyyyyyyy
.............yy..
.............yy..
.........yyyyyyyy
.........yyyyyyyy
"""


def dtype(short):
    return getattr(F, SHORT[short])


def tensor(short, shape=(1,)):
    return F.ones(shape).to(dtype(short))


PROMOTE_ROWS = dict(
    zip(ORDER, (line.split() for line in PROMOTE.strip().splitlines()), strict=True)
)


@pytest.mark.parametrize("left", ORDER)
def test_promote_types_table(left):
    for right, expected in zip(ORDER, PROMOTE_ROWS[left], strict=True):
        if expected != "--":
            assert F.promote_types(dtype(left), dtype(right)) is dtype(expected), (left, right)
            assert F.result_type(tensor(left), tensor(right)) is dtype(expected), (left, right)


@pytest.mark.facula_only
@pytest.mark.parametrize("entry", [e for e in COMPLETED.replace("\n", "|").split("|") if e.strip()])
def test_promotion_where_pytorch_refuses(entry):
    left, right, expected = (dtype(short) for short in entry.split())
    assert F.promote_types(left, right) is expected
    assert F.promote_types(right, left) is expected


@pytest.mark.parametrize("left", ORDER)
def test_can_cast_table(left):
    row = CAN_CAST.split()[ORDER.index(left)]
    for right, expected in zip(ORDER, row, strict=True):
        assert F.can_cast(dtype(left), dtype(right)) is (expected == "y"), (left, right)


PLAIN = ["b1", "u1", "i1", "i2", "i4", "i8", "f2", "bf", "f4", "f8", "c4", "c8"]


@pytest.mark.parametrize("left", PLAIN)
def test_addition_follows_the_table(left):
    for right in PLAIN:
        expected = dtype(PROMOTE_ROWS[left][ORDER.index(right)])
        total = tensor(left) + tensor(right)
        assert total.dtype is expected, (left, right)
        assert total.item() == (True if expected is F.bool else 2)


# ---- numbers and 0-dim tensors ---------------------------------------------------------------


@pytest.mark.parametrize(
    "short, value, expected",
    [
        ("b1", True, "b1"),
        ("b1", 1, "i8"),
        ("b1", 1.5, "f4"),
        ("b1", 1j, "c4"),
        ("u1", True, "u1"),
        ("u1", 300, "u1"),  # a number's size is not looked at
        ("i2", -1, "i2"),
        ("i8", 1.5, "f4"),
        ("i8", 1j, "c4"),
        ("f2", 1, "f2"),
        ("f2", 1e300, "f2"),
        ("bf", 1.5, "bf"),
        ("f4", 1j, "c4"),
        ("f8", 1j, "c8"),
        ("c4", 1.5, "c4"),
        ("u2", 1, "u2"),
        ("u4", -1, "u4"),
        ("u8", 1.5, "f4"),
    ],
)
def test_python_numbers_only_raise_the_category(short, value, expected):
    assert F.result_type(tensor(short), value) is dtype(expected)
    assert F.result_type(value, tensor(short)) is dtype(expected)
    assert F.result_type(tensor(short, ()), value) is dtype(expected)


@pytest.mark.parametrize(
    "short, zero_dim, expected",
    [
        ("f2", "f8", "f2"),
        ("f4", "f8", "f4"),
        ("f4", "i8", "f4"),
        ("i8", "f8", "f8"),
        ("i8", "f4", "f4"),
        ("i1", "u1", "i1"),
        ("u1", "i8", "u1"),
        ("u2", "i8", "u2"),
        ("b1", "u1", "u1"),
        ("b1", "b1", "b1"),
        ("f4", "c8", "c4"),
        ("f8", "c4", "c8"),
        ("i4", "c8", "c8"),
        ("c4", "f8", "c4"),
    ],
)
def test_zero_dim_tensors_only_raise_the_category(short, zero_dim, expected):
    assert F.result_type(tensor(short), tensor(zero_dim, ())) is dtype(expected)
    assert F.result_type(tensor(zero_dim, ()), tensor(short)) is dtype(expected)


def test_two_zero_dim_tensors_promote_like_others():
    assert F.result_type(tensor("i1", ()), tensor("i8", ())) is F.int64
    assert F.result_type(tensor("f2", ()), tensor("f8", ())) is F.float64


def test_result_type_of_two_numbers():
    assert F.result_type(1, 2) is F.int64
    assert F.result_type(1, 2.0) is F.float32
    assert F.result_type(1.0, 2j) is F.complex64


def test_the_default_dtype_is_the_dtype_of_python_floats(keep_default_dtype):
    F.set_default_dtype(F.float64)
    assert F.result_type(tensor("i8"), 1.5) is F.float64
    assert F.result_type(tensor("f4"), 1.5) is F.float32
    assert F.result_type(tensor("i8"), 1j) is F.complex128
    assert (tensor("i8") / 2).dtype is F.float64


def test_three_operands():
    one = tensor("i8")
    assert F.where(tensor("b1"), one, tensor("f4")).dtype is F.float32
    assert F.addcmul(tensor("f4"), tensor("f4"), tensor("f8")).dtype is F.float64
    assert F.clamp(one, 0.5).dtype is F.float32
    assert F.clamp(one, max=F.tensor(1.5)).dtype is F.float32
    assert F.stack([one, tensor("f2")]).dtype is F.float16
    assert F.cat([tensor("i1"), tensor("u1")]).dtype is F.int16


# ---- what operators make of it ---------------------------------------------------------------


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda: tensor("i8") / tensor("i8"), "f4"),
        (lambda: tensor("b1") / tensor("b1"), "f4"),
        (lambda: tensor("u1") / 2, "f4"),
        (lambda: tensor("f2") / tensor("i8"), "f2"),
        (lambda: tensor("i4") // tensor("i4"), "i4"),
        (lambda: tensor("f4") // tensor("i8"), "f4"),
        (lambda: F.div(tensor("i8"), 2, rounding_mode="trunc"), "i8"),
        (lambda: F.div(tensor("i8"), 2, rounding_mode="floor"), "i8"),
        (lambda: tensor("i8") % 2.5, "f4"),
        (lambda: tensor("i8") ** 2, "i8"),
        (lambda: tensor("i8") ** 2.0, "f4"),
        (lambda: tensor("b1") ** 2, "i8"),
        (lambda: tensor("i8") ** tensor("f4"), "f4"),
        (lambda: F.exp(tensor("i8")), "f4"),
        (lambda: F.sqrt(tensor("b1")), "f4"),
        (lambda: F.sin(tensor("f2")), "f2"),
        (lambda: F.atan2(tensor("i8"), tensor("i8")), "f4"),
        (lambda: F.floor(tensor("i8")), "i8"),
        (lambda: F.abs(tensor("c8")), "f8"),
        (lambda: F.angle(tensor("c4")), "f4"),
        (lambda: F.maximum(tensor("i8"), tensor("f4")), "f4"),
        (lambda: tensor("i8") & tensor("u1"), "i8"),
        (lambda: tensor("i8") < tensor("f4"), "b1"),
        (lambda: tensor("c4") == tensor("i8"), "b1"),
        (lambda: F.logical_not(tensor("f4")), "b1"),
        (lambda: F.isnan(tensor("i8")), "b1"),
        (lambda: tensor("u1").sum(), "i8"),
        (lambda: tensor("b1").sum(), "i8"),
        (lambda: tensor("i4").prod(), "i8"),
        (lambda: tensor("u1").cumsum(0), "i8"),
        (lambda: tensor("f2").sum(), "f2"),
        (lambda: tensor("u1").sum(dtype=F.uint8), "u1"),
        (lambda: tensor("f4").sum(dtype=F.float64), "f8"),
        (lambda: tensor("i8").mean(dtype=F.float32), "f4"),
        (lambda: tensor("i4").max(), "i4"),
        (lambda: tensor("f4").argmax(), "i8"),
        (lambda: tensor("i8").softmax(0, dtype=F.float64), "f8"),
    ],
)
def test_result_dtypes(call, expected):
    assert call().dtype is dtype(expected)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tensor("i8").mean(), "mean.*floating point or complex.*Long"),
        (lambda: tensor("b1").mean(), "mean.*floating point or complex.*Bool"),
        (lambda: tensor("i8").std(), "only support floating"),
        (lambda: tensor("b1") - tensor("b1"), "two bool tensors is not supported"),
        (lambda: 1 - tensor("b1"), "bool tensor is not supported"),
        (lambda: tensor("b1") - 1, "bool tensor is not supported"),
        (lambda: -tensor("b1"), "bool tensor is not supported"),
        (lambda: F.maximum(tensor("c4"), tensor("c4")), "complex"),
        (lambda: tensor("c4") < tensor("c4"), "lt.*Complex"),
        (lambda: F.add(tensor("i8"), 1, alpha=1.5), "alpha must not be a floating point"),
        (lambda: F.add(tensor("f4"), 1, alpha=1j), "alpha must not be a complex"),
        (lambda: tensor("f4", (1, 1)) @ tensor("f8", (1, 1)), "same dtype"),
        (lambda: tensor("i8") @ tensor("f4"), "same dtype"),
        (lambda: F.div(tensor("i8"), 1, rounding_mode="bad"), "rounding_mode.*trunc.*floor.*bad"),
    ],
)
def test_dtypes_that_operators_refuse(call, text):
    with pytest.raises(RuntimeError, match=text):  # NotImplementedError is a RuntimeError
        call()


def test_bool_arithmetic():
    yes, no = F.tensor([True]), F.tensor([False])
    assert (yes + yes).tolist() == [True]
    assert (yes * no).tolist() == [False]
    assert (yes + 1).tolist() == [2]
    assert (yes + True).tolist() == [True]
    assert (yes ^ yes).tolist() == [False]
    assert F.tensor([True, True, False]).sum().item() == 2
    assert F.tensor([True, True]).prod().item() == 1
    assert F.tensor([False, True]).max().item() is True


# ---- in-place and out= -----------------------------------------------------------------------

WRITES_REFUSED = [
    (lambda: tensor("i8").add_(1.5), "Float", "Long"),
    (lambda: tensor("i8").add_(tensor("f4")), "Float", "Long"),
    (lambda: tensor("i8").mul_(1.5), "Float", "Long"),
    (lambda: tensor("i8").div_(2), "Float", "Long"),
    (lambda: tensor("i4").floor_divide_(2.0), "Float", "Int"),
    (lambda: tensor("i8").sqrt_(), "Float", "Long"),
    (lambda: tensor("i8").pow_(2.0), "Float", "Long"),
    (lambda: tensor("u1").exp_(), "Float", "Byte"),
    (lambda: tensor("b1").add_(1), "Long", "Bool"),
    (lambda: tensor("f4").add_(1j), "ComplexFloat", "Float"),
    (lambda: tensor("f8").mul_(tensor("c8")), "ComplexDouble", "Double"),
    (lambda: F.add(tensor("f4"), 1, out=tensor("i8")), "Float", "Long"),
    (lambda: F.add(tensor("c4"), 1, out=tensor("f4")), "ComplexFloat", "Float"),
    (lambda: F.sin(tensor("i8"), out=tensor("i8")), "Float", "Long"),
    (lambda: F.add(tensor("i2"), 1, out=tensor("b1")), "Short", "Bool"),
]


@pytest.mark.parametrize("call, result, output", WRITES_REFUSED)
def test_results_cannot_fall_to_a_lower_category(call, result, output):
    text = f"result type {result} can't be cast to the desired output type {output}"
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize(
    "call, expected, value",
    [
        (lambda: tensor("f4").add_(tensor("f8")), "f4", 2.0),
        (lambda: tensor("f2").add_(tensor("i8")), "f2", 2.0),
        (lambda: tensor("u1").add_(tensor("i8")), "u1", 2),
        (lambda: tensor("u1").sub_(tensor("i8") * 2), "u1", 255),
        (lambda: tensor("i8").floor_divide_(2), "i8", 0),
        (lambda: tensor("i8").pow_(2), "i8", 1),
        (lambda: tensor("i8").fill_(1.7), "i8", 1),
        (lambda: tensor("i8").copy_(F.tensor([2.7])), "i8", 2),
        (lambda: tensor("i8").eq_(1), "i8", 1),
        (lambda: tensor("f4").lt_(2), "f4", 1.0),
        (lambda: tensor("f4").logical_and_(tensor("i8")), "f4", 1.0),
        (lambda: F.add(tensor("i8"), 1, out=tensor("f4")), "f4", 2.0),
        (lambda: F.add(tensor("f8"), 1, out=tensor("f4")), "f4", 2.0),
        (lambda: F.add(tensor("i8"), 1, out=tensor("i1")), "i1", 2),
        (lambda: F.lt(tensor("i8"), 2, out=tensor("f4")), "f4", 1.0),
        (lambda: F.sin(tensor("i8"), out=tensor("f8")), "f8", pytest.approx(math.sin(1))),
        (lambda: F.sum(tensor("i8"), 0, out=tensor("f4", ())), "f4", 1.0),
        (lambda: F.cat([tensor("i8")], out=tensor("f8")), "f8", 1.0),
    ],
)
def test_results_may_be_cast_within_a_category_or_up(call, expected, value):
    result = call()
    assert result.dtype is dtype(expected)
    assert result.item() == value


def test_out_of_matmul_must_have_the_dtype():
    with pytest.raises(RuntimeError, match=r"[Dd]ouble"):
        F.mm(F.ones(1, 1), F.ones(1, 1), out=F.ones(1, 1, dtype=F.float64))


# ---- wraparound ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "short, left, op, right, expected",
    [
        ("u1", 200, "add", 100, 44),
        ("u1", 0, "sub", 1, 255),
        ("u1", 200, "mul", -1, 56),
        ("i1", 127, "add", 1, -128),
        ("i1", -128, "sub", 1, 127),
        ("i2", 300, "mul", 300, 24464),
        ("i4", 2**31 - 1, "mul", 2, -2),
        ("i8", 2**63 - 1, "add", 1, -(2**63)),
    ],
)
def test_integers_wrap_around(short, left, op, right, expected):
    x = F.tensor([left], dtype=dtype(short))
    assert getattr(x, op)(right).tolist() == [expected]
    assert getattr(x, op)(F.tensor([right]).to(x.dtype)).tolist() == [expected]


@pytest.mark.facula_only
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_unsigned_integers_have_full_arithmetic(bits):
    unsigned = getattr(F, f"uint{bits}")
    top = 2**bits - 1

    def u(*values):
        return F.tensor(list(values), dtype=unsigned)

    x = u(0, 1, top)
    for result, expected in [
        (x + 1, [1, 2, 0]),
        (x - 1, [top, 0, top - 1]),
        (x * 2, [0, 2, top - 1]),
        (x + x, [0, 2, top - 1]),
        (-x, [0, top, 1]),
        (~x, [top, top - 1, 0]),
        (x // 2, [0, 0, top // 2]),
        (x % 10, [0, 1, top % 10]),
        (x & 3, [0, 1, 3]),
        (x | u(2), [2, 3, top]),
        (x ^ x, [0, 0, 0]),
        (x << 1, [0, 2, top - 1]),
        (x >> (bits - 1), [0, 0, 1]),
        (u(3) ** 2, [9]),
        (x.clamp(max=5), [0, 1, 5]),
        (F.maximum(x, u(7)), [7, 7, top]),
        (x.abs(), [0, 1, top]),
        (x.sign(), [0, 1, 1]),
        (x.flip(0).sort().values, [0, 1, top]),
        (x.max(), top),
        (x.min(), 0),
        (F.cat([x, u(5)]), [0, 1, top, 5]),
        (F.where(x > 0, x, u(9)), [9, 1, top]),
    ]:
        assert result.dtype is unsigned
        assert result.tolist() == expected
    assert (x < 1).tolist() == [True, False, False]
    assert (x == top).tolist() == [False, False, True]
    assert (x >= x).tolist() == [True, True, True]
    assert x.argmax().item() == 2
    assert (u(1) / 2).dtype is F.float32
    assert u(1, 2, 3).sum().item() == 6
    assert (u(3).view(1, 1) @ u(4).view(1, 1)).item() == 12
    assert (u(1) + F.tensor([1.5])).tolist() == [2.5]


def test_unsigned_conversions():
    assert F.tensor([-1]).to(F.uint64).tolist() == [2**64 - 1]
    assert F.tensor([2**63], dtype=F.uint64).to(F.float64).item() == 2.0**63
    assert F.tensor([70000]).to(F.uint16).tolist() == [4464]
    assert F.tensor([2**32 - 1], dtype=F.uint32).to(F.int64).item() == 2**32 - 1
    assert F.tensor([1], dtype=F.uint16).add(F.tensor([1.5])).tolist() == [2.5]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_for_an_out_of_another_dtype_are_rounded_first(name):
    x = F.tensor([1.1, 2.3]).to(getattr(F, name))
    for function in (lambda **k: F.mul(x, x, **k), lambda **k: F.exp(x, **k)):
        expected = function()
        assert expected.dtype is x.dtype
        out = F.empty(2)
        function(out=out)
        assert out.tolist() == expected.float().tolist()
        assert out._version == 1


def test_result_type_and_isin_by_name():
    x = F.tensor([2, 3])
    assert F.result_type(tensor=x, other=1.5) is F.float32
    assert F.result_type(scalar=1.5, tensor=x) is F.float32
    assert F.result_type(scalar1=1, scalar2=2) is F.int64
    with pytest.raises(TypeError):
        F.result_type(x, foo=1)
    assert F.isin(elements=x, test_element=3).tolist() == [False, True]
    assert F.isin(element=3, test_elements=x).item() is True
