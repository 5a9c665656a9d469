"""Discrete Fourier transforms: every kind of length, layouts, norms, promotion, errors, threads."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from package_under_test import IS_FACULA, F, assert_close

SMALL = [*range(1, 71)]
# Powers, mixed radices, products of larger primes, primes, and lengths that take two steps.
LARGER = [
    *(81, 96, 97, 100, 125, 127, 128, 169, 200, 243, 251, 256, 299, 343, 360, 400, 512, 961),
    *(1000, 1009, 1018, 1021, 1024, 1155, 1517, 2048, 2187, 2310, 4096, 5003, 6561, 8192, 10000),
]
LONG = [65536, 65537, 2 * 3**10, 100_000, 2**17]
PRECISIONS = [("float32", "complex64"), ("float64", "complex128")]


def numbers(*shape, dtype, seed=0):
    random = np.random.default_rng(seed + sum(shape))
    if dtype.startswith("complex"):
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    return random.normal(size=shape).astype(dtype)


def array(tensor):
    return tensor.resolve_conj().numpy()


def assert_near(actual, expected, dtype, n):
    """The root of the mean square error, of all and of the worst row, in units of rounding."""
    eps = float(np.finfo(dtype).eps)
    got, wanted = array(actual), np.asarray(expected)
    assert got.shape == wanted.shape
    assert got.dtype == np.dtype(dtype)
    error = np.sqrt(np.mean(np.abs(got - wanted) ** 2))
    size = np.sqrt(np.mean(np.abs(wanted) ** 2))
    assert error <= eps * (2 + math.log2(n)) * size, f"{error / size / eps} units"
    assert np.abs(got - wanted).max() <= 20 * eps * (2 + math.log2(n)) * size


@pytest.mark.parametrize(("real", "complex_"), PRECISIONS)
@pytest.mark.parametrize("batch", [(), (1,), (3,), (37,)], ids=["one", "row", "few", "many"])
@pytest.mark.parametrize("lengths", [SMALL, LARGER], ids=["small", "larger"])
def test_lengths(lengths, batch, real, complex_):
    """Many short transforms go side by side through vectors, single ones in two steps."""
    for n in lengths:
        z, x = numbers(*batch, n, dtype=complex_), numbers(*batch, n, dtype=real)
        half = np.fft.rfft(x.astype("float64")).astype(complex_)
        wide = z.astype("complex128")
        assert_near(F.fft.fft(F.from_numpy(z)), np.fft.fft(wide), complex_, n)
        assert_near(F.fft.ifft(F.from_numpy(z)), np.fft.ifft(wide), complex_, n)
        assert_near(F.fft.rfft(F.from_numpy(x)), np.fft.rfft(x.astype("float64")), complex_, n)
        assert_near(F.fft.fft(F.from_numpy(x)), np.fft.fft(x.astype("float64")), complex_, n)
        back = F.fft.irfft(F.from_numpy(half), n)
        assert_near(back, np.fft.irfft(half.astype("complex128"), n), real, n)


@pytest.mark.parametrize(("real", "complex_"), PRECISIONS)
@pytest.mark.parametrize("n", LONG)
def test_long_lengths(n, real, complex_):
    z, x = numbers(n, dtype=complex_), numbers(2, n, dtype=real)
    assert_near(F.fft.fft(F.from_numpy(z)), np.fft.fft(z.astype("complex128")), complex_, n)
    spectrum = F.fft.rfft(F.from_numpy(x))
    assert_near(spectrum, np.fft.rfft(x.astype("float64")), complex_, n)
    assert_near(F.fft.irfft(spectrum, n), x.astype("float64"), real, n)


@pytest.mark.parametrize("n", [6, 16, 31, 60, 300, 1009, 4096, 65536])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
def test_strided_inputs_give_what_copies_give(n, dtype):
    """Along rows and columns of transposed, stepped and repeated memory."""
    x = F.from_numpy(numbers(3, n, 5, dtype=dtype))
    wide = F.from_numpy(numbers(3, 2 * n, 10, dtype=dtype))
    variants = [
        x,
        x.permute(2, 1, 0),
        x.transpose(0, 1).contiguous().transpose(0, 1),
        wide[:, ::2, 1::2],
        x[1:2].expand(3, n, 5),
        x[:, :, :1].expand(3, n, 5),
    ]
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    for v in variants:
        copy = v.contiguous().clone()
        for function in (F.fft.fft, F.fft.ifft, F.fft.irfft, F.fft.hfft):
            assert_close(function(v, dim=1), function(copy, dim=1), tolerance, tolerance)
        if not dtype.startswith("complex"):
            for function in (F.fft.rfft, F.fft.ihfft):
                assert_close(function(v, dim=1), function(copy, dim=1), tolerance, tolerance)


def test_one_repeated_number():
    """A stride of 0 along the transformed dimension."""
    for n in (5, 8, 64):
        x = F.tensor(2.0).expand(3, n)
        spectrum = F.fft.rfft(x)
        assert_close(spectrum[:, 0], [2.0 * n + 0j] * 3)
        assert float(spectrum[:, 1:].abs().max()) < 1e-5
        assert_close(F.fft.fftn(x), F.fft.fftn(x.contiguous()))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("shape", [(7,), (4, 6), (3, 5, 4), (2, 3, 4, 5)])
def test_round_trips(shape, norm):
    x = F.from_numpy(numbers(*shape, dtype="float64"))
    z = F.from_numpy(numbers(*shape, dtype="complex128"))
    n = shape[-1]
    assert_close(F.fft.ifft(F.fft.fft(z, norm=norm), norm=norm), z)
    assert_close(F.fft.irfft(F.fft.rfft(x, norm=norm), n, norm=norm), x)
    assert_close(F.fft.hfft(F.fft.ihfft(x, norm=norm), n, norm=norm), x)
    assert_close(F.fft.ifftn(F.fft.fftn(z, norm=norm), norm=norm), z)
    assert_close(F.fft.irfftn(F.fft.rfftn(x, norm=norm), shape, norm=norm), x)
    assert_close(F.fft.hfftn(F.fft.ihfftn(x, norm=norm), shape, norm=norm), x)
    if len(shape) > 1:
        last = shape[-2:]
        assert_close(F.fft.ifft2(F.fft.fft2(z, norm=norm), norm=norm), z)
        assert_close(F.fft.irfft2(F.fft.rfft2(x, norm=norm), last, norm=norm), x)
        assert_close(F.fft.hfft2(F.fft.ihfft2(x, norm=norm), last, norm=norm), x)


@st.composite
def calls(draw):
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    count = draw(st.integers(1, len(shape)))
    dims = tuple(draw(st.permutations(range(len(shape))))[:count])
    sizes = tuple(draw(st.integers(1, 12)) for _ in dims) if draw(st.booleans()) else None
    signs = [draw(st.booleans()) for _ in dims]
    given_dims = tuple(d - len(shape) if s else d for d, s in zip(dims, signs, strict=True))
    norm = draw(st.sampled_from([None, "backward", "ortho", "forward"]))
    order = tuple(draw(st.permutations(range(len(shape)))))
    return shape, given_dims, sizes, norm, order


@settings(max_examples=150, deadline=None)
@given(calls(), st.integers(0, 1000))
def test_several_dimensions_agree_with_numpy(call, seed):
    shape, dims, sizes, norm, order = call

    def pair(dtype):
        """The same numbers as a tensor and as an array, laid out in a random order."""
        stored = numbers(*[shape[d] for d in order], dtype=dtype, seed=seed)
        back = np.argsort(order)
        return F.from_numpy(stored).permute(*back.tolist()), stored.transpose(back)

    z, z_array = pair("complex128")
    x, x_array = pair("float64")
    s = sizes or [shape[d] for d in dims]
    assert_close(F.fft.fftn(z, sizes, dims, norm), np.fft.fftn(z_array, s, dims, norm).tolist())
    assert_close(F.fft.ifftn(z, sizes, dims, norm), np.fft.ifftn(z_array, s, dims, norm).tolist())
    assert_close(F.fft.fftn(x, sizes, dims, norm), np.fft.fftn(x_array, s, dims, norm).tolist())
    assert_close(F.fft.rfftn(x, sizes, dims, norm), np.fft.rfftn(x_array, s, dims, norm).tolist())
    if sizes is not None:
        expected = np.fft.irfftn(z_array, sizes, dims, norm)
        assert_close(F.fft.irfftn(z, sizes, dims, norm), expected.tolist())


# ---- numbers that are not


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("n", [8, 30, 101, 1024])
def test_a_bad_row_does_not_reach_its_neighbours(n, bad):
    """Transforms that share vectors share nothing else."""
    for dtype in ("float64", "complex128"):
        x = numbers(21, n, dtype=dtype)
        x[4, n // 2] = bad
        functions = [F.fft.fft, F.fft.ifft, F.fft.irfft]
        functions += [F.fft.rfft] if dtype == "float64" else []
        for function in functions:
            result = function(F.from_numpy(x))
            finite = F.isfinite(result).all(dim=1).tolist()
            assert finite == [row != 4 for row in range(21)]


def test_spectra_of_real_numbers_have_real_ends():
    for n in (2, 6, 16, 50, 1000, 4096, 65536):
        spectrum = F.fft.rfft(F.from_numpy(numbers(3, n, dtype="float32")))
        assert spectrum[:, 0].imag.tolist() == [0.0] * 3
        assert spectrum[:, -1].imag.tolist() == [0.0] * 3


@pytest.mark.parametrize("n", [1, 2, 5, 6, 16, 33, 64, 1000, 4096])
def test_imaginary_parts_that_cannot_be_are_not_read(n):
    half = numbers(3, n // 2 + 1, dtype="complex128")
    expected = F.fft.irfft(F.from_numpy(half.copy()), n)
    half[:, 0] += 5j
    if n % 2 == 0:
        half[:, -1] -= 3j
    assert_close(F.fft.irfft(F.from_numpy(half), n), expected)


def test_inputs_are_left_alone():
    for n in (8, 101, 4096):
        z = F.from_numpy(numbers(3, n, dtype="complex64"))
        before = z.clone()
        F.fft.fft(z)
        F.fft.fftn(z)
        F.fft.irfft(z, n)
        F.fft.irfftn(z)
        assert (z == before).all()


# ---- dtypes


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_integers_become_the_default_float(dtype):
    x = F.tensor([0, 1, 1, 0, 1]).to(getattr(F, dtype))
    assert F.fft.fft(x).dtype == F.complex64
    assert F.fft.irfft(x).dtype == F.float32
    F.set_default_dtype(F.float64)
    try:
        assert F.fft.rfft(x).dtype == F.complex128
        assert F.fft.hfft(x).dtype == F.float64
        assert F.fft.fftfreq(4).dtype == F.float64
    finally:
        F.set_default_dtype(F.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_refused(dtype):
    x = F.ones(4, 4, dtype=getattr(F, dtype))
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "fftn", "rfftn"):
        with pytest.raises(RuntimeError, match="Unsupported dtype"):
            getattr(F.fft, name)(x)


def test_result_of_the_inverse_of_real_numbers_is_a_lazy_conjugate():
    x = F.tensor([1.0, 2.0, 4.0])
    assert F.fft.ifft(x).is_conj()
    assert_close(F.fft.ifft(x), np.fft.ifft([1, 2, 4]).tolist(), atol=1e-6)


# ---- out=


def test_out_receives_the_result():
    x = F.tensor([1.0, 2.0, 4.0, 5.0])
    out = F.empty(0, dtype=F.complex64)
    assert F.fft.fft(x, out=out) is out
    assert_close(out, F.fft.fft(x))
    wide = F.empty(4, dtype=F.complex128)
    assert_close(F.fft.fft(x, out=wide), F.fft.fft(x))
    real = F.empty(4)
    F.fft.irfft(F.fft.rfft(x), out=real)
    assert_close(real, x)
    with pytest.raises(RuntimeError):
        F.fft.fft(x, out=F.empty(4))


# ---- frequencies


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    assert_close(F.fft.fftfreq(n, dtype=F.float64), np.fft.fftfreq(n).tolist())
    assert_close(F.fft.rfftfreq(n, 0.5, dtype=F.float64), np.fft.rfftfreq(n, 0.5).tolist())
    out = F.empty(0, dtype=F.float64)
    assert F.fft.fftfreq(n, d=2.0, out=out) is out
    assert_close(out, np.fft.fftfreq(n, 2.0).tolist())
    assert F.fft.fftfreq(n, requires_grad=True).requires_grad
    assert F.fft.rfftfreq(n, device="meta").shape == (n // 2 + 1,)


def test_frequencies_need_a_floating_point_dtype():
    for function in (F.fft.fftfreq, F.fft.rfftfreq):
        with pytest.raises(RuntimeError, match="floating point"):
            function(4, dtype=F.int64)
    with pytest.raises(RuntimeError):
        F.fft.fftfreq(-1)


def test_shifts_undo_each_other():
    x = F.arange(30).view(5, 6)
    for dim in (None, 0, (0, 1), -1):
        shifted = F.fft.fftshift(x, dim)
        assert F.fft.ifftshift(shifted, dim).tolist() == x.tolist()
    assert F.fft.fftshift(F.arange(5)).tolist() == [3, 4, 0, 1, 2]


# ---- errors

X = [1.0, 2.0, 3.0, 4.0]
WRONG = [
    (RuntimeError, "data points", lambda: F.fft.fft(F.tensor(X), n=0)),
    (RuntimeError, "data points", lambda: F.fft.rfft(F.tensor(X), n=-3)),
    (RuntimeError, "data points", lambda: F.fft.fft(F.ones(3, 0))),
    (RuntimeError, "data points", lambda: F.fft.irfft(F.ones(1))),
    (RuntimeError, "data points", lambda: F.fft.fftn(F.ones(4, 4), s=(2, 0))),
    (RuntimeError, "data points", lambda: F.fft.irfftn(F.ones(4, 1))),
    (RuntimeError, "normalization mode", lambda: F.fft.fft(F.tensor(X), norm="none")),
    (RuntimeError, "normalization mode", lambda: F.fft.ihfft2(F.ones(2, 2), norm="")),
    (IndexError, "Dimension out of range", lambda: F.fft.fft(F.tensor(X), dim=1)),
    (IndexError, "Dimension out of range", lambda: F.fft.fft2(F.tensor(X))),
    (IndexError, "no dimensions", lambda: F.fft.fft(F.tensor(1.0))),
    (IndexError, "no dimensions", lambda: F.fft.rfft(F.tensor(1.0))),
    (RuntimeError, "real", lambda: F.fft.rfft(F.ones(3, dtype=F.complex64))),
    (RuntimeError, "real", lambda: F.fft.ihfft(F.ones(3, dtype=F.complex64))),
    (RuntimeError, "real", lambda: F.fft.rfftn(F.ones(3, 3, dtype=F.complex64))),
    (RuntimeError, "unique", lambda: F.fft.fftn(F.ones(3, 3), dim=(0, -2))),
    (RuntimeError, "same length", lambda: F.fft.fftn(F.ones(3, 3), s=(2,), dim=(0, 1))),
    (RuntimeError, "2 dimensions", lambda: F.fft.fftn(F.ones(3, 3), s=(2, 2, 2))),
    (RuntimeError, "at least one axis", lambda: F.fft.rfftn(F.ones(3, 3), dim=())),
    (RuntimeError, "at least one axis", lambda: F.fft.irfftn(F.ones(3, 3), dim=())),
    (RuntimeError, "at least one axis", lambda: F.fft.hfftn(F.ones(3, 3), dim=())),
    (RuntimeError, "at least one axis", lambda: F.fft.ihfftn(F.ones(3, 3), dim=())),
    (TypeError, "norm", lambda: F.fft.fft(F.tensor(X), norm=2)),
    (TypeError, "'n'", lambda: F.fft.fft(F.tensor(X), 2.5)),
]


@pytest.mark.parametrize(("kind", "words", "call"), WRONG, ids=range(len(WRONG)))
def test_wrong_calls(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_nothing_to_transform():
    assert F.fft.fftn(F.ones(2, 3), dim=()).dtype == F.complex64
    assert F.fft.fftn(F.tensor(2.0)).tolist() == 2
    if IS_FACULA:  # PyTorch's library refuses empty batches
        assert F.fft.fft(F.ones(0, 3)).shape == (0, 3)
        assert F.fft.rfft2(F.ones(0, 3, 4)).shape == (0, 3, 3)
        assert F.fft.irfft(F.ones(0, 3)).shape == (0, 4)


# ---- gradients


def test_gradient_of_real_input_is_real():
    x = F.tensor(X, requires_grad=True)
    F.fft.fft(x).abs().square().sum().backward()
    assert_close(x.grad, [8.0 * v for v in X], rtol=1e-5)  # Parseval: 4 times the squares
    x = F.tensor(X, requires_grad=True)
    F.fft.irfft(F.fft.rfft(x)).mul(F.arange(4.0)).sum().backward()
    assert_close(x.grad, [0.0, 1.0, 2.0, 3.0], atol=1e-6)


def test_half_a_spectrum_counts_twice_in_the_middle():
    for n in (6, 7):
        half = F.ones(n // 2 + 1, dtype=F.complex128, requires_grad=True)
        F.fft.irfft(half, n, norm="forward")[0].backward()
        twice = [1.0] + [2.0] * ((n - 1) // 2) + [1.0] * (n % 2 == 0)
        assert_close(half.grad, [v + 0j for v in twice])


# ---- threads and the cache of plans


@pytest.fixture
def threads():
    before = F.get_num_threads()
    yield F.set_num_threads
    F.set_num_threads(before)


@pytest.mark.skipif(not IS_FACULA, reason="how PyTorch splits work is PyTorch's")
@pytest.mark.parametrize("shape", [(2**17,), (3, 40_000), (500, 300), (64, 1009), (10007,)])
def test_results_do_not_depend_on_the_number_of_threads(shape, threads):
    x = F.from_numpy(numbers(*shape, dtype="float32"))
    threads(1)
    alone = [F.fft.fft(x), F.fft.rfft(x), F.fft.irfft(F.fft.rfft(x), shape[-1])]
    for count in (2, 5):
        threads(count)
        again = [F.fft.fft(x), F.fft.rfft(x), F.fft.irfft(F.fft.rfft(x), shape[-1])]
        for a, b in zip(alone, again, strict=True):
            assert (a == b).all()


def test_batches_of_images(threads):
    """Larger than the cache, so some at a time are transformed; dimensions in any order."""
    z, x = numbers(9, 100, 120, dtype="complex64"), numbers(9, 100, 120, dtype="float32")
    across = F.from_numpy(numbers(100, 9, 120, dtype="complex64"))
    wide = z.astype("complex128")
    for count in (1, 2):
        threads(count)
        assert_near(F.fft.fft2(F.from_numpy(z)), np.fft.fft2(wide), "complex64", 12000)
        assert_near(F.fft.rfft2(F.from_numpy(x)), np.fft.rfft2(x), "complex64", 12000)
        assert_near(
            F.fft.fftn(across, dim=(0, 2)),
            np.fft.fftn(array(across).astype("complex128"), axes=(0, 2)),
            "complex64",
            12000,
        )


@pytest.mark.parametrize("n", range(1, 20))
def test_short_lines_leave_their_neighbours_alone(n):
    """Lines that are shorter than a vector, dense and with gaps between them."""
    z = numbers(21, n + 3, dtype="complex64")
    for lines in (z[:, :n].copy(), z[:, :n]):
        expected = np.fft.fft(lines.astype("complex128"))
        assert_near(F.fft.fft(F.from_numpy(lines)), expected, "complex64", n)
    out = F.zeros(21, n + 3, dtype=F.complex64)
    F.fft.fft(F.from_numpy(z[:, :n].copy()), out=out[:, :n])
    assert (out[:, n:] == 0).all()


@pytest.mark.parametrize("n", [8, 10, 12])
def test_lines_need_not_be_evenly_apart(n):
    """Blocks of lines follow each other at one distance in one case, at several in the other."""
    x = numbers(5, 70, n, dtype="float32")
    expected = np.fft.rfft(x.astype("float64"))
    assert_near(F.fft.rfft(F.from_numpy(x)), expected, "complex64", n)
    assert_near(F.fft.rfft(F.from_numpy(x)[:, 3:60]), expected[:, 3:60], "complex64", n)
    assert_near(F.fft.rfft(F.from_numpy(x)[:, ::2]), expected[:, ::2], "complex64", n)


@pytest.mark.parametrize("n", range(1, 20))
@pytest.mark.parametrize(("real", "complex_"), PRECISIONS)
def test_short_real_lines_leave_their_neighbours_alone(n, real, complex_):
    """Real lines in and out, dense and with gaps between them."""
    x = numbers(37, n + 3, dtype=real)
    half = numbers(37, n // 2 + 3, dtype=complex_)
    few = n // 2 + 1
    for lines, spectra in ((x[:, :n].copy(), half[:, :few].copy()), (x[:, :n], half[:, :few])):
        expected = np.fft.rfft(lines.astype("float64"))
        assert_near(F.fft.rfft(F.from_numpy(lines)), expected, complex_, n)
        expected = np.fft.irfft(spectra.astype("complex128"), n)
        assert_near(F.fft.irfft(F.from_numpy(spectra), n), expected, real, n)
    spectrum = F.zeros(37, few + 2, dtype=getattr(F, complex_))
    F.fft.rfft(F.from_numpy(x[:, :n].copy()), out=spectrum[:, :few])
    assert (spectrum[:, few:] == 0).all()
    out = F.zeros(37, n + 3, dtype=getattr(F, real))
    F.fft.irfft(F.from_numpy(half[:, :few].copy()), n, out=out[:, :n])
    assert (out[:, n:] == 0).all()


def test_plans_are_shared_between_threads():
    """Several threads meet new lengths at the same time, in different orders."""
    lengths = [*range(1, 60), 1024, 1013, 997 * 2, 5000, 2**15, 20011]
    expected = {n: np.fft.fft(numbers(2, n, dtype="complex128")) for n in lengths}
    failures = []

    def work(seed):
        order = np.random.default_rng(seed).permutation(lengths)
        for n in map(int, order):
            result = F.fft.fft(F.from_numpy(numbers(2, n, dtype="complex128")))
            if not np.allclose(result.numpy(), expected[n], rtol=1e-9, atol=1e-9):
                failures.append(n)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def test_more_plans_than_the_cache_holds():
    """Tables of long chirps push each other out; the results stay right."""
    primes = [100003, 100019, 100043, 100049, 100057, 100069, 100103, 100109, 100129, 100151]
    primes += [100153, 100169, 100183, 100189, 100193, 100207, 100213, 100237]
    for n in (*primes, primes[0]):
        x = F.zeros(n, dtype=F.complex128)
        x[1] = 1
        spectrum = F.fft.fft(x)
        for k in (0, 1, n // 3, n - 1):
            angle = -2 * math.pi * k / n
            assert abs(complex(spectrum[k]) - complex(math.cos(angle), math.sin(angle))) < 1e-10


# Prints the largest error over many lengths, in units of rounding; run with every instruction set.
_ERRORS = """
import sys
sys.path[:0] = sys.argv[1:]
import numpy as np
import facula as F
worst = 0
for dtype in ("complex64", "complex128"):
    for n in (1, 2, 3, 7, 8, 11, 30, 64, 97, 128, 169, 480, 1000, 4096):
        for rows in (1, 21):
            random = np.random.default_rng(n)
            z = random.normal(size=(rows, n)) + 1j * random.normal(size=(rows, n))
            z = z.astype(dtype)
            wide = np.fft.fft(z.astype("complex128"))
            for got, wanted in (
                (F.fft.fft(F.from_numpy(z)), wide),
                (F.fft.fft(F.from_numpy(z.T.copy()), dim=0).T, wide),
                (F.fft.rfft(F.from_numpy(z.real.copy())), np.fft.rfft(z.real.astype("float64"))),
                (F.fft.irfft(F.from_numpy(z), n), np.fft.irfft(z.astype("complex128"), n)),
            ):
                error = np.abs(got.resolve_conj().numpy() - wanted).max()
                worst = max(worst, error / np.abs(wanted).max() / np.finfo(dtype).eps)
print(worst)
"""


@pytest.mark.skipif(not IS_FACULA, reason="imports facula")
@pytest.mark.parametrize("isa", ["baseline", "v3", "v4"])
def test_every_instruction_set_is_exact(isa):
    ran = subprocess.run(
        [sys.executable, "-c", _ERRORS, *filter(None, sys.path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "FACULA_ISA": isa},
    )
    assert ran.returncode == 0, ran.stderr[-500:]
    assert float(ran.stdout) < 30
