#include "cpu/fft.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/fft_plan.h"

namespace facula {

namespace {

constexpr int64_t kNumbersPerThread = 4096;  // below that threads cost more than they bring
// Lines of a batch that does not stay in the cache are copied first: reading one after the other is
// what memory is fast at, while lanes read all lines of a block at once.
constexpr int64_t kCopiedLine = 64;
// Half of the third level, as far as it is within a core's reach: some systems report what all dies
// have together.
int64_t cached_bytes() {
  static const int64_t bytes = [] {
#ifdef _SC_LEVEL3_CACHE_SIZE
    const int64_t third_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
    const int64_t third_level = 0;
#endif
    return std::clamp<int64_t>(third_level / 2, 6 << 20, 16 << 20);  // the results take as much
  }();
  return bytes;
}

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : bytes_(size_t(count) * sizeof(T)), p_(static_cast<T*>(host_allocate(bytes_))) {}
  Scratch(const Scratch&) = delete;
  ~Scratch() { host_free(p_, bytes_); }
  T* get() const { return p_; }

 private:
  size_t bytes_;
  T* p_;
};

// ---- one transform, its numbers side by side

template <class T>
void line_in_one_lane(const T* in, T* out, int64_t n, bool inverse, T scale) {
  const auto plan = fft_plan<LanePlan<T>>(n);
  const FftLoops<T>& loops = fft_loops(T());
  Scratch<T> rows((n + 1 + plan->schedule.spare) * 2 * loops.lanes);
  const T* from[kMaxFftLanes];
  std::fill_n(from, kMaxFftLanes, in);
  FftBlock<T> block{};
  block.schedule = &plan->schedule;
  block.rows = rows.get();
  block.in = from;
  block.in_end = in + 2 * n;
  block.out = &out;
  block.count = 1;
  block.in_step = block.out_step = 2;
  block.in_imag = block.out_imag = 1;
  block.inverse = inverse;
  block.scale = scale;
  loops.complex_block(block);
}

template <class T>
void line_in_two_steps(const T* in, T* out, int64_t n, bool inverse, T scale) {
  const auto plan = fft_plan<LongPlan<T>>(n);
  const FftLong<T>& tables = plan->tables;
  const FftLoops<T>& loops = fft_loops(T());
  const int64_t lanes = loops.lanes, n1 = tables.first.length, n2 = tables.second.length,
                column_blocks = (n2 + lanes - 1) / lanes, row_blocks = (n1 + lanes - 1) / lanes;
  Scratch<T> between(row_blocks * lanes * n2 * 2);
  const auto grain = [&](int64_t length) {
    return std::max<int64_t>(1, kNumbersPerThread / (length * lanes));
  };
  parallel_for(0, column_blocks, grain(n1), [&](int64_t b, int64_t e) {
    Scratch<T> rows(n1 * lanes * 2);
    loops.long_columns(tables, in, between.get(), rows.get(), b, e, inverse);
  });
  parallel_for(0, row_blocks, grain(n2), [&](int64_t b, int64_t e) {
    loops.long_rows(tables, between.get(), out, b, e, inverse, scale);
  });
}

template <class T>
void line_by_chirp(const T* in, T* out, int64_t n, bool inverse, T scale) {
  const auto plan = fft_plan<ChirpPlan<T>>(n);
  const FftLoops<T>& loops = fft_loops(T());
  const int64_t padded = plan->padded;
  Scratch<T> scratch(2 * padded);
  T* a = scratch.get();
  loops.multiply(a, in, plan->chirp.data(), n, inverse, false, T(1));
  std::fill(a + 2 * n, a + 2 * padded, T(0));
  fft_line(a, a, padded, false, T(1));
  loops.multiply(a, a, plan->kernel.data(), padded, false, false, T(1));
  fft_line(a, a, padded, true, T(1));
  loops.multiply(out, a, plan->chirp.data(), n, false, inverse, scale);
}

template <class T>
void real_line(const T* in, T* out, int64_t n, T scale) {
  const FftLoops<T>& loops = fft_loops(T());
  if (n % 2 == 0) {
    const int64_t half = n / 2;
    fft_line(in, out, half, false, scale);
    const auto plan = fft_plan<RealLinePlan<T>>(n);
    parallel_for(
        0, half / 2 / loops.lanes + 1, kNumbersPerThread / loops.lanes, [&](int64_t b, int64_t e) {
          loops.separate(out, half, plan->lane_roots.data(), plan->block_roots.data(), b, e);
        });
    return;
  }
  Scratch<T> scratch(2 * n);
  T* z = scratch.get();
  for (int64_t j = 0; j < n; ++j) z[2 * j] = in[j], z[2 * j + 1] = 0;
  fft_line(z, z, n, false, scale);
  std::copy_n(z, 2 * (n / 2 + 1), out);
}

template <class T>
void hermitian_line(const T* in, T* out, int64_t n, T scale) {
  const FftLoops<T>& loops = fft_loops(T());
  if (n % 2 == 0) {
    const int64_t half = n / 2;
    const auto plan = fft_plan<RealLinePlan<T>>(n);
    Scratch<T> z(2 * half);
    parallel_for(
        0, half / 2 / loops.lanes + 1, kNumbersPerThread / loops.lanes, [&](int64_t b, int64_t e) {
          loops.combine(z.get(), in, half, plan->lane_roots.data(), plan->block_roots.data(), b, e);
        });
    fft_line(z.get(), out, half, true, scale);
    return;
  }
  Scratch<T> scratch(2 * n);
  T* z = scratch.get();
  z[0] = in[0], z[1] = 0;
  for (int64_t k = 1; k <= n / 2; ++k) {
    z[2 * k] = z[2 * (n - k)] = in[2 * k];
    z[2 * k + 1] = in[2 * k + 1];
    z[2 * (n - k) + 1] = -in[2 * k + 1];
  }
  fft_line(z, z, n, true, scale);
  for (int64_t j = 0; j < n; ++j) out[j] = z[2 * j];
}

// ---- many transforms

enum class Kind { Complex, Real, Hermitian };

// Where transform i of many begins. Dimensions are walked in the order of the result's strides.
struct Starts {
  Dims sizes, in_strides, out_strides;
  int64_t count = 1;

