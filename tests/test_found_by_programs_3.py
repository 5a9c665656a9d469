"""What programs written for PyTorch once found to differ: data, graphs, layouts, samples."""

import numpy as np
import pytest
from package_under_test import F

from facula import nn
from facula.nn import functional

# ---- facula.tensor


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64])
@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: [1, n]])
def test_integers_of_more_than_64_bits_are_value_errors(number, wrap):
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        F.tensor(wrap(number))


def test_large_integers_become_floats():
    assert F.tensor(2**65, dtype=F.float64).item() == 2.0**65
    assert F.tensor([1.5, 2**64]).tolist() == [1.5, 2.0**64]
    assert F.tensor(2**65, dtype=F.complex64).item() == 2.0**65 + 0j
    assert F.tensor(2**65, dtype=F.bool).item() is True
    assert F.tensor(2**64 - 1, dtype=F.uint64).item() == 2**64 - 1
    with pytest.raises(OverflowError):
        F.tensor(2**2000, dtype=F.float64)
    with pytest.raises(OverflowError, match="int too big to convert"):
        F.ones(2) + 2**64


def test_tensors_in_lists_are_numbers():
    assert F.tensor([F.ones(1), F.ones(1, 1), 2]).tolist() == [1.0, 1.0, 2.0]
    assert F.tensor([[1, 2], F.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    for many in ([F.ones(2), F.ones(2)], [F.ones(2)], [F.zeros(0)]):
        with pytest.raises(ValueError, match="only one element tensors"):
            F.tensor(many)
    with pytest.raises(TypeError, match="single element"):
        F.tensor([F.tensor([1, 2])])


def test_types_of_errors_about_nested_data():
    with pytest.raises(ValueError, match="too many dimensions 'str'"):
        F.tensor(["a"])
    for ragged in ([1, [2]], [1.0, (2,)]):
        with pytest.raises(TypeError, match="cannot be interpreted as a number"):
            F.tensor(ragged)
    cyclic = [1]
    cyclic.append(cyclic)
    with pytest.raises(TypeError, match="self-referential lists"):
        F.tensor(cyclic)
    with pytest.raises(TypeError, match="takes no keyword but device"):
        F.Tensor([1], dtype=F.int32)


@pytest.mark.parametrize("make", [F.ones, F.zeros, lambda *s, **k: F.full(s, 3.0, **k)])
def test_new_tensors_that_require_grad_have_version_0(make):
    assert make(2, requires_grad=True)._version == 0


# ---- gradients and nodes


def test_gradients_of_leaves_have_the_layout_of_the_leaf():
    x = F.ones(2, 3, requires_grad=True)
    (x.t() * F.ones(3, 2)).sum().backward()
    assert x.grad.stride() == (3, 1)
    assert x.grad.view(-1).shape == (6,)
    turned = F.ones(2, 3).t().requires_grad_()
    (turned.contiguous() * 2).sum().backward()
    assert turned.grad.stride() == turned.stride()
    image = F.ones(2, 3, 4, 5).to(memory_format=F.channels_last).requires_grad_()
    image.contiguous().exp().sum().backward()
    assert image.grad.stride() == image.stride()
    wide = F.ones(2, 1).expand(2, 3).requires_grad_()
    wide.backward(F.ones(3, 2).t())
    assert wide.grad.stride() == (3, 1)


def test_layout_of_gradients_that_are_differentiated_again():
    x = F.arange(6.0).reshape(2, 3).requires_grad_()
    x.t().contiguous().pow(3).sum().backward(create_graph=True)
    assert x.grad.stride() == (3, 1) and x.grad.requires_grad
    (second,) = F.autograd.grad(x.grad.sum(), x)
    assert F.equal(second, 6 * x.detach())


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda x: nn.Linear(2, 3)(x), "AddmmBackward0"),
        (lambda x: nn.Linear(2, 3, bias=False)(x), "MmBackward0"),
        (lambda x: nn.Linear(2, 3)(x[None]), "ViewBackward0"),
        (lambda x: nn.Linear(2, 3, bias=False)(x[None]), "UnsafeViewBackward0"),
        (lambda x: x[None] @ x, "UnsafeViewBackward0"),
        (lambda x: x.t().reshape(-1), "UnsafeViewBackward0"),
        (lambda x: 1 - x, "RsubBackward1"),
        (lambda x: F.ones(2) - x, "SubBackward0"),
        (lambda x: 1 / x, "MulBackward0"),
        (lambda x: x**2, "PowBackward0"),
        (lambda x: x**x, "PowBackward1"),
        (lambda x: 2**x, "PowBackward2"),
        (lambda x: functional.dropout(x, 0.5), "MulBackward0"),
        (lambda x: x.log1p(), "Log1PBackward0"),
        (lambda x: F.complex(x, x).real, "SelectBackward0"),
    ],
)
def test_results_show_the_names_of_pytorch(make, name):
    x = F.tensor([[1.0, 2.0], [0.5, 3.0]], requires_grad=True)
    result = make(x)
    assert result.grad_fn.name() == type(result.grad_fn).__name__ == name
    assert f"grad_fn=<{name}>" in repr(result)
    result.sum().backward()
    assert x.grad is not None


def test_products_of_batches_are_no_views():
    x = F.ones(2, 3, 4, requires_grad=True)
    result = x @ F.ones(4, 5)
    assert not result._is_view() and result._base is None
    result.add_(1).sum().backward()
    assert x.grad.eq(5).all()
    turned = F.ones(2, 3).t().reshape(6)
    assert not turned._is_view()


