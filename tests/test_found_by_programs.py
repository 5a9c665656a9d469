"""What random programs of tensor operations, run beside PyTorch, once found to differ."""

import numpy as np
import pytest
from package_under_test import F


def channels_last():
    x = F.arange(120.0).reshape(2, 3, 4, 5)
    return x.contiguous(memory_format=F.channels_last)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.transpose_(0, 1),
        lambda v: v.t_(),
        lambda v: v.squeeze_(),
        lambda v: v.unsqueeze_(0),
        lambda v: v.as_strided_((2,), (1,)),
        lambda v: v.zero_(),
    ],
)
def test_views_of_leaves_refuse_changes_in_place(change):
    leaf = F.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        change(leaf.view(2, 2))
    with F.no_grad():
        change(leaf.view(2, 2))


def test_view_that_was_made_a_leaf_counts_as_one():
    leaf = F.ones(4, 2)[:, :1].requires_grad_()
    view = leaf.squeeze(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)
    assert leaf.is_leaf
    assert leaf.tolist() == [[1.0]] * 4


@pytest.mark.parametrize("change", ["mul_", "div_", "add_", "pow_", "copy_", "atan2_"])
@pytest.mark.parametrize("view", [lambda b: b[0], lambda b: b.t(), lambda b: b.view(-1)[:2]])
def test_writing_gradients_into_a_view_of_a_constant(view, change):
    w = F.tensor([2.0, 3.0], requires_grad=True)
    base = F.full((2, 2), 5.0)
    part = view(base)
    getattr(part, change)(w)
    got = F.autograd.grad((base * 2).sum(), w, retain_graph=True)[0]
    again = F.autograd.grad((part * 2).sum(), w)[0]
    fresh = F.full(tuple(part.shape), 5.0) * 1
    wanted = F.autograd.grad((getattr(fresh, change)(w) * 2).sum(), w)[0]
    F.testing.assert_close(got, wanted)
    F.testing.assert_close(again, wanted)


@pytest.mark.parametrize("function", [F.minimum, F.maximum])
def test_extremes_of_booleans_and_floats_have_derivatives(function):
    x = F.tensor([0.5, 1.0, 3.0], requires_grad=True)
    function(F.tensor([True, True, False]), x).sum().backward()
    larger = [0.0, 0.5, 1.0]
    assert x.grad.tolist() == (larger if function is F.maximum else [1 - g for g in larger])


def test_results_without_gradients_go_to_out():
    x = F.ones(2, requires_grad=True)
    assert F.eq(x, 1, out=F.empty(2, dtype=F.bool)).tolist() == [True, True]
    assert F.argmax(x, 0, out=F.empty(0, dtype=F.int64)).item() == 0
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        F.exp(x, out=F.empty(2))


def test_resized_out_takes_the_layout_of_the_inputs():
    x = channels_last()
    for out in (F.exp(x, out=F.empty(0)), F.add(x, x, out=F.empty(0))):
        assert out.stride() == x.stride()
    np.testing.assert_array_equal(out.numpy(), (x + x).numpy())


@pytest.mark.parametrize(
    ("dim", "strides"),
    [(0, (120, 60, 1, 15, 3)), (1, (120, 3, 1, 30, 6)), (2, (120, 1, 60, 15, 3)), (4, None)],
)
def test_stacked_images_keep_channels_last(dim, strides):
    x = channels_last()
    y = F.stack([x, -x], dim)
    assert y.is_contiguous() if strides is None else y.stride() == strides
    np.testing.assert_array_equal(y.numpy(), np.stack([x.numpy(), -x.numpy()], dim))


@pytest.mark.parametrize("dims", [(1,), (-2,), (0, 2), (3, 1)])
def test_rolled_images_keep_channels_last(dims):
    x = channels_last()
    y = x.roll((1,) * len(dims), dims)
    assert y.stride() == x.stride()
    np.testing.assert_array_equal(y.numpy(), np.roll(x.numpy(), (1,) * len(dims), dims))
    assert F.ones(4, 3).t().roll(1, 1).is_contiguous()


