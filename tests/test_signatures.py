"""What inspect and help say about operators, and that they take what they say."""

import inspect

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="PyTorch's operators have no signatures")


@pytest.mark.parametrize(
    "name, text",
    [
        ("add", "(input, other, *, alpha=1, out=None)"),
        ("cat", "(tensors, dim=0, *, out=None)"),
        ("transpose", "(input, dim0, dim1)"),
        ("cumsum", "(input, dim, *, dtype=None, out=None)"),
        ("add_", "(input, other, *, alpha=1)"),
        ("max", "(input, dim=Ellipsis, keepdim=False, other=Ellipsis, *, out=None)"),
    ],
)
def test_functions(name, text):
    assert str(inspect.signature(getattr(F, name))) == text


@pytest.mark.parametrize(
    "name, text",
    [
        ("add", "(other, *, alpha=1)"),
        ("add_", "(other, *, alpha=1)"),
        ("permute", "(*dims)"),
        ("uniform_", "(from_=0, to=1, *, generator=None)"),
        ("size", "(dim=None)"),
        ("requires_grad_", "(requires_grad=True)"),
    ],
)
def test_methods(name, text):
    assert str(inspect.signature(getattr(F.ones(1), name))) == text
    assert str(inspect.signature(getattr(F.Tensor, name))).startswith("(self, /, ")


def test_creation_functions_take_sizes_one_by_one():
    parameters = inspect.signature(F.zeros).parameters
    assert parameters["size"].kind is inspect.Parameter.VAR_POSITIONAL
    assert parameters["dtype"].default is None


def test_every_public_operator_has_a_signature():
    for name, function in F._C._operators.items():
        if (
            name != "polygamma_"
            and not name.rpartition(".")[2].startswith("_")
            and hasattr(F, name)
        ):
            inspect.signature(function)
    for name, method in F._C._operator_methods.items():
        # The method of polygamma takes its own tensor second, which no signature can say.
        if not name.startswith("_") and name not in ("polygamma", "polygamma_"):
            inspect.signature(method)


def test_keywords_of_pytorch_and_numpy():
    x = F.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert F.sum(input=x, dim=0).tolist() == F.sum(x, axis=0).tolist() == [4, 6]
    assert F.clamp(input=x, max=2).tolist() == [[1, 2], [2, 2]]
    assert F.swapaxes(x, axis0=0, axis1=1).tolist() == x.t().tolist()
    assert x.swapaxes(axis0=0, axis1=1).tolist() == x.t().tolist()
    assert F.concatenate([x, x], axis=1).shape == (2, 4)


def test_help_shows_signatures():
    assert F.add.__doc__.startswith("add(input, other, *, alpha=1, out=None) -> Tensor")
    assert F.Tensor.view.__doc__.startswith("Tensor.view(*size) -> Tensor")


def test_none_stands_for_a_list_that_is_empty_by_default():
    x = F.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert F.amax(x, None).item() == 5 and x.amin(dim=None).item() == 1
    assert F.amax(x, dim=None, keepdim=True).shape == (1, 1)
    assert F.roll(x, 1, None).tolist() == [[5.0, 3.0], [1.0, 2.0]]
    with pytest.raises(TypeError):
        F.flip(x, None)
    with pytest.raises(TypeError):
        F.rot90(x, 1, None)


def test_none_stands_for_no_gradient():
    assert not F.zeros(2, requires_grad=None).requires_grad
    assert not F.full((2,), 1.0, dtype=None, device=None, requires_grad=None).requires_grad


@pytest.mark.parametrize("name", ["any", "all"])
def test_any_and_all_over_no_dimensions_keep_every_element(name):
    function, x = getattr(F, name), F.tensor([[0.0, 2.0], [3.0, 0.0]])
    for keepdim in (False, True):
        found = function(x, (), keepdim)
        assert found.dtype is F.bool and found.tolist() == [[False, True], [True, False]]
    assert function(x.to(F.uint8), ()).dtype is F.uint8
    out = F.empty(0, dtype=F.bool)
    assert function(x, dim=(), out=out) is out and out.shape == (2, 2)
    assert function(F.tensor(2.0), ()).item() is True
    assert function(x, None).shape == () and F.sum(x, ()).item() == 5
