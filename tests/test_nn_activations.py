"""Activations: in-place forms, random slopes, arguments, modules, PyTorch's numbers."""

from __future__ import annotations

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from package_under_test import F

nn = F.nn
functional = nn.functional

INPLACE = {
    "relu": (),
    "relu6": (),
    "elu": (0.7,),
    "selu": (),
    "celu": (0.7,),
    "leaky_relu": (0.3,),
    "silu": (),
    "mish": (),
    "hardswish": (),
    "hardsigmoid": (),
    "hardtanh": (-0.5, 0.5),
    "threshold": (0.1, 20.0),
    "rrelu": (0.1, 0.3, False),
}
MODULES = {
    "Threshold": (0.1, 20.0),
    "ReLU": (),
    "RReLU": (0.2, 0.4),
    "Hardtanh": (-0.5, 0.5),
    "ReLU6": (),
    "Sigmoid": (),
    "Hardsigmoid": (),
    "Tanh": (),
    "SiLU": (),
    "Mish": (),
    "Hardswish": (),
    "ELU": (0.7,),
    "CELU": (0.7,),
    "SELU": (),
    "GLU": (1,),
    "GELU": ("tanh",),
    "Hardshrink": (0.3,),
    "LeakyReLU": (0.3,),
    "LogSigmoid": (),
    "Softplus": (2.0, 5.0),
    "Softshrink": (0.3,),
    "PReLU": (4,),
    "Softsign": (),
    "Tanhshrink": (),
    "Softmin": (1,),
    "Softmax": (1,),
    "Softmax2d": (),
    "LogSoftmax": (1,),
}
X = np.random.default_rng(0).normal(size=(2, 4, 3, 3)).astype(np.float32)


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_replaces_the_input_and_keeps_the_gradient(name):
    function, arguments = getattr(functional, name), INPLACE[name]
    leaf = F.tensor(X, requires_grad=True)
    apart = function(leaf * 1, *arguments)
    (wanted,) = F.autograd.grad(apart.sum(), leaf)
    written = leaf * 1
    result = function(written, *arguments, inplace=True)
    assert result is written
    assert F.equal(result, apart)
    (gradient,) = F.autograd.grad(result.sum(), leaf)
    assert F.equal(gradient, wanted)


@pytest.mark.parametrize(
    "name", ["relu_", "elu_", "selu_", "celu_", "leaky_relu_", "hardtanh_", "threshold_", "rrelu_"]
)
def test_functions_with_an_underscore_write_their_input(name):
    arguments = (0.1, 20.0) if name == "threshold_" else ()
    x = F.tensor(X)
    wanted = getattr(functional, name[:-1])(F.tensor(X), *arguments)
    assert getattr(functional, name)(x, *arguments) is x
    assert F.equal(x, wanted)


def test_random_slopes_are_within_their_bounds_and_carry_the_gradient():
    x = F.tensor(X, requires_grad=True)
    y = functional.rrelu(x, 0.2, 0.4, training=True)
    (gradient,) = F.autograd.grad(y.sum(), x)
    gradient = gradient.numpy()
    assert (gradient[X > 0] == 1).all()
    assert ((gradient[X <= 0] >= 0.2) & (gradient[X <= 0] <= 0.4)).all()
    assert len(np.unique(gradient[X <= 0])) > 10
    np.testing.assert_allclose(y.detach().numpy(), X * gradient, rtol=1e-6)


def test_gumbel_softmax_draws_one_class_with_the_gradient_of_the_soft_sample():
    F.manual_seed(1)
    logits = F.tensor(X.reshape(-1, 9), requires_grad=True)
    hard = functional.gumbel_softmax(logits, tau=0.7, hard=True)
    rows = hard.detach().numpy()
    np.testing.assert_allclose(rows.max(1), 1, atol=1e-6)
    np.testing.assert_allclose(rows.sum(1), 1, atol=1e-6)
    weights = F.arange(9.0)
    (gradient,) = F.autograd.grad((hard * weights).sum(), logits)
    F.manual_seed(1)
    soft = functional.gumbel_softmax(logits, tau=0.7)
    (wanted,) = F.autograd.grad((soft * weights).sum(), logits)
    np.testing.assert_allclose(gradient.numpy(), wanted.numpy(), atol=1e-6)