def test_joined_images_have_channels_last_only_where_all_have():
    x = channels_last()
    assert F.cat([x, x], 1).is_contiguous(memory_format=F.channels_last)
    assert F.cat([x[:, :, 1:], x[:, :, :2]], 2).stride()[1] == 1
    assert F.cat([x, x.contiguous()], 1).is_contiguous()
    assert F.cat([x.contiguous(), x], 1).is_contiguous()


@pytest.mark.parametrize(
    "function", [F.add, F.maximum, lambda a, b, out: F.where(a > 5, a, b, out=out)]
)
def test_operand_that_is_the_destination_is_not_resized(function):
    a, b = F.ones(2, 3), F.tensor([7.0])
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        function(a, b, out=b)
    assert b.tolist() == [7.0]


@pytest.mark.parametrize("shape", [(3, 0), (2, 4, 0), (1, 2, 0, 3)])
def test_padding_of_nothing_has_the_value(shape):
    kept = [F.full((64,), 7.0) for _ in range(8)]  # memory that is used again
    del kept
    pads = (1, 1) if shape[-1] == 0 else (0, 0, 1, 2)
    padded = F.nn.functional.pad(F.ones(shape), pads, value=5.0)
    assert padded.numel() > 0
    assert padded.eq(5).all()


def test_broadcast_tensors_of_that_shape_are_themselves():
    x, y = F.ones(2, 3), F.ones(3)
    a, b = F.broadcast_tensors(x, y)
    assert a is x
    assert b.shape == x.shape


def test_images_of_one_channel_can_be_given_channels_last():
    x = F.ones(3, 1, 4, 2)
    assert x.to(memory_format=F.channels_last).stride() == (8, 1, 2, 1)
    assert x.contiguous(memory_format=F.channels_last) is x


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_scalars_count_for_the_dtype_of_losses(loss):
    x = F.ones(2, dtype=F.bfloat16)
    assert getattr(F.nn.functional, loss)(F.tensor(1.0), x).dtype == F.float32


def test_instance_norm_of_channels_last_is_contiguous():
    assert F.nn.functional.instance_norm(channels_last()).is_contiguous()


@pytest.mark.parametrize("value", [2.7, [2.7], [[2.7]]])
def test_one_number_goes_to_a_mask_in_another_dtype(value):
    x = F.tensor([[1, 2], [3, 4]])
    x[x > 1] = F.tensor(value)
    assert x.tolist() == [[1, 2], [2, 2]]
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[x > 1] = F.tensor([2.7, 1.0, 1.0])
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[F.tensor([0])] = F.tensor(2.7)


def test_transposes_of_scalars_are_themselves():
    x = F.tensor(2.0)
    assert x.mT.item() == x.mH.item() == 2.0
    with pytest.raises(RuntimeError, match="matrices"):
        _ = F.ones(2).mT


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_as_in_pytorch(mode, align_corners, antialias):
    torch = pytest.importorskip("torch")
    options = {"mode": mode, "align_corners": align_corners, "antialias": antialias}
    rng = np.random.default_rng(0)
    for shape in ((1, 3, 7, 9), (2, 4, 33, 20), (1, 5, 16, 16)):
        x = rng.integers(0, 256, shape).astype(np.uint8)
        for size in ((4, 5), (14, 18), (7, 20), (50, 31), (64, 8)):
            wanted = torch.nn.functional.interpolate(torch.from_numpy(x), size=size, **options)
            for format in (F.contiguous_format, F.channels_last):
                given = F.from_numpy(x).contiguous(memory_format=format)
                got = F.nn.functional.interpolate(given, size=size, **options)
                np.testing.assert_array_equal(got.numpy(), wanted.numpy())
