"""Differences from PyTorch that its own test suites and generated calls have shown.

Texts are those that such suites match; a name in front and an explanation behind are Facula's.
"""

import io
import subprocess
import sys
import warnings

import pytest
from package_under_test import IS_FACULA, F

nn = F.nn
f = F.nn.functional
nan, inf = float("nan"), float("inf")


def ints(*sizes):
    return F.ones(*sizes, dtype=F.int64)


def doubles(*sizes):
    return F.ones(*sizes, dtype=F.float64)


def bools(*sizes):
    return F.ones(*sizes, dtype=F.bool)


def empty(dtype, *sizes):
    return F.empty(sizes, dtype=dtype)


def messages(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught]


def refuses(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value), str(caught.value)


# ---- activations in place with a slope below zero

LEAKY, ELU = "In-place leakyReLu backward calculation", "In-place elu backward calculation"
NEGATIVE_SLOPES = {
    "leaky_relu_": (lambda x: f.leaky_relu_(x, -2.0), LEAKY),
    "leaky_relu inplace": (lambda x: f.leaky_relu(x, -2.0, inplace=True), LEAKY),
    "rrelu_": (lambda x: f.rrelu_(x, -0.2, -0.1, False), LEAKY),
    "elu_": (lambda x: f.elu_(x, -2.0), ELU),
    "celu_": (lambda x: f.celu_(x, -2.0), ELU),
}


@pytest.mark.parametrize("name", NEGATIVE_SLOPES)
def test_activations_in_place_with_a_negative_slope_have_no_derivative(name):
    activation, text = NEGATIVE_SLOPES[name]
    x = (-F.ones(2)).requires_grad_()
    y = activation(x.clone())
    refuses(
        y.sum().backward,
        RuntimeError,
        text + " is triggered with a negative slope which is not supported.",
    )


def test_activations_in_place_with_a_negative_slope_compute_what_others_do():
    x = F.tensor([2.0, -3.0])
    assert f.leaky_relu_(x.clone(), -2.0).tolist() == [2.0, 6.0]
    assert F.equal(f.elu_(x.clone(), -2.0), f.elu(x, -2.0))
    assert F.equal(f.celu_(x.clone(), -2.0), f.celu(x, -2.0))


def test_activations_in_place_with_a_positive_slope_have_a_derivative():
    x = F.tensor([2.0, -3.0], requires_grad=True)
    f.leaky_relu_(x.clone(), 0.5).sum().backward()
    assert x.grad.tolist() == [1.0, 0.5]


def test_a_negative_slope_out_of_place_has_a_derivative():
    x = F.tensor([2.0, -3.0], requires_grad=True)
    f.leaky_relu(x, -2.0).sum().backward()
    assert x.grad.tolist() == [1.0, -2.0]


# ---- writing to expanded tensors


@pytest.mark.parametrize("mask", [[True], [True, False, True], [False, False, True]])
def test_masked_fill_of_an_expanded_tensor_fills_what_the_mask_covers_anywhere(mask):
    x = F.zeros(1).expand(3)
    said = messages(lambda: x.masked_fill_(F.tensor(mask), 1))
    assert any("Use of masked_fill_ on expanded tensors is deprecated" in text for text in said)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_masked_fill_of_an_expanded_matrix_keeps_its_rows_apart():
    x = F.zeros(2, 1).expand(2, 3)
    with pytest.warns(UserWarning, match="expanded tensors"):
        x.masked_fill_(F.tensor([[False] * 3, [False, True, False]]), F.tensor(2.0))
    assert x.tolist() == [[0.0] * 3, [2.0] * 3]


def test_index_fill_of_an_expanded_tensor_warns():
    x = F.zeros(1).expand(3)
    with pytest.warns(UserWarning, match="Use of index_fill_ on expanded tensors is deprecated"):
        x.index_fill_(0, F.tensor([0]), 1)
    assert x.tolist() == [1.0, 1.0, 1.0]


# ---- results


@pytest.mark.parametrize("dim", [0, 1, -3])
def test_empty_vectors_are_joined_along_any_dimension(dim):
    x = F.empty(0, requires_grad=True)
    joined = F.cat([x, F.empty(0)], dim=dim)
    assert joined.shape == (0,)
    joined.sum().backward()
    assert x.grad.shape == (0,)


def test_a_vector_beside_an_empty_one_still_has_its_dimensions_only():
    refuses(lambda: F.cat([F.empty(0), F.ones(2)], dim=1), IndexError, "Dimension out of range")


def test_addr_promotes_by_dtypes_alone():
    bytes_, halves = F.ones(2, dtype=F.uint8), F.ones(2, dtype=F.float16)
    assert F.addr(F.tensor(1.0), bytes_, halves).dtype == F.float32
    assert F.addr(F.tensor(1.0), bytes_, halves, beta=0).dtype == F.float32
    assert F.addr(ints(2, 2), bytes_, halves).dtype == F.float16


