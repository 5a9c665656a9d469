"""Quantized tensors: integers, scale and zero point against PyTorch's."""

import copy
import io
import pickle

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is the reference")
DTYPES = ["quint8", "qint8", "qint32"]


def both(*shape, seed=0, scale=2.0):
    """The same numbers as a tensor of each package."""
    array = (np.random.default_rng(seed).normal(size=shape) * scale).astype("float32")
    return F.tensor(array.tolist()), torch.tensor(array)


def same(ours, theirs):
    np.testing.assert_array_equal(ours.int_repr().numpy(), theirs.int_repr().numpy())
    np.testing.assert_array_equal(ours.dequantize().numpy(), theirs.dequantize().numpy())
    assert str(ours.qscheme()).split(".")[1] == str(theirs.qscheme()).split(".")[1]


def quantized(dtype="quint8", *shape):
    x, y = both(*(shape or (4, 3, 8, 8)))
    ours = F.quantize_per_tensor(x, 0.05, 11, getattr(F, dtype))
    return ours, torch.quantize_per_tensor(y, 0.05, 11, getattr(torch, dtype))


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("scale", "zero_point"), [(0.1, 3), (0.05, 11), (0.037, 0)])
def test_integers_and_numbers(dtype, scale, zero_point):
    x, y = both(100)
    ours = F.quantize_per_tensor(x, scale, zero_point, getattr(F, dtype))
    theirs = torch.quantize_per_tensor(y, scale, zero_point, getattr(torch, dtype))
    same(ours, theirs)
    assert (ours.q_scale(), ours.q_zero_point()) == (theirs.q_scale(), theirs.q_zero_point())


@needs_torch
def test_halves_and_limits():
    values = [0.05, 0.15, 0.25, -0.05, 300.0, -300.0, float("inf"), -float("inf")]
    for zero_point in (10, 11):
        ours = F.quantize_per_tensor(F.tensor(values), 0.1, zero_point, F.quint8)
        same(ours, torch.quantize_per_tensor(torch.tensor(values), 0.1, zero_point, torch.quint8))


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_by_channel(dtype, axis):
    x, y = both(3, 3, 5)
    scales, origins = [0.1, 0.2, 0.05], [1, 0, 7]
    ours = F.quantize_per_channel(x, F.tensor(scales), F.tensor(origins), axis, getattr(F, dtype))
    theirs = torch.quantize_per_channel(
        y, torch.tensor(scales), torch.tensor(origins), axis, getattr(torch, dtype)
    )
    same(ours, theirs)
    assert ours.q_per_channel_axis() == axis
    assert ours.q_per_channel_scales().tolist() == theirs.q_per_channel_scales().tolist()
    assert ours.q_per_channel_zero_points().tolist() == origins
    if axis == 0:
        same(ours[1], theirs[1])


@needs_torch
@pytest.mark.parametrize("dtype", ["quint8", "quint4x2", "quint2x4"])
def test_floating_zero_points_and_packed_integers(dtype):
    x, y = both(2, 9)
    scales, origins = [0.3, 0.7], [1.5, 0.25]
    ours = F.quantize_per_channel(x, F.tensor(scales), F.tensor(origins), 0, getattr(F, dtype))
    theirs = torch.quantize_per_channel(
        y, torch.tensor(scales), torch.tensor(origins), 0, getattr(torch, dtype)
    )
    same(ours, theirs)


@needs_torch
@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-6, 0.0])
def test_dynamic(dtype, reduce_range, scale):
    x, y = both(50, scale=scale)
    ours = F.quantize_per_tensor_dynamic(x, getattr(F, dtype), reduce_range)
    theirs = torch.quantize_per_tensor_dynamic(y, getattr(torch, dtype), reduce_range)
    same(ours, theirs)
    assert (ours.q_scale(), ours.q_zero_point()) == (theirs.q_scale(), theirs.q_zero_point())


