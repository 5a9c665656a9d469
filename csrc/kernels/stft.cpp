// Short-time Fourier transforms: frames of a signal, a window over each, and one transform of all.
#include <cmath>

#include "autograd/node.h"
#include "cpu/fft.h"
#include "op/elementwise.h"
#include "op/kernels/signal.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/fft.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/signal.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::kernels {

// ---- frames added up where they overlap

Tensor _overlap_add(const Tensor& self, int64_t size, int64_t step) {
  GradGuard off(false);
  if (is_reduced_float(self.dtype()))
    return op::_to_copy(_overlap_add(op::_to_copy(self, DType::Float32), size, step), self.dtype());
  const int64_t frames = self.size(-2);
  Dims lead(self.sizes());
  lead.resize(lead.size() - 2);
  Dims shape = lead;
  shape.push_back(frames ? (frames - 1) * step + size : 0);
  if (self.is_meta() || self.numel() == 0)
    return op::zeros(shape, self.dtype(), std::nullopt, self.device());
  if (frames == 1) step = size;  // it may be far beyond the end
  // Piece r of all frames, as wide as a step, goes to the steps r, r + 1, r + 2, ... of the result:
  // no two of them meet.
  const int64_t pieces = (size + step - 1) / step;
  Dims steps = lead;
  steps.push_back(frames + pieces - 1);
  steps.push_back(step);
  Tensor sum = op::zeros(steps, self.dtype(), std::nullopt, self.device());
  for (int64_t r = 0; r < pieces; ++r) {
    const int64_t width = std::min(step, size - r * step);
    Tensor to = op::slice(op::slice(sum, -2, r, r + frames, 1), -1, 0, width, 1);
    op::add_(to, op::slice(self, -1, r * step, r * step + width, 1));
  }
  Dims flat = lead;
  flat.push_back((frames + pieces - 1) * step);
  sum = op::reshape(sum, flat);
  if (flat.back() == shape.back()) return sum;
  return op::clone(op::slice(sum, -1, 0, shape.back(), 1), MemoryFormat::Contiguous);
}

// ---- padding at both ends of the last dimension

static Tensor padded(const Tensor& t, int64_t n, std::string_view mode) {
  const int64_t length = t.size(-1);
  const auto part = [&](int64_t from, int64_t to) { return op::slice(t, -1, from, to, 1); };
  if (n == 0) return t;
  Tensor left, right;
  Dims shape(t.sizes());
  shape[shape.size() - 1] = n;
  if (mode == "constant") {
    left = right = op::new_zeros(t, shape);
  } else if (mode == "reflect") {
    if (n >= length)
      runtime_error(
          "Padding size should be less than the corresponding input dimension, but got: "
          "n_fft // 2 = ",
          n, " points on both sides of a signal of ", length,
          "; pass a longer signal, a smaller n_fft or another pad_mode");
    left = op::flip(part(1, n + 1), Dims{-1});
    right = op::flip(part(length - n - 1, length - 1), Dims{-1});
  } else if (mode == "replicate") {
    if (length == 0) runtime_error("cannot replicate the ends of an empty signal");
    left = op::expand(part(0, 1), shape);
    right = op::expand(part(length - 1, length), shape);
  } else if (mode == "circular") {
    if (n > length)
      runtime_error("Padding value causes wrapping around more than once: n_fft // 2 = ", n,
                    " points on both sides of a signal of ", length);
    left = part(length - n, length);
    right = part(0, n);
  } else {
    fail(ErrorKind::NotImplemented, "Unrecognised padding mode ", mode,
         "; pad_mode is 'reflect', 'constant', 'replicate' or 'circular'");
  }
  return op::cat(std::vector<Tensor>{left, t, right}, -1);
}

// ---- windows

// In the middle of `size` points, zeros around it.
static Tensor centered(const Tensor& window, int64_t size) {
  const int64_t missing = size - window.size(0), before = missing / 2;
  if (missing == 0) return window;
  return op::cat(std::vector<Tensor>{op::new_zeros(window, Dims{before}), window,
                                     op::new_zeros(window, Dims{missing - before})});
}

static void warn_of_missing_window(const char* reason) {
  if (warn)
    warn(text("A window was not provided. A rectangular window will be applied, ", reason,
              " To suppress this warning, pass window=facula.ones(win_length).")
             .c_str());
}

struct Framing {
  int64_t n_fft, hop, win_length;

  Framing(int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> length)
      : n_fft(n_fft), hop(hop_length.value_or(n_fft / 4)), win_length(length.value_or(n_fft)) {}
};

// Whether an operator on `t` is nothing but its kernel on the host.
static bool is_plain(const Tensor& t) {
  return !(t->keys & ~kKeyGrad) && t.is_cpu() && !(grad_enabled() && requires_grad(t));
}