def test_cumulative_integrals_of_no_integers_are_fractions():
    assert F.cumulative_trapezoid(ints(0)).dtype == F.float32
    assert F.cumulative_trapezoid(ints(0), F.ones(0)).dtype == F.float32
    assert F.trapezoid(ints(0)).dtype == F.int64


def test_addcmul_of_integers_cuts_its_factor():
    assert F.addcmul(ints(2), ints(2), ints(2), value=0.5).tolist() == [1, 1]
    assert F.addcmul(ints(2), ints(2), ints(2), value=1.5).tolist() == [2, 2]
    assert ints(2).addcmul_(ints(2), ints(2), value=1.5).tolist() == [2, 2]
    assert F._foreach_addcmul([ints(2)], [ints(2)], [ints(2)], 1.5)[0].tolist() == [2, 2]


def test_losses_of_the_package_itself_do_not_reduce_unless_asked():
    x, y = F.ones(2), F.full((2,), 2.0)
    assert F.kl_div(x, y).shape == (2,)
    assert F.kl_div(x, y, 1).shape == ()
    assert F.hinge_embedding_loss(x, x).tolist() == [1.0, 1.0]
    assert F.margin_ranking_loss(x, x, x, 0.5).tolist() == [0.5, 0.5]
    assert F.binary_cross_entropy_with_logits(x, x).shape == (2,)
    rows = F.ones(2, 3)
    assert F.cosine_embedding_loss(rows, rows, x).tolist() == [0.0, 0.0]
    assert F.triplet_margin_loss(rows, rows, rows).shape == (2,)
    assert f.hinge_embedding_loss(x, x).shape == ()


@pytest.mark.parametrize("flag, expected", [(1, 1.0), (0, 2.0)])
def test_numbers_serve_as_the_older_arguments_of_losses(flag, expected):
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert f.mse_loss(F.ones(2), F.zeros(2), flag).item() == expected


def test_pivots_of_ldl_may_be_long():
    solved = F.linalg.ldl_solve(F.eye(2), F.tensor([1, 2]), F.ones(2, 1))
    assert solved.tolist() == [[1.0], [1.0]]


def test_sparse_tensors_are_not_contiguous():
    assert not F.eye(2).to_sparse().is_contiguous()
    refuses(
        F.eye(2).to_sparse_csr().is_contiguous,
        RuntimeError,
        "Sparse CSR tensors do not have is_contiguous",
    )


def test_shapes_broadcast_without_tensors():
    assert F.broadcast_shapes((2, 1), 3, (), (1,)) == (2, 3)
    assert F.broadcast_shapes((0,), (1,)) == (0,)
    assert F.broadcast_shapes() == ()


# ---- what is created takes the memory of out= in silence