  Starts(const Tensor& in, const Tensor& out, int64_t dim) {
    Dims dims;
    for (int64_t d = 0; d < out.dim(); ++d)
      if (d != dim && out.sizes()[d] != 1) dims.push_back(d);
    std::stable_sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) {
      return std::pair(out.strides()[a], in.strides()[a]) <
             std::pair(out.strides()[b], in.strides()[b]);
    });
    for (int64_t d : dims) {
      const int64_t size = out.sizes()[d];
      count *= size;
      // Dimensions that continue the one before are one with it.
      if (!sizes.empty() && in_strides.back() * sizes.back() == in.strides()[d] &&
          out_strides.back() * sizes.back() == out.strides()[d]) {
        sizes[sizes.size() - 1] *= size;
        continue;
      }
      sizes.push_back(size);
      in_strides.push_back(in.strides()[d]);
      out_strides.push_back(out.strides()[d]);
    }
  }

  // Offsets of transforms [first, first + n), n >= 1.
  void offsets(int64_t first, int n, int64_t* in, int64_t* out) const {
    if (sizes.size() == 1) {
      for (int i = 0; i < n; ++i) {
        in[i] = (first + i) * in_strides[0];
        out[i] = (first + i) * out_strides[0];
      }
      return;
    }
    Dims index(sizes.size());
    int64_t at_in = 0, at_out = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const bool outermost = d + 1 == sizes.size();
      index[d] = outermost ? first : first % sizes[d];
      if (!outermost) first /= sizes[d];
      at_in += index[d] * in_strides[d];
      at_out += index[d] * out_strides[d];
    }
    for (int i = 0; i < n; ++i) {
      in[i] = at_in;
      out[i] = at_out;
      for (size_t d = 0; d < sizes.size(); ++d) {
        at_in += in_strides[d];
        at_out += out_strides[d];
        if (++index[d] < sizes[d] || d + 1 == sizes.size()) break;
        at_in -= sizes[d] * in_strides[d];
        at_out -= sizes[d] * out_strides[d];
        index[d] = 0;
      }
    }
  }
};