// The transforms of frames (batch, frames, n), each multiplied by `weights` where they are given.
static Tensor spectra_of(const Tensor& frames, const Tensor& weights, int64_t normalization,
                         bool half) {
  if (weights.defined() && half && frames.numel() > 0 && frames.dtype() == weights.dtype() &&
      is_plain(frames) && is_plain(weights)) {  // without a copy of all frames
    const int64_t n = frames.size(2);
    Tensor out = empty_tensor(Dims{frames.size(0), frames.size(1), n / 2 + 1},
                              to_complex(frames.dtype()), frames.device());
    cpu_fft_real(frames, out, 2, normalization ? 1 / std::sqrt(double(n)) : 1.0,
                 op::contiguous(weights));
    return out;
  }
  const Tensor product = weights.defined() ? frames * weights : frames;
  return product.is_complex() ? op::_fft_c2c(product, Dims{2}, normalization, true)
                              : op::_fft_r2c(product, Dims{2}, normalization, half);
}

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const Tensor& window, bool center,
            std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  const Framing framing(n_fft, hop_length, win_length);
  if (!window.defined())
    warn_of_missing_window(
        "which is known to cause spectral leakage; facula.hann_window and "
        "facula.hamming_window are better choices.");
  if (!self.is_floating() && !self.is_complex())
    runtime_error("expected a tensor of floating point or complex values, got ", self.dtype());
  // A window of float32 takes a signal of half precision with it.
  if (is_reduced_float(self.dtype()) && (!window.defined() || is_reduced_float(window.dtype())))
    runtime_error("Unsupported dtype ", legacy_dtype_name(self.dtype()),
                  "; convert the signal with .float() first");
  if (self.dim() < 1 || self.dim() > 2)
    runtime_error("expected a 1D or 2D tensor, got shape ", self.sizes());
  if (center && align_to_window)
    runtime_error("align_to_window should only be set when center = false");
  const int64_t reach = self.size(-1) + (center ? n_fft / 2 * 2 : 0);
  if (n_fft <= 0 || (!center && n_fft > reach))
    runtime_error("expected 0 < n_fft < ", reach, ", but got n_fft=", n_fft);
  if (framing.hop <= 0) runtime_error("expected hop_length > 0, but got hop_length=", framing.hop);
  if (framing.win_length <= 0 || framing.win_length > n_fft)
    runtime_error("expected 0 < win_length <= n_fft, but got win_length=", framing.win_length,
                  " and n_fft=", n_fft);
  if (window.defined() && (window.dim() != 1 || window.size(0) != framing.win_length))
    runtime_error("expected a 1D window tensor of size equal to win_length=", framing.win_length,
                  ", but got window with size ", window.sizes());
  const bool complex = self.is_complex() || (window.defined() && window.is_complex());
  if (!complex && !return_complex)
    runtime_error(
        "stft requires the return_complex parameter be given for real inputs: return_complex=True "
        "gives a complex tensor, False its real and imaginary parts in a last dimension");
  const bool half = onesided.value_or(!complex);
  if (complex && half) runtime_error("Cannot have onesided output if window or input is complex");

  Tensor signal = self.dim() == 1 ? op::unsqueeze(self, 0) : self;
  if (center) signal = padded(signal, n_fft / 2, pad_mode);
  else if (align_to_window.value_or(false)) {
    // Frames start where the window does, not where the transform does.
    const int64_t missing = n_fft - framing.win_length;
    Dims before(signal.sizes()), after(signal.sizes());
    before[1] = missing / 2;
    after[1] = missing - missing / 2;
    signal = op::cat(
        std::vector<Tensor>{op::new_zeros(signal, before), signal, op::new_zeros(signal, after)},
        1);
  }
  if (n_fft > signal.size(-1))
    runtime_error("expected 0 < n_fft < ", signal.size(-1), ", but got n_fft=", n_fft);
  const Tensor frames = op::unfold(signal, -1, n_fft, framing.hop);  // (batch, frames, n_fft)
  Tensor weights;
  if (window.defined()) weights = centered(window, n_fft);
  else if (framing.win_length < n_fft)
    weights = centered(op::new_ones(signal, Dims{framing.win_length}), n_fft);
  const Tensor out = op::transpose(spectra_of(frames, weights, normalized ? 1 : 0, half), 1, 2);
  const Tensor spectra = self.dim() == 1 ? op::squeeze_dim(out, Dims{0}) : out;
  return return_complex.value_or(true) ? spectra : op::view_as_real(spectra);
}

