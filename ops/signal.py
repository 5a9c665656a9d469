"""Short-time Fourier transforms and windows (csrc/kernels/stft.cpp, windows.cpp)."""

from gen.rows import composite, kernel, op

op("_overlap_add(Tensor self, int size, int step) -> Tensor", kernel(), batch="leading", jvp="linear",
   grad="unfold(grad, -1, size, step)", samples="none")
op("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
   "str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None, "
   "bool? align_to_window=None) -> Tensor", composite(), out=False, samples="stft",
   doc="The Fourier transforms of frames of ``n_fft`` points, ``hop_length`` (a quarter of them) apart, each multiplied "
       "by ``window``, which has ``win_length`` points in the middle of the frame. The result has shape (batch, "
       "frequencies, frames). ``center`` pads the signal as ``pad_mode`` says, so that frames are centered on their "
       "points; without it, ``align_to_window`` starts the first frame at its window. ``onesided``, the default for real "
       "signals, gives the frequencies up to half of ``n_fft``; ``normalized`` divides by the root of ``n_fft``; "
       "``return_complex=False`` gives real and imaginary parts in a last dimension.",
   example=">>> signal, window = facula.ones(8), facula.ones(4)\n"
           ">>> facula.stft(signal, 4, 4, window=window, return_complex=True)\n"
           "tensor([[4.+0.j, 4.+0.j, 4.+0.j],\n        [0.+0.j, 0.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j, 0.+0.j]])")
op("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
   "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor", composite(),
   out=False, samples="istft",
   doc="The signal whose ``stft`` is nearest to the input: the frames are transformed back, multiplied by the window, "
       "added up, and divided by the sum of the squared windows. ``length`` cuts off the signal or appends zeros.",
   example=">>> signal, window = facula.arange(8.), facula.hann_window(4)\n"
           ">>> frames = facula.stft(signal, 4, window=window, return_complex=True)\n"
           ">>> facula.istft(frames, 4, window=window)\ntensor([0., 1., 2., 3., 4., 5., 6., 7.])")

_NEW = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"


def _window(name, args, words, shown):
    op(f"{name}_window(int window_length, bool periodic=True{args}, *, {_NEW}) -> Tensor", composite(), method=False, out=False,
       samples="none", doc=f"{words} ``periodic`` leaves out the last point of a symmetric window of one point more.",
       example=f">>> facula.{name}_window(4)\ntensor([{shown}])")


_window("bartlett", "", "The triangle that is 0 at its ends.", "0.0000, 0.5000, 1.0000, 0.5000")
_window("blackman", "", "Blackman's window, of three cosines.", "-1.3878e-17,  3.4000e-01,  1.0000e+00,  3.4000e-01")
_window("hamming", ", float alpha=0.54, float beta=0.46", "Hamming's window, ``alpha - beta * cos``.",
        "0.0800, 0.5400, 1.0000, 0.5400")
_window("hann", "", "Hann's window, half of 1 minus a cosine.", "0.0000, 0.5000, 1.0000, 0.5000")
_window("kaiser", ", float beta=12.0", "Kaiser's window, of the Bessel function I0; it narrows with ``beta``.",
        "5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01")

_KEYWORDS = "bool sym=True, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool requires_grad=False"


def _signal_window(name, args, words, call, shown):
    op(f"signal_windows_{name}(int M, *, {args}{_KEYWORDS}) -> Tensor", composite(), python=f"signal.windows.{name}", method=False,
       out=False, samples="none", doc=f"{words} ``sym=False`` gives a window that can be repeated.",
       example=f">>> facula.signal.windows.{name}({call})\ntensor([{shown}])")


_signal_window("bartlett", "", "The triangle that is 0 at its ends.", "5", "0.0000, 0.5000, 1.0000, 0.5000, 0.0000")
_signal_window("blackman", "", "Blackman's window, of three cosines.", "3", "-1.3878e-17,  1.0000e+00, -1.3878e-17")
_signal_window("cosine", "", "Half a wave of the sine.", "3", "0.5000, 1.0000, 0.5000")
_signal_window("exponential", "float? center=None, float tau=1.0, ", "Decays from ``center`` to both sides, to 1/e at ``tau``.", "3",
               "0.3679, 1.0000, 0.3679")
_signal_window("gaussian", "float std=1.0, ", "The bell of the normal distribution, 1 in the middle.", "3",
               "0.6065, 1.0000, 0.6065")
_signal_window("general_cosine", "float[] a, ", "Cosines of 0, 1, 2 ... periods, ``a`` times each, with alternating signs.",
               "3, a=[0.5, 0.5]", "0., 1., 0.")
_signal_window("general_hamming", "float alpha=0.54, ", "``alpha - (1 - alpha) * cos``.", "3, alpha=0.75",
               "0.5000, 1.0000, 0.5000")
_signal_window("hamming", "", "Hamming's window, ``0.54 - 0.46 * cos``.", "3", "0.0800, 1.0000, 0.0800")
_signal_window("hann", "", "Hann's window, half of 1 minus a cosine.", "3", "0., 1., 0.")
_signal_window("kaiser", "float beta=12.0, ", "Kaiser's window, of the Bessel function I0; it narrows with ``beta``.", "3, beta=5.0",
               "0.0367, 1.0000, 0.0367")
_signal_window("nuttall", "", "Nuttall's window, of four cosines with small side lobes.", "3", "3.6280e-04, 1.0000e+00, 3.6280e-04")
