"""Samples of linear layers, embeddings and attention."""

from __future__ import annotations

from collections.abc import Iterator

from operands import Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()


@named("linear", "ifc")
def linear(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(4, 3), source(5, 3), source(5)))
    yield Sample("without bias", (source(4, 3), source(5, 3)))
    yield Sample("vector", (source(3), source(5, 3), source(5)))
    yield Sample("batches", (source(2, 4, 3), source(5, 3), source(5)))
    yield Sample("vector of weights", (source(4, 3), source(3)))
    yield Sample("vectors", (source(3), source(3)))
    yield Sample(
        "strided",
        (source(4, 3, layout="transposed"), source(5, 3, layout="stepped"), source(5)),
    )
    yield Sample("strided batches", (source(2, 4, 3, layout="transposed"), source(5, 3)))
    yield Sample("no rows", (source(0, 3), source(5, 3), source(5)))
    yield Sample("no features", (source(2, 0), source(5, 0), source(5)))
    if source.dtype == "float32":
        narrow = {"low": -1, "high": 1}
        yield Sample(
            "larger",
            (source(37, 130, **narrow), source(65, 130, **narrow), source(65)),
            smooth=False,
        )


@named("bilinear", "fc")
def bilinear(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(4, 2), source(4, 3), source(5, 2, 3), source(5)))
    yield Sample("without bias", (source(4, 2), source(4, 3), source(5, 2, 3)))
    yield Sample("vector", (source(2), source(3), source(5, 2, 3), source(5)))
    yield Sample("batches", (source(2, 2, 2), source(2, 2, 3), source(1, 2, 3), source(1)))
    yield Sample(
        "strided",
        (
            source(4, 2, layout="transposed"),
            source(4, 3, layout="stepped"),
            source(5, 2, 3, layout="transposed"),
        ),
    )
    yield Sample("no rows", (source(0, 2), source(0, 3), source(5, 2, 3), source(5)))


@named("embedding", "ifc")
def embedding(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(5, 3), source.index(4, below=5)))
    yield Sample("matrix", (source(5, 3), source.index(2, 4, below=5)))
    yield Sample("one", (source(5, 3), source.index(below=5)))
    yield Sample("padding", (source(5, 3), source.positions([2, 1, 2]), 2), smooth=False)
    yield Sample(
        "by frequency", (source(5, 3), source.positions([2, 1, 2]), -1, True), smooth=False
    )
    yield Sample("strided", (source(5, 3, layout="transposed"), source.index(6, below=5)))
    yield Sample("stepped", (source(5, 3, layout="stepped"), source.index(6, below=5)))
    yield Sample("none", (source(5, 3), source.index(0, below=5)))
    yield Sample("no columns", (source(5, 0), source.index(2, below=5)))
    if source.dtype == "float32":
        yield Sample("many", (source(300, 70), source.index(900, below=300)), smooth=False)


@named("embedding_input", "fc")
def embedding_input(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source.index(2, 4, below=5), source(5, 3)))
    yield Sample("padding", (source.positions([2, 1, 2]), source(5, 3), -3), smooth=False)
    yield Sample(
        "by frequency",
        (source.positions([2, 1, 2]), source(5, 3)),
        {"scale_grad_by_freq": True},
        smooth=False,
    )
    yield Sample("strided", (source.index(6, below=5), source(5, 3, layout="transposed")))


@named("embedding_bag_input", "f")
def embedding_bag_input(row: Row, source: Source) -> Iterator[Sample]:
    offsets = source.positions([0, 2, 2, 5])
    for mode in ("sum", "mean", "max"):
        table = source(6, 3, distinct=True)
        yield Sample(f"{mode} of rows", (source.index(3, 4, below=6), table), {"mode": mode})
        yield Sample(f"{mode} of bags", (source.index(9, below=6), table, offsets), {"mode": mode})
        yield Sample(
            f"{mode} without padding",
            (source.index(9, below=6), table, offsets),
            {"mode": mode, "padding_idx": 1},
        )
    last = {"mode": "sum", "include_last_offset": True}
    yield Sample("with an end", (source.index(5, below=6), source(6, 3), offsets), last)
    yield Sample(
        "weighted",
        (source.index(9, below=6), source(6, 3, layout="transposed"), offsets),
        {"mode": "sum", "per_sample_weights": source(9)},
    )


@named("attention", "f")
def attention(row: Row, source: Source) -> Iterator[Sample]:
    def heads(queries: int, keys: int, size: int = 3, width: int = 2, layout: str = "contiguous"):
        return (
            source(2, 2, queries, size, layout=layout),
            source(2, 2, keys, size, layout=layout),
            source(2, 2, keys, width, layout=layout),
        )

    yield Sample("plain", heads(3, 4))
    yield Sample("causal", heads(4, 4), {"is_causal": True})
    yield Sample("causal, more keys", heads(2, 4), {"is_causal": True})
    yield Sample("causal, more queries", heads(4, 2), {"is_causal": True})
    yield Sample("scale", heads(3, 4), {"scale": 0.3})
    yield Sample("added mask", (*heads(3, 4), source(3, 4)))
    yield Sample("added mask of heads", (*heads(3, 4), source(1, 2, 3, 4)))
    seen = [[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]]
    mask = source.of(seen, dtype="bool")
    yield Sample("mask", (*heads(3, 4), mask), smooth=source.dtype == "float64")
    yield Sample("mask, causal", (*heads(3, 4), mask), {"is_causal": True}, smooth=False)
    blind = source.of([[0, 0], [1, 0]], dtype="bool")
    yield Sample("a query that sees nothing", (*heads(2, 2), blind))
    shared = (source(2, 4, 3, 3), source(2, 2, 4, 3), source(2, 2, 4, 2))
    yield Sample("shared keys", shared, {"enable_gqa": True})
    yield Sample("shared keys, causal", shared, {"enable_gqa": True, "is_causal": True})
    yield Sample("two dimensions", (source(3, 2), source(4, 2), source(4, 3)))
    yield Sample("three dimensions", (source(2, 3, 2), source(2, 4, 2), source(2, 4, 3)))
    yield Sample(
        "five dimensions",
        (source(2, 1, 2, 3, 2), source(2, 1, 2, 4, 2), source(2, 1, 2, 4, 3)),
    )
    yield Sample("broadcast", (source(2, 2, 3, 2), source(1, 2, 4, 2), source(2, 1, 4, 3)))
    yield Sample("strided", heads(3, 4, layout="transposed"))
    yield Sample("no queries", heads(0, 4))
    yield Sample("no keys", heads(3, 0))
    if source.dtype == "float32":
        narrow = {"low": -1, "high": 1}
        for name, queries, keys, size in (("blocks", 300, 270, 70), ("few queries", 3, 700, 64)):
            operands = (
                source(1, 2, queries, size, **narrow),
                source(1, 2, keys, size, **narrow),
                source(1, 2, keys, 33, **narrow),
            )
            yield Sample(name, operands, smooth=False)
            yield Sample(f"{name}, causal", operands, {"is_causal": True}, smooth=False)
