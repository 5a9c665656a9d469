"""flex_attention, its block masks, and attention within sequences of different lengths."""

import math
import warnings

import pytest

import facula
from facula.nn.attention.flex_attention import (
    AuxOutput,
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)
from facula.nn.attention.varlen import AuxRequest as VarlenRequest
from facula.nn.attention.varlen import varlen_attn, varlen_attn_out

sdpa = facula.nn.functional.scaled_dot_product_attention


def causal(b, h, q, k):
    return q >= k


def tensors(*, batch=2, heads=4, keys_heads=4, queries=10, keys=12, dtype=facula.float64):
    facula.manual_seed(0)
    q = facula.randn(batch, heads, queries, 8, dtype=dtype)
    k = facula.randn(batch, keys_heads, keys, 8, dtype=dtype)
    v = facula.randn(batch, keys_heads, keys, 6, dtype=dtype)
    return q, k, v


def test_without_functions_it_is_plain_attention():
    q, k, v = tensors()
    facula.testing.assert_close(flex_attention(q, k, v), sdpa(q, k, v))
    facula.testing.assert_close(flex_attention(q, k, v, scale=0.3), sdpa(q, k, v, scale=0.3))
    options = {"BLOCK_M": 64}
    facula.testing.assert_close(flex_attention(q, k, v, kernel_options=options), sdpa(q, k, v))


def test_score_function_gets_score_and_places():
    q, k, v = tensors()
    slopes = facula.tensor([0.1, 0.2, 0.3, 0.4], dtype=facula.float64)
    offsets = facula.tensor([1.0, -1.0], dtype=facula.float64)
    result = flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s * offsets[b] + slopes[h] * (i - j)
    )
    distance = facula.arange(10).unsqueeze(1) - facula.arange(12)
    scores = q @ k.mT / math.sqrt(8) * offsets.view(2, 1, 1, 1)
    scores = scores + slopes.view(4, 1, 1) * distance
    facula.testing.assert_close(result, scores.softmax(-1) @ v)


def test_rows_without_a_key_are_zero_and_their_lse_minus_infinity():
    q, k, v = (t.requires_grad_() for t in tensors())
    mask = create_block_mask(lambda b, h, i, j: (i > j) & (i > 3), None, None, 10, 12)
    for score_mod in (None, lambda s, b, h, i, j: s):
        out, lse = flex_attention(q, k, v, score_mod, mask, return_lse=True)
        plain = flex_attention(q, k, v, score_mod, mask)
        facula.testing.assert_close(out, plain)
        assert (out[:, :, :4] == 0).all() and (out[:, :, 4:] != 0).all()
        assert lse[:, :, :4].isneginf().all()
        seen = create_mask(mask.mask_mod, None, None, 10, 12)
        scores = (q @ k.mT / math.sqrt(8)).masked_fill(~seen, -math.inf)
        facula.testing.assert_close(lse, scores.logsumexp(-1))
        grads = facula.autograd.grad(out.sum(), (q, k, v))
        expected = facula.autograd.grad(sdpa(q, k, v, attn_mask=seen).sum(), (q, k, v))
        for grad, other in zip(grads, expected, strict=True):
            facula.testing.assert_close(grad, other)
            assert grad.isfinite().all()


def test_gradients_reach_what_the_score_function_closes_over():
    q, k, v = (
        t.requires_grad_() for t in tensors(batch=1, heads=2, keys_heads=2, queries=3, keys=4)
    )
    bias = facula.randn(2, 3, 4, dtype=facula.float64, requires_grad=True)
    mask = create_block_mask(causal, None, None, 3, 4)

    def attend(q, k, v, bias):
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[h, i, j], mask)

    assert facula.autograd.gradcheck(attend, (q, k, v, bias))
    facula.testing.assert_close(
        attend(q, k, v, bias),
        sdpa(
            q, k, v, attn_mask=bias.masked_fill(~create_mask(causal, 1, 1, 3, 4)[0, 0], -math.inf)
        ),
    )


def test_heads_of_keys_may_serve_groups_of_query_heads():
    q, k, v = tensors(keys_heads=2)
    expected = sdpa(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))
    facula.testing.assert_close(flex_attention(q, k, v, enable_gqa=True), expected)
    result = flex_attention(q, k, v, lambda s, b, h, i, j: s, enable_gqa=True)
    facula.testing.assert_close(result, expected)
    with pytest.raises(ValueError, match="same number of heads"):
        flex_attention(q, k, v)
    with pytest.raises(ValueError, match="multiple of kv heads"):
        flex_attention(q[:, :3], k, v, enable_gqa=True)


