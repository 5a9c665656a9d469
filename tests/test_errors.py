"""What misuse says: the exception type and the text that programs match are PyTorch's; Facula's
text also names the operator, what was given and what is accepted.

A row is (call, exception, PyTorch's text as a regular expression, Facula's additional expressions).
"""

import math
import re

import numpy as np
import pytest
from package_under_test import F


def z(*shape, **options):
    return F.zeros(*shape, **options)


def ints(*shape):
    return F.zeros(*shape, dtype=F.int64)


def bools(*shape):
    return F.zeros(*shape, dtype=F.bool)


def shape(*sizes):
    """An expression for a shape, however its brackets look."""
    return r"[\[(]" + ", ".join(map(str, sizes)) + r",?[\])]"


MULTIPLY = r"shapes cannot be multiplied \(2x3 and 4x5\)"
BROADCAST = r"size of tensor a \({}\) must match the size of tensor b \({}\) at non-singleton dim"
DIM = r"Dimension out of range \(expected to be in range of \[{}, {}\], but got {}\)"
CAST = "result type {} can't be cast to the desired output type {}"
OVERLAP = "more than one element of the written-to tensor refers to a single memory location"

SHAPE_ERRORS = {
    "matmul of matrices": (
        lambda: z(2, 3) @ z(4, 5),
        RuntimeError,
        MULTIPLY,
        ["matmul", shape(2, 3), shape(4, 5)],
    ),
    "mm": (lambda: F.mm(z(2, 3), z(4, 5)), RuntimeError, MULTIPLY, [r"\bmm\b", shape(2, 3)]),
    "mm of a vector": (
        lambda: F.mm(z(2, 3), z(3)),
        RuntimeError,
        "matrix",
        [r"\bmm\b", "mat2", shape(3)],
    ),
    "addmm": (lambda: F.addmm(z(2), z(2, 3), z(4, 5)), RuntimeError, MULTIPLY, ["addmm"]),
    "matmul of matrix and vector": (
        lambda: F.matmul(z(2, 3), z(4)),
        RuntimeError,
        "size mismatch",
        ["matmul", shape(2, 3), shape(4)],
    ),
    "matmul of vectors": (
        lambda: F.matmul(z(3), z(4)),
        RuntimeError,
        r"3.*4",
        ["matmul", shape(3), shape(4)],
    ),
    "matmul of batches": (
        lambda: F.matmul(z(2, 3, 4), z(5, 4, 6)),
        RuntimeError,
        BROADCAST.format(2, 5),
        ["matmul", shape(2, 3, 4), shape(5, 4, 6)],
    ),
    "matmul inside batches": (
        lambda: F.matmul(z(2, 3, 4), z(2, 5, 6)),
        RuntimeError,
        "4.*5",
        ["matmul", shape(2, 3, 4), shape(2, 5, 6)],
    ),
    "matmul of a 0-dim tensor": (
        lambda: F.matmul(z(()), z(3)),
        RuntimeError,
        "at least 1D.*0D and 1D",
        ["matmul"],
    ),
    "bmm": (
        lambda: F.bmm(z(2, 3, 4), z(3, 4, 5)),
        RuntimeError,
        r"",
        ["bmm", shape(2, 3, 4), shape(3, 4, 5)],
    ),
    "dot": (lambda: F.dot(z(2), z(3)), RuntimeError, "2.*3", ["dot", shape(2), shape(3)]),
    "add": (
        lambda: z(2, 3) + z(2),
        RuntimeError,
        BROADCAST.format(3, 2) + "ension 1",
        ["add", shape(2, 3), shape(2)],
    ),
    "maximum": (
        lambda: F.maximum(z(2), z(3)),
        RuntimeError,
        BROADCAST.format(2, 3),
        ["maximum", shape(2), shape(3)],
    ),
    "where": (lambda: F.where(bools(2), z(3), z(3)), RuntimeError, "2.*3", ["where"]),
    "add_ that would grow": (
        lambda: z(3).add_(z(2, 3)),
        RuntimeError,
        r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]",
        ["add_"],
    ),
    "cat": (
        lambda: F.cat([z(2, 3), z(3, 2)]),
        RuntimeError,
        "except in dimension 0. Expected size 3 but got size 2 for tensor number 1",
        ["cat", shape(2, 3), shape(3, 2)],
    ),
    "stack": (
        lambda: F.stack([z(2), z(3)]),
        RuntimeError,
        r"equal size, but got \[2\] at entry 0 and \[3\] at entry 1",
        ["stack"],
    ),
    "view": (
        lambda: z(2, 3).view(4),
        RuntimeError,
        r"shape '\[4\]' is invalid for input of size 6",
        ["view", shape(2, 3)],
    ),
    "reshape": (
        lambda: z(2, 3).reshape(4, -1),
        RuntimeError,
        r"shape '\[4, -1\]' is invalid for input of size 6",
        ["reshape", shape(2, 3)],
    ),
    "view of a transpose": (
        lambda: z(2, 3).t().view(6),
        RuntimeError,
        "view size is not compatible with input tensor's size and stride.*reshape",
        ["view", shape(3, 2), shape(1, 3), shape(6)],
    ),
    "expand": (
        lambda: z(2, 3).expand(3, 3),
        RuntimeError,
        r"expanded size of the tensor \(3\) must match the existing size \(2\)",
        ["expand", shape(3, 3), shape(2, 3)],
    ),
    "broadcast_shapes": (lambda: F.broadcast_shapes((3,), (4,)), RuntimeError, "", ["3", "4"]),
    "unfold": (lambda: z(2).unfold(0, 3, 1), RuntimeError, "is 2 but size is 3", ["unfold"]),
    "narrow": (lambda: z(2).narrow(0, 1, 5), RuntimeError, "exceeds dimension size", ["narrow"]),
    "tril of a vector": (lambda: F.tril(z(3)), RuntimeError, "at least 2 dim", ["tril"]),
}