// The smallest magnitude among the values that a tensor stands for, in all transforms.
static double least_magnitude(Tensor t) {
  GradGuard off(false);
  while (t.is_wrapped()) t = t->wrapper->value;
  return item_of(op::amin(op::abs(t))).to_double();
}

Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const Tensor& window, bool center, bool normalized,
             std::optional<bool> onesided, std::optional<int64_t> length, bool return_complex) {
  const Framing framing(n_fft, hop_length, win_length);
  if (!window.defined())
    warn_of_missing_window("but the inversion is lossless only with the window of stft.");
  if (!self.is_complex())
    runtime_error(
        "requires a complex-valued input tensor matching the output from stft with "
        "return_complex=True, got ",
        self.dtype());
  if (self.dim() != 2 && self.dim() != 3)
    runtime_error(
        "expected a tensor with 2 or 3 dimensions, (batch,) frequencies and frames, but "
        "got shape ",
        self.sizes());
  if (self.numel() == 0) runtime_error("input tensor cannot be empty, got shape ", self.sizes());
  const int64_t frequencies = self.size(-2);
  const bool half = onesided.value_or(frequencies != n_fft);
  if (half && frequencies != n_fft / 2 + 1)
    runtime_error("expected the frequency dimension of the input tensor to match n_fft / 2 + 1 = ",
                  n_fft / 2 + 1, " when onesided=True, but got ", frequencies);
  if (!half && frequencies != n_fft)
    runtime_error("expected the frequency dimension of the input tensor to match n_fft = ", n_fft,
                  " when onesided=False, but got ", frequencies);
  if (framing.hop <= 0 || framing.hop > framing.win_length)
    runtime_error("expected 0 < hop_length <= win_length, but got hop_length=", framing.hop,
                  " and win_length=", framing.win_length);
  if (framing.win_length <= 0 || framing.win_length > n_fft)
    runtime_error("expected 0 < win_length <= n_fft, but got win_length=", framing.win_length,
                  " and n_fft=", n_fft);
  if (window.defined() && (window.dim() != 1 || window.size(0) != framing.win_length))
    runtime_error("Invalid window shape. window has to be 1D and length of `win_length`=",
                  framing.win_length, ", but got ", window.sizes());
  if (return_complex && half)
    runtime_error("Cannot have onesided output if window or input is complex");
  if (!return_complex && window.defined() && window.is_complex())
    runtime_error("Complex windows are incompatible with return_complex=False");
  if (length && *length <= 0) runtime_error("length must be positive, but got ", *length);

  const Tensor weights = centered(
      window.defined()
          ? window
          : op::ones(Dims{framing.win_length}, to_real(self.dtype()), std::nullopt, self.device()),
      n_fft);
  Tensor spectra = op::transpose(self.dim() == 2 ? op::unsqueeze(self, 0) : self, 1, 2);
  const int64_t normalization = normalized ? 1 : 2, frames = spectra.size(1);
  Tensor signals;
  if (return_complex) {
    signals = op::_fft_c2c(spectra, Dims{2}, normalization, false);
  } else {
    if (!half) spectra = op::slice(spectra, 2, 0, n_fft / 2 + 1, 1);  // the rest is its conjugate
    signals = op::_fft_c2r(spectra, Dims{2}, normalization, n_fft);
  }
  // Each sample comes from several frames: their windowed sum over the sum of the squared windows.
  Tensor sum = op::_overlap_add(signals * weights, n_fft, framing.hop);
  Tensor envelope = op::_overlap_add(
      op::expand(op::unsqueeze(weights * weights, 0), Dims{frames, n_fft}), n_fft, framing.hop);

  const int64_t total = sum.size(-1), start = center ? n_fft / 2 : 0;
  const int64_t end = length ? start + *length : center ? total - n_fft / 2 : total;
  if (start >= std::min(end, total))
    runtime_error("no samples are left of ", frames, " frames of ", n_fft,
                  " points once the padding of center=True is cut off");
  sum = op::slice(sum, -1, start, end, 1);
  envelope = op::slice(envelope, -1, start, end, 1);
  if (!envelope.is_meta() && least_magnitude(envelope) <= 1e-11)
    runtime_error("window overlap add min: the squared windows add up to ",
                  least_magnitude(envelope),
                  " somewhere, so that the signal there cannot be recovered; check window, "
                  "hop_length and center");
  Tensor out = sum / envelope;
  if (end > total) {
    if (warn)
      warn(
          "The length of signal is shorter than the length parameter. Result is being padded with "
          "zeros in the tail. Please check your center and hop_length settings.");
    out = op::cat(std::vector<Tensor>{out, op::new_zeros(out, Dims{out.size(0), end - total})}, 1);
  }
  return self.dim() == 2 ? op::squeeze_dim(out, Dims{0}) : out;
}

}  // namespace facula::kernels