def test_halves_have_scores_of_float32():
    q, k, v = tensors(dtype=facula.bfloat16)
    dtypes = []

    def score_mod(s, b, h, i, j):
        dtypes.append(s.dtype)
        return s

    out, lse = flex_attention(q, k, v, score_mod, return_lse=True)
    assert (out.dtype, lse.dtype, dtypes) == (facula.bfloat16, facula.float32, [facula.float32])


def test_auxiliary_outputs():
    q, k, v = tensors()
    _, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True, max_scores=True))
    scores = q @ k.mT / math.sqrt(8)
    facula.testing.assert_close(aux.lse, scores.logsumexp(-1))
    facula.testing.assert_close(aux.max_scores, scores.amax(-1))
    assert flex_attention(q, k, v, return_aux=AuxRequest())[1] == AuxOutput()
    with pytest.raises(ValueError, match="Cannot specify both"):
        flex_attention(q, k, v, return_lse=True, return_aux=AuxRequest())


def test_one_batch_of_keys_serves_many_of_queries_with_a_mask():
    q, k, v = tensors()
    mask = create_block_mask(noop_mask, None, None, 10, 12)
    result = flex_attention(q, k[:1], v[:1], block_mask=mask)
    facula.testing.assert_close(result, sdpa(q, k[:1].expand_as(k), v[:1].expand_as(v)))
    with pytest.raises(ValueError, match="same batch size"):
        flex_attention(q, k[:1], v[:1])


@pytest.mark.parametrize(("queries", "keys", "words"), [(10, 13, "larger"), (9, 12, "smaller")])
def test_masks_of_other_lengths_are_refused(queries, keys, words):
    q, k, v = tensors()
    mask = create_block_mask(causal, None, None, queries, keys)
    with pytest.raises(ValueError, match=f"{words} length"):
        flex_attention(q, k, v, block_mask=mask)


def test_blocks_that_are_not_listed_are_not_seen():
    q, k, v = tensors(queries=4, keys=4)
    counts = facula.tensor([[[1, 1]]], dtype=facula.int32)
    indices = facula.tensor([[[[1, 0], [0, 1]]]], dtype=facula.int32)
    mask = BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=2)
    seen = facula.tensor([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]).bool()
    facula.testing.assert_close(flex_attention(q, k, v, block_mask=mask), sdpa(q, k, v, seen))
    assert mask.q_num_blocks.tolist() == [[[1, 1]]]
    assert mask.q_indices.tolist() == [[[[1, 0], [0, 1]]]]


def test_full_blocks_do_not_ask_the_function():
    q, k, v = tensors(queries=4, keys=4)
    mask = create_block_mask(causal, None, None, 4, 4, BLOCK_SIZE=2)
    mask.mask_mod = lambda b, h, i, j: i == j
    seen = facula.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]]).bool()
    facula.testing.assert_close(flex_attention(q, k, v, block_mask=mask), sdpa(q, k, v, seen))


def test_a_part_of_a_mask_needs_a_function_of_its_own():
    q, k, v = tensors(queries=4, keys=4)
    mask = create_block_mask(causal, None, None, 4, 4, BLOCK_SIZE=2)
    part = mask[0, 0]
    assert part.shape == (1, 1, 4, 4)
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        flex_attention(q, k, v, block_mask=part)
    part.mask_mod = causal
    expected = flex_attention(q, k, v, block_mask=mask)
    facula.testing.assert_close(flex_attention(q, k, v, block_mask=part), expected)
    assert mask[:, :, :1].to_dense().tolist() == [[[[1, 0]]]]
    assert mask[0, 0, -1].to_dense().tolist() == [[[[1, 1]]]]


def test_masks_combine():
    near = lambda b, h, q, k: (q - k).abs() <= 1  # noqa: E731
    both = create_mask(and_masks(causal, near), None, None, 5, 5)
    either = create_mask(or_masks(causal, near), None, None, 5, 5)
    first, second = (create_mask(m, None, None, 5, 5) for m in (causal, near))
    assert both.equal(first & second) and either.equal(first | second)
    assert create_mask(and_masks(), 1, 1, 2, 2).all()
    assert not create_mask(or_masks(), 1, 1, 2, 2).any()
    with pytest.raises(RuntimeError, match="callable mask_mods"):
        or_masks(3)