DIM_ERRORS = {
    "sum": (lambda: F.sum(z(2, 3), 2), IndexError, DIM.format(-2, 1, 2), ["sum"]),
    "negative dim": (lambda: F.sum(z(2, 3), -3), IndexError, DIM.format(-2, 1, -3), ["sum"]),
    "argmax": (lambda: z(2, 3).argmax(5), IndexError, DIM.format(-2, 1, 5), ["argmax"]),
    "softmax": (lambda: F.softmax(z(2, 3), 4), IndexError, DIM.format(-2, 1, 4), ["softmax"]),
    "cumsum": (lambda: F.cumsum(z(2), 3), IndexError, DIM.format(-1, 0, 3), ["cumsum"]),
    "sort": (lambda: F.sort(z(2), 3), IndexError, DIM.format(-1, 0, 3), ["sort"]),
    "cat": (lambda: F.cat([z(2)], 1), IndexError, DIM.format(-1, 0, 1), ["cat"]),
    "transpose": (lambda: z(2, 3).transpose(0, 5), IndexError, DIM.format(-2, 1, 5), ["transpose"]),
    "squeeze": (lambda: z(2, 3).squeeze(7), IndexError, DIM.format(-2, 1, 7), ["squeeze"]),
    "0-dim": (lambda: F.sum(z(()), 1), IndexError, DIM.format(-1, 0, 1), ["sum"]),
    "one dim twice": (
        lambda: F.sum(z(2, 3), (0, -2)),
        RuntimeError,
        "dim 0 appears multiple times",
        ["sum"],
    ),
    "max of nothing": (lambda: F.max(z(0)), RuntimeError, "reduction dim to be specified", ["max"]),
    "max over nothing": (lambda: F.max(z(0, 3), 0), IndexError, "non-zero size", ["max"]),
}

DTYPE_ERRORS = {
    "in-place": (
        lambda: ints(2).add_(1.5),
        RuntimeError,
        CAST.format("Float", "Long"),
        ["add_"],
    ),
    "out=": (
        lambda: F.sqrt(z(2), out=ints(2)),
        RuntimeError,
        CAST.format("Float", "Long"),
        ["sqrt"],
    ),
    "bool minus bool": (
        lambda: bools(2) - bools(2),
        RuntimeError,
        "two bool tensors is not supported",
        ["sub", "logical_xor"],
    ),
    "bitwise_and of floats": (
        lambda: F.bitwise_and(z(2), z(2)),
        RuntimeError,
        "bitwise_and.*",
        ["bitwise_and", "float32|Float"],
    ),
    "mean of integers": (
        lambda: ints(2).mean(),
        RuntimeError,
        "floating point or complex dtype. Got: Long",
        ["mean"],
    ),
    "matmul of two dtypes": (
        lambda: z(2, 2) @ z(2, 2, dtype=F.float64),
        RuntimeError,
        "same dtype",
        ["matmul", "float32|float", "float64|double"],
    ),
    "comparison of complex": (
        lambda: F.tensor([1j]) < F.tensor([2j]),
        RuntimeError,
        "lt",
        ["lt", "complex64|ComplexFloat"],
    ),
    "gradient of integers": (
        lambda: ints(2).requires_grad_(),
        RuntimeError,
        "floating point.* can require gradients",
        ["int64|Long"],
    ),
    "integer to a negative power": (
        lambda: F.pow(F.tensor([2]), -1),
        RuntimeError,
        "Integers to negative integer powers are not allowed",
        ["pow"],
    ),
    "two devices": (
        lambda: z(2) + z(2, device="meta"),
        RuntimeError,
        "device",
        ["add", "meta", "cpu"],
    ),
    "mask that is no mask": (
        lambda: F.masked_select(z(2), z(2)),
        RuntimeError,
        "masked_select.*mask",
        ["bool|Bool", "float32|Float"],
    ),
}

