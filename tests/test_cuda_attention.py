"""Attention on CUDA: the kernels of 16-bit floats and of float32, plain operators for the rest."""

import pytest
from cuda_comparison import close, needs_cuda, random, same_with_gradients
from package_under_test import F

pytestmark = needs_cuda

attention = F.nn.functional.scaled_dot_product_attention


def operands(batch, heads, key_heads, queries, keys, width, value_width, dtype):
    q = random(batch, heads, queries, width, dtype=dtype)
    k = random(batch, key_heads, keys, width, dtype=dtype, seed=1)
    v = random(batch, key_heads, keys, value_width, dtype=dtype, seed=2)
    return q, k, v


def compare(q, k, v, mask=None, **options):
    def run(q, k, v):
        given = None if mask is None else mask.to(q.device)
        return attention(q, k, v, given, **options)

    same_with_gradients(run, q, k, v, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("dtype", [F.bfloat16, F.float16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [16, 32, 64, 72, 128, 256])
def test_attention_of_all_widths(dtype, causal, width):
    compare(*operands(1, 2, 2, 70, 70, width, width, dtype), is_causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "queries, keys", [(1, 1), (1, 200), (200, 1), (65, 130), (130, 65), (256, 256)]
)
def test_attention_of_all_lengths(queries, keys, causal):
    compare(*operands(2, 1, 1, queries, keys, 64, 64, F.bfloat16), is_causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [64, 128])
def test_attention_of_many_tiles(width, causal):
    compare(
        *operands(1, 2, 1, 450, 600, width, width, F.bfloat16), is_causal=causal, enable_gqa=True
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [64, 128])
def test_attention_of_more_tiles_than_multiprocessors(width, causal):
    compare(*operands(3, 16, 16, 590, 300, width, width, F.bfloat16), is_causal=causal)


@pytest.mark.parametrize("width", [64, 96])
def test_keys_that_are_not_there_have_no_weight(width):
    q, k, v = operands(1, 1, 1, 100, 70, width, width, F.bfloat16)
    k = q[:, :, :1].expand(1, 1, 70, width) * -20  # some queries have scores far below 0
    leaves = [t.cuda().requires_grad_() for t in (q * 20, k, v)]
    for grad in F.autograd.grad(attention(*leaves).float().sum(), leaves):
        assert grad.isfinite().all().item()


def test_scale_of_any_sign():
    for scale in (0.5, 0.0, -0.25):
        compare(*operands(1, 2, 2, 70, 140, 64, 64, F.bfloat16), is_causal=True, scale=scale)


def test_attention_with_values_of_another_width_and_odd_widths():
    compare(*operands(1, 2, 2, 33, 40, 24, 40, F.bfloat16))
    compare(*operands(1, 1, 1, 20, 21, 13, 7, F.float16))


def test_heads_share_keys():
    compare(*operands(2, 6, 2, 40, 50, 32, 32, F.bfloat16), enable_gqa=True)
    compare(*operands(1, 4, 1, 70, 70, 64, 64, F.bfloat16), enable_gqa=True, is_causal=True)


@pytest.mark.parametrize(
    "shape", [(70, 80), (2, 1, 70, 80), (2, 3, 1, 80), (1, 3, 70, 80)], ids=str
)
def test_masks(shape):
    q, k, v = operands(2, 3, 3, 70, 80, 64, 64, F.bfloat16)
    F.manual_seed(3)
    compare(q, k, v, F.rand(shape) > 0.3)
    compare(q, k, v, F.randn(shape).bfloat16())


def test_queries_that_see_nothing_give_zeros():
    q, k, v = operands(1, 1, 1, 5, 6, 32, 32, F.bfloat16)
    mask = F.ones(5, 6, dtype=F.bool)
    mask[2] = False
    compare(q, k, v, mask)
    out = attention(q.cuda(), k.cuda(), v.cuda(), mask.cuda())
    assert out[0, 0, 2].abs().sum().item() == 0


def test_rows_of_heads_beside_each_other():
    x = random(2, 33, 3, 4, 32, dtype=F.bfloat16)  # (batch, rows, qkv, heads, width)

    def run(x):
        q, k, v = x.permute(2, 0, 3, 1, 4).unbind(0)
        return attention(q, k, v, is_causal=True)

    same_with_gradients(run, x, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [8, 32, 50, 64, 96, 128, 160])
def test_float32_keeps_its_digits(width, causal):
    for queries, keys in ((1, 1), (17, 19), (130, 65), (200, 300)):
        q, k, v = operands(2, 2, 1, queries, keys, width, width, F.float32)
        same_with_gradients(
            lambda q, k, v: attention(q, k, v, is_causal=causal, enable_gqa=True), q, k, v
        )


def test_float32_with_masks_odd_widths_and_strides():
    q, k, v = operands(2, 3, 3, 70, 80, 40, 40, F.float32)
    F.manual_seed(3)
    for mask in (F.rand(70, 80) > 0.3, F.randn(2, 1, 70, 80)):
        same_with_gradients(lambda q, k, v, m=mask: attention(q, k, v, m.to(q.device)), q, k, v)
    same_with_gradients(attention, *operands(1, 1, 1, 20, 21, 13, 7, F.float32))
    x = random(2, 33, 3, 4, 32)  # (batch, rows, qkv, heads, width)
    same_with_gradients(lambda x: attention(*x.permute(2, 0, 3, 1, 4).unbind(0), is_causal=True), x)


def test_float32_with_infinities():
    q, k, v = operands(1, 1, 1, 4, 5, 8, 8, F.float32)
    v[0, 0, 2, 3] = F.inf
    v[0, 0, 1, 4] = -F.inf
    v[0, 0, 4, 5] = F.nan
    close(attention(q.cuda(), k.cuda(), v.cuda()), attention(q, k, v))


def test_float64_by_plain_operators():
    q, k, v = operands(2, 3, 3, 17, 19, 8, 8, F.float64)
    same_with_gradients(lambda q, k, v: attention(q, k, v), q, k, v)
    same_with_gradients(lambda q, k, v: attention(q, k, v, is_causal=True), q, k, v)


def test_gradients_are_the_same_every_time_if_wanted():
    q, k, v = (t.cuda().requires_grad_() for t in operands(2, 2, 2, 550, 550, 64, 64, F.bfloat16))
    F.use_deterministic_algorithms(True)
    try:
        first = F.autograd.grad(attention(q, k, v, is_causal=True).float().sum(), (q, k, v))
        second = F.autograd.grad(attention(q, k, v, is_causal=True).float().sum(), (q, k, v))
    finally:
        F.use_deterministic_algorithms(False)
    for a, b in zip(first, second, strict=True):
        assert (a == b).all().item()


def test_nothing_to_attend():
    q = F.ones(1, 1, 0, 16, dtype=F.bfloat16).cuda()
    k = F.ones(1, 1, 3, 16, dtype=F.bfloat16).cuda()
    assert attention(q, k, k).shape == (1, 1, 0, 16)
    close(attention(k, q, q), F.zeros(1, 1, 3, 16, dtype=F.bfloat16))