template <class T>
struct Work {
  Kind kind;
  int64_t n;  // the length of the transform
  bool inverse;
  T scale;
  Starts starts;
  const T *in, *in_end;
  T* out;
  int64_t in_stride, out_stride;  // along the transform, in elements
  int in_parts, out_parts;        // 2 for complex elements, 1 for real ones
  int64_t in_length, out_length;  // elements along the transform
  const T* window;  // for real numbers: what they are multiplied by first; may be null

  // The length of the complex transform inside.
  int64_t inner() const { return kind != Kind::Complex && n % 2 == 0 ? n / 2 : n; }
};

template <class T>
void gather(T* to, const T* from, int64_t n, int64_t stride, int parts) {
  for (int64_t i = 0; i < n; ++i)
    for (int part = 0; part < parts; ++part) to[i * parts + part] = from[i * stride * parts + part];
}
template <class T>
void scatter(T* to, const T* from, int64_t n, int64_t stride, int parts) {
  for (int64_t i = 0; i < n; ++i)
    for (int part = 0; part < parts; ++part) to[i * stride * parts + part] = from[i * parts + part];
}

template <class T>
void multiply_line(T* to, const T* from, const T* window, int64_t n) {
  typedef T Vector __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  constexpr int64_t kWide = 16 / int64_t(sizeof(T));
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide)
    *reinterpret_cast<Vector*>(to + i) =
        *reinterpret_cast<const Vector*>(from + i) * *reinterpret_cast<const Vector*>(window + i);
  for (; i < n; ++i) to[i] = from[i] * window[i];
}

// A line's numbers side by side, times the window; fetches what `out` is going to overwrite.
template <class T>
void copy_line(const Work<T>& work, const T* in, const T* out, T* to) {
  if (work.in_stride != 1) {
    gather(to, in, work.in_length, work.in_stride, work.in_parts);
    in = to;
  }
  if (work.window) multiply_line(to, in, work.window, work.in_length);
  else if (in != to) std::copy_n(in, work.in_length * work.in_parts, to);
  constexpr int64_t kLine = 64 / int64_t(sizeof(T));
  for (int64_t i = 0; work.out_stride == 1 && i < work.out_length * work.out_parts; i += kLine)
    __builtin_prefetch(out + i, 1, 2);
}