ARGUMENT_ERRORS = {
    "string for a tensor": (
        lambda: F.add("a", z(2)),
        TypeError,
        r"add\(\): argument 'input' \(position 1\) must be Tensor, not str",
        [],
    ),
    "string for the second": (
        lambda: F.add(z(2), "a"),
        TypeError,
        r"add\(\): argument 'other' \(position 2\) must be Tensor.*, not str",
        ["Number|number|float"],
    ),
    "none in a method": (
        lambda: z(2).add(None),
        TypeError,
        r"add\(\): argument 'other' \(position 1\) must be Tensor.*, not NoneType",
        [],
    ),
    "number for a tensor": (
        lambda: F.exp(3),
        TypeError,
        r"exp\(\): argument 'input' \(position 1\) must be Tensor, not int",
        [],
    ),
    "list for a tensor": (
        lambda: F.exp([1.0]),
        TypeError,
        r"exp\(\): argument 'input' \(position 1\) must be Tensor, not list",
        [r"tensor\("],  # the likely fix
    ),
    "array for a tensor": (
        lambda: F.exp(np.ones(2)),
        TypeError,
        r"exp\(\): argument 'input' \(position 1\) must be Tensor, not .*ndarray",
        ["from_numpy|as_tensor|tensor"],
    ),
    "tensor for a list": (
        lambda: F.cat(z(2)),
        TypeError,
        r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
        [],
    ),
    "number inside a list": (
        lambda: F.cat([z(2), 1]),
        TypeError,
        "expected Tensor as element 1 in argument 0, but got int",
        ["cat"],
    ),
    "wrong alpha": (
        lambda: F.add(z(2), z(2), alpha="a"),
        TypeError,
        r"add\(\): argument 'alpha' must be Number, not str",
        [],
    ),
    "wrong out": (
        lambda: F.exp(z(2), out=3),
        TypeError,
        r"exp\(\): argument 'out' must be Tensor, not int",
        [],
    ),
    "too many": (
        lambda: F.exp(z(2), 1),
        TypeError,
        r"exp\(\) takes 1 positional argument but 2 were given",
        [],
    ),
    "unknown keyword": (
        lambda: F.add(z(2), z(2), beta=2),
        TypeError,
        r"add\(\) got an unexpected keyword argument 'beta'",
        ["alpha"],  # what it does take
    ),
    "unknown keyword of several signatures": (
        lambda: F.sum(z(2), bad=1),
        TypeError,
        r"sum\(\).*bad",
        ["dtype"],
    ),
    "missing argument": (lambda: F.add(z(2)), TypeError, r"add\(\)", ["other"]),
    "missing second dim": (lambda: z(2).transpose(0), TypeError, r"transpose\(\).*dim1", []),
    "string for a dim": (lambda: F.sum(z(2), dim="a"), TypeError, r"sum\(\).*dim.*str", ["int"]),
    "float for a dim": (lambda: F.sum(z(2), dim=1.5), TypeError, r"sum\(\).*dim.*float", ["int"]),
    "string for a dtype": (
        lambda: F.sum(z(2), dtype="float32"),
        TypeError,
        r"sum\(\).*dtype.*str",
        [rf"{F.__name__}.dtype|{F.__name__}.float32"],
    ),
    "number for a dtype": (
        lambda: F.zeros(2, dtype=3),
        TypeError,
        rf"zeros\(\): argument 'dtype' must be {F.__name__}.dtype, not int",
        [],
    ),
    "list for a device": (
        lambda: F.zeros(2, device=[]),
        TypeError,
        rf"zeros\(\): argument 'device' must be {F.__name__}.device, not list",
        [],
    ),
    "string for a size": (
        lambda: F.zeros("a"),
        TypeError,
        r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not str",
        [],
    ),
    "nan for a size": (
        lambda: F.zeros(math.nan),
        TypeError,
        r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not float",
        [],
    ),
    "string for a shape": (
        lambda: z(2).reshape("a"),
        TypeError,
        r"reshape\(\): argument 'shape' \(position 1\) must be tuple of ints, not str",
        [],
    ),
    "float for a shape": (lambda: z(2).view(1.5), TypeError, r"view\(\).*float", ["int"]),
    "string for a fill value": (
        lambda: F.full((2,), "x"),
        TypeError,
        r"full\(\): argument 'fill_value' \(position 2\) must be Number, not str",
        [],
    ),
    "string for a bound": (lambda: F.clamp(z(2), min="a"), TypeError, r"clamp\(\).*min.*str", []),
    "no bound": (lambda: F.clamp(z(2)), RuntimeError, "At least one of 'min' or 'max'", ["clamp"]),
    "unknown word": (
        lambda: F.div(z(2), 1, rounding_mode="x"),
        RuntimeError,
        "rounding_mode.*None, 'trunc', or 'floor' but found 'x'",
        ["div"],
    ),
    "unknown attribute": (lambda: z(2).foo, AttributeError, "'Tensor' object has no.*'foo'", []),
    "unknown function": (lambda: F.foo, AttributeError, f"module '{F.__name__}' has no.*'foo'", []),
    "unknown device": (lambda: F.device("nope"), RuntimeError, "cpu.*cuda.*meta.*nope", []),
    "argument of tolist": (lambda: z(2).tolist(1), TypeError, "tolist.*no arguments|takes", []),
}

