"""Samples of what is done to images: padding, resizing, rearranging, sampling at points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from operands import Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()

REAL = ("float16", "bfloat16", "float32", "float64")
EXACT = ("float32", "float64")  # coordinates in half precision differ by whole pixels
LAST = {"layout": "channels_last"}

# ---- padding


@named("constant_pad_nd")
def constant_pad_nd(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(3), [1, 2]))
    yield Sample("value", (source(2, 3), [1, 0, 0, 2], source.number()))
    yield Sample("one of three dimensions", (source(2, 3, 2), [2, 1]))
    yield Sample("all dimensions", (source(2, 2, 2), [1, 1, 0, 1, 2, 0]))
    yield Sample("cut", (source(4, 5), [-1, -2]))
    yield Sample("cut and padded", (source(4, 5), [-2, 3, 1, -1]))
    yield Sample("nothing", (source(2, 2), [0, 0]))
    yield Sample("no pads", (source(2, 2), []))
    yield Sample("stepped", (source(2, 3, layout="stepped"), [1, 1]))
    yield Sample("channels last", (source(2, 3, 2, 2, **LAST), [1, 1, 0, 2]))
    yield Sample("zero-size", (source(0, 3), [1, 1, 1, 1]))


@named("pad")
def pad(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("constant", (source(2, 3), [1, 2]))
    if source.letter != "c":
        yield Sample("value", (source(2, 3), [1, 2, 0, 1], "constant", source.number()))
    for mode in ("reflect", "replicate", "circular"):
        yield Sample(f"{mode}, line", (source(2, 2, 4), [3, 2], mode))
        yield Sample(f"{mode}, image", (source(2, 2, 4, 3), [2, 1, 0, 3], mode))
        yield Sample(f"{mode}, volume", (source(1, 2, 3, 2, 3), [1, 2, 1, 0, 2, 1], mode))
        yield Sample(f"{mode}, without a batch", (source(2, 4), [1, 3], mode))
        yield Sample(f"{mode}, cut", (source(1, 2, 5, 4), [-1, 2, 1, -2], mode))
        yield Sample(f"{mode}, stepped", (source(2, 2, 4, layout="stepped"), [2, 2], mode))
        yield Sample(f"{mode}, channels last", (source(2, 3, 4, 3, **LAST), [1, 2, 2, 0], mode))
        yield Sample(f"{mode}, empty batch", (source(0, 2, 4), [1, 1], mode))


# ---- sizes


@named("interpolate", dtypes=EXACT)
def interpolate(row: Row, source: Source) -> Iterator[Sample]:
    line, image, volume = source(2, 2, 5), source(2, 2, 4, 5), source(1, 2, 3, 4, 3)
    for align in (False, True):
        text = "aligned" if align else "edges"
        yield Sample(f"line, {text}", (line, [8], "linear", align, []))
        yield Sample(f"line to one, {text}", (line, [1], "linear", align, []))
        yield Sample(f"image, {text}", (image, [7, 3], "linear", align, []))
        yield Sample(f"smaller image, {text}", (source(1, 2, 9, 8), [4, 3], "linear", align, []))
        yield Sample(f"volume, {text}", (volume, [5, 3, 6], "linear", align, []))
        yield Sample(f"cubic, {text}", (image, [9, 7], "cubic", align, []))
        yield Sample(f"smaller cubic, {text}", (source(1, 1, 9, 8), [3, 2], "cubic", align, []))
    yield Sample("cubic of two pixels", (source(1, 1, 2, 1), [5, 3], "cubic", False, []))
    yield Sample("factor", (image, [6, 12], "linear", False, [1.6, 2.5]))
    yield Sample("cubic by a factor", (image, [6, 12], "cubic", False, [1.6, 2.5]))
    for kind in ("linear", "cubic"):
        yield Sample(
            f"{kind} antialias", (source(1, 2, 9, 11), [4, 5], f"{kind} antialias", False, [])
        )
        yield Sample(f"{kind} antialias, larger", (image, [6, 12], f"{kind} antialias", False, []))
        yield Sample(
            f"{kind} antialias, aligned",
            (source(1, 1, 9, 7), [4, 3], f"{kind} antialias", True, []),
        )
    yield Sample("stepped", (source(1, 2, 4, 5, layout="stepped"), [7, 7], "linear", False, []))
    yield Sample("channels last", (source(2, 3, 4, 5, **LAST), [7, 3], "linear", False, []))
    yield Sample("channels last, cubic", (source(1, 3, 4, 5, **LAST), [8, 10], "cubic", False, []))
    yield Sample("same size", (image, [4, 5], "linear", False, []))
    yield Sample("empty batch", (source(0, 2, 4, 5), [8, 8], "linear", False, []))
    if source.dtype == "float32":
        yield Sample("large", (source(2, 3, 37, 41), [80, 95], "linear", False, []), smooth=False)


@named("nearest", "if")
def nearest(row: Row, source: Source) -> Iterator[Sample]:
    for exact in (False, True):
        text = "exact" if exact else "first"
        yield Sample(f"line, {text}", (source(2, 2, 5), [8], exact, []))
        yield Sample(f"image, {text}", (source(2, 2, 4, 5), [8, 3], exact, []))
        yield Sample(f"volume, {text}", (source(1, 2, 3, 4, 3), [5, 2, 6], exact, []))
        yield Sample(f"factor, {text}", (source(1, 2, 4, 5), [6, 12], exact, [1.6, 2.5]))
        yield Sample(f"channels last, {text}", (source(2, 3, 4, 5, **LAST), [8, 7], exact, []))
    yield Sample("stepped", (source(1, 2, 4, 5, layout="stepped"), [7, 7], False, []))
    yield Sample("smaller", (source(1, 2, 9, 7), [3, 3], False, []))


# ---- pixels, channels and patches


@named("pixel_shuffle")
def pixel_shuffle(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("plain", (source(2, 8, 3, 2), 2))
    yield Sample("without a batch", (source(9, 2, 1), 3))
    yield Sample("many dimensions", (source(2, 1, 4, 2, 2), 2))
    yield Sample("one", (source(2, 3, 2, 2), 1))
    yield Sample("stepped", (source(2, 8, 3, 2, layout="stepped"), 2))
    yield Sample("channels last", (source(2, 8, 3, 2, **LAST), 2))
    yield Sample("zero-size", (source(0, 8, 3, 2), 2))


@named("pixel_unshuffle")
def pixel_unshuffle(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("plain", (source(2, 2, 6, 4), 2))
    yield Sample("without a batch", (source(1, 3, 6), 3))
    yield Sample("stepped", (source(2, 2, 4, 6, layout="stepped"), 2))
    yield Sample("channels last", (source(2, 3, 4, 2, **LAST), 2))


@named("channel_shuffle")
def channel_shuffle(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("image", (source(2, 6, 3, 2), 2))
    yield Sample("line", (source(1, 6, 3), 3))
    yield Sample("one group", (source(1, 4, 2, 2), 1))
    yield Sample("stepped", (source(1, 4, 2, 2, layout="stepped"), 2))
    yield Sample("channels last", (source(2, 6, 3, 2, **LAST), 3))


@named("im2col", "bifc")
def im2col(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("plain", (source(2, 2, 4, 5), [2, 3]))
    yield Sample("without a batch", (source(2, 4, 5), 2))
    yield Sample("all options", (source(1, 2, 5, 6), [2, 3], [2, 1], [1, 2], [1, 3]))
    yield Sample("stepped", (source(1, 2, 4, 4, layout="stepped"), 2))
    yield Sample("channels last", (source(2, 3, 4, 4, **LAST), 3, 1, 1, 2))
    yield Sample("empty batch", (source(0, 2, 4, 4), 2))


@named("col2im", "ifc")
def col2im(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("plain", (source(2, 12, 9), [4, 5], [2, 3]))
    yield Sample("without a batch", (source(8, 12), [4, 5], 2))
    yield Sample("all options", (source(1, 12, 15), [5, 6], [2, 3], [2, 1], [1, 2], [1, 3]))
    yield Sample("stepped", (source(1, 8, 9, layout="stepped"), [4, 4], 2))
    yield Sample("empty batch", (source(0, 8, 9), [4, 4], 2))


# ---- points


def _points(source: Source, dims: int) -> Iterator[tuple[str, tuple]]:
    """(name, (input, grid)); coordinates are away from where the result has corners."""
    size = (4, 5, 3)[:dims]
    out = (3, 2, 2)[:dims]

    def grid(batch: int, most: float = 1.0, **layout):
        made = source(batch, *out, dims, low=-most, high=most, **layout)
        return made

    yield "inside", (source(2, 2, *size), grid(2, 0.6))
    yield "outside", (source(2, 2, *size), grid(2, 1.7))
    yield "far outside", (source(1, 1, *size), grid(1, 6.0))
    yield "stepped", (source(1, 2, *size, layout="stepped"), grid(1, 1.3, layout="stepped"))
    yield "one pixel", (source(1, 2, *[1] * dims), grid(1, 1.3))
    yield (
        "many points",
        (source(1, 2, *size), source(1, 9, 11, *[1] * (dims - 2), dims, low=-1, high=1)),
    )


def _samplers(name: str, ranks: tuple[int, ...]) -> None:
    @named(name, dtypes=EXACT)
    def grid_sampler(row: Row, source: Source) -> Iterator[Sample]:
        for dims in ranks:
            for text, tensors in _points(source, dims):
                for mode in (0, 1) if dims == 3 else (0, 1, 2):
                    for padding in (0, 1, 2):
                        yield Sample(
                            f"{text}, {dims}d, {mode}, {padding}",
                            (*tensors, mode, padding, (mode + padding) % 2 == 0),
                            smooth=mode != 1 and text != "one pixel",
                        )


_samplers("grid_sampler", (2, 3))
_samplers("grid_sampler_2d", (2,))
_samplers("grid_sampler_3d", (3,))


@named("grid_sample", dtypes=EXACT)
def grid_sample(row: Row, source: Source) -> Iterator[Sample]:
    for dims in (2, 3):
        tensors = dict(_points(source, dims))
        yield Sample(f"{dims}d", tensors["inside"], {"align_corners": False})
        for padding in ("zeros", "border", "reflection"):
            yield Sample(
                f"{dims}d, {padding}", (*tensors["outside"], "bilinear", padding, dims == 2)
            )
    yield Sample("bicubic", (*tensors_of(source), "bicubic", "zeros", False))
    yield Sample("strided", (*tensors_of(source, layout="stepped"), "bilinear", "zeros", True))


def tensors_of(source: Source, **layout):
    return source(1, 2, 4, 5, **layout), source(1, 3, 2, 2, low=-1.2, high=1.2)


@named("affine_grid_generator", dtypes=REAL)
def affine_grid_generator(row: Row, source: Source) -> Iterator[Sample]:
    for align in (False, True):
        yield Sample(f"image, {align}", (source(2, 2, 3), [2, 3, 4, 5], align))
        yield Sample(f"volume, {align}", (source(1, 3, 4), [1, 2, 2, 3, 4], align))
    yield Sample("one pixel", (source(1, 2, 3), [1, 1, 1, 1], True))
    yield Sample("stepped", (source(2, 2, 3, layout="stepped"), [2, 1, 2, 2], False))


@named("affine_grid", dtypes=REAL)
def affine_grid(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("image", (source(2, 2, 3), [2, 3, 4, 5], False))
    yield Sample("volume", (source(1, 3, 4), [1, 2, 2, 3, 4], True))
    yield Sample("stepped", (source(2, 2, 3, layout="stepped"), [2, 1, 2, 2], False))


# ---- vectors


@named("one_hot", dtypes=("int64",))
def one_hot(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source.index(5, below=4), 4))
    yield Sample("matrix", (source.index(2, 3, below=4), 6))
    yield Sample("number", (source.positions(np.array(2)), 3))
    yield Sample("stepped", (source.index(4, below=3, layout="stepped"), 3))
    yield Sample("none", (source.index(0, below=3), 3))


@named("pairwise_distance", dtypes=(*REAL, "complex64", "complex128"))
def pairwise_distance(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(3, 4), source(3, 4)))
    yield Sample("vector", (source(4), source(4)))
    yield Sample("broadcast", (source(3, 4), source(4)))
    for p in (1.0, 3.0, float("inf")):
        yield Sample(f"p={p}", (source(3, 4), source(3, 4), p))
    yield Sample("keepdim", (source(2, 3, 4), source(3, 4)), {"keepdim": True, "eps": 0.1})
    yield Sample("stepped", (source(3, 4, layout="stepped"), source(3, 4, layout="transposed")))


@named("normalize", dtypes=(*REAL, "complex64", "complex128"))
def normalize(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(3, 4),))
    yield Sample("p", (source(3, 4), 3.0))
    yield Sample("dim", (source(3, 4, 2), 1.0, 2))
    yield Sample("two dims", (source(3, 4, 2), 2.0, [0, 2]))
    yield Sample("eps", (source(3, 4), 2.0, 1, 100.0))
    yield Sample("stepped", (source(3, 4, layout="stepped"),))
    if source.dtype not in ("float16", "bfloat16"):  # eps is zero there
        yield Sample("zeros", (source.of(np.zeros((2, 3))),), smooth=False)