CREATED = {
    "zeros": lambda out: F.zeros((2,), out=out),
    "ones": lambda out: F.ones((2,), out=out),
    "full": lambda out: F.full((2,), 1.0, out=out),
    "linspace": lambda out: F.linspace(0, 1, 2, out=out),
    "eye": lambda out: F.eye(2, out=out),
    "rand": lambda out: F.rand(2, out=out),
    "randint": lambda out: F.randint(0, 3, (2,), out=out),
    "bernoulli": lambda out: F.bernoulli(F.ones(2), out=out),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation_resizes_out_without_a_warning(name):
    out = F.ones(3)
    assert messages(lambda: CREATED[name](out)) == []
    assert out.shape in ((2,), (2, 2))


def test_drawn_indices_resize_out_without_a_warning():
    out = ints(2)
    assert messages(lambda: F.randperm(3, out=out)) == []
    assert sorted(out.tolist()) == [0, 1, 2]
    assert messages(lambda: F.multinomial(F.ones(3), 2, out=out)) == []
    assert out.shape == (2,)


def test_computation_resizes_out_with_a_warning():
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        F.add(F.ones(2), 1, out=F.ones(3))


# ---- refusals: (call, exception, text)


def in_vmap(function, *sizes):
    return lambda: F.func.vmap(function)(F.ones(*sizes))


def with_grad(gradient):
    F.ones(2).grad = gradient


INTEGRAL = "For integral input tensors, argument beta must not be a floating point number."
ADDCDIV = "Integer division with addcdiv is no longer supported"
COMPLEX_PARTS = "Expected both inputs to be Half, Float or Double tensors but got Long and Long"
SECOND_PART = "Expected object of scalar type Float but got scalar type Double for second argument"
COMPLEX_OUT = "Expected object of scalar type ComplexFloat but got scalar type Float for argument"
GRAD_SIZE = "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'"

ARITHMETIC = {
    "abs_ of complex": (
        F.tensor([1j]).abs_,
        RuntimeError,
        "In-place abs is not supported for complex tensors.",
    ),
    "alpha": (
        lambda: F.add(ints(2), ints(2), alpha=True),
        RuntimeError,
        "Boolean alpha only supported for Boolean results.",
    ),
    "alpha of floats": (
        lambda: F.sub(F.ones(2), F.ones(2), alpha=True),
        RuntimeError,
        "Boolean alpha only supported for Boolean results.",
    ),
    "beta": (
        lambda: F.addr(F.ones(2, 2), F.ones(2), F.ones(2), beta=True),
        RuntimeError,
        "Boolean beta only supported for Boolean results.",
    ),
    "beta of addr": (
        lambda: F.addr(bools(2, 2), bools(2), bools(2), beta=0.5),
        RuntimeError,
        INTEGRAL,
    ),
    "addcdiv": (lambda: F.addcdiv(ints(2), ints(2), ints(2)), RuntimeError, ADDCDIV),
    "addcdiv of halves": (
        lambda: F.addcdiv(F.ones(2), bools(2), ints(2)),
        RuntimeError,
        ADDCDIV,
    ),
    "lerp": (
        lambda: F.lerp(F.ones(2), doubles(2), 0.5),
        RuntimeError,
        "expected dtype float for `end` but got dtype double",
    ),
    "lerp by weights": (
        lambda: F.lerp(F.ones(2), F.ones(2), doubles(2)),
        RuntimeError,
        "expected dtype float for `weight` but got dtype double",
    ),
    "heaviside": (
        lambda: F.heaviside(ints(1), F.ones(1)),
        RuntimeError,
        "heaviside is not yet implemented for tensors with different dtypes.",
    ),
    "heaviside of complex": (
        lambda: F.heaviside(F.tensor([1j]), F.tensor([1j])),
        RuntimeError,
        "heaviside is not yet implemented for complex tensors.",
    ),
    "sign": (
        lambda: F.sign(F.tensor([1j])),
        RuntimeError,
        "Unlike NumPy, torch.sign is not intended to support complex numbers",
    ),
    "floor": (
        lambda: F.floor(F.tensor([1j])),
        RuntimeError,
        "floor is not supported for complex inputs",
    ),
    "isposinf": (
        lambda: F.isposinf(F.tensor([1j])),
        RuntimeError,
        "isposinf does not support complex inputs.",
    ),
    "relu": (lambda: F.relu(bools(1)), RuntimeError, "Boolean inputs not supported for relu"),
    "polygamma": (
        lambda: F.polygamma(-1, F.ones(1)),
        RuntimeError,
        "polygamma(n, x) does not support negative n.",
    ),
    "float_power out": (
        lambda: F.float_power(F.ones(1), 2, out=F.empty(1)),
        RuntimeError,
        "the output given to float_power has dtype Float but the operation's result requires "
        "dtype Double",
    ),
    "float_power_": (
        lambda: F.ones(1).float_power_(2),
        RuntimeError,
        "the base given to float_power_ has dtype Float",
    ),
    "rtol": (
        lambda: F.isclose(F.ones(2), F.ones(2), rtol=nan),
        RuntimeError,
        "rtol must be greater than or equal to zero, but got nan",
    ),
    "atol": (
        lambda: F.allclose(F.ones(2), F.ones(2), atol=-1),
        RuntimeError,
        "atol must be greater than or equal to zero, but got -1",
    ),
    "masks": (
        lambda: F.ones(2).masked_fill(ints(2), 1),
        RuntimeError,
        "masked_fill_ only supports boolean masks, but got mask with dtype long int",
    ),
    "filled value": (
        lambda: F.ones(2).masked_fill(bools(2), F.ones(2)),
        RuntimeError,
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 "
        "dimension(s).",
    ),
    "complex": (lambda: F.complex(ints(1), ints(1)), RuntimeError, COMPLEX_PARTS),
    "complex of two": (lambda: F.complex(F.ones(1), doubles(1)), RuntimeError, SECOND_PART),
    "complex out": (
        lambda: F.complex(F.ones(1), F.ones(1), out=F.ones(1)),
        RuntimeError,
        COMPLEX_OUT,
    ),
    "polar": (lambda: F.polar(F.ones(1), doubles(1)), RuntimeError, SECOND_PART),
    "polar out": (
        lambda: F.polar(F.ones(1), F.ones(1), out=F.ones(1)),
        RuntimeError,
        COMPLEX_OUT,
    ),
    "arange": (
        lambda: F.arange(0, 3, dtype=F.complex64),
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
}

SELECTION = {
    "amax out": (
        lambda: F.amax(F.ones(2), out=empty(F.float64)),
        RuntimeError,
        "Expected the dtype for input and out to match, but got Float for input's dtype and "
        "Double for out's dtype.",
    ),
    "all out": (
        lambda: F.all(F.ones(2), out=empty(F.float32)),
        RuntimeError,
        "all only supports bool tensor for result, got: Float",
    ),
    "any out": (
        lambda: F.any(F.ones(2), 0, out=empty(F.int64)),
        RuntimeError,
        "any only supports bool tensor for result, got: Long",
    ),
    "isin": (
        lambda: F.isin(bools(1), bools(1)),
        RuntimeError,
        "Unsupported input type encountered for isin(): Bool",
    ),
    "sort": (
        lambda: F.sort(F.tensor([1j])),
        RuntimeError,
        "Sort does not support complex dtypes on CPU",
    ),
    "sort out": (
        lambda: F.sort(F.ones(2), out=(F.empty(2), F.empty(2))),
        RuntimeError,
        "Expected out tensor to have dtype long int, but got float instead",
    ),
    "topk": (
        lambda: F.topk(F.tensor([1j]), 1),
        RuntimeError,
        "topk does not support complex dtypes on CPU",
    ),
    "topk of bools": (
        lambda: F.topk(bools(2), 1),
        RuntimeError,
        "topk does not support bool dtypes on CPU",
    ),
    "cummax out": (
        lambda: F.cummax(F.ones(2), 0, out=(F.empty(2), F.empty(2))),
        RuntimeError,
        "expected scalar_type Long but found Float",
    ),
    "logcumsumexp out": (
        lambda: F.logcumsumexp(F.ones(2), 0, out=doubles(2)),
        RuntimeError,
        "expected scalar_type Float but found Double",
    ),
    "cumsum_": (
        lambda: ints(2).cumsum_(0, dtype=F.float32),
        RuntimeError,
        "Bad in-place call: input tensor dtype long int and output tensor dtype float should match",
    ),
    "mm out": (
        lambda: F.mm(F.eye(2), F.eye(2), out=doubles(2, 2)),
        RuntimeError,
        "Expected out tensor to have dtype float, but got double instead",
    ),
    "quantile of nothing": (
        lambda: F.quantile(F.ones(0), 0.5),
        RuntimeError,
        "quantile() input tensor must be non-empty",
    ),
    "quantile of integers": (
        lambda: F.nanquantile(ints(3), 0.5),
        RuntimeError,
        "quantile() input tensor must be either float or double dtype",
    ),
    "quantile by doubles": (
        lambda: F.quantile(F.ones(3), doubles(1) / 2),
        RuntimeError,
        "quantile() q tensor must be same dtype as the input tensor",
    ),
    "quantile by matrices": (
        lambda: F.quantile(F.ones(3), F.ones(2, 2) / 2),
        RuntimeError,
        "quantile() q must be a scalar or 1D tensor",
    ),
    "quantile out": (
        lambda: F.quantile(F.ones(3), 0.5, out=empty(F.float64)),
        RuntimeError,
        "quantile() out tensor must be same dtype as the input tensor",
    ),
    "diff": (
        lambda: F.diff(F.ones(3), prepend=F.ones(1, 1)),
        RuntimeError,
        "diff expects prepend or append to be the same dimension as input",
    ),
    "edge_order": (
        lambda: F.gradient(F.ones(3), edge_order=3),
        RuntimeError,
        "torch.gradient only supports edge_order=1 and edge_order=2.",
    ),
    "gradient of one sample": (
        lambda: F.gradient(F.ones(1)),
        RuntimeError,
        "torch.gradient expected each dimension size to be at least edge_order+1",
    ),
    "spacing": (
        lambda: F.gradient(F.ones(3, 3), spacing=[1.0]),
        RuntimeError,
        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal",
    ),
    "hsplit of a number": (
        lambda: F.hsplit(F.tensor(1.0), 2),
        RuntimeError,
        "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 "
        "dimensions!",
    ),
    "hsplit": (
        lambda: F.hsplit(F.ones(3), 2),
        RuntimeError,
        "torch.hsplit attempted to split along dimension 0, but the size of the dimension 3 is "
        "not divisible by the split_size 2!",
    ),
    "tensor_split": (
        lambda: F.tensor_split(F.ones(7), ints(2, 2)),
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
        "one-dimensional tensor, but got a tensor with 2 dims",
    ),
    "tensor_split by floats": (
        lambda: F.ones(7).tensor_split(F.ones(2)),
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got Float",
    ),
    "broadcast_shapes": (
        lambda: F.broadcast_shapes((3,), (2,)),
        RuntimeError,
        "Attempting to broadcast a dimension of length 2 at -1! Mismatching argument at index 1 "
        "had (2,); but expected shape should be broadcastable to [3]",
    ),
    "broadcast_shapes below zero": (
        lambda: F.broadcast_shapes((-1,), (2,)),
        ValueError,
        "Attempting to broadcast a dimension with negative length!",
    ),
    "numel": (lambda: F.numel(5), TypeError, "argument 'input' (position 1) must be Tensor"),
    "to": (lambda: F.ones(2).to(dtype="float"), TypeError, "to()"),
}

LINEAR_ALGEBRA = {
    "norm of nothing": (
        lambda: F.linalg.vector_norm(F.ones(0), inf),
        RuntimeError,
        "linalg.vector_norm cannot compute the inf norm on an empty tensor",
    ),
    "vector_norm out": (
        lambda: F.linalg.vector_norm(F.ones(2), out=empty(F.float64)),
        RuntimeError,
        "Expected out tensor to have dtype float, but got double instead",
    ),
    "norm out": (
        lambda: F.linalg.norm(F.ones(2, 2), out=empty(F.float64)),
        RuntimeError,
        "linalg.norm expected out tensor dtype Float but got: Double",
    ),
    "cond": (
        lambda: F.linalg.cond(F.eye(2), "wrong"),
        RuntimeError,
        "linalg.cond got an invalid norm type: wrong",
    ),
    "cond by a number": (
        lambda: F.linalg.cond(F.eye(2), 1.5),
        RuntimeError,
        "linalg.cond got an invalid norm type: 1.5",
    ),
    "lu": (
        lambda: F.linalg.lu_factor(F.eye(2), pivot=False),
        RuntimeError,
        "linalg.lu_factor: LU without pivoting is not implemented on the CPU",
    ),
    "lu_unpack": (
        lambda: F.lu_unpack(F.eye(2), ints(2)),
        RuntimeError,
        "LU_pivots is expected to be a contiguous tensor of torch.int32 dtype",
    ),
    "householder_product": (
        lambda: F.linalg.householder_product(F.ones(3, 2), doubles(2)),
        RuntimeError,
        "tau dtype Double does not match input dtype Float",
    ),
    "dimensions of tau": (
        lambda: F.linalg.householder_product(F.ones(3, 2), F.ones(2, 2)),
        RuntimeError,
        "Expected tau to have one dimension less than input, but got tau.ndim equal to 2 and "
        "input.ndim is equal to 2",
    ),
    "dimensions of ormqr": (
        lambda: F.ormqr(F.ones(3, 2), F.ones(2), F.ones(2, 3, 2)),
        RuntimeError,
        "Expected other to have the same number of dimensions as input, but got other.ndim equal "
        "to 3 and input.ndim is equal to 2",
    ),
    "ldl_solve": (
        lambda: F.linalg.ldl_solve(F.eye(2), F.ones(2), F.ones(2, 1)),
        RuntimeError,
        "torch.linalg.ldl_solve: Expected pivots to be integers. Got Float",
    ),
    "multi_dot": (
        lambda: F.linalg.multi_dot([F.ones(2, 2, 2), F.ones(2, 2)]),
        RuntimeError,
        "the first tensor must be 1D or 2D but got 3D",
    ),
    "multi_dot of dtypes": (
        lambda: F.linalg.multi_dot([F.eye(2), doubles(2, 2)]),
        RuntimeError,
        "all tensors must have be the same dtype but tensor 0 is float and tensor 1 double",
    ),
    "ellipses": (
        lambda: F.einsum("i...j...", F.ones(2, 3)),
        RuntimeError,
        "found '.' for operand 0 for which an ellipsis was already found",
    ),
    "subscript": (
        lambda: F.einsum("i1", F.ones(2, 3)),
        RuntimeError,
        "invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]",
    ),
    "inv out": (
        lambda: F.linalg.inv(F.eye(2), out=empty(F.int32, 2, 2)),
        RuntimeError,
        "Expected out tensor to have dtype float, but got int instead",
    ),
    "pinv out": (
        lambda: F.linalg.pinv(F.eye(2), out=empty(F.int32, 2, 2)),
        RuntimeError,
        "linalg.pinv: Expected result to be safely castable from Float dtype, but got result with "
        "dtype Int",
    ),
    "eig out": (
        lambda: F.linalg.eig(F.eye(2), out=(empty(F.int32, 2), empty(F.int32, 2, 2))),
        RuntimeError,
        "torch.linalg.eig: Expected eigenvalues to be safely castable from ComplexFloat dtype, "
        "but got eigenvalues with dtype Int",
    ),
    "eig": (
        lambda: F.linalg.eig(F.tensor([[nan, 1], [1, 1]])),
        RuntimeError,
        "torch.linalg.eig: input tensor should not contain infs or NaNs.",
    ),
}

LAYERS = {
    "attention": (
        lambda: f.scaled_dot_product_attention(
            F.ones(2, 3), F.ones(2, 3), F.ones(2, 3), F.ones(2, 2), is_causal=True
        ),
        RuntimeError,
        "Explicit attn_mask should not be set when is_causal=True",
    ),
    "batch_norm": (
        lambda: f.batch_norm(F.ones(2, 3), F.zeros(3), None, training=True),
        ValueError,
        "running_mean and running_var must either both be None or neither be None",
    ),
    "interpolate": (
        lambda: f.interpolate(F.ones(1, 0, 2, 2), size=3),
        RuntimeError,
        "Non-empty 4D data tensor expected but got a tensor with sizes [1, 0, 2, 2]",
    ),
    "unfold": (
        lambda: f.unfold(F.ones(1, 1, 4, 4), 5),
        RuntimeError,
        "calculated shape of the array of sliding blocks as (0, 0), but its components must be at "
        "least one.",
    ),
    "max_pool1d": (
        lambda: f.max_pool1d(F.ones(1, 4), -2),
        RuntimeError,
        "max_pool1d() kernel_size must be greater than zero, but got -2",
    ),
    "max_pool1d stride": (
        lambda: f.max_pool1d(F.ones(1, 4), 2, -1),
        RuntimeError,
        "max_pool1d() stride must be greater than zero, but got -1",
    ),
    "max_pool1d padding": (
        lambda: f.max_pool1d(F.ones(1, 4), 2, padding=-1),
        RuntimeError,
        "max_pool1d() padding must be non-negative, but got -1",
    ),
    "max_pool1d wide padding": (
        lambda: f.max_pool1d(F.ones(1, 4), 2, padding=2),
        RuntimeError,
        "max_pool1d() padding should be at most half of kernel size, but got padding=2 and "
        "kernel_size=2",
    ),
    "max_unpool2d": (
        lambda: f.max_unpool2d(F.ones(1, 1, 2, 2), ints(1, 1, 2, 2) * 99, 2),
        RuntimeError,
        "Found an invalid max index: 99 (output volumes are of size 4x4)",
    ),
    "max_unpool2d below zero": (
        lambda: f.max_unpool2d(F.ones(1, 1, 2, 2), -ints(1, 1, 2, 2), 2),
        RuntimeError,
        "Found an invalid max index: -1 (output volumes are of size 4x4)",
    ),
    "max_unpool2d shapes": (
        lambda: f.max_unpool2d(F.ones(1, 1, 2, 2), ints(1, 1, 2, 3), 2),
        RuntimeError,
        "Expected shape of indices to be same as that of the input tensor",
    ),
    "adaptive_max_pool2d": (
        lambda: f.adaptive_max_pool2d(F.ones(1, 0, 4, 4), 2),
        RuntimeError,
        "adaptive_max_pool2d(): Expected input to have non-zero size for non-batch dimensions, "
        "but input has sizes [1, 0, 4, 4] with dimension 1 being empty",
    ),
    "cross_entropy": (
        lambda: f.cross_entropy(F.ones(2, 3), F.ones(2, 3), weight=F.ones(2)),
        RuntimeError,
        "weight tensor should be defined either for all 3 classes or no classes but got weight "
        "tensor of shape: [2]",
    ),
    "grid_sample": (
        lambda: f.grid_sample(F.ones(1, 1, 2, 2), F.ones(2, 2, 2, 2), align_corners=False),
        RuntimeError,
        "expected grid and input to have same batch size",
    ),
    "grid_sample of lines": (
        lambda: f.grid_sample(F.ones(1, 1, 2), F.ones(1, 2, 2), align_corners=False),
        RuntimeError,
        "expected grid to have size 1 in last dimension",
    ),
    "pixel_shuffle": (
        lambda: f.pixel_shuffle(F.ones(2, 2), 2),
        RuntimeError,
        "pixel_shuffle expects input to have at least 3 dimensions, but got input with 2",
    ),
}

LISTS_AND_TRANSFORMS = {
    "foreach numbers": (
        lambda: F._foreach_add([F.ones(2)], [1, 2]),
        RuntimeError,
        "Tensor list must have same number of elements as scalar list.",
    ),
    "foreach tensor": (
        lambda: F._foreach_add([F.ones(2)], F.ones(2)),
        RuntimeError,
        "scalar tensor expected to be 0 dim but it has 1 dimensions and 2 elements.",
    ),
    "foreach norm": (
        lambda: F._foreach_norm([F.ones(2), F.ones(0)], inf),
        RuntimeError,
        "_foreach_norm cannot compute the infinity norm on an empty tensor",
    ),
    "foreach max": (
        lambda: F._foreach_max([F.ones(0)]),
        RuntimeError,
        "_foreach_max cannot compute the maximum of an empty tensor",
    ),
    "foreach scalars": (
        lambda: F._foreach_addcmul([F.ones(2)], [F.ones(2)], [F.ones(2)], F.ones(2, 1)),
        RuntimeError,
        "Expected packed scalar Tensor to be of dimension 1. Got 2 instead.",
    ),
    "branch in vmap": (
        in_vmap(lambda x: 1 if x > 0 else 2, 2),
        RuntimeError,
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
        "flow.",
    ),
    "item in vmap": (
        in_vmap(lambda x: x.item(), 2),
        RuntimeError,
        "vmap: It looks like you're calling .item() on a Tensor",
    ),
    "nonzero in vmap": (
        in_vmap(lambda x: x.nonzero(), 2, 2),
        RuntimeError,
        "vmap: We do not support batching operators that can output dynamic shape.",
    ),
    "mask in vmap": (
        in_vmap(lambda x: x[x > 0], 2, 2),
        RuntimeError,
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to "
        "batch over indexing with a boolean mask",
    ),
    "data in vmap": (
        in_vmap(lambda x: x.data, 2, 2),
        RuntimeError,
        "accessing `data` under vmap transform is not allowed",
    ),
    "backward in grad": (
        lambda: F.func.grad(lambda x: x.sum().backward())(F.ones(2)),
        RuntimeError,
        "backward() called inside a functorch transform",
    ),
    "gradcheck": (
        lambda: F.autograd.gradcheck(lambda x: x * 2, F.ones(2)),
        ValueError,
        "gradcheck expects at least one input tensor to require gradient, but none of them have "
        "requires_grad=True.",
    ),
    "gradcheck of a constant": (
        lambda: F.autograd.gradcheck(lambda x: x.detach() * 2, doubles(2).requires_grad_()),
        RuntimeError,
        "Numerical gradient for function expected to be zero",
    ),
    "size of a gradient": (lambda: with_grad(F.ones(3)), RuntimeError, GRAD_SIZE),
    "dtype of a gradient": (
        lambda: with_grad(doubles(2)),
        RuntimeError,
        "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'.",
    ),
    "anomaly": (
        lambda: F.autograd.set_detect_anomaly("a"),
        TypeError,
        "set_anomaly_enabled(): argument 'enabled' (position 1) must be bool, not str",
    ),
    "save": (
        lambda: F.save(1, 5),
        AttributeError,
        "expected 'f' to be string, path, or a file-like object with a 'write' attribute",
    ),
    "nested_tensor": (
        lambda: F.nested.nested_tensor([F.ones(2), F.ones(2, 2)]),
        RuntimeError,
        "All Tensors given to nested_tensor must have the same dimension.",
    ),
    "jagged nested_tensor": (
        lambda: F.nested.nested_tensor([F.ones(2), F.ones(2, 2)], layout=F.jagged),
        RuntimeError,
        "When constructing a nested tensor, all tensors in list must have the same dim",
    ),
    "masked_tensor": (
        lambda: F.masked.masked_tensor(F.ones(2), bools(3)),
        ValueError,
        "data.size() must equal mask.size()",
    ),
}


def csr(starts, columns, name="sparse_csr_tensor"):
    return lambda: getattr(F, name)(starts, columns, [1.0, 2], (2, 2), check_invariants=True)


SPARSE = {
    "first": (
        csr([1, 1, 2], [0, 1]),
        RuntimeError,
        "`crow_indices[..., 0] == 0` is not satisfied.",
    ),
    "first column": (
        csr([1, 1, 2], [0, 1], "sparse_csc_tensor"),
        RuntimeError,
        "`ccol_indices[..., 0] == 0` is not satisfied.",
    ),
    "last": (
        csr([0, 2, 1], [0, 1]),
        RuntimeError,
        "`crow_indices[..., -1] == nnz` is not satisfied.",
    ),
    "steps": (
        csr([0, 5, 2], [0, 1]),
        RuntimeError,
        "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied.",
    ),
    "range": (
        csr([0, 1, 2], [0, 5]),
        RuntimeError,
        "`0 <= col_indices < ncols` is not satisfied.",
    ),
    "order": (
        csr([0, 2, 2], [1, 0]),
        RuntimeError,
        "`col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., "
        "nrows are sorted and distinct along the last dimension values` is not satisfied.",
    ),
    "floats": (
        csr([0.0, 1, 2], [0, 1]),
        RuntimeError,
        "crow_indices and col_indices must have the same dtype",
    ),
    "coalesce": (
        F.eye(2).coalesce,
        RuntimeError,
        "coalesce expected sparse coordinate tensor layout but got Strided",
    ),
    "coalesce of rows": (
        F.eye(2).to_sparse_csr().coalesce,
        RuntimeError,
        "coalesce expected sparse coordinate tensor layout but got SparseCsr",
    ),
    "crow_indices": (
        F.eye(2).to_sparse().crow_indices,
        RuntimeError,
        "crow_indices expected sparse row compressed tensor layout but got Sparse",
    ),
    "storage": (
        F.eye(2).to_sparse().untyped_storage,
        NotImplementedError,
        "Cannot access storage of SparseTensorImpl",
    ),
}

REFUSALS = {
    f"{subject}: {name}": row
    for subject, rows in {
        "arithmetic": ARITHMETIC,
        "selection": SELECTION,
        "linalg": LINEAR_ALGEBRA,
        "layers": LAYERS,
        "lists and transforms": LISTS_AND_TRANSFORMS,
        "sparse": SPARSE,
    }.items()
    for name, row in rows.items()
}


@pytest.mark.parametrize("name", REFUSALS)
def test_text_of_a_refusal(name):
    call, error, text = REFUSALS[name]
    refuses(call, error, text)


@pytest.mark.skipif(not IS_FACULA, reason="Facula names the operator in front")
def test_a_text_that_begins_with_its_operator_is_given_no_other_name():
    with pytest.raises(RuntimeError, match=r"^quantile\(\) input"):
        F.quantile(F.ones(0), 0.5)
    with pytest.raises(RuntimeError, match=r"^torch\.hsplit requires"):
        F.hsplit(F.tensor(1.0), 2)
    with pytest.raises(RuntimeError, match=r"^nanquantile\(\): quantile\(\) input"):
        F.nanquantile(F.ones(0), 0.5)


@pytest.mark.skipif(not IS_FACULA, reason="of programs that use both packages")
def test_tensors_of_pytorch_are_refused_by_name():
    class Tensor(type("torch._C.TensorBase", (), {})):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x, foreign = F.ones(2, 4, 3), Tensor()
    with pytest.raises(TypeError, match=r"'other'.* not torch\.Tensor of PyTorch; .*from_dlpack"):
        F.add(x, foreign)
    with pytest.raises(TypeError, match=r"must be int, not torch\.Tensor"):
        f.group_norm(x, foreign)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + foreign


@pytest.mark.skipif(not IS_FACULA, reason="of programs that use both packages")
def test_functions_of_pytorch_do_not_take_tensors_of_facula():
    torch = pytest.importorskip("torch")
    x, theirs = F.ones(2), torch.ones(2)
    for call in (
        lambda: x * theirs,
        lambda: theirs - x,
        lambda: torch.mul(theirs, x),
        lambda: torch.cat([x]),
        lambda: torch.nn.functional.softmax(x, 0),
        lambda: torch.nn.functional.gelu(x),
        lambda: torch.linalg.norm(x),
        lambda: theirs.copy_(x),
    ):
        with pytest.raises(TypeError):
            call()
    assert F.tensor(theirs).tolist() == F.asarray(theirs).tolist() == [1, 1]


def test_lists_of_tensors_are_flattened_without_an_import_of_their_own():
    program = f"import {F.__name__} as F; print(F._utils._flatten_dense_tensors([F.ones(2)]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "tensor([1., 1.])\n", done.stderr


def test_more_workers_than_processors_are_warned_of():
    with pytest.warns(UserWarning, match="excessive worker creation might get DataLoader running"):
        F.utils.data.DataLoader([1], num_workers=1000)


def test_cells_say_which_state_does_not_fit():
    x, good, wide = F.ones(3, 10), F.ones(3, 20), F.ones(3, 21)
    lstm = nn.LSTMCell(10, 20)
    for cell in (nn.RNNCell(10, 20), nn.GRUCell(10, 20)):
        refuses(lambda c=cell: c(x, wide), RuntimeError, "hidden0 has inconsistent hidden_size")
    refuses(lambda: lstm(x, (wide, good)), RuntimeError, "hidden0 has inconsistent hidden_size")
    refuses(lambda: lstm(x, (good, wide)), RuntimeError, "hidden1 has inconsistent hidden_size")
    refuses(lambda: lstm(x, (good[:2], good)), RuntimeError, "doesn't match hidden0 batch size 2")
    refuses(lambda: nn.HuberLoss(delta=1j)(x, x), TypeError, "int, got: <class 'complex'>")


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_checkpoints_of_old_one_cycle_schedulers_name_how_they_anneal(strategy):
    def scheduler():
        optimizer = F.optim.SGD([F.ones(1, requires_grad=True)], lr=1.0)
        return F.optim.lr_scheduler.OneCycleLR(
            optimizer, 1.0, total_steps=10, anneal_strategy=strategy
        )

    state = scheduler().state_dict()
    del state["_anneal_func_type"]
    state["anneal_func"] = getattr(F.optim.lr_scheduler.OneCycleLR, f"_annealing_{strategy}")
    file = io.BytesIO()
    F.save(state, file)
    file.seek(0)
    old, new = scheduler(), scheduler()
    old.load_state_dict(F.load(file, weights_only=False))
    assert old.anneal_func(0.0, 1.0, 0.5) == pytest.approx(0.5)
    for one in (old, new):
        one.optimizer.step()
        one.step()
    assert old.get_last_lr() == new.get_last_lr()


def test_batches_of_sparse_and_nested_tensors_need_a_function_of_their_own():
    dense = F.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of layouts that are new
        nested = F.nested.nested_tensor([F.ones(2), F.ones(3)])
        for kind, sample in (
            ("sparse", dense.to_sparse()),
            ("sparse", dense.to_sparse_csr()),
            ("nested", nested),
        ):
            refuses(
                lambda sample=sample: F.utils.data.default_collate([sample, sample]),
                RuntimeError,
                f"Batches of {kind} tensors are not currently supported by the default collate_fn",
            )


def test_what_a_worker_knows_of_itself_may_not_be_changed():
    class Asks(F.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            info = F.utils.data.get_worker_info()
            with pytest.raises(AttributeError):
                info.id = 3
            return info.id, info.worker_method

    (batch,) = F.utils.data.DataLoader(Asks(), num_workers=1)
    assert batch[0].item() == 0 and batch[1] == ("multiprocessing",)
