"""Short-time Fourier transforms and window functions."""

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, assert_close

SIGNAL = np.random.default_rng(3).normal(size=(2, 120))


def signal(dtype="float64"):
    return F.from_numpy(SIGNAL.astype(dtype))


def exact(values):
    return F.from_numpy(np.asarray(values))


# ---- stft and istft


@pytest.mark.parametrize("pad_mode", ["reflect", "constant", "replicate", "circular"])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    ("n_fft", "hop", "win_length"), [(16, 4, None), (16, 5, 12), (15, 3, None), (32, 8, 20)]
)
def test_istft_undoes_stft(n_fft, hop, win_length, normalized, pad_mode):
    window = F.hann_window(win_length or n_fft, dtype=F.float64)
    spectra = F.stft(
        signal(),
        n_fft,
        hop,
        win_length,
        window,
        pad_mode=pad_mode,
        normalized=normalized,
        return_complex=True,
    )
    frames = (120 + n_fft // 2 * 2 - n_fft) // hop + 1
    assert spectra.shape == (2, n_fft // 2 + 1, frames)
    back = F.istft(spectra, n_fft, hop, win_length, window, normalized=normalized, length=120)
    # Beyond the middle of the last frame the signal is not covered.
    covered = (frames - 1) * hop
    assert_close(back[:, :covered], signal()[:, :covered], atol=1e-10)


def test_complex_signals():
    z = F.complex(signal()[0], signal()[1])
    window = F.hamming_window(16, dtype=F.float64)
    spectra = F.stft(z, 16, window=window)
    assert spectra.shape == (16, 31)
    back = F.istft(spectra, 16, window=window, onesided=False, return_complex=True, length=120)
    assert_close(back, z, atol=1e-10)


def test_frames_not_centered():
    window = F.ones(8, dtype=F.float64)
    spectra = F.stft(signal(), 8, 8, window=window, center=False, return_complex=True)
    frames = np.fft.rfft(SIGNAL.reshape(2, 15, 8))
    assert_close(spectra, exact(frames.transpose(0, 2, 1)), atol=1e-10)
    assert_close(F.istft(spectra, 8, 8, window=window, center=False), signal(), atol=1e-10)


def test_method_and_parts():
    window = F.hann_window(16, dtype=F.float64)
    spectra = signal().stft(16, window=window, return_complex=True)
    parts = signal().stft(16, window=window, return_complex=False)
    assert_close(F.view_as_complex(parts.contiguous()), spectra)
    assert_close(spectra.istft(16, window=window), signal(), atol=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_signal_without_a_window():
    plain = F.stft(signal(), 16, return_complex=True)
    rectangle = F.stft(signal(), 16, window=F.ones(16, dtype=F.float64), return_complex=True)
    assert_close(plain, rectangle)
    short = F.stft(signal(), 16, win_length=10, return_complex=True)
    rectangle = F.stft(
        signal(), 16, win_length=10, window=F.ones(10, dtype=F.float64), return_complex=True
    )
    assert_close(short, rectangle)
    assert_close(F.istft(plain, 16), signal(), atol=1e-10)


def test_missing_window_and_missing_samples_are_warned_of():
    F.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="window was not provided"):
            spectra = F.stft(signal(), 16, return_complex=True)
        with pytest.warns(UserWarning, match="shorter than the length"):
            longer = F.istft(spectra, 16, window=F.ones(16, dtype=F.float64), length=150)
    finally:
        F.set_warn_always(False)
    assert longer.shape == (2, 150)
    assert longer[:, 130:].abs().max() == 0


def test_gradient_of_a_round_trip_is_the_identity():
    window = F.hann_window(16, dtype=F.float64)
    x = signal().requires_grad_()
    weights = F.from_numpy(np.random.default_rng(4).normal(size=(2, 120)))
    spectra = F.stft(x, 16, window=window, return_complex=True)
    (F.istft(spectra, 16, window=window, length=120) * weights).sum().backward()
    assert_close(x.grad, weights, atol=1e-10)


def test_window_has_a_gradient():
    window = F.hann_window(16, dtype=F.float64, requires_grad=True)
    F.stft(signal(), 16, window=window, return_complex=True).abs().square().sum().backward()
    step, direction = 1e-6, F.arange(16, dtype=F.float64)

    def energy(w):
        return F.stft(signal(), 16, window=w, return_complex=True).abs().square().sum()

    w = window.detach()
    slope = (energy(w + step * direction) - energy(w - step * direction)) / (2 * step)
    assert_close((window.grad * direction).sum(), slope, rtol=1e-6)


W = F.ones(16)
S = F.ones(2, 9, 26, dtype=F.complex64)
X = F.ones(100)
WRONG = [
    ("return_complex", lambda: F.stft(X, 16, window=W)),
    ("1D or 2D", lambda: F.stft(F.ones(2, 3, 100), 16, window=W, return_complex=True)),
    ("hop_length", lambda: F.stft(X, 16, 0, window=W, return_complex=True)),
    ("win_length", lambda: F.stft(X, 16, win_length=17, window=W, return_complex=True)),
    ("win_length", lambda: F.stft(X, 16, win_length=0, window=W, return_complex=True)),
    ("window", lambda: F.stft(X, 16, window=F.ones(8), return_complex=True)),
    ("window", lambda: F.stft(X, 16, window=F.ones(4, 4), return_complex=True)),
    ("n_fft", lambda: F.stft(X, 0, window=W, return_complex=True)),
    ("n_fft", lambda: F.stft(F.ones(5), 16, window=W, center=False, return_complex=True)),
    ("[Pp]adding", lambda: F.stft(F.ones(8), 16, window=W, return_complex=True)),
    ("floating", lambda: F.stft(F.arange(100), 16, window=W, return_complex=True)),
    ("onesided", lambda: F.stft(X.to(F.complex64), 16, window=W, onesided=True)),
    ("onesided", lambda: F.stft(X, 16, window=W.to(F.complex64), onesided=True)),
    ("align", lambda: F.stft(X, 16, window=W, align_to_window=True, return_complex=True)),
    ("Half|half|float16", lambda: F.stft(X.half(), 16, window=W.half(), return_complex=True)),
    ("complex", lambda: F.istft(F.view_as_real(S), 16, window=W)),
    ("dimensions", lambda: F.istft(F.ones(2, 2, 9, 5, dtype=F.complex64), 16, window=W)),
    ("empty", lambda: F.istft(F.ones(0, 9, 5, dtype=F.complex64), 16, window=W)),
    ("n_fft", lambda: F.istft(S, 20, window=F.ones(20))),
    ("n_fft", lambda: F.istft(S, 16, window=W, onesided=False)),
    ("hop_length", lambda: F.istft(S, 16, 0, window=W)),
    ("hop_length", lambda: F.istft(S, 16, 17, window=W)),
    ("win_length", lambda: F.istft(S, 16, win_length=17, window=F.ones(17))),
    ("window", lambda: F.istft(S, 16, window=F.ones(8))),
    ("window overlap", lambda: F.istft(S, 16, window=F.zeros(16))),
    ("onesided", lambda: F.istft(S, 16, window=W, return_complex=True)),
    ("Complex windows", lambda: F.istft(S, 16, window=W.to(F.complex64))),
]


@pytest.mark.parametrize(("words", "call"), WRONG, ids=range(len(WRONG)))
def test_wrong_calls(words, call):
    with pytest.raises(RuntimeError, match=words):
        call()


def test_unknown_padding_is_refused():
    with pytest.raises(NotImplementedError, match="mirror"):
        F.stft(X, 16, window=W, pad_mode="mirror", return_complex=True)


# ---- windows: cosines written out, the rest from their formulas


def cosines(n, period, *a):
    angle = 2 * np.pi * np.arange(n) / period
    return sum((-1) ** k * c * np.cos(k * angle) for k, c in enumerate(a))


def kaiser(n, period, beta):
    x = 2 * np.arange(n) / period - 1
    return np.i0(beta * np.sqrt(np.maximum(0, 1 - x**2))) / np.i0(beta)


PERIODIC = {
    "bartlett_window": lambda n, period: 1 - np.abs(2 * np.arange(n) / period - 1),
    "blackman_window": lambda n, period: cosines(n, period, 0.42, 0.5, 0.08),
    "hamming_window": lambda n, period: cosines(n, period, 0.54, 0.46),
    "hann_window": lambda n, period: cosines(n, period, 0.5, 0.5),
    "kaiser_window": lambda n, period: kaiser(n, period, 12.0),
}


@pytest.mark.parametrize("n", [2, 5, 16])
@pytest.mark.parametrize("name", PERIODIC)
def test_windows(name, n):
    function = getattr(F, name)
    for dtype, tolerance in ((F.float64, 1e-12), (F.float32, 1e-6), (F.float16, 2e-3)):
        expected = exact(PERIODIC[name](n, n))
        actual = function(n, dtype=dtype)
        assert actual.dtype == dtype
        assert_close(actual, expected, rtol=tolerance, atol=tolerance)
    symmetric = function(n, False, dtype=F.float64)
    assert_close(symmetric, exact(PERIODIC[name](n, n - 1)), rtol=1e-12, atol=1e-12)
    assert_close(symmetric.flip(0), symmetric, atol=1e-12)


@pytest.mark.parametrize("name", PERIODIC)
def test_window_arguments(name):
    function = getattr(F, name)
    assert function(0).shape == (0,)
    assert function(1).tolist() == [1.0]
    assert function(4).dtype == F.float32
    assert function(4, requires_grad=True).requires_grad
    assert function(4, device="meta").is_meta
    assert function(4, periodic=False).shape == (4,)
    with pytest.raises(RuntimeError, match="window_length=-1"):
        function(-1)
    with pytest.raises(RuntimeError, match="floating point"):
        function(4, dtype=F.int64)
    with pytest.raises(TypeError, match="window_length"):
        function(2.5)


def test_parameters_of_windows():
    assert_close(
        F.hamming_window(6, True, 0.7, 0.2, dtype=F.float64), exact(cosines(6, 6, 0.7, 0.2))
    )
    assert_close(F.kaiser_window(6, False, 5.0, dtype=F.float64), exact(kaiser(6, 5, 5.0)))


def bell(n, middle, std=1.0):
    return np.exp(-0.5 * ((np.arange(n) - middle) / std) ** 2)


def peak(n, middle, tau=1.0):
    return np.exp(-np.abs(np.arange(n) - middle) / tau)


# name -> (arguments, values for n points with the given period)
SIGNAL_WINDOWS = {
    "bartlett": ({}, PERIODIC["bartlett_window"]),
    "blackman": ({}, PERIODIC["blackman_window"]),
    "cosine": ({}, lambda n, p: np.sin(np.pi * (np.arange(n) + 0.5) / (p + 1))),
    "exponential": ({"tau": 2.5}, lambda n, p: peak(n, p / 2, 2.5)),
    "gaussian": ({"std": 0.9}, lambda n, p: bell(n, p / 2, 0.9)),
    "general_cosine": (
        {"a": [0.4, 0.3, 0.2, 0.1]},
        lambda n, p: cosines(n, p, 0.4, 0.3, 0.2, 0.1),
    ),
    "general_hamming": ({"alpha": 0.6}, lambda n, p: cosines(n, p, 0.6, 0.4)),
    "hamming": ({}, lambda n, p: cosines(n, p, 0.54, 0.46)),
    "hann": ({}, lambda n, p: cosines(n, p, 0.5, 0.5)),
    "kaiser": ({"beta": 8.0}, lambda n, p: kaiser(n, p, 8.0)),
    "nuttall": ({}, lambda n, p: cosines(n, p, 0.3635819, 0.4891775, 0.1365995, 0.0106411)),
}


@pytest.mark.parametrize("name", SIGNAL_WINDOWS)
def test_signal_windows(name):
    function, (arguments, values) = getattr(F.signal.windows, name), SIGNAL_WINDOWS[name]
    for n in (2, 5, 16):
        actual = function(n, **arguments, dtype=F.float64)
        assert_close(actual, exact(values(n, n - 1)), rtol=1e-12, atol=1e-12)
        repeated = function(n, **arguments, sym=False, dtype=F.float64)
        assert_close(repeated, exact(values(n, n)), rtol=1e-12, atol=1e-12)
    assert function(5, **arguments).dtype == F.float32


@pytest.mark.parametrize("name", SIGNAL_WINDOWS)
def test_signal_window_arguments(name):
    function, (arguments, _) = getattr(F.signal.windows, name), SIGNAL_WINDOWS[name]
    assert function(0, **arguments).shape == (0,)
    assert_close(function(1, **arguments), [1.0])
    assert_close(function(1, sym=False, **arguments), [1.0])
    assert function(4, requires_grad=True, **arguments).requires_grad
    assert function(4, layout=F.strided, device="meta", **arguments).is_meta
    with pytest.raises(ValueError, match="M=-1"):
        function(-1, **arguments)
    for dtype in (F.int64, F.float16, F.complex64):
        with pytest.raises(ValueError, match="float32 or float64"):
            function(4, dtype=dtype, **arguments)
    with pytest.raises(ValueError, match="strided"):
        function(4, layout=F.sparse_coo, **arguments)
    with pytest.raises(TypeError):
        function(4, True, **arguments)


def test_signal_window_parameters_are_checked():
    windows = F.signal.windows
    for call, words in (
        (lambda: windows.exponential(5, tau=0.0), "positive"),
        (lambda: windows.exponential(5, center=2.0), "[Cc]enter"),
        (lambda: windows.gaussian(5, std=-1.0), "positive"),
        (lambda: windows.kaiser(5, beta=-1.0), "beta"),
        (lambda: windows.general_cosine(5, a=[]), "empty"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError):
        windows.general_cosine(5, a=0.5)
    with pytest.raises(TypeError):
        windows.general_cosine(5)
    centered = windows.exponential(5, center=1.0, sym=False, dtype=F.float64)
    assert_close(centered, exact(peak(5, 1)))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch has sparse tensors")
def test_layouts_that_an_operator_does_not_make_are_refused_by_name():
    with pytest.raises(ValueError, match=r"ones.*sparse_csr"):
        F.ones(2, 2, layout=F.sparse_csr)
    assert repr(F.sparse_coo) == "facula.sparse_coo"