def test_softmax_without_dim_warns_and_chooses_as_pytorch_does():
    for shape, dim in (((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 2, 2, 2), 1)):
        x = F.ones(*shape)
        with pytest.warns(UserWarning, match="Implicit dimension choice"):
            y = functional.softmax(x)
        assert F.equal(y, F.softmax(x, dim))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: functional.glu(F.ones(3, 3)), RuntimeError, "must be even.*dimension 1 is size 3"),
        (lambda: functional.hardtanh(F.ones(2), 2, 1), ValueError, "min_val cannot be greater"),
        (lambda: functional.hardtanh(F.ones(2).byte()), RuntimeError, "unsigned"),
        (lambda: functional.gelu(F.ones(2), approximate="x"), RuntimeError, "none or tanh.*'x'"),
        (lambda: functional.softshrink(F.ones(2), -1.0), RuntimeError, "lambda must be in range"),
        (lambda: functional.rrelu(F.ones(2), 0.5, 0.2), RuntimeError, "Lower bound"),
        (lambda: functional.celu(F.ones(2), 0.0), RuntimeError, "alpha cannot be 0"),
        (
            lambda: functional.prelu(F.ones(2, 3), F.ones(2)),
            RuntimeError,
            "numbers = 2 and channel",
        ),
        (lambda: nn.Softmax2d()(F.ones(2)), ValueError, "expected input to be 3D or 4D"),
        (lambda: nn.Hardtanh(2, 1), AssertionError, "must be greater"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_infinite_inputs_have_finite_gradients():
    x = F.tensor([float("inf"), -3.0, 50.0], requires_grad=True)
    for name in ("gelu", "silu", "mish"):
        (gradient,) = F.autograd.grad(getattr(functional, name)(x).sum(), x)
        assert gradient[0] == 1 and gradient[2] == 1, name


@pytest.mark.parametrize("dtype", [F.float32, F.float64])
def test_gradient_of_logsigmoid_far_from_zero(dtype):
    x = F.tensor([-F.inf, -200.0, -1.0, 0.0, 1.0, 80.0, F.inf, F.nan], dtype=dtype)
    x.requires_grad_()
    (gradient,) = F.autograd.grad(functional.logsigmoid(x).sum(), x)
    want = [1.0, 1.0, 1 / (1 + math.exp(-1)), 0.5, 1 / (1 + math.e), math.exp(-80), 0.0, math.nan]
    np.testing.assert_allclose(gradient.numpy(), want, rtol=3e-7, atol=0)


def test_gradient_of_glu_is_that_of_its_formula():
    x = (F.randn(40, 6, dtype=F.float64) * 10).requires_grad_()
    (gradient,) = F.autograd.grad((functional.glu(x) ** 2).sum(), x)
    (want,) = F.autograd.grad(((x[:, :3] * F.sigmoid(x[:, 3:])) ** 2).sum(), x)
    np.testing.assert_allclose(gradient.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MODULES)
def test_modules_survive_copies_and_pickles(name):
    module = getattr(nn, name)(*MODULES[name]).eval()
    wanted = module(F.tensor(X))
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert repr(other) == repr(module)
        assert F.equal(other(F.tensor(X)), wanted)


@pytest.mark.parametrize("name", MODULES)
def test_modules_match_pytorch(name):
    torch = pytest.importorskip("torch")
    for train in (False, True):
        if train and name == "RReLU":
            continue  # PyTorch rounds the product of a random slope once
        ours, theirs = getattr(nn, name)(*MODULES[name]), getattr(torch.nn, name)(*MODULES[name])
        ours.train(train), theirs.train(train)
        assert repr(ours) == repr(theirs)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        x, y = F.tensor(X, requires_grad=True), torch.tensor(X, requires_grad=True)
        a, b = ours(x), theirs(y)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-6, atol=2e-6)
        a.sum().backward(), b.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=2e-5, atol=2e-6)


def test_inplace_modules_say_so():
    torch = pytest.importorskip("torch")
    for name in (
        "ReLU",
        "ReLU6",
        "RReLU",
        "Hardtanh",
        "SiLU",
        "Mish",
        "ELU",
        "CELU",
        "SELU",
        "LeakyReLU",
    ):
        ours, theirs = getattr(nn, name)(inplace=True), getattr(torch.nn, name)(inplace=True)
        assert repr(ours) == repr(theirs)
        assert ours.__constants__ == theirs.__constants__


def test_random_numbers_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for shape in ((7,), (3, 50)):
        x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
        F.manual_seed(5), torch.manual_seed(5)
        ours = functional.rrelu(F.tensor(x), training=True).numpy()
        theirs = torch.nn.functional.rrelu(torch.tensor(x), training=True).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        ours = functional.gumbel_softmax(F.tensor(x)).numpy()
        theirs = torch.nn.functional.gumbel_softmax(torch.tensor(x)).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_old_names_of_hardtanh_warn():
    with pytest.warns(FutureWarning, match="min_value"):
        module = nn.Hardtanh(min_value=-2)
    assert module.min_val == -2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.Hardtanh(-2, 2)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradient_of_glu_along_any_dimension_and_in_any_layout(dim, dtype):
    F.manual_seed(0)
    x = F.randn(6, 4, 10).to(getattr(F, dtype))
    for given in (x, x.transpose(0, 2).contiguous().transpose(0, 2), x[:1].expand(6, 4, 10)):
        leaf, other = given.detach().requires_grad_(), given.detach().requires_grad_()
        values, gate = other.chunk(2, dim)
        want = values * F.sigmoid(gate)
        grad = want.detach().cos()
        (expected,) = F.autograd.grad(want, other, grad)
        (got,) = F.autograd.grad(functional.glu(leaf, dim), leaf, grad)
        tolerance = 2e-2 if dtype == "bfloat16" else 1e-5
        assert got.shape == x.shape
        assert F.allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_gumbel_softmax_says_that_eps_has_no_effect():
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated"):
        functional.gumbel_softmax(F.zeros(2), eps=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        functional.gumbel_softmax(F.zeros(2))