OPERATORS = {
    "relu": lambda P, q: P.relu(q),
    "clamp": lambda P, q: q.clamp(-1, 1),
    "hardtanh": lambda P, q: P.nn.functional.hardtanh(q),
    "leaky_relu": lambda P, q: P.nn.functional.leaky_relu(q, 0.2),
    "threshold": lambda P, q: P.threshold(q, 0.3, 0.0),
    "tanh": lambda P, q: P.tanh(q),
    "sigmoid": lambda P, q: P.sigmoid(q),
    "max": lambda P, q: q.max(),
    "min": lambda P, q: q.min(),
    "sort": lambda P, q: q.sort()[0],
    "topk": lambda P, q: q.topk(2)[0],
    "mean": lambda P, q: q.mean(dim=(2, 3)),
    "max_pool2d": lambda P, q: P.nn.functional.max_pool2d(q, 2),
    "quantized_max_pool2d": lambda P, q: P.quantized_max_pool2d(q, [3, 3], [2, 2], [1, 1]),
    "avg_pool2d": lambda P, q: P.nn.functional.avg_pool2d(q, 2),
    "adaptive_avg_pool2d": lambda P, q: P.nn.functional.adaptive_avg_pool2d(q, 2),
    "interpolate": lambda P, q: P.nn.functional.interpolate(q, scale_factor=2),
    "pad": lambda P, q: P.nn.functional.pad(q, (1, 1)),
    "cat": lambda P, q: P.cat([q, q], 1),
    "stack": lambda P, q: P.stack([q, q]),
    "index_select": lambda P, q: q.index_select(0, P.tensor([2, 0])),
    "view": lambda P, q: q.view(-1),
    "permute": lambda P, q: q.permute(0, 2, 3, 1).contiguous(),
    "select": lambda P, q: q[1],
    "batch_norm": lambda P, q: P.quantized_batch_norm(
        q, P.ones(3), P.zeros(3), P.zeros(3), P.ones(3), 1e-5, 0.1, 5
    ),
}


@needs_torch
@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name, dtype):
    if name == "index_select" and dtype == "qint8":
        pytest.skip("PyTorch has it for quint8")
    ours, theirs = quantized(dtype)
    same(OPERATORS[name](F, ours), OPERATORS[name](torch, theirs))


@needs_torch
def test_pools_of_one_and_three_dimensions():
    ours, theirs = quantized("quint8", 2, 3, 9)
    same(F.quantized_max_pool1d(ours, [2]), torch.quantized_max_pool1d(theirs, [2]))
    ours, theirs = quantized("quint8", 1, 2, 4, 4, 4)
    same(
        F.quantized_max_pool3d(ours, [2, 2, 2]),
        torch.quantized_max_pool3d(theirs, [2, 2, 2]),
    )


@needs_torch
def test_comparisons_give_truth_values():
    ours, theirs = quantized()
    assert (ours > 0).tolist() == (theirs > 0).tolist()
    assert F.equal(ours, ours.clone()) and (ours == ours).all()
    assert ours[0, 0, 0, 0].item() == theirs[0, 0, 0, 0].item()


def test_what_it_says_of_itself():
    q = F.quantize_per_tensor(F.ones(2, 3), 0.5, 1, F.qint8)
    assert q.is_quantized and not F.ones(1).is_quantized
    assert q.dtype is F.qint8 and q.shape == (2, 3) and not q.requires_grad
    assert q.type() == f"{F.__name__}.quantized.QInt8Tensor"
    assert repr(F.quantize_per_tensor(F.ones(1), 0.5, 1, F.quint8)) == (
        f"tensor([1.], size=(1,), dtype={F.__name__}.quint8,\n"
        f"       quantization_scheme={F.__name__}.per_tensor_affine, scale=0.5, zero_point=1)"
    )


def test_writing():
    q = F.quantize_per_tensor(F.zeros(3), 0.5, 1, F.quint8)
    assert q.copy_(F.tensor([1.0, 2.0, 3.2])).dequantize().tolist() == [1.0, 2.0, 3.0]
    assert q.fill_(2.0).int_repr().tolist() == [5, 5, 5]
    with pytest.raises(RuntimeError):
        F.zeros(3).copy_(q)


@pytest.mark.skipif(not IS_FACULA, reason="written for this package's classes")
def test_copies_and_pickles():
    q = F.quantize_per_tensor(F.tensor([1.0, 2.0]), 0.5, 1, F.quint8)
    for other in (copy.deepcopy(q), pickle.loads(pickle.dumps(q)), q.clone(), q.detach()):
        assert F.equal(other, q) and other.q_scale() == 0.5 and other.dtype is F.quint8
    empty = F.empty_quantized([4], q)
    assert empty.shape == (4,) and empty.q_zero_point() == 1
    assert F.empty_like(q).q_scale() == 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.quantize_per_tensor(F.ones(1), 0.1, 300, F.quint8),
        lambda: F.quantize_per_tensor(F.ones(1).double(), 0.1, 0, F.quint8),
        lambda: F.quantize_per_tensor(F.ones(1), 0.1, 0, F.float32),
        lambda: F.quantize_per_channel(F.ones(2), F.ones(3), F.zeros(3).long(), 0, F.quint8),
        lambda: F.quantize_per_tensor(F.ones(1), 0.1, 0, F.quint8).q_per_channel_axis(),
        lambda: F.ones(1).q_scale(),
        lambda: F.ones(1).int_repr(),
        lambda: F.quantize_per_tensor(F.ones(1), 0.1, 0, F.quint8) + 1,
    ],
)
def test_mistakes_raise(call):
    with pytest.raises(RuntimeError):  # NotImplementedError is one
        call()