template <class T>
void run_in_lanes(const Work<T>& work) {
  const FftLoops<T>& loops = fft_loops(T());
  const int64_t inner = work.inner(), lanes = loops.lanes, total = work.starts.count;
  const bool paired = inner < work.n;
  const auto plan = fft_plan<LanePlan<T>>(inner);
  const auto roots = paired ? fft_plan<RealBlockPlan<T>>(work.n) : nullptr;
  const auto run = work.kind == Kind::Complex ? loops.complex_block
                   : work.kind == Kind::Real
                       ? (paired ? loops.real_block_even : loops.real_block_odd)
                       : (paired ? loops.hermitian_block_even : loops.hermitian_block_odd);
  const int64_t blocks = (total + lanes - 1) / lanes;
  const int64_t length = work.in_length * work.in_parts;
  const bool copied =
      work.window || (work.in_stride == 1 && work.out_stride == 1 && length >= kCopiedLine &&
                      total * length * int64_t(sizeof(T)) > cached_bytes());
  // Where lines are evenly apart, so are those of one block and the next.
  const bool evenly = work.starts.sizes.size() == 1;
  const int64_t in_apart = evenly ? lanes * work.starts.in_strides[0] * work.in_parts : 0,
                out_apart = evenly ? lanes * work.starts.out_strides[0] * work.out_parts : 0;
  const int64_t pitch = (length + 2 * lanes - 1) / lanes * lanes;  // lines start on other sets
  parallel_for(0, blocks, std::max<int64_t>(1, kNumbersPerThread / (inner * lanes)),
               [&](int64_t begin, int64_t end) {
                 Scratch<T> rows((inner + 1 + plan->schedule.spare) * 2 * lanes);
                 Scratch<T> copies(copied ? lanes * pitch : 0);
                 const T* in[kMaxFftLanes];
                 T* out[kMaxFftLanes];
                 std::fill_n(in, kMaxFftLanes, work.in);
                 std::fill_n(out, kMaxFftLanes, work.out);
                 FftBlock<T> block{};
                 block.schedule = &plan->schedule;
                 block.roots = roots ? roots->roots.data() : nullptr;
                 block.rows = rows.get();
                 block.in = in;
                 block.in_end = work.in_end;
                 block.out = out;
                 block.inverse = work.inverse;
                 block.scale = work.scale;
                 // A complex element is a pair of parts; real elements are taken in pairs or one by
                 // one.
                 const auto geometry = [&](int parts, int64_t stride, int64_t& step,
                                           int64_t& imag) {
                   step = parts == 2 || paired ? 2 * stride : stride;
                   imag = parts == 2 ? 1 : paired ? stride : kLoneReal;
                 };
                 geometry(work.in_parts, work.in_stride, block.in_step, block.in_imag);
                 geometry(work.out_parts, work.out_stride, block.out_step, block.out_imag);
                 if (copied) block.in_end = copies.get() + lanes * pitch;
                 for (int64_t b = begin; b < end; ++b) {
                   block.count = int(std::min(lanes, total - b * lanes));
                   if (b > begin && evenly && !copied && block.count == lanes) {
                     for (int l = 0; l < kMaxFftLanes; ++l) in[l] += in_apart, out[l] += out_apart;
                     run(block);
                     continue;
                   }
                   int64_t in_at[kMaxFftLanes], out_at[kMaxFftLanes];
                   work.starts.offsets(b * lanes, block.count, in_at, out_at);
                   for (int l = 0; l < lanes; ++l) {
                     const int used = l < block.count ? l : 0;
                     in[l] = work.in + in_at[used] * work.in_parts;
                     out[l] = work.out + out_at[used] * work.out_parts;
                     if (!copied) continue;
                     T* const copy = copies.get() + used * pitch;
                     if (used == l) copy_line(work, in[l], out[l], copy);
                     in[l] = copy;
                   }
                   run(block);
                 }
               });
}

template <class T>
void run_line_by_line(const Work<T>& work) {
  const auto lines = [&](int64_t begin, int64_t end) {
    const bool copy_in = work.in_stride != 1 || work.window, copy_out = work.out_stride != 1;
    Scratch<T> in_line(copy_in ? work.in_length * work.in_parts : 0),
        out_line(copy_out ? work.out_length * work.out_parts : 0);
    for (int64_t i = begin; i < end; ++i) {
      int64_t in_at, out_at;
      work.starts.offsets(i, 1, &in_at, &out_at);
      const T* in = work.in + in_at * work.in_parts;
      T* out = work.out + out_at * work.out_parts;
      if (copy_in) copy_line(work, in, out, in_line.get());
      const T* from = copy_in ? in_line.get() : in;
      T* to = copy_out ? out_line.get() : out;
      switch (work.kind) {
        case Kind::Complex: fft_line(from, to, work.n, work.inverse, work.scale); break;
        case Kind::Real: real_line(from, to, work.n, work.scale); break;
        case Kind::Hermitian: hermitian_line(from, to, work.n, work.scale); break;
      }
      if (copy_out) scatter(out, out_line.get(), work.out_length, work.out_stride, work.out_parts);
    }
  };
  // Few long lines are split over the threads, many are shared out.
  if (work.starts.count < 2 * num_threads())
    for (int64_t i = 0; i < work.starts.count; ++i) lines(i, i + 1);
  else parallel_for(0, work.starts.count, std::max<int64_t>(1, kNumbersPerThread / work.n), lines);
}

