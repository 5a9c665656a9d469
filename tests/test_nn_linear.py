"""Linear, Bilinear and their lazy form."""

import numpy as np
import pytest
from nn_comparison import same_training, twins
from package_under_test import IS_FACULA, F, assert_close, assert_equal

nn = F.nn


def test_linear_adds_the_bias_to_the_product():
    layer = nn.Linear(2, 3, dtype=F.float64)
    x = np.random.default_rng(0).standard_normal((4, 5, 2))
    expected = x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    assert_close(layer(F.from_numpy(x)), F.from_numpy(expected), 1e-12)


def test_weights_start_within_the_root_of_the_features():
    layer = nn.Linear(100, 50)
    assert float(layer.weight.abs().max()) <= 0.1
    assert float(layer.bias.abs().max()) <= 0.1
    assert float(layer.weight.abs().max()) > 0.09


def test_layer_without_bias_has_none_in_its_state():
    layer = nn.Linear(2, 3, bias=False)
    assert layer.bias is None
    assert list(layer.state_dict()) == ["weight"]
    assert repr(layer) == "Linear(in_features=2, out_features=3, bias=False)"


@pytest.mark.skipif(not IS_FACULA, reason="the wording is Facula's")
def test_wrong_number_of_features_names_both_shapes():
    with pytest.raises(RuntimeError, match=r"cannot be multiplied.*in_features") as error:
        nn.Linear(3, 4)(F.ones(2, 5))
    assert "[2, 5]" in str(error.value)
    assert "[4, 3]" in str(error.value)


def test_dtypes_must_agree():
    with pytest.raises(RuntimeError, match="same dtype"):
        nn.functional.linear(F.ones(2, 3), F.ones(4, 3).double())
    with pytest.raises(RuntimeError):
        nn.functional.linear(F.ones(2, 3), F.ones(4, 3), F.ones(5))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch records a transpose and a product")
def test_linear_records_one_node():
    y = nn.Linear(2, 3)(F.ones(4, 2))
    assert type(y.grad_fn).__name__ == "AddmmBackward0"
    assert all(
        edge is None or type(edge[0]).__name__ in ("AccumulateGrad", "NoneType")
        for edge in y.grad_fn.next_functions
    )


@pytest.mark.parametrize("batched", [(0, None, None), (None, 0, None), (0, 0, 0), (None, None, 0)])
def test_vmap_over_each_argument(batched):
    x, w, b = F.randn(3, 5, 2), F.randn(3, 4, 2), F.randn(3, 4)
    args = [t if d == 0 else t[0] for t, d in zip((x, w, b), batched, strict=True)]
    out = F.vmap(nn.functional.linear, in_dims=batched)(*args)
    each = [
        nn.functional.linear(*(t[i] if d == 0 else t for t, d in zip(args, batched, strict=True)))
        for i in range(3)
    ]
    assert_close(out, F.stack(each), 1e-5, 1e-6)


def test_lazy_linear_becomes_linear_with_its_first_input():
    layer = nn.LazyLinear(4)
    assert layer.has_uninitialized_params()
    assert repr(layer) == "LazyLinear(in_features=0, out_features=4, bias=True)"
    assert layer(F.ones(2, 3)).shape == (2, 4)
    assert type(layer) is nn.Linear
    assert layer.in_features == 3
    assert not hasattr(layer, "_initialize_hook")


def test_lazy_linear_takes_shapes_from_a_state_dict():
    full = nn.Linear(3, 4)
    layer = nn.LazyLinear(4)
    layer.load_state_dict(full.state_dict())
    x = F.ones(2, 3)
    assert_equal(layer(x), full(x))
    assert layer.in_features == 3


def test_lazy_state_dict_loads_into_a_lazy_module():
    state = nn.LazyLinear(4).state_dict()
    other = nn.LazyLinear(4)
    other.load_state_dict(state)
    assert other.has_uninitialized_params()


def test_parameters_without_shape_refuse_arithmetic():
    with pytest.raises((ValueError, RuntimeError)):
        nn.LazyLinear(4).weight + 1


def test_bilinear_checks_its_inputs():
    layer = nn.Bilinear(2, 3, 4)
    with pytest.raises(RuntimeError, match="input1 size does not match"):
        layer(F.ones(5, 3), F.ones(5, 3))
    with pytest.raises(RuntimeError, match="batch dimensions do not match"):
        layer(F.ones(5, 2), F.ones(4, 3))
    with pytest.raises(ValueError, match="in1_features"):
        nn.Bilinear(0, 3, 4)


@pytest.mark.parametrize(
    ("name", "sizes", "shapes"),
    [("Linear", (5, 3), [(2, 4, 5)]), ("Bilinear", (2, 3, 4), [(6, 2), (6, 3)])],
)
def test_training_equals_pytorch(name, sizes, shapes):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, name, *sizes)
    same_training(torch, ours, theirs, *(torch.randn(s) for s in shapes))


def test_what_is_asked_of_an_uninitialized_parameter_is_a_plain_tensor():
    weight = F.nn.LazyLinear(3).weight
    for result in (weight.data, weight.detach(), weight.half(), weight.to(F.float64)):
        assert type(result) is F.Tensor and result.shape == (0,)
    assert type(F.nn.Parameter(weight.data)) is F.nn.Parameter


def test_lazy_modules_are_converted_before_they_have_shapes():
    norm = F.nn.LazyBatchNorm1d().to(F.float64).half().to(F.float64)
    assert norm(F.ones(2, 3, dtype=F.float64)).dtype == F.float64
    assert type(norm.weight) is F.nn.Parameter and type(norm.running_mean) is F.Tensor
