"""Attention in blocks, with every kind of mask, and MultiheadAttention."""

import itertools

import numpy as np
import pytest
from nn_comparison import same_training, same_values, to_facula, twins
from package_under_test import IS_FACULA, F, assert_close, assert_equal
from references_layers import attention as reference

nn = F.nn
attend = nn.functional.scaled_dot_product_attention


def heads(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# Around the sizes of blocks, tiles and vectors.
SIZES = [(1, 1, 1, 1), (47, 255, 8, 3), (48, 256, 16, 16), (97, 257, 65, 17), (200, 33, 3, 70)]


@pytest.mark.parametrize(("queries", "keys", "size", "width"), SIZES)
@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "float", "of keys"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_equal_the_whole_matrix(queries, keys, size, width, kind, dtype):
    q, k, v = heads(2, 4, queries, size), heads(2, 2, keys, size), heads(2, 2, keys, width)
    random = np.random.default_rng(1)
    mask = {
        "bool": random.random((queries, keys)) > 0.3,
        "float": random.standard_normal((2, 1, queries, keys)),
        "of keys": random.random((2, 1, 1, keys)) > 0.3,
    }.get(kind)
    options = {"is_causal": kind == "causal", "enable_gqa": True}
    expected = reference(q, k, v, mask, **options)
    kept = getattr(F, dtype)
    tensors = [F.from_numpy(t).to(kept) for t in (q, k, v)]
    given = None if mask is None else F.from_numpy(mask)
    if given is not None and given.is_floating_point():
        given = given.to(kept)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    assert_close(attend(*tensors, given, **options), F.from_numpy(expected), tolerance, tolerance)


@pytest.mark.parametrize("kind", ["plain", "causal", "mask"])
def test_gradients_of_blocks_equal_those_of_plain_operators(kind):
    q, k, v = heads(2, 4, 110, 20), heads(2, 2, 300, 20), heads(2, 2, 300, 9)
    mask = None
    if kind == "mask":
        mask = F.from_numpy(np.random.default_rng(2).random((110, 300)) > 0.5)
        mask[5] = False
    grads = []
    for plain in (False, True):
        tensors = [F.from_numpy(t).requires_grad_() for t in (q, k, v)]
        if plain:
            a, b, c = tensors
            b, c = (t.repeat_interleave(2, 1) for t in (b, c))
            scores = a @ b.mT / 20**0.5
            hidden = F.ones(110, 300, dtype=F.bool).triu(1) if kind == "causal" else None
            if mask is not None:
                hidden = ~mask
            if hidden is not None:
                scores = scores.masked_fill(hidden, -1e30)
            weights = F.softmax(scores, -1)
            if mask is not None:
                weights = weights * mask.any(-1, keepdim=True)
            out = weights @ c
        else:
            out = attend(*tensors, mask, is_causal=kind == "causal", enable_gqa=True)
        out.backward(F.from_numpy(heads(*out.shape, seed=3)))
        grads.append([t.grad for t in tensors])
    for ours, expected in zip(*grads, strict=True):
        assert_close(ours, expected, 1e-10, 1e-10)


def test_memory_of_long_sequences_stays_small():
    """The scores of 20,000 by 20,000 would be 1.6 GB."""
    x = F.randn(1, 1, 20_000, 4)
    assert attend(x[:, :, :64], x, x).shape == (1, 1, 64, 4)
    out = attend(x[:, :, :2000], x, x)
    assert bool(F.isfinite(out).all())


@pytest.mark.parametrize("queries", [3, 60])
def test_mask_and_causality_hold_together(queries):
    x = F.randn(1, 2, queries, 4, dtype=F.float64)
    lower = F.ones(queries, queries, dtype=F.bool).tril()
    seen = F.rand(queries, queries) > 0.4
    assert_close(attend(x, x, x, seen, is_causal=True), attend(x, x, x, seen & lower), 1e-12)
    added = F.randn(queries, queries, dtype=F.float64)
    expected = attend(x, x, x, added.masked_fill(~lower, float("-inf")))
    assert_close(attend(x, x, x, added, is_causal=True), expected, 1e-12)
    weighed = added.clone().requires_grad_()  # a mask that is trained takes the plain path
    assert_close(attend(x, x, x, weighed, is_causal=True), expected, 1e-12)


def test_mask_and_causality_with_dropout_are_refused():
    x, mask = F.randn(1, 2, 3, 4), F.ones(3, 3, dtype=F.bool)
    for q, options in ((x, {"dropout_p": 0.5}), (x[0], {})):
        with pytest.raises(RuntimeError, match="attn_mask should not be set when is_causal=True"):
            attend(q, q, q, mask, is_causal=True, **options)


def test_large_scores_do_not_overflow():
    q = F.full((1, 1, 2, 4), 100.0)
    k = F.cat([q[:, :, :1], -q[:, :, :1]], 2)
    v = F.tensor([[[[1.0], [5.0]]]])
    assert_equal(attend(q, k, v), [[[[1.0], [1.0]]]])


def test_query_that_sees_no_key_gives_zeros_and_no_gradient():
    q, k, v = (F.randn(1, 1, 3, 4, requires_grad=True) for _ in range(3))
    mask = F.tensor([[True, True, False], [False, False, False], [True, True, True]])
    out = attend(q, k, v, mask)
    assert_equal(out[0, 0, 1], F.zeros(4))
    out.sum().backward()
    assert_equal(q.grad[0, 0, 1], F.zeros(4))
    assert bool(F.isfinite(k.grad).all())


def test_nan_is_not_hidden():
    q = F.ones(1, 1, 2, 4)
    k = q.clone()
    k[0, 0, 1, 0] = float("nan")
    assert bool(F.isnan(attend(q, k, q)).all())


@pytest.mark.parametrize("dtype", [F.float16, F.bfloat16])
def test_half_precision_is_summed_in_float(dtype):
    q, k, v = (F.from_numpy(heads(1, 2, 70, 16, seed=i)).to(dtype) for i in range(3))
    expected = attend(q.double(), k.double(), v.double())
    out = attend(q, k, v)
    assert out.dtype == dtype
    assert_close(out, expected, 1e-2, 1e-2)


HALVES = ["float16", "bfloat16"]
KINDS = ["plain", "causal", "bool", "float", "of keys", "of queries", "turned"]


def mask_of(kind, queries, keys):
    random = np.random.default_rng(1)
    if kind == "bool":  # some queries see nothing
        return random.random((queries, keys)) * (random.random((queries, 1)) > 0.1) > 0.3
    return {
        "float": random.standard_normal((2, 1, queries, keys)),
        "of keys": random.random((2, 1, 1, keys)) > 0.3,
        "of queries": random.standard_normal((queries, 1)),
        "turned": random.standard_normal((keys, queries)).T,
    }.get(kind)


def halves_and_expected(shapes, mask, dtype, **options):
    """The output and the gradients in halves, and of the same numbers in float64."""
    results = []
    kept = getattr(F, dtype)
    tensors = [F.from_numpy(heads(*s, seed=i)).to(kept) for i, s in enumerate(shapes)]
    given = None if mask is None else F.from_numpy(mask)
    if given is not None and given.is_floating_point():
        given = given.to(kept)
    for compute in (kept, F.float64):
        leaves = [t.to(compute).detach().requires_grad_() for t in tensors]
        added = given
        if added is not None and added.is_floating_point():
            added = added.to(compute)
        out = attend(*leaves, added, enable_gqa=True, **options)
        grad = F.from_numpy(heads(*out.shape, seed=9)).to(kept).to(compute)
        results.append([out, *F.autograd.grad(out, leaves, grad)])
    return results


def close_by_largest(ours, expected, tolerance):
    for x, y in zip(ours, expected, strict=True):
        error = (x.detach().double() - y.detach()).abs().max().item()
        assert error <= tolerance * y.abs().max().item(), (error, y.abs().max().item())


# Around the sizes of blocks and tiles, with widths that are no whole tiles.
HALF_SIZES = [
    (5, 5, 4, 4),
    (47, 255, 8, 3),
    (33, 1100, 40, 33),
    (97, 257, 65, 17),
    (160, 34, 3, 70),
]


@pytest.mark.parametrize(("queries", "keys", "size", "width"), HALF_SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", HALVES)
def test_blocks_of_halves_equal_those_of_doubles(queries, keys, size, width, kind, dtype):
    shapes = [(2, 4, queries, size), (2, 2, keys, size), (2, 2, keys, width)]
    mask = mask_of(kind, queries, keys)
    ours, expected = halves_and_expected(shapes, mask, dtype, is_causal=kind == "causal")
    assert all(str(t.dtype).endswith(dtype) for t in ours)
    close_by_largest(ours, expected, 2e-2 if dtype == "bfloat16" else 3e-3)


@pytest.mark.parametrize("scale", [-0.5, 0.0, 1e-30, 3.0])
@pytest.mark.parametrize("dtype", HALVES)
def test_any_scale_of_halves(scale, dtype):
    shapes = [(1, 2, 40, 16), (1, 2, 70, 16), (1, 2, 70, 16)]
    ours, expected = halves_and_expected(shapes, None, dtype, scale=scale)
    tolerance = 2e-2 if dtype == "bfloat16" else 3e-3
    close_by_largest(ours[:1] + ours[3:], expected[:1] + expected[3:], tolerance)
    if scale in (-0.5, 3.0):
        close_by_largest(ours[1:3], expected[1:3], tolerance)


@pytest.mark.parametrize("queries", [1, 45, 200])
@pytest.mark.parametrize("dtype", HALVES)
def test_a_query_that_sees_one_key_has_its_value(dtype, queries):
    """Weights are rounded to halves, which must not be seen where there is one alone."""
    kept = getattr(F, dtype)
    q, k, v = (F.from_numpy(heads(2, 1, n, 64, seed=n)).to(kept) for n in (queries, 1, 1))
    tensors = [t.requires_grad_() for t in (q, k, v)]
    out = attend(*tensors)
    assert_equal(out, v.expand(out.shape))
    slopes = F.autograd.grad(out, tensors, F.from_numpy(heads(*out.shape)).to(kept))
    assert slopes[0].abs().max() < 1e-4 and slopes[1].abs().max() < 1e-4


@pytest.mark.parametrize("scale", [-0.5, 0.0])
@pytest.mark.parametrize("dtype", HALVES)
def test_hidden_keys_of_halves_stay_hidden_whatever_the_scale(scale, dtype):
    shapes = [(1, 2, 45, 16), (1, 2, 45, 16), (1, 2, 45, 16)]
    ours, expected = halves_and_expected(shapes, None, dtype, scale=scale, is_causal=True)
    tolerance = 2e-2 if dtype == "bfloat16" else 3e-3
    close_by_largest(ours[:1] + ours[3:], expected[:1] + expected[3:], tolerance)
    if scale:
        close_by_largest(ours[1:3], expected[1:3], tolerance)
    else:
        assert all(bool((t == 0).all()) for t in ours[1:3])


@pytest.mark.parametrize("of_queries", [True, False])
@pytest.mark.parametrize("dtype", HALVES)
def test_queries_that_see_keys_hidden_by_the_least_number_only_have_weights(dtype, of_queries):
    """The least number of the queries' type, or of float32, which has to be rounded."""
    kept = getattr(F, dtype)
    q, k, v = (F.from_numpy(heads(1, 2, 40, 16, seed=i)).to(kept) for i in range(3))
    hide = kept if of_queries else F.float32
    mask = F.zeros(40, 40, dtype=hide)
    mask[7] = F.finfo(hide).min
    v.requires_grad_()
    out = attend(q, k, v, mask)
    # Beside the least bfloat16, but not beside that of half, all scores are the same.
    expected = v.double().mean(2) if dtype == "bfloat16" else attend(q, k, v)[:, :, 7]
    assert_close(out[:, :, 7].detach(), expected.detach().to(kept), 1e-2, 1e-2)
    assert bool((F.autograd.grad(out[:, :, 7].sum(), v)[0] != 0).all())


def test_keys_that_no_query_sees_have_gradients_of_zero_though_they_are_infinite():
    q = F.from_numpy(np.abs(heads(1, 1, 5, 16))).bfloat16().requires_grad_()
    k = F.from_numpy(heads(1, 1, 40, 16, seed=1)).bfloat16()
    k[0, 0, 11, 3] = -float("inf")
    k.requires_grad_()
    v = F.from_numpy(heads(1, 1, 40, 16, seed=2)).bfloat16().requires_grad_()
    dk, dv = F.autograd.grad(attend(q, k, v).sum(), (k, v))
    assert not bool(dk.isnan().any()) and not bool(dv.isnan().any())


@pytest.mark.parametrize("size", [30.0, 3000.0])
@pytest.mark.parametrize("dtype", HALVES)
def test_large_scores_of_halves_do_not_overflow(size, dtype):
    """Scores of up to 10^9: the largest one has all of the weight."""
    q = F.full((1, 1, 33, 64), size, dtype=getattr(F, dtype))
    k = -q[:, :, :1].expand(1, 1, 600, 64).clone()
    k[:, :, 577] = size
    v = F.arange(600.0).to(q.dtype).reshape(1, 1, 600, 1)
    assert_equal(attend(q, k, v).float(), v[0, 0, 577].float().expand(1, 1, 33, 1))


@pytest.mark.parametrize("dtype", HALVES)
def test_nan_and_infinity_in_halves_are_not_hidden(dtype):
    q, k, v = (F.ones(1, 1, 40, 32, dtype=getattr(F, dtype)) for _ in range(3))
    k[0, 0, 35, 3] = float("nan")
    assert bool(F.isnan(attend(q, k, v)).all())
    out = attend(q, k, v, is_causal=True)  # the first 35 queries do not see it
    assert bool(F.isnan(out[:, :, 35:]).all()) and not bool(F.isnan(out[:, :, :35]).any())


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1000.0])
def test_gradients_of_float16_use_its_whole_range(factor):
    """Slopes are scaled by what they can be at most, so that they neither vanish nor overflow."""
    q, k, v = (F.from_numpy(heads(1, 2, 300, 64, seed=i)) for i in range(3))
    grads = []
    grad = F.from_numpy(heads(1, 2, 300, 64, seed=4)) * factor
    for dtype in (F.float16, F.float64):
        leaves = [t.half().to(dtype).requires_grad_() for t in (q, k, v)]
        grads.append(F.autograd.grad(attend(*leaves), leaves, grad.half().to(dtype)))
    for ours, expected in zip(*grads, strict=True):
        # Results below 6e-8 are rounded to steps of that size.
        error = (ours.double() - expected).abs().max().item()
        assert error <= 3e-3 * expected.abs().max().item() + 3e-8


