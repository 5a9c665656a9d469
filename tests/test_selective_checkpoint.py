"""Checkpoints that keep what a policy chooses."""

import functools
import gc
import weakref
from collections import Counter

import pytest

import facula
from facula import nn
from facula.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

aten = facula.ops.aten


def region(x, w):
    h = x.mm(w).relu()
    h = facula.nn.functional.dropout(h, 0.5)
    return (h.mm(w).sin() * h).exp().sum()


def kernels_of(run):
    """How often each kernel runs."""
    counts = Counter()

    def before(name, args):
        counts[name] += 1

    outer = facula._C._set_kernel_hook(before, lambda results: None, None)
    try:
        run()
    finally:
        facula._C._set_kernel_hook(*outer)
    return counts


def leaves():
    facula.manual_seed(1)
    x = facula.randn(4, 4, dtype=facula.float64, requires_grad=True)
    return x, (facula.randn(4, 4, dtype=facula.float64) * 0.1).requires_grad_()


def gradients(**options):
    x, w = leaves()
    facula.manual_seed(2)
    out = checkpoint(region, x, w, use_reentrant=False, **options) if options else region(x, w)
    out.backward()
    return out.detach(), x.grad, w.grad


@pytest.mark.parametrize(
    "kept",
    [
        [],
        [aten.mm.default],
        [aten.relu.default, aten.exp.default, aten.mul.Tensor],
        lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE,
        lambda ctx, op, *args, **kwargs: op == aten.sin.default,
    ],
)
def test_gradients_are_the_same_whatever_is_kept(kept):
    contexts = functools.partial(create_selective_checkpoint_contexts, kept)
    for got, want in zip(gradients(context_fn=contexts), gradients(), strict=True):
        assert facula.equal(got, want)


def test_what_is_kept_is_not_computed_again():
    x, w = leaves()
    ran = []

    class Slow(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ran.append("slow")
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    asked = []

    def policy(ctx, op, *args):
        asked.append((ctx.is_recompute, str(op)))
        return (
            CheckpointPolicy.MUST_SAVE
            if op == aten.mm.default
            else CheckpointPolicy.PREFER_RECOMPUTE
        )

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    out = checkpoint(
        lambda x, w: Slow.apply(x.mm(w)).sin().sum(), x, w, use_reentrant=False, context_fn=contexts
    )
    mm_saved = [a for a in asked if a == (False, "aten.mm.default")]
    assert len(mm_saved) == 1 and ran == ["slow"]
    out.backward()
    assert ran == ["slow", "slow"] and (True, "aten.mm.default") in asked


def test_kept_results_are_the_very_memory():
    x, w = leaves()
    products = []

    def policy(ctx, op, *args):
        return (
            CheckpointPolicy.MUST_SAVE if op == aten.mm.default else CheckpointPolicy.MUST_RECOMPUTE
        )

    def f(x, w):
        y = x.mm(w)
        products.append(y.data_ptr())
        return y.sin().sum()

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    checkpoint(f, x, w, use_reentrant=False, context_fn=contexts).backward()
    assert len(products) == 2 and products[0] == products[1]


def test_graphs_may_be_retained_and_differentiated_twice():
    x, w = leaves()
    contexts = functools.partial(create_selective_checkpoint_contexts, [aten.mm.default])

    def f(x, w):
        return x.mm(w).sin().sum()

    out = checkpoint(f, x, w, use_reentrant=False, context_fn=contexts)
    (first,) = facula.autograd.grad(out, x, retain_graph=True)
    (second,) = facula.autograd.grad(out, x, create_graph=True)
    assert facula.equal(first, second)
    (twice,) = facula.autograd.grad(second.sum(), x)
    (want,) = facula.autograd.grad(facula.autograd.grad(f(x, w), x, create_graph=True)[0].sum(), x)
    assert facula.allclose(twice, want)


def test_changes_of_what_is_kept_are_noticed():
    def f(x):
        y = x.exp()
        z = y.detach()
        z.add_(1)
        return (y.sin() * 2).sum()

    for allow in (False, True):
        contexts = functools.partial(
            create_selective_checkpoint_contexts, [aten.exp.default], allow
        )
        x = facula.ones(2, requires_grad=True)
        out = checkpoint(f, x, use_reentrant=False, context_fn=contexts)
        if allow:
            continue
        with pytest.raises(RuntimeError, match="changed in place"):
            out.backward()


def test_a_policy_must_answer_and_lists_hold_operators():
    contexts = functools.partial(create_selective_checkpoint_contexts, lambda ctx, op, *a: "yes")
    with pytest.raises(TypeError, match="CheckpointPolicy"):
        checkpoint(
            lambda x: x.sin(), facula.ones(1, requires_grad=True), use_reentrant=False,
            context_fn=contexts,
        )  # fmt: skip
    with pytest.raises(ValueError, match="OpOverload"):
        create_selective_checkpoint_contexts([facula.mm])
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)
    assert facula.ones(1).sin().item() > 0  # nothing watches any more


def test_nothing_is_left_when_the_graph_goes():
    layer = nn.Linear(3, 3)
    contexts = functools.partial(
        create_selective_checkpoint_contexts, lambda ctx, op, *a: CheckpointPolicy.MUST_SAVE
    )
    out = checkpoint(
        lambda x: layer(x).exp(), facula.ones(2, 3), use_reentrant=False, context_fn=contexts
    )
    node = weakref.ref(out.grad_fn)
    del out
    gc.collect()
    assert node() is None


def test_the_hook_sees_kernels_and_not_what_is_made_of_them():
    counts = kernels_of(lambda: facula.linalg.multi_dot([facula.ones(2, 2)] * 3))
    assert counts["mm"] == 2 and "linalg_multi_dot" not in counts