def test_functions_for_masks_are_checked():
    with pytest.raises(AssertionError, match="4 or 5 positional"):
        create_block_mask(lambda b, h: b, 1, 1, 4, 4)
    with pytest.raises(AssertionError, match=r"must be facula\.bool"):
        create_block_mask(lambda b, h, q, k: q * 1.0, 1, 1, 4, 4)
    with pytest.raises(TypeError):
        create_block_mask(3, 1, 1, 4, 4)


def _masks(torch):
    flex = torch.nn.attention.flex_attention
    table = torch.tensor([3, 5, 1, 0, 2, 2, 4, 7, 0, 1])

    def window(b, h, q, k):
        return ((q - k).abs() <= h) & (k >= b)

    def prefix(b, h, q, k):
        return (k < table[q]) | (q >= k)

    def document(b, h, q, k):
        return table[q] == table[k]

    make = flex.create_block_mask
    yield make(causal, None, None, 300, 300)
    yield make(causal, None, None, 300, 300, separate_full_blocks=False)
    yield make(causal, None, None, 512, 256, BLOCK_SIZE=64)
    yield make(causal, None, None, 100, 94, BLOCK_SIZE=2)
    yield make(window, 2, 3, 10, 9, BLOCK_SIZE=(2, 3))
    yield make(prefix, None, None, 10, 12, BLOCK_SIZE=4)
    yield make(document, None, 1, 10, 10, BLOCK_SIZE=3)
    yield make(window, 2, 3, 10, 9, BLOCK_SIZE=(2, 3))[1, :2]
    yield make(causal, None, None, 64, 64, BLOCK_SIZE=8)[:, :, 2:5]
    yield make(causal, None, None, 64, 64, BLOCK_SIZE=8)._adjust(30, 50)
    counts = torch.tensor([[[1, 2]]], dtype=torch.int32)
    order = torch.tensor([[[[1, 0], [0, 1]]]], dtype=torch.int32)
    yield flex.BlockMask.from_kv_blocks(counts, order, BLOCK_SIZE=64, seq_lengths=(100, 90))
    yield flex.BlockMask.from_kv_blocks(counts, order, compute_q_blocks=False)


def test_block_masks_are_those_of_torch():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.nn.attention.flex_attention")
    for ours, theirs in zip(_masks(facula), _masks(torch), strict=True):
        for name in BlockMask._TENSOR_ATTRS:
            mine, other = getattr(ours, name), getattr(theirs, name)
            assert (mine is None) == (other is None), name
            if mine is not None:
                assert str(mine.dtype).split(".")[1] == str(other.dtype).split(".")[1]
                assert mine.tolist() == other.tolist(), name
        assert (ours.shape, ours.numel(), ours.BLOCK_SIZE) == (
            theirs.shape,
            theirs.numel(),
            theirs.BLOCK_SIZE,
        )
        assert ours.sparsity() == pytest.approx(theirs.sparsity())
        assert ours.to_dense().tolist() == theirs.to_dense().tolist()
        assert str(ours) == str(theirs)
        assert repr(ours).replace("facula", "torch") == repr(theirs).replace(
            "_sliced_mask_mod_error", "_of_a_part"
        )
        for arguments in [(7,), (-1, 2), ((5, 6), 1)]:
            assert ours.to_string(*arguments) == theirs.to_string(*arguments)
        assert len(ours.as_tuple()) == len(theirs.as_tuple())
        assert len(ours.as_tuple(False)) == len(theirs.as_tuple(False))


def _calls(torch, q, k, v):
    flex = torch.nn.attention.flex_attention
    table = torch.linspace(0, 1, 12, dtype=torch.float64)
    document = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    mask = flex.create_block_mask(lambda b, h, i, j: document[i] == document[j], None, None, 10, 12)
    heads = flex.create_block_mask(lambda b, h, i, j: (i - j).abs() <= h + b, 2, 4, 10, 12)

    def soft(s, b, h, i, j):
        return 2 * torch.tanh(s / 2)

    def table_of_places(s, b, h, i, j):
        return torch.where(i >= j, s + table[i] * table[j] - h, -float("inf"))

    for score_mod in (None, soft, table_of_places):
        for block_mask in (None, mask, heads):
            aux = flex.AuxRequest(lse=True)
            yield flex.flex_attention(q, k, v, score_mod, block_mask, return_aux=aux)