template <class T>
void run(Kind kind, const Tensor& in, const Tensor& out, int64_t dim, bool inverse, double scale,
         const Tensor& window) {
  if (out.numel() == 0) return;
  const bool in_place = in.data_as<T>() == out.data_as<T>();  // others may write what is read ahead
  int64_t last = 0;                                           // where the last element of `in` lies
  for (int64_t d = 0; d < in.dim(); ++d) last += (in.sizes()[d] - 1) * in.strides()[d];
  Work<T> work{kind,
               kind == Kind::Hermitian ? out.sizes()[dim] : in.sizes()[dim],
               inverse,
               T(scale),
               Starts(in, out, dim),
               in.data_as<T>(),
               in.data_as<T>() + (in_place ? 0 : (last + 1) * (in.is_complex() ? 2 : 1)),
               out.data_as<T>(),
               in.sizes()[dim] == 1 ? 1 : in.strides()[dim],
               out.sizes()[dim] == 1 ? 1 : out.strides()[dim],
               in.is_complex() ? 2 : 1,
               out.is_complex() ? 2 : 1,
               in.sizes()[dim],
               out.sizes()[dim],
               window.defined() ? window.data_as<T>() : nullptr};
  const auto plan = fft_plan<LengthPlan<T>>(work.inner());
  const int64_t lanes = fft_loops(T()).lanes, blocks = (work.starts.count + lanes - 1) / lanes;
  if (double(blocks) * plan->block_cost <= double(work.starts.count) * plan->line_cost)
    run_in_lanes(work);
  else run_line_by_line(work);
}

void run(Kind kind, const Tensor& in, const Tensor& out, int64_t dim, bool inverse, double scale,
         const Tensor& window = Tensor()) {
  if (to_real(in.dtype()) == DType::Float32) run<float>(kind, in, out, dim, inverse, scale, window);
  else run<double>(kind, in, out, dim, inverse, scale, window);
}

template <class T>
void mirror(const Tensor& out, IntSpan dims) {
  const int64_t last = dims.back(), n = out.sizes()[last], first = n / 2 + 1, width = n - first;
  if (width <= 0 || out.numel() == 0) return;
  uint64_t transformed = 0;
  for (int64_t d : dims) transformed |= uint64_t(1) << d;
  const int64_t lines = out.numel() / n, stride = out.strides()[last];
  auto* data = out.data_as<Complex<T>>();
  parallel_for(0, lines * width, 4 * kNumbersPerThread, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t rest = begin / width, at = 0, opposite = 0;
      for (int64_t d = out.dim() - 1; d >= 0; --d) {
        if (d == last) continue;
        const int64_t size = out.sizes()[d], i = rest % size;
        rest /= size;
        at += i * out.strides()[d];
        opposite += (transformed >> d & 1 && i ? size - i : i) * out.strides()[d];
      }
      const int64_t k = begin % width, count = std::min(end - begin, width - k);
      Complex<T>* to = data + at + (first + k) * stride;
      const Complex<T>* from = data + opposite + (n - first - k) * stride;
      for (int64_t i = 0; i < count; ++i, to += stride, from -= stride) *to = {from->re, -from->im};
      begin += count;
    }
  });
}

}  // namespace

template <class T>
void fft_line(const T* in, T* out, int64_t n, bool inverse, T scale) {
  const auto plan = fft_plan<LengthPlan<T>>(n);
  if (plan->block_cost <= plan->line_cost) line_in_one_lane(in, out, n, inverse, scale);
  else if (plan->smooth) line_in_two_steps(in, out, n, inverse, scale);
  else line_by_chirp(in, out, n, inverse, scale);
}
template void fft_line(const float*, float*, int64_t, bool, float);
template void fft_line(const double*, double*, int64_t, bool, double);

void cpu_fft_complex(const Tensor& in, const Tensor& out, int64_t dim, bool inverse, double scale) {
  run(Kind::Complex, in, out, dim, inverse, scale);
}
void cpu_fft_real(const Tensor& in, const Tensor& out, int64_t dim, double scale,
                  const Tensor& window) {
  run(Kind::Real, in, out, dim, false, scale, window);
}
void cpu_fft_hermitian(const Tensor& in, const Tensor& out, int64_t dim, double scale) {
  run(Kind::Hermitian, in, out, dim, true, scale);
}
void cpu_fft_mirror(const Tensor& out, IntSpan dims) {
  if (out.dtype() == DType::Complex64) mirror<float>(out, dims);
  else mirror<double>(out, dims);
}

}  // namespace facula
