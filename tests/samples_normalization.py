"""Samples of normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from operands import Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()


def _last_dims(source: Source, with_bias: bool) -> Iterator[Sample]:
    def parameters(*shape, **layout):
        return tuple(source(*shape, **layout) for _ in range(1 + with_bias))

    yield Sample("rows", (source(3, 5), (5,), *parameters(5)))
    yield Sample("two dimensions", (source(2, 3, 4), (3, 4), *parameters(3, 4)))
    yield Sample("one row", (source(6), (6,), *parameters(6)))
    yield Sample("strided", (source(3, 4, layout="stepped"), (4,), *parameters(4)))
    layout = {"layout": "transposed"}
    yield Sample("transposed", (source(4, 6, **layout), (4, 6), *parameters(4, 6, **layout)))
    yield Sample("no rows", (source(0, 4), (4,), *parameters(4)))
    yield Sample("beyond vectors", (source(3, 137), (137,), *parameters(137)), smooth=False)


@named("layer_norm", "f")
def layer_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield from _last_dims(source, True)
    yield Sample("plain", (source(3, 5), (5,)))
    yield Sample("weight", (source(3, 5), (5,), source(5)))
    yield Sample("bias", (source(3, 5), (5,), None, source(5)))
    yield Sample("eps", (source(3, 5), (5,)), {"eps": 0.5})
    if source.dtype == "float32":
        yield Sample("many", (source(300, 256), (256,), source(256), source(256)), smooth=False)


@named("native_layer_norm", "f", ("float32", "float64"))
def native_layer_norm(row: Row, source: Source) -> Iterator[Sample]:
    for sample in _last_dims(source, True):
        yield Sample(sample.name, (*sample.args, 1e-3), smooth=sample.smooth)


@named("rms_norm", "f")
def rms_norm(row: Row, source: Source) -> Iterator[Sample]:
    for sample in _last_dims(source, False):
        yield Sample(sample.name, (*sample.args, 1e-6), smooth=sample.smooth)
    if source.dtype != "float64":  # the reference takes the eps of float32
        yield Sample("plain", (source(3, 5), (5,)))
    yield Sample("eps", (source(3, 5), (5,)), {"eps": 0.5})


@named("batch_norm", "f", ("float32", "float64"))
def batch_norm(row: Row, source: Source) -> Iterator[Sample]:
    def trained(name, x, *parameters, **options):
        smooth = options.pop("smooth", True)
        return Sample(
            name, (x, None, None, *parameters), {"training": True, **options}, smooth=smooth
        )

    yield trained("matrix", source(5, 3), source(3), source(3))
    yield trained("sequences", source(3, 2, 4), source(2), source(2))
    yield trained("images", source(2, 3, 2, 3), source(3), source(3))
    yield trained("volumes", source(2, 2, 2, 1, 2), source(2), source(2))
    yield trained("plain", source(4, 3))
    yield trained("weight", source(2, 3, 4), source(3))
    yield trained("eps", source(4, 3), eps=0.5)
    yield trained("strided", source(4, 3, layout="stepped"), source(3, layout="stepped"))
    last = {"layout": "channels_last"}
    yield trained("channels last", source(2, 3, 2, 2, **last), source(3), source(3))
    running = (source(3), source(3, low=0.5, high=2))
    yield Sample("evaluation", (source(4, 3), *running, source(3), source(3)))
    yield Sample("evaluation of images", (source(2, 3, 2, 2), *running))
    yield Sample("evaluation, channels last", (source(2, 3, 2, 2, **last), *running, source(3)))
    yield Sample("evaluation, no batch", (source(0, 3), *running))
    if source.dtype == "float32":
        yield trained("many", source(9, 40, 13, 17), source(40), source(40), smooth=False)
        yield trained("few channels", source(3, 2, 150, 150), source(2), source(2), smooth=False)
        yield trained("many, last", source(9, 40, 13, 17, **last), source(40), smooth=False)


@named("native_batch_norm", "f", ("float32", "float64"))
def native_batch_norm(row: Row, source: Source) -> Iterator[Sample]:
    for x in (source(5, 3), source(2, 3, 4), source(4, 3, layout="stepped")):
        arguments = (source(3), source(3), None, None, True, 0.1, 1e-3)
        yield Sample(f"{x.shape}", (x, *arguments))


@named("group_norm", "f")
def group_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("images", (source(2, 4, 2, 3), 2, source(4), source(4)))
    yield Sample("one group", (source(2, 4, 3), 1, source(4), source(4)))
    yield Sample("a group for each", (source(2, 3, 4), 3, source(3), source(3)))
    yield Sample("matrix", (source(3, 4), 2, source(4), source(4)))
    yield Sample("plain", (source(2, 4, 3), 2))
    yield Sample("weight", (source(2, 4, 3), 2, source(4)))
    yield Sample("eps", (source(2, 4, 3), 2), {"eps": 0.5})
    yield Sample("strided", (source(2, 4, 3, layout="stepped"), 2, source(4, layout="stepped")))
    yield Sample("channels last", (source(2, 4, 2, 2, layout="channels_last"), 2, source(4)))


@named("native_group_norm", "f", ("float32", "float64"))
def native_group_norm(row: Row, source: Source) -> Iterator[Sample]:
    """Without gradients: PyTorch also differentiates the moments, which are constants here."""

    def constant(*shape, **layout):
        return replace(source(*shape, **layout), constant=True)

    rest = (constant(4), constant(4), 2, 4, 6, 2, 1e-3)
    yield Sample("images", (constant(2, 4, 2, 3), *rest))
    yield Sample("strided", (constant(2, 4, 6, layout="stepped"), *rest))


@named("instance_norm", "f", ("float32", "float64"))
def instance_norm(row: Row, source: Source) -> Iterator[Sample]:
    both = {"weight": source(3), "bias": source(3)}
    yield Sample("images", (source(2, 3, 2, 3),), both)
    yield Sample("sequences", (source(2, 3, 5),))
    yield Sample("eps", (source(2, 3, 5),), {"eps": 0.5})
    yield Sample("strided", (source(2, 3, 4, layout="stepped"),), both)
    yield Sample(
        "evaluation",
        (source(2, 3, 5), source(3), source(3, low=0.5, high=2)),
        {"use_input_stats": False},
    )


@named("local_response_norm", "f")
def local_response_norm(row: Row, source: Source) -> Iterator[Sample]:
    given = {"alpha": 0.5, "beta": 0.6, "k": 1.5}
    yield Sample("odd", (source(2, 5, 2), 3), given)
    yield Sample("even", (source(2, 5, 2), 2), given)
    yield Sample("wider than the channels", (source(1, 2, 3), 5), given)
    yield Sample("images", (source(2, 3, 2, 2), 3), given)
    yield Sample("defaults", (source(2, 3, 2), 3))
    yield Sample("strided", (source(2, 4, 3, layout="stepped"), 3), given)