def test_results_are_those_of_torch():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.nn.attention.flex_attention")
    torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    mine = tensors()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = list(_calls(torch, *(torch.from_numpy(t.numpy()) for t in mine)))
    for (out, aux), (other, other_aux) in zip(_calls(facula, *mine), theirs, strict=True):
        facula.testing.assert_close(out, facula.from_numpy(other.numpy()))
        facula.testing.assert_close(aux.lse, facula.from_numpy(other_aux.lse.numpy()))


STARTS = facula.tensor([0, 4, 4, 10], dtype=facula.int32)
STARTS_K = facula.tensor([0, 5, 6, 12], dtype=facula.int32)


def varlen_tensors(heads=4):
    facula.manual_seed(0)
    q = facula.randn(10, 4, 8, dtype=facula.float64, requires_grad=True)
    k, v = facula.randn(2, 12, heads, 8, dtype=facula.float64, requires_grad=True)
    return q, k, v


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (2, 0), (1, 1)])
@pytest.mark.parametrize("lse", [False, True])
def test_sequences_attend_to_themselves(window, lse):
    q, k, v = varlen_tensors()
    request = VarlenRequest(lse=True) if lse else None
    result = varlen_attn(q, k, v, STARTS, STARTS_K, 6, 6, window_size=window, return_aux=request)
    out = result[0] if lse else result
    for (a, b), (c, d) in zip([(0, 4), (4, 10)], [(0, 5), (6, 12)], strict=True):
        distance = facula.arange(d - c) - (facula.arange(b - a).unsqueeze(1) + (d - c) - (b - a))
        seen = facula.ones_like(distance).bool()
        if window[0] >= 0:
            seen &= distance >= -window[0]
        if window[1] >= 0:
            seen &= distance <= window[1]
        scores = facula.einsum("qhe,khe->hqk", q[a:b], k[c:d]) / math.sqrt(8)
        scores = scores.masked_fill(~seen, -math.inf)
        expected = facula.einsum("hqk,khe->qhe", scores.softmax(-1), v[c:d])
        facula.testing.assert_close(out[a:b], expected)
        if lse:
            facula.testing.assert_close(result[1][a:b], scores.logsumexp(-1).t())
    out.sum().backward()
    assert q.grad.isfinite().all() and q.grad.ne(0).any()


def test_keys_of_sequences_may_lie_in_pages():
    q, k, v = varlen_tensors(heads=2)
    k, v = k.detach(), v.detach()
    used = facula.tensor([3, 1, 5], dtype=facula.int32)
    expected = varlen_attn(
        q, k, v, STARTS, STARTS_K, 6, 6, seqused_k=used, enable_gqa=True, window_size=(-1, 0)
    )
    pages = facula.zeros(2, 6, 2, 2, 8, dtype=facula.float64)
    table = facula.tensor([[4, 0, 0], [1, 0, 0], [5, 2, 3]], dtype=facula.int32)
    for sequence, (begin, end) in enumerate([(0, 5), (5, 6), (6, 12)]):
        for place in range(min(end - begin, 5)):
            page = table[sequence, place // 2]
            if place < used[sequence]:
                pages[0, page, place % 2] = k[begin + place]
                pages[1, page, place % 2] = v[begin + place]
    options = {"seqused_k": used, "block_table": table, "enable_gqa": True, "window_size": (-1, 0)}
    result = varlen_attn(q, pages[0], pages[1], STARTS, None, 6, 6, **options)
    facula.testing.assert_close(result, expected)
    out = facula.empty_like(q).detach()
    assert varlen_attn_out(out, q.detach(), *pages, STARTS, None, 6, 6, **options) is out
    facula.testing.assert_close(out, expected.detach())
    with pytest.raises(ValueError, match="same number of heads"):
        varlen_attn(q, k, v, STARTS, STARTS_K, 6, 6)
    with pytest.raises(ValueError, match="seqused_k"):
        varlen_attn(q, *pages, STARTS, None, 6, 6, block_table=table, enable_gqa=True)
