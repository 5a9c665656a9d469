"""Samples by name: Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator

from operands import DTYPES, Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead
REAL = (*DTYPES["b"], *DTYPES["i"], "float32", "float64")
COMPLEX = ("complex64", "complex128")
ALL = (*REAL, *COMPLEX)
NORMS = ("backward", "ortho", "forward")


def _line(source: Source) -> Iterator[Sample]:
    """Along one dimension; also as half a spectrum, so no input has one point only."""
    yield Sample("even", (source(6),))
    yield Sample("odd", (source(5),))
    yield Sample("rows", (source(3, 4),))
    yield Sample("columns", (source(4, 3), None, 0))
    yield Sample("in the middle", (source(2, 4, 3), None, -2))
    yield Sample("transposed", (source(3, 4, layout="transposed"),))
    yield Sample("stepped", (source(3, 4, layout="stepped"), None, 0))
    yield Sample("expanded", (source(4, 3, layout="expanded"),), smooth=False)
    yield Sample("cut off", (source(2, 6), 4))
    yield Sample("with zeros behind", (source(2, 3), 7))
    yield Sample("with zeros below", (source(3, 2), 8, 0))
    yield Sample("one point", (source(2, 3), 1))
    yield Sample("radix 8, 4, 3, 5, 7", (source(2, 840),), smooth=False)
    yield Sample("generic radices", (source(2, 13 * 23),), smooth=False)
    yield Sample("a prime", (source(2, 67),), smooth=False)
    yield Sample("many", (source(37, 24),), smooth=False)
    yield Sample("many columns", (source(24, 37), None, 0), smooth=False)
    if source.letter in "fc":
        yield Sample("long", (source(4096),), smooth=False)
    yield Sample("no rows", (source(0, 4), 4))
    for norm in NORMS:
        yield Sample(norm, (source(2, 5),), {"norm": norm})


@named("fft", dtypes=ALL)
def fft(row: Row, source: Source) -> Iterator[Sample]:
    yield from _line(source)
    yield Sample("of one point", (source(3, 1),))


@named("rfft", dtypes=REAL)
def rfft(row: Row, source: Source) -> Iterator[Sample]:
    yield from fft(row, source)


@named("irfft", dtypes=ALL)
def irfft(row: Row, source: Source) -> Iterator[Sample]:
    yield from _line(source)
    yield Sample("an odd result", (source(2, 4), 7))
    yield Sample("of one frequency", (source(2, 1), 1))


def _several(source: Source, two: bool) -> Iterator[Sample]:
    yield Sample("matrix", (source(3, 4),))
    yield Sample("cube", (source(2, 3, 4),))
    yield Sample("transposed", (source(2, 3, 4, layout="transposed"),))
    yield Sample("stepped", (source(2, 4, 3, layout="stepped"),))
    yield Sample("expanded", (source(4, 3, layout="expanded"),), smooth=False)
    yield Sample("sizes", (source(3, 4), (2, 6)))
    yield Sample("sizes that are kept", (source(3, 4), (-1, 5)))
    yield Sample("first and last", (source(2, 3, 4), None, (0, -1)))
    yield Sample("last and first", (source(3, 2, 4), None, (2, 0)))
    yield Sample("one", (source(2, 3, 4), (4,), (1,)))
    yield Sample("odd sizes", (source(5, 7),))
    yield Sample("many", (source(33, 20),), smooth=False)
    yield Sample("no matrices", (source(0, 3, 4), None, (1, 2)))
    for norm in NORMS:
        yield Sample(norm, (source(3, 4),), {"norm": norm})
    if not two:
        yield Sample("vector", (source(6),))
        yield Sample("the last ones", (source(2, 3, 4), (3, 5)))
        yield Sample("all of four", (source(2, 3, 2, 4),))


def _file(name: str, dtypes: tuple[str, ...]) -> None:
    @named(name + "2", dtypes=dtypes)
    def two(row: Row, source: Source) -> Iterator[Sample]:
        yield from _several(source, two=True)

    @named(name + "n", dtypes=dtypes)
    def several(row: Row, source: Source) -> Iterator[Sample]:
        yield from _several(source, two=False)
        if name == "fft":
            yield Sample("none", (source(2, 3), None, ()))
            yield Sample("0-dim", (source(),))


_file("fft", ALL)
_file("rfft", REAL)
_file("irfft", ALL)


@named("fftshift")
def fftshift(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("even", (source(6),))
    yield Sample("odd", (source(5),))
    yield Sample("matrix", (source(3, 4),))
    yield Sample("rows", (source(3, 4), 1))
    yield Sample("two of three", (source(2, 3, 4), (0, -1)))
    yield Sample("transposed", (source(3, 4, layout="transposed"),))
    yield Sample("zero-size", (source(0, 3),))


# ---- short-time transforms


def _window(source: Source, n: int) -> Operand:
    real = {"complex64": "float32", "complex128": "float64"}.get(source.dtype, source.dtype)
    return source(n, dtype=real, domain="positive")


@named("stft", dtypes=("float32", "float64", *COMPLEX))
def stft(row: Row, source: Source) -> Iterator[Sample]:
    def call(name: str, *shape: int, n_fft: int = 8, layout: str = "contiguous", **kwargs):
        window = _window(source, kwargs.get("win_length", n_fft))
        given = {"window": window, "return_complex": True, **kwargs}
        return Sample(name, (source(*shape, layout=layout), n_fft), given)

    yield call("vector", 20)
    yield call("batch", 2, 17)
    yield call("stepped", 2, 17, layout="stepped")
    yield call("odd frames", 20, n_fft=7)
    yield call("apart", 30, hop_length=5)
    yield call("with gaps", 30, hop_length=11)
    yield call("a short window", 20, win_length=5)
    yield call("normalized", 16, normalized=True)
    yield call("in two parts", 16, return_complex=False)
    yield call("both sides", 16, onesided=False)
    yield call("not centered", 2, 20, center=False)
    yield call("not centered, aligned", 20, center=False, align_to_window=True, win_length=5)
    for mode in ("constant", "replicate", "circular"):
        if source.letter == "f":
            yield call(mode, 2, 12, pad_mode=mode)


@named("istft", dtypes=COMPLEX)
def istft(row: Row, source: Source) -> Iterator[Sample]:
    def call(name: str, *shape: int, n_fft: int = 8, layout: str = "contiguous", **kwargs):
        window = _window(source, kwargs.get("win_length", n_fft))
        return Sample(name, (source(*shape, layout=layout), n_fft), {"window": window, **kwargs})

    yield call("one", 5, 4)
    yield call("batch", 2, 5, 4)
    yield call("stepped", 2, 5, 4, layout="stepped")
    yield call("odd frames", 4, 6, n_fft=7)
    yield call("both sides", 8, 4)
    yield call("complex", 8, 4, onesided=False, return_complex=True)
    yield call("apart", 5, 4, hop_length=3)
    yield call("a short window", 5, 6, win_length=5)
    yield call("normalized", 5, 4, normalized=True)
    yield call("not centered", 5, 4, center=False)
    yield call("cut off", 5, 5, length=6)
    yield call("with zeros behind", 5, 3, length=14)