VALUE_ERRORS = {
    "item of many": (
        lambda: z(2, 2).item(),
        RuntimeError,
        "a Tensor with 4 elements cannot be converted to Scalar",
        [shape(2, 2)],
    ),
    "bool of many": (
        lambda: bool(z(2)),
        RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous",
        [r"any\(\)", r"all\(\)"],
    ),
    "overlapping write": (lambda: z(2).expand(2, 2).add_(1), RuntimeError, OVERLAP, ["add_"]),
    "absurd size": (lambda: F.zeros(2**62), RuntimeError, "4611686018427387904", ["zeros"]),
    "negative size": (lambda: F.zeros(2, -1), RuntimeError, "negative", ["zeros", "-1"]),
    "step of zero": (lambda: F.arange(0, 10, 0), RuntimeError, "step must be nonzero", ["arange"]),
    "k too large": (lambda: F.topk(z(3), 5), RuntimeError, "k out of range", ["topk", "5", "3"]),
    "negative steps": (lambda: F.linspace(0, 1, -2), RuntimeError, "non-negative", ["-2"]),
    "index": (
        lambda: z(3)[5],
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 3",
        [],
    ),
    "too many indices": (
        lambda: z(3)[0, 0],
        IndexError,
        "too many indices for tensor of dimension 1",
        ["2"],
    ),
    "backward without a tape": (
        lambda: z(2).sum().backward(),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
        [],
    ),
    "backward of many": (
        lambda: z(2, requires_grad=True).exp().backward(),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
        [shape(2)],
    ),
    "in-place on a leaf": (
        lambda: z(2, requires_grad=True).add_(1),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation",
        ["add_", "no_grad"],
    ),
    "numpy of a tensor with grad": (
        lambda: z(2, requires_grad=True).numpy(),
        RuntimeError,
        r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\)",
        [],
    ),
}

TABLES = [SHAPE_ERRORS, DIM_ERRORS, DTYPE_ERRORS, ARGUMENT_ERRORS, VALUE_ERRORS]
ROWS = [
    pytest.param(*row, id=name.replace(" ", "-")) for table in TABLES for name, row in table.items()
]


@pytest.mark.parametrize("call, error, text, _", ROWS)
def test_type_and_text_are_those_of_pytorch(call, error, text, _):
    with pytest.raises(error) as caught:
        call()
    assert re.search(text, str(caught.value), re.DOTALL), str(caught.value)


@pytest.mark.facula_only
@pytest.mark.parametrize("call, error, _, more", [row for row in ROWS if row.values[3]])
def test_text_says_what_helps(call, error, _, more):
    with pytest.raises(error) as caught:
        call()
    missing = [word for word in more if not re.search(word, str(caught.value))]
    assert not missing, f"{missing} not in: {caught.value}"