@pytest.mark.parametrize("dtype", HALVES)
def test_heads_in_rows_and_repeated_keys_of_halves(dtype):
    """Views: heads beside each other, and one head of keys for all by expand."""
    rows = F.from_numpy(heads(2, 50, 3 * 4 * 16)).to(getattr(F, dtype))
    q, k, v = (t.unflatten(2, (4, 16)).transpose(1, 2) for t in rows.chunk(3, 2))
    expected = attend(*(t.contiguous() for t in (q, k, v)))
    assert_equal(attend(q, k, v), expected)
    one_k, one_v = (t[:1, :1].expand(2, 4, 50, 16) for t in (k, v))
    expected = attend(q, one_k.contiguous(), one_v.contiguous())
    assert_equal(attend(q, one_k, one_v), expected)


def test_result_has_the_layout_of_the_query():
    x = F.randn(2, 5, 3, 4).transpose(1, 2)  # (batch, heads, steps, size), heads in rows
    assert attend(x, x, x).transpose(1, 2).is_contiguous()
    y = F.randn(2, 3, 5, 4)
    assert attend(y, y, y).is_contiguous()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: attend(x, x, x.double()), "same dtype"),
        (lambda x: attend(x[0, 0, 0], x, x), "at least 2 dimensional"),
        (lambda x: attend(x, x, x, F.ones(3, 3).long()), "attn_mask dtype"),
    ],
)
def test_wrong_inputs_are_refused(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(F.ones(1, 1, 3, 4))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch has no forward mode for it")
def test_transforms_see_through_attention():
    q, k, v = (F.randn(3, 2, 5, 4, dtype=F.float64) for _ in range(3))
    each = F.stack([attend(a, b, c) for a, b, c in zip(q, k, v, strict=True)])
    assert_close(F.vmap(attend)(q, k, v), each, 1e-12)
    direction = F.randn(3, 2, 5, 4, dtype=F.float64)
    _, slope = F.func.jvp(lambda q: attend(q, k, v, is_causal=True), (q,), (direction,))
    step = 1e-6
    ahead, behind = (attend(q + s * direction, k, v, is_causal=True) for s in (step, -step))
    assert_close(slope, (ahead - behind) / (2 * step), 1e-6, 1e-7)


def test_backends_are_accepted():
    backend = nn.attention.SDPBackend
    x = F.randn(1, 1, 3, 4)
    expected = attend(x, x, x)
    for chosen in (backend.MATH, [backend.FLASH_ATTENTION, backend.EFFICIENT_ATTENTION]):
        with nn.attention.sdpa_kernel(chosen):
            assert_close(attend(x, x, x), expected, 1e-6, 1e-6)


# ---- several heads


def test_weights_are_rows_of_probabilities():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = F.randn(3, 5, 8)
    out, weights = layer(x, x, x)
    assert out.shape == (3, 5, 8)
    assert_close(weights.sum(-1), F.ones(3, 5), 1e-5)
    _, each = layer(x, x, x, average_attn_weights=False)
    assert each.shape == (3, 2, 5, 5)
    assert_close(each.mean(1), weights, 1e-5, 1e-6)
    without, none = layer(x, x, x, need_weights=False)
    assert none is None
    assert_close(without, out, 1e-5, 1e-5)


def test_causal_hint_needs_its_mask_and_changes_nothing():
    layer = nn.MultiheadAttention(8, 2)
    x = F.randn(5, 3, 8)
    hidden = F.ones(5, 5, dtype=F.bool).triu(1)
    masked, _ = layer(x, x, x, attn_mask=hidden, need_weights=False)
    hinted, _ = layer(x, x, x, attn_mask=hidden, need_weights=False, is_causal=True)
    assert_close(hinted, masked, 1e-5, 1e-6)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        layer(x, x, x, is_causal=True)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"query": F.ones(3, 2, 7)}, AssertionError, "embedding dimension of 8, but got 7"),
        ({"key": F.ones(4, 2, 8)}, AssertionError, "does not match value shape"),
        ({"key_padding_mask": F.zeros(2, 4).bool()}, AssertionError, "key_padded_mask"),
        ({"attn_mask": F.zeros(2, 4).bool()}, RuntimeError, "should be \\(3, 3\\)"),
        ({"attn_mask": F.zeros(3, 3).long()}, AssertionError, "only bool and floating types"),
        ({"query": F.ones(3, 8)}, AssertionError, "unbatched"),
    ],
)
def test_wrong_shapes_are_explained(change, error, words):
    layer = nn.MultiheadAttention(8, 2)
    given = {"query": F.ones(3, 2, 8), "key": F.ones(3, 2, 8), "value": F.ones(3, 2, 8)} | change
    with pytest.raises(error, match=words):
        layer(**given)