@needs_torch
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_moving_average_observer(by_row, symmetric):
    def run(P, x):
        n = 4 if by_row else 1
        low, high = P.full((n,), float("inf")), P.full((n,), -float("inf"))
        scale, origin, on = P.ones(n), P.zeros(n, dtype=P.int32), P.tensor([1])
        limits = (-128, 127) if symmetric else (0, 255)
        for k in (1, 2):
            y = P.fused_moving_avg_obs_fake_quant(
                x * k, on, on, low, high, scale, origin, 0.01, *limits, 0, by_row, symmetric
            )
        return y, low, high, scale, origin

    x, y = both(4, 30)
    for ours, theirs in zip(run(F, x), run(torch, y), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)


def _layer(P, w):
    q, offsets, scale, origin = P.fbgemm_linear_quantize_weight(w)
    return q, P.fbgemm_pack_quantized_matrix(q), offsets, scale, origin


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_linear_layers_of_eight_bits_and_of_halves():
    (w, v), (x, y), (b, c) = both(4, 6), both(3, 6, seed=1), both(4, seed=2)
    ours, theirs = _layer(F, w), _layer(torch, v)
    assert ours[0].tolist() == theirs[0].tolist() and ours[2].tolist() == theirs[2].tolist()
    assert ours[3] == pytest.approx(theirs[3], rel=1e-6) and ours[4] == theirs[4]
    # With AVX2, PyTorch's sums of two products stop at 32767: so that none gets there, every other
    # input is zero, and the least.
    every_other = np.arange(6) % 2
    np.testing.assert_allclose(
        F.fbgemm_linear_int8_weight(x.abs() * F.tensor(every_other), *ours, b).numpy(),
        torch.fbgemm_linear_int8_weight(y.abs() * torch.tensor(every_other), *theirs, c).numpy(),
        rtol=1e-5,
        atol=1e-5,
    )
    half = F.fbgemm_pack_gemm_matrix_fp16(w), torch.fbgemm_pack_gemm_matrix_fp16(v)
    np.testing.assert_allclose(
        F.fbgemm_linear_fp16_weight(x, half[0], b).numpy(),
        torch.fbgemm_linear_fp16_weight(y, half[1], c).numpy(),
        rtol=1e-5,
        atol=1e-5,
    )


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("cell", "gates"), [("lstm", 4), ("gru", 3), ("rnn_relu", 1), ("rnn_tanh", 1)]
)
def test_cells_of_eight_bits(cell, gates):
    def run(P, x, h, wi, wh, bi, bh):
        (qi, pi, oi, si, zi), (qh, ph, oh, sh, zh) = _layer(P, wi), _layer(P, wh)
        state = (h, h) if cell == "lstm" else h
        f = getattr(P, f"quantized_{cell}_cell")
        result = f(x, state, qi, qh, bi, bh, pi, ph, oi, oh, si, sh, zi, zh)
        return result if isinstance(result, tuple) else (result,)

    shapes = [(2, 3), (2, 5), (5 * gates, 3), (5 * gates, 5), (5 * gates,), (5 * gates,)]
    pairs = [both(*shape, seed=i, scale=0.5) for i, shape in enumerate(shapes)]
    ours, theirs = run(F, *(p[0] for p in pairs)), run(torch, *(p[1] for p in pairs))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def _samples(P):
    x = P.tensor([[1.0, 2.0, 0.25], [0.5, 3.0, 0.75]])
    scales, origins = P.tensor([0.5, 0.25]), P.tensor([1, 0])
    yield P.quantize_per_tensor(x, 0.5, 1, P.quint8)
    yield P.quantize_per_tensor(x, 0.5, 1, P.qint32).t()
    yield P.quantize_per_channel(x, scales, origins, 0, P.qint8)
    yield P.quantize_per_channel(x, scales, origins.to(P.float32), 0, P.quint4x2)


@pytest.mark.parametrize("old", [False, True])
def test_checkpoints_keep_quantized_tensors(old):
    for q in _samples(F):
        file = io.BytesIO()
        F.save({"q": q}, file, _use_new_zipfile_serialization=not old)
        file.seek(0)
        loaded = F.load(file)["q"]
        assert loaded.dtype is q.dtype and loaded.qscheme() is q.qscheme()
        assert loaded.dequantize().tolist() == q.dequantize().tolist()


@needs_torch
def test_checkpoints_go_from_one_package_to_the_other():
    if not IS_FACULA:
        pytest.skip("needs two packages")
    for ours, theirs in zip(_samples(F), _samples(torch), strict=True):
        for save, load, q in ((F.save, torch.load, ours), (torch.save, F.load, theirs)):
            file = io.BytesIO()
            save({"q": q}, file)
            file.seek(0)
            loaded = load(file)["q"]
            assert loaded.shape == q.shape and loaded.stride() == q.stride()
            assert loaded.dequantize().tolist() == q.dequantize().tolist()
            assert loaded.int_repr().tolist() == q.int_repr().tolist()