def test_exception_classes():
    with pytest.raises(NotImplementedError):
        F.bitwise_not(z(2))
    assert issubclass(NotImplementedError, RuntimeError)
    assert issubclass(F.linalg.LinAlgError, RuntimeError)
    assert issubclass(F.OutOfMemoryError, RuntimeError)


def test_failed_calls_leave_their_output_alone():
    out = F.ones(2)
    for call in (
        lambda: F.add(z(2), z(3), out=out),
        lambda: F.mm(z(2, 3), z(4, 5), out=out),
        lambda: F.cat([z(2, 3), z(3, 2)], out=out),
        lambda: F.add(F.tensor([1j, 1j]), 1, out=out),
        lambda: out.add_(z(3)),
        lambda: out.copy_(z(3)),
        lambda: out.view(3).fill_(1),
    ):
        with pytest.raises(RuntimeError):
            call()
        assert out.tolist() == [1.0, 1.0]


def test_an_error_leaves_the_next_call_in_order():
    for _ in range(3):
        with pytest.raises(RuntimeError):
            z(2) + z(3)
        assert (F.ones(2) + F.ones(2)).tolist() == [2.0, 2.0]
    with F.no_grad(), pytest.raises(RuntimeError):
        z(2) + z(3)
    assert (F.ones(2, requires_grad=True) + 1).requires_grad


def test_errors_in_sequence_arguments_come_through():
    class Broken:
        def __index__(self):
            raise ZeroDivisionError("inside")

    with pytest.raises((ZeroDivisionError, TypeError)):
        F.zeros(Broken())
    with pytest.raises((ZeroDivisionError, TypeError)):
        F.zeros((2, Broken()))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: z(2).masked_fill(F.ones(2, dtype=F.uint8), 1), RuntimeError),
        (lambda: z(2).masked_fill_(F.ones(2, dtype=F.uint8), 1), RuntimeError),
        (lambda: F.max(z(2, 3), 0, out=(z(3), z(3))), RuntimeError),
        (lambda: F.min(z(2, 3), 0, out=(z(3).double(), ints(3))), RuntimeError),
        (lambda: F.argmax(z(3), 0, out=F.zeros(())), RuntimeError),
        (lambda: F.tril_indices(2, 2, dtype=F.float32), NotImplementedError),
        (lambda: F.set_grad_enabled(1), TypeError),
    ],
)
def test_other_dtypes_than_those_that_fit_are_refused(call, error):
    with pytest.raises(error):
        call()
    assert F.is_grad_enabled()


NUMBERS_AND_TENSORS = {
    "add_": lambda: F.Tensor.add_(3, z(2)),
    "mul_": lambda: F.Tensor.mul_(2.5, z(2)),
    "a mask": lambda: F.masked_fill(z(2), 1, 0),
    "what is filled": lambda: F.masked_fill(1.0, bools(2), 0),
    "to(copy=...)": lambda: z(2).to(F.float64, copy=z(3)),
}


@pytest.mark.parametrize("name", NUMBERS_AND_TENSORS)
def test_a_number_is_no_tensor_to_write_to_and_a_tensor_is_no_flag(name):
    with pytest.raises((TypeError, RuntimeError)):
        NUMBERS_AND_TENSORS[name]()


def test_a_factor_whose_square_overflows_is_refused():
    with pytest.raises(RuntimeError):
        F.nn.functional.pixel_shuffle(z(1, 4, 1, 1), 2**62)


@pytest.mark.parametrize("name", ["cat", "stack"])
def test_joined_floats_do_not_fit_integers(name):
    with pytest.raises(TypeError, match="can't be cast to the desired output type Int"):
        getattr(F, name)([F.ones(2), F.ones(2)], out=F.empty(0, dtype=F.int32))
    out = F.empty(0, dtype=F.float64)
    assert getattr(F, name)([F.ones(1), F.ones(1)], out=out) is out


def test_operator_is_named_once():
    with pytest.raises(RuntimeError, match=r"^bilinear\(\): input2 size does not match"):
        F.nn.functional.bilinear(F.ones(5, 2), F.ones(5, 4), F.ones(4, 2, 3))
    with pytest.raises(RuntimeError, match=r"^permute\(\): duplicate dims"):
        F.ones(2, 2).permute(0, 0)