def test_sizes_must_fit_the_heads():
    with pytest.raises(AssertionError, match="divisible by num_heads"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(ValueError, match="must be greater than 0"):
        nn.MultiheadAttention(0, 3)


OPTIONS = [
    {},
    {"batch_first": True},
    {"bias": False, "kdim": 3, "vdim": 5},
    {"add_bias_kv": True, "add_zero_attn": True},
]


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize(
    ("options", "padding", "mask", "weights"),
    [*itertools.product(OPTIONS, [False, True], ["none", "bool", "of heads"], [False, True])],
)
def test_training_equals_pytorch(options, padding, mask, weights):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "MultiheadAttention", 8, 2, **options)
    q = torch.randn(4, 3, 8)
    k, v = torch.randn(5, 3, options.get("kdim", 8)), torch.randn(5, 3, options.get("vdim", 8))
    if options.get("batch_first"):
        q, k, v = (t.transpose(0, 1).contiguous() for t in (q, k, v))
    hidden = {"none": None, "bool": torch.rand(4, 5) > 0.6, "of heads": torch.randn(6, 4, 5)}[mask]
    keys = torch.rand(3, 5) > 0.6 if padding else None
    for chosen in (hidden, keys):
        if chosen is not None and chosen.dtype == torch.bool:
            chosen[:, 0] = False
    same_training(
        torch, ours, theirs, q, k, v, key_padding_mask=keys, attn_mask=hidden, need_weights=weights
    )


