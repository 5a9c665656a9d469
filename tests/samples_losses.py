"""Samples of losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from operands import Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()

REDUCTIONS = ("none", "sum")
EXACT = ("float32", "float64")


def constant(operand: Operand) -> Operand:
    return replace(operand, constant=True)


def pairs(source: Source, options: dict | None = None, **second) -> Iterator[Sample]:
    """Input and target of one shape, in all layouts and reductions."""
    options = options or {}

    def pair(*shape, **layout):
        return source(*shape, **layout), source(*shape, **layout, **second)

    yield Sample("matrix", pair(3, 4), options)
    for reduction in REDUCTIONS:
        yield Sample(reduction, pair(3, 4), {"reduction": reduction, **options})
    yield Sample("strided", pair(3, 4, layout="stepped"), options)
    yield Sample("transposed", pair(3, 4, layout="transposed"), {"reduction": "none", **options})
    yield Sample("0-dim", pair(), options)
    yield Sample("zero-size", pair(0, 3), {"reduction": "none", **options})
    yield Sample("longer", pair(1031), {"reduction": "none", **options}, smooth=False)


@named("pair", "f")
def pair(row: Row, source: Source) -> Iterator[Sample]:
    yield from pairs(source)


@named("pair_weight", "f")
def pair_weight(row: Row, source: Source) -> Iterator[Sample]:
    yield from pairs(source)
    weight = {"weight": source(3, 4, low=0.5, high=2)}
    yield Sample("weight", (source(3, 4), source(3, 4)), weight)
    yield Sample("weight, sum", (source(3, 4), source(3, 4)), {"reduction": "sum", **weight})


@named("pair_weight_complex", "fc")
def pair_weight_complex(row: Row, source: Source) -> Iterator[Sample]:
    yield from pairs(source)


@named("smooth_l1_loss", "f")
def smooth_l1_loss(row: Row, source: Source) -> Iterator[Sample]:
    yield from pairs(source)
    for beta in (0.0, 0.5, 2.0):
        yield Sample(f"beta={beta}", (source(3, 4), source(3, 4)), {"beta": beta})


@named("huber_loss", "f")
def huber_loss(row: Row, source: Source) -> Iterator[Sample]:
    yield from pairs(source)
    yield Sample("delta", (source(3, 4), source(3, 4)), {"delta": 0.5})
    weight = {"weight": source(3, 4, low=0.5, high=2)}
    yield Sample("weight", (source(3, 4), source(3, 4)), weight)


@named("binary_cross_entropy", "f")
def binary_cross_entropy(row: Row, source: Source) -> Iterator[Sample]:
    source.domain = "probability"
    yield from pairs(source)
    yield Sample("weight", (source(3, 4), source(3, 4), source(4, low=0.5, high=2)))
    yield Sample("certain", (source.of([0.0, 1.0, 0.0]), source.of([0.0, 1.0, 1.0])), smooth=False)


@named("binary_cross_entropy_with_logits", "f")
def binary_cross_entropy_with_logits(row: Row, source: Source) -> Iterator[Sample]:
    yield from pairs(source, domain="probability")
    target = source(3, 4, domain="probability")
    yield Sample("weight", (source(3, 4), target, source(4, low=0.5, high=2)))
    yield Sample("pos_weight", (source(3, 4), target), {"pos_weight": source(4, low=0.5, high=2)})


@named("kl_div", "f")
def kl_div(row: Row, source: Source) -> Iterator[Sample]:
    sums = {"reduction": "sum"}
    yield Sample("sum", (source(3, 4), source(3, 4, domain="probability")), sums)
    yield Sample(
        "batchmean", (source(3, 4), source(3, 4, domain="probability")), {"reduction": "batchmean"}
    )
    yield Sample("none", (source(3, 4), source(3, 4, domain="probability")), {"reduction": "none"})
    yield Sample("log_target", (source(3, 4), source(3, 4)), {"log_target": True, **sums})
    strided = source(3, 4, layout="stepped", domain="probability")
    yield Sample("strided", (source(3, 4, layout="transposed"), strided), sums)


@named("poisson_nll_loss", "f", EXACT)
def poisson_nll_loss(row: Row, source: Source) -> Iterator[Sample]:
    yield from pairs(source, domain="positive")
    x, target = source(3, 4, domain="positive"), source(3, 4, domain="positive")
    yield Sample("log_input=False", (x, target), {"log_input": False})
    counts = constant(source.of([[0.5, 2.0], [3.0, 7.0]]))
    yield Sample("full", (source(2, 2), counts), {"full": True})


@named("gaussian_nll_loss", "f")
def gaussian_nll_loss(row: Row, source: Source) -> Iterator[Sample]:
    def variances(*shape, **layout):
        return source(*shape, domain="positive", **layout)

    yield Sample("matrix", (source(3, 4), source(3, 4), variances(3, 4)))
    yield Sample("full", (source(3, 4), source(3, 4), variances(3, 4)), {"full": True})
    yield Sample("of rows", (source(3, 4), source(3, 4), variances(3)))
    yield Sample("of rows, kept", (source(3, 4), source(3, 4), variances(3, 1)))
    yield Sample("number", (source(3, 4), source(3, 4), 2.0), {"reduction": "none"})
    stepped = {"layout": "stepped"}
    yield Sample("strided", (source(3, 4, **stepped), source(3, 4), variances(3, 4, **stepped)))


def labels(source: Source, *shape, below: int) -> Operand:
    return source.index(*shape, below=below)


@named("cross_entropy", "f")
def cross_entropy(row: Row, source: Source) -> Iterator[Sample]:
    weight = constant(source(4, low=0.5, high=2))

    def target(*shape):
        return labels(source, *shape, below=4)

    some = source.positions([1, -100, 3])
    yield Sample("rows", (source(3, 4), target(3)))
    yield Sample("weight", (source(3, 4), target(3), weight))
    yield Sample("ignored", (source(3, 4), some, weight))
    yield Sample("ignore_index", (source(3, 4), target(3)), {"ignore_index": 1})
    for reduction in REDUCTIONS:
        yield Sample(reduction, (source(3, 4), target(3), weight), {"reduction": reduction})
    smoothing = {"label_smoothing": 0.3}
    yield Sample("smoothing", (source(3, 4), some), smoothing)
    yield Sample("smoothing, weight", (source(3, 4), some, weight), smoothing)
    yield Sample("one sample", (source(4), target()))
    yield Sample("images", (source(2, 4, 2, 3), target(2, 2, 3), weight))
    yield Sample("images, smoothing", (source(2, 4, 2, 3), target(2, 2, 3), weight), smoothing)
    yield Sample("strided", (source(3, 4, layout="stepped"), target(3)))
    yield Sample("no samples", (source(0, 4), target(0)), {"reduction": "sum"})
    yield Sample("many classes", (source(3, 1031), labels(source, 3, below=1031)), smooth=False)
    wide = (source(2, 5, 133), labels(source, 2, 133, below=5))
    yield Sample("many columns", wide, {"reduction": "none"}, smooth=False)
    probable = source(3, 4, domain="probability")
    yield Sample("probabilities", (source(3, 4), probable))
    yield Sample("probabilities, weight", (source(3, 4), probable, weight), smoothing)
    yield Sample("probabilities, none", (source(3, 4), probable), {"reduction": "none"})
    yield Sample(
        "probabilities of images", (source(2, 4, 3), source(2, 4, 3, domain="probability"))
    )
    yield Sample("confident", (source.of([[30.0, 0.0], [0.0, 12.0]]), source.positions([0, 1])))


@named("nll_loss", "f")
def nll_loss(row: Row, source: Source) -> Iterator[Sample]:
    weight = constant(source(4, low=0.5, high=2))
    some = source.positions([1, -100, 3])
    yield Sample("rows", (source(3, 4), labels(source, 3, below=4)))
    yield Sample("weight", (source(3, 4), some, weight))
    for reduction in REDUCTIONS:
        yield Sample(reduction, (source(3, 4), some, weight), {"reduction": reduction})
    yield Sample("one sample", (source(4), labels(source, below=4)))
    yield Sample("images", (source(2, 4, 2, 3), labels(source, 2, 2, 3, below=4), weight))
    yield Sample("strided", (source(3, 4, layout="stepped"), some))
    yield Sample("no samples", (source(0, 4), labels(source, 0, below=4)), {"reduction": "sum"})


@named("multi_margin_loss", "f", EXACT)
def multi_margin_loss(row: Row, source: Source) -> Iterator[Sample]:
    target = labels(source, 3, below=4)
    yield Sample("rows", (source(3, 4), target))
    yield Sample("squares", (source(3, 4), target), {"p": 2, "margin": 0.5})
    weight = constant(source(4, low=0.5, high=2))
    yield Sample("weight", (source(3, 4), target), {"weight": weight})
    yield Sample("none", (source(3, 4), target), {"reduction": "none"})
    yield Sample("one sample", (source(4), labels(source, below=4)))
    yield Sample("strided", (source(3, 4, layout="stepped"), target))


@named("multilabel_margin_loss", "f", EXACT)
def multilabel_margin_loss(row: Row, source: Source) -> Iterator[Sample]:
    target = source.positions([[3, 0, -1, 1], [1, -1, 0, 0], [-1, 1, 2, 3]])
    yield Sample("rows", (source(3, 4), target))
    yield Sample("none", (source(3, 4), target), {"reduction": "none"})
    yield Sample("one sample", (source(4), source.positions([3, 0, -1, 1])))
    yield Sample("strided", (source(3, 4, layout="stepped"), target))


@named("multilabel_soft_margin_loss", "f")
def multilabel_soft_margin_loss(row: Row, source: Source) -> Iterator[Sample]:
    target = source(3, 4, domain="probability")
    yield Sample("rows", (source(3, 4), target))
    yield Sample("weight", (source(3, 4), target, source(4, low=0.5, high=2)))
    yield Sample("none", (source(3, 4), target), {"reduction": "none"})
    yield Sample("strided", (source(3, 4, layout="stepped"), target))


def signs(source: Source, *shape) -> Operand:
    return constant(source.of(np.where(np.arange(np.prod(shape)) % 3, 1.0, -1.0).reshape(shape)))


@named("hinge_embedding_loss", "f")
def hinge_embedding_loss(row: Row, source: Source) -> Iterator[Sample]:
    for reduction in ("mean", *REDUCTIONS):
        yield Sample(reduction, (source(3, 4), signs(source, 3, 4)), {"reduction": reduction})
    yield Sample("margin", (source(3, 4), signs(source, 3, 4), 2.0))
    yield Sample("strided", (source(3, 4, layout="stepped"), signs(source, 3, 4)))


@named("cosine_embedding_loss", "f")
def cosine_embedding_loss(row: Row, source: Source) -> Iterator[Sample]:
    target = signs(source, 3)
    for reduction in ("mean", *REDUCTIONS):
        yield Sample(reduction, (source(3, 4), source(3, 4), target), {"reduction": reduction})
    yield Sample("margin", (source(3, 4), source(3, 4), target, 0.3))
    yield Sample("one pair", (source(4), source(4), constant(source.of(1.0))))
    yield Sample("strided", (source(3, 4, layout="stepped"), source(3, 4), target))


@named("margin_ranking_loss", "f")
def margin_ranking_loss(row: Row, source: Source) -> Iterator[Sample]:
    target = signs(source, 3, 4)
    for reduction in ("mean", *REDUCTIONS):
        yield Sample(reduction, (source(3, 4), source(3, 4), target), {"reduction": reduction})
    yield Sample("margin", (source(3, 4), source(3, 4), target, 0.3))
    yield Sample("strided", (source(3, 4, layout="stepped"), source(3, 4), target))


@named("triplet_margin_loss", "f")
def triplet_margin_loss(row: Row, source: Source) -> Iterator[Sample]:
    def three(margin: float = 1.0, p: float = 2.0, **layout):
        """Where distances differ by about the margin, rounding decides whether a triplet counts."""
        while True:
            drawn = tuple(source(3, 4, **layout) for _ in range(3))
            anchor, positive, negative = (o.values.astype(np.float64) for o in drawn)

            def distance(a, b):
                return np.linalg.norm(a - b, p, axis=-1)

            wide, swapped = distance(anchor, negative), distance(positive, negative)
            corners = [
                wide - swapped,
                *(distance(anchor, positive) + margin - d for d in (wide, swapped)),
            ]
            if np.abs(corners).min() > 0.05:
                return drawn

    yield Sample("rows", three())
    yield Sample("none", three(), {"reduction": "none"})
    yield Sample("margin and order", three(3.0, 1.0), {"margin": 3.0, "p": 1.0})
    yield Sample("swap", three(2.0), {"swap": True, "margin": 2.0})
    yield Sample("strided", three(layout="stepped"))


@named("ctc_loss", "f", EXACT)
def ctc_loss(row: Row, source: Source) -> Iterator[Sample]:
    """The gradient is that of logits before a log_softmax: compared with PyTorch's only."""

    def log_probs(*shape, **layout):
        drawn = source(*shape, **layout)
        values = drawn.values - np.log(np.exp(drawn.values).sum(-1, keepdims=True))
        return replace(drawn, values=values.astype(drawn.dtype))

    two = (source.positions([6, 5]), source.positions([3, 2]))
    table = source.positions([[1, 1, 2], [3, 2, 0]])
    for reduction in ("mean", *REDUCTIONS):
        options = {"reduction": reduction}
        yield Sample(reduction, (log_probs(6, 2, 4), table, *two), options, smooth=False)
    joined = source.positions([1, 1, 2, 3, 2])
    yield Sample("one after the other", (log_probs(6, 2, 4), joined, *two), smooth=False)
    labels_of_blank = source.positions([[0, 0, 2], [1, 2, 0]])
    yield Sample("blank", (log_probs(6, 2, 4), labels_of_blank, *two), {"blank": 3}, smooth=False)
    short = (source.positions([2, 6]), source.positions([3, 0]))
    zeroed = {"zero_infinity": True, "reduction": "none"}
    yield Sample("too short", (log_probs(6, 2, 4), table, *short), zeroed, smooth=False)
    one = (source.positions([1, 2]), source.positions(5), source.positions(2))
    yield Sample("one sequence", (log_probs(5, 3), *one), smooth=False)
    strided = log_probs(6, 2, 4, layout="stepped")
    yield Sample("strided", (strided, table, *two), smooth=False)