def test_a_node_can_be_called():
    x = F.ones(2, requires_grad=True)
    y = (x * 3).sum()
    assert y.grad_fn(F.tensor(2.0)).tolist() == [2.0, 2.0]
    (before, _), *_ = y.grad_fn.next_functions
    first, second = before(F.ones(2))
    assert first.tolist() == [3.0, 3.0] and second is None
    with pytest.raises(TypeError, match="takes 1 gradients"):
        y.grad_fn()
    with pytest.raises(TypeError, match="expected a Tensor or None at position 0, got int"):
        y.grad_fn(1)


class Scale(F.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=2):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


def test_functions_take_keywords_and_return_what_they_like():
    x = F.ones(2, requires_grad=True)
    for result in (Scale.apply(x, factor=3), Scale.apply(x=x, factor=3)):
        (grad,) = F.autograd.grad(result.sum(), x)
        assert grad.tolist() == [3.0, 3.0]
    assert Scale.apply(4) == 8
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        Scale.apply(x, other=3)


def test_only_tensors_have_edges():
    x = F.ones(2, requires_grad=True)
    result = Scale.apply(x, 3)
    node = result.grad_fn
    assert [n.name() for n, _ in node.next_functions] == ["torch::autograd::AccumulateGrad"]
    assert repr(node).startswith("<facula.autograd.function.ScaleBackward object at")


def test_gradients_given_to_backward_are_tensors():
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got int"):
        (F.ones(2, requires_grad=True) * 2).backward([1, 1])


def test_full_backward_hooks_stay_quiet_in_a_double_backward():
    layer = nn.Linear(3, 3)
    calls = []
    layer.register_full_backward_hook(lambda module, grads, outputs: calls.append(module))
    x = F.randn(2, 3, requires_grad=True)
    (grad,) = F.autograd.grad(layer(x).pow(2).sum(), x, create_graph=True)
    grad.pow(2).sum().backward()
    assert calls and layer.weight.grad is not None


def test_full_backward_hooks_warn_where_no_input_requires_grad():
    layer = nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda module, grads, outputs: None)
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(F.ones(1, 3)).sum().backward()


# ---- modules


def test_padding_is_0_where_an_encoder_leaves_it_out():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x = F.randn(2, 4, 8)
    padding = F.tensor([[False] * 4, [False, False, True, True]])
    with F.no_grad():
        result = encoder(x, src_key_padding_mask=padding)
    assert result[padding].eq(0).all() and result[~padding].ne(0).all()
    with_grad = encoder(x, src_key_padding_mask=padding)
    assert with_grad[padding].ne(0).all()
    F.testing.assert_close(with_grad[~padding], result[~padding])
    with F.no_grad():
        assert encoder(x, src_key_padding_mask=padding.flip(1))[padding.flip(1)].ne(0).all()
        encoder.use_nested_tensor = False
        assert encoder(x, src_key_padding_mask=padding)[padding].ne(0).all()
        encoder.train()
        assert encoder(x, src_key_padding_mask=padding)[padding].ne(0).any()
    before = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    assert not nn.TransformerEncoder(before, 1).use_nested_tensor


# ---- distributions

WISHART = F.tensor(
    [[[1.519475, -1.938577], [-1.938577, 4.683023]], [[4.547286, -0.262818], [-0.262818, 2.974943]]]
)


def test_wishart_samples_are_those_of_pytorch():
    F.manual_seed(1)
    wishart = F.distributions.Wishart(F.tensor(4.0), F.eye(2))
    sample = wishart.sample((2,))
    F.testing.assert_close(sample, WISHART, rtol=1e-5, atol=1e-5)
    assert wishart.support.check(sample).all()
    scale = F.eye(2, requires_grad=True)
    F.distributions.Wishart(F.tensor([3.0, 4.0]), scale_tril=scale).rsample((3,)).sum().backward()
    assert scale.grad.isfinite().all()


# ---- modes


class Names(F.overrides.TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append((func.__name__, len(args), sorted(kwargs or {})))
        return func(*args, **(kwargs or {}))


def test_modes_see_what_makes_tensors():
    with Names() as names:
        F.tensor([1.0], dtype=F.float64)
        F.as_tensor([1.0])
        F.asarray([1.0], dtype=F.int8)
    assert names.seen == [("tensor", 1, ["dtype"]), ("as_tensor", 1, []), ("asarray", 1, ["dtype"])]
    x = F.ones(2)
    with Names() as names:
        x.__dlpack_device__()
        x.__dlpack__()
    assert [name for name, *_ in names.seen] == ["__dlpack_device__", "__dlpack__"]
    with Names() as names, F._C.DisableTorchFunction():
        assert F.as_tensor([2.0]).item() == 2.0
    assert not names.seen


def test_data_becomes_tensors_of_inference_mode():
    array = np.ones(2)
    with F.inference_mode():
        made = [
            F.tensor([1.0]),
            F.tensor(array),
            F.as_tensor([1.0]),
            F.as_tensor(array),
            F.asarray([1.0]),
            F.from_numpy(array),
            F.frombuffer(bytearray(4), dtype=F.uint8),
            F.from_dlpack(array),
            *F.utils.data.default_collate([(1.0, 2), (3.0, 4)]),
            F.utils.data.default_convert(array),
            F.tensor([1.0], requires_grad=True),
        ]
    assert all(t.is_inference() for t in made) and made[-1].requires_grad
    assert not F.tensor([1.0]).is_inference() and not F.from_numpy(array).is_inference()
    with pytest.raises(RuntimeError, match="outside InferenceMode"):
        made[0].requires_grad_()


def test_a_byte_read_as_bool_is_true_unless_it_is_zero():
    flags = F.tensor([0, 1, 2, 255], dtype=F.uint8).view(F.bool)
    assert [f.item() for f in flags] == [False, True, True, True]