def test_one_sequence_equals_pytorch():
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "MultiheadAttention", 8, 2)
    x = torch.randn(4, 8)
    y = to_facula(x)
    for mine, other in zip(ours(y, y, y), theirs(x, x, x), strict=True):
        same_values(mine, other)


def test_dropped_weights_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(2, 2, 6, 4) for _ in range(3))
    torch.manual_seed(5)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.4)
    F.manual_seed(5)
    same_values(attend(*map(to_facula, (q, k, v)), dropout_p=0.4), expected)


def test_kernels_of_other_packages_are_kept_by_name():
    attention, calls = F.nn.attention, []

    class Handle:
        def remove(self):
            calls.append("removed")

    assert attention.current_flash_attention_impl() is None
    with pytest.raises(ValueError, match="Unknown flash attention impl 'theirs'"):
        attention.activate_flash_attention_impl("theirs")
    attention.register_flash_attention_impl(
        "theirs", register_fn=lambda: calls.append("made") or Handle()
    )
    assert "theirs" in attention.list_flash_attention_impls()
    attention.activate_flash_attention_impl("theirs")
    assert attention.current_flash_attention_impl() == "theirs"
    attention.restore_flash_attention_impl()
    assert attention.current_flash_attention_impl() is None
    assert calls == ["made", "removed"]
