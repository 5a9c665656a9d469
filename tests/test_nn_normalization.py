"""Norms: running moments, modes, layouts, lazy and synchronised forms, PyTorch's numbers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from package_under_test import F

nn = F.nn
functional = nn.functional
RANDOM = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return RANDOM.normal(1.0, 2.0, size=shape).astype(np.float32)


def close(ours, wanted, tolerance=1e-5):
    array = ours.detach().numpy() if hasattr(ours, "detach") else ours
    np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance)


# ---- batch norm


def test_training_normalises_by_the_batch_and_moves_the_running_moments():
    x = values(8, 3, 5)
    layer = nn.BatchNorm1d(3, momentum=0.3)
    y = layer(F.tensor(x))
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    close(y, (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5))
    close(layer.running_mean, 0.3 * mean)
    close(layer.running_var, 0.7 + 0.3 * x.var((0, 2), ddof=1))
    assert layer.num_batches_tracked == 1


def test_evaluation_uses_the_running_moments_and_leaves_them():
    layer = nn.BatchNorm2d(2)
    layer.running_mean.copy_(F.tensor([1.0, -1.0]))
    layer.running_var.copy_(F.tensor([4.0, 0.25]))
    layer.eval()
    x = values(2, 2, 3, 3)
    mean, variance = np.array([1.0, -1.0]), np.array([4.0, 0.25])
    close(layer(F.tensor(x)), (x - mean[:, None, None]) / np.sqrt(variance[:, None, None] + 1e-5))
    assert layer.running_mean.tolist() == [1.0, -1.0]
    assert layer.num_batches_tracked == 0


def test_momentum_none_averages_over_all_batches():
    layer, batches = nn.BatchNorm1d(2, momentum=None), [values(6, 2) for _ in range(3)]
    for x in batches:
        layer(F.tensor(x))
    close(layer.running_mean, np.mean([x.mean(0) for x in batches], axis=0))
    close(layer.running_var, np.mean([x.var(0, ddof=1) for x in batches], axis=0))


def test_without_running_moments_evaluation_uses_the_batch():
    layer = nn.BatchNorm1d(3, track_running_stats=False, affine=False).eval()
    assert layer.running_mean is None and layer.weight is None
    y = layer(F.tensor(values(7, 3)))
    close(y.mean(0), np.zeros(3), 1e-5)


@pytest.mark.parametrize("shape", [(4, 40, 9, 11), (2, 3, 150, 140), (6, 5, 1, 1), (3, 2, 7, 200)])
def test_channels_last_is_kept_and_gives_the_same(shape):
    x = values(*shape)
    layer = nn.BatchNorm2d(shape[1])
    F.manual_seed(0)
    nn.init.uniform_(layer.weight), nn.init.uniform_(layer.bias)
    results = []
    for memory_format in (F.contiguous_format, F.channels_last):
        leaf = F.tensor(x).contiguous(memory_format=memory_format).requires_grad_()
        y = layer(leaf)
        assert y.is_contiguous(memory_format=memory_format)
        grads = F.autograd.grad((y * y * y).sum(), [leaf, layer.weight, layer.bias])
        results.append([y, *grads])
    for a, b in zip(*results, strict=True):
        scale = float(a.detach().abs().max())
        close(a / scale, (b / scale).detach().numpy(), 5e-5)  # sums of 4,200 in two orders


def test_large_means_do_not_cost_the_variance():
    x = (RANDOM.normal(size=(64, 4, 33)) + 1000).astype(np.float32)
    exact = x.astype(np.float64)
    wanted = (exact - exact.mean((0, 2), keepdims=True)) / exact.std((0, 2), keepdims=True)
    close(nn.BatchNorm1d(4, eps=1e-12)(F.tensor(x)), wanted, 2e-4)
    rows = x.reshape(-1, 33)
    exact = rows.astype(np.float64)
    wanted = (exact - exact.mean(1, keepdims=True)) / exact.std(1, keepdims=True)
    close(nn.LayerNorm(33, eps=0.0)(F.tensor(rows)), wanted, 2e-4)


def test_results_do_not_depend_on_the_number_of_threads():
    x, threads = F.tensor(values(600, 96), requires_grad=True), F.get_num_threads()
    layer, images = nn.LayerNorm(96), nn.BatchNorm2d(6)
    pixels = F.tensor(values(4, 6, 90, 90), requires_grad=True)

    def run():
        found = [*F.autograd.grad((layer(x) ** 3).sum(), [x, layer.weight, layer.bias])]
        return [*found, *F.autograd.grad((images(pixels) ** 3).sum(), [pixels, images.weight])]

    try:
        F.set_num_threads(1)
        alone = run()
        F.set_num_threads(4)
        together = run()
    finally:
        F.set_num_threads(threads)
    for a, b in zip(alone[:3], together[:3], strict=True):
        assert F.equal(a, b)


def test_half_precision_is_computed_in_float32():
    x = values(16, 8)
    for dtype, tolerance in ((F.bfloat16, 2e-2), (F.float16, 3e-3)):
        for layer in (nn.BatchNorm1d(8), nn.LayerNorm(8), nn.GroupNorm(2, 8), nn.RMSNorm(8)):
            low = layer(F.tensor(x).to(dtype)) if isinstance(layer, nn.BatchNorm1d) else None
            if low is not None:  # parameters in float32
                assert low.dtype == dtype
            exact = copy.deepcopy(layer)(F.tensor(x).to(dtype).float())
            low = layer.to(dtype)(F.tensor(x).to(dtype))
            assert low.dtype == dtype
            close(low.float(), exact.detach().numpy(), tolerance)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.BatchNorm1d(3)(F.ones(3)), ValueError, "expected 2D or 3D input"),
        (lambda: nn.BatchNorm2d(3)(F.ones(3, 3)), ValueError, "expected 4D input"),
        (lambda: nn.BatchNorm1d(3)(F.ones(1, 3)), ValueError, "more than 1 value per channel"),
        (lambda: nn.BatchNorm1d(3)(F.ones(2, 4)), RuntimeError, "should contain 4 elements not 3"),
        (lambda: nn.InstanceNorm1d(3)(F.ones(2, 3, 1)), ValueError, "more than 1 spatial element"),
        (lambda: nn.LayerNorm(3)(F.ones(2, 4)), RuntimeError, "Given normalized_shape=.*3"),
        (lambda: nn.GroupNorm(3, 4), ValueError, "must be divisible by num_groups"),
        (lambda: functional.group_norm(F.ones(2, 4), 3), RuntimeError, "divisible by num_groups"),
        (
            lambda: functional.batch_norm(F.ones(2, 3), None, None),
            RuntimeError,
            "running_mean must be defined in evaluation mode",
        ),
        (
            lambda: functional.layer_norm(F.ones(2, 3), (3,), F.ones(2)),
            RuntimeError,
            "same shape as",
        ),
        (
            lambda: functional.layer_norm(F.ones(2, 3), (3,), F.ones(3).double()),
            RuntimeError,
            "dtype of the input",
        ),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ---- forms of modules


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["BatchNorm", "InstanceNorm"])
def test_lazy_norms_become_the_norm_of_their_first_input(kind, dims):
    lazy = getattr(nn, f"Lazy{kind}{dims}d")()
    assert lazy.has_uninitialized_params()
    lazy(F.ones(2, 3, *[4] * dims))
    assert type(lazy) is getattr(nn, f"{kind}{dims}d")
    assert lazy.num_features == 3 and lazy.weight.shape == (3,)
    assert lazy.running_var.shape == (3,)


def test_synchronised_batch_norm_in_one_process_is_batch_norm():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm1d(3), nn.ReLU())).train()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))
    assert isinstance(converted[0], nn.SyncBatchNorm) and isinstance(
        converted[1][0], nn.SyncBatchNorm
    )
    x = F.tensor(values(8, 3))
    assert F.equal(converted(x), model(x))
    assert F.equal(converted[0].running_var, model[0].running_var)
    assert list(converted.state_dict()) == list(model.state_dict())


def test_states_without_a_count_of_batches_can_be_loaded():
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    nn.BatchNorm1d(2).load_state_dict(state)


def test_cross_map_norm_of_an_even_size_uses_a_centred_window():
    x = values(1, 5, 2, 2)
    total = np.array([(x[:, max(c - 1, 0) : c + 2] ** 2).sum(1) for c in range(5)]).swapaxes(0, 1)
    total[:, 2:] += x[:, :1] ** 2  # as PyTorch's sliding sum, which never drops the first channel
    wanted = x / (2 + 0.5 / 4 * total) ** 0.6
    close(nn.CrossMapLRN2d(4, 0.5, 0.6, 2)(F.tensor(x)), wanted)


MODULES = {
    "BatchNorm1d": ((3,), (4, 3)),
    "BatchNorm2d": ((3,), (2, 3, 4, 5)),
    "BatchNorm3d": ((3,), (2, 3, 2, 2, 2)),
    "SyncBatchNorm": ((3,), (4, 3)),
    "InstanceNorm1d": ((3, 1e-5, 0.1, True, True), (2, 3, 5)),
    "InstanceNorm2d": ((3,), (2, 3, 4, 4)),
    "InstanceNorm3d": ((3,), (2, 3, 2, 2, 2)),
    "LayerNorm": (((3, 4),), (2, 3, 4)),
    "GroupNorm": ((2, 4), (2, 4, 3)),
    "RMSNorm": ((4,), (2, 3, 4)),
    "LocalResponseNorm": ((3, 0.5), (2, 4, 3)),
    "CrossMapLRN2d": ((3, 0.5), (2, 4, 3, 3)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_match_pytorch(name):
    torch = pytest.importorskip("torch")
    arguments, shape = MODULES[name]
    ours, theirs = getattr(nn, name)(*arguments), getattr(torch.nn, name)(*arguments)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for train in (True, True, False):
        ours.train(train), theirs.train(train)
        data = values(*shape)
        x, y = F.tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
        a, b = ours(x), theirs(y)
        close(a, b.detach().numpy())
        if name == "CrossMapLRN2d":
            continue  # PyTorch's gradient is that of a window without the first channel
        (a**3).sum().backward(), (b**3).sum().backward()
        scale = float(y.grad.abs().max()) + 1e-3
        close(x.grad / scale, (y.grad / scale).numpy(), 2e-5)
        for (key, state), other in zip(
            ours.state_dict().items(), theirs.state_dict().values(), strict=True
        ):
            np.testing.assert_allclose(state.numpy(), other.numpy(), rtol=1e-5, err_msg=key)


# ---- vmap


def test_vmap_of_gradients_keeps_samples_apart():
    x, w = F.tensor(values(4, 3, 6)), F.tensor(values(6), requires_grad=False)

    def loss(weight, sample):
        return (functional.layer_norm(sample, (6,), weight) ** 3).sum()

    batched = F.func.vmap(F.func.grad(loss), (None, 0))(w, x)
    one_by_one = F.stack([F.func.grad(loss)(w, sample) for sample in x])
    close(batched, one_by_one.numpy(), 1e-4)


@pytest.mark.parametrize("dtype", [F.bfloat16, F.float32, F.float64])
def test_rms_norm_takes_a_weight_of_another_dtype(dtype):
    x = F.tensor([[1.0, 2.0, 2.0]], dtype=dtype, requires_grad=True)
    other = F.float32 if dtype == F.float64 else F.float64
    weight = F.tensor([1.0, 2.0, 4.0], dtype=other, requires_grad=True)
    result = F.rms_norm(x, [3], weight, eps=0.0)
    assert result.dtype == dtype
    F.testing.assert_close(
        result.double(), F.rms_norm(x.double(), [3], weight.double(), eps=0.0), atol=0.01, rtol=0.01
    )
    result.sum().backward()
    assert x.grad.dtype == dtype and weight.grad.dtype == other


def test_group_norm_refuses_groups_of_one_value():
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.nn.GroupNorm(3, 3)(F.ones(1, 3))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.nn.functional.group_norm(F.ones(1, 2, 1), 2)
    assert F.nn.GroupNorm(3, 3)(F.ones(2, 3)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert F.group_norm(F.ones(1, 2), 2).tolist() == [[0, 0]]


def test_instance_norm_by_running_moments_is_contiguous():
    x = F.tensor(values(2, 3, 4, 4))
    layer = nn.InstanceNorm2d(3, track_running_stats=True).eval()
    out = layer(x.to(memory_format=F.channels_last))
    assert out.is_contiguous()
    assert out.tolist() == layer(x).tolist()


def test_rms_norm_of_fewer_dimensions_than_the_shape_is_a_value_error():
    with pytest.raises(ValueError, match="at least 2 dimensions, but got 1"):
        nn.RMSNorm((2, 3))(F.ones(3))


def test_empty_batches_have_second_derivatives():
    layers = (nn.GroupNorm(2, 4), nn.BatchNorm1d(4).eval())
    for layer in layers:
        x = F.zeros(0, 4, 3, requires_grad=True)
        (g,) = F.autograd.grad((layer(x) ** 2).sum(), x, create_graph=True)
        (gg,) = F.autograd.grad((g**2).sum(), x)
        assert gg.shape == (0, 4, 3)
