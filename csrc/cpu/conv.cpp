// Chooses how a convolution is computed and shares it over the thread pool.
//   one channel per group, by pixels -> read where they lie (conv_depthwise_pixels_isa.cpp)
//   few input channels per group -> taps applied to vectors of channels (conv_channelwise_isa.cpp)
//                                   or of pixels (conv_depthwise_isa.cpp)
//   images of few channels by pixels, or deep ones by planes
//                                -> products with rows of taps (conv_few_channels_isa.cpp)
//   images of few planes         -> taps applied to a copy with padding (conv_few_planes_isa.cpp)
//   3x3 kernels with step 1      -> Winograd's algorithm where it pays (conv_winograd_isa.cpp)
//   1x1 kernels                  -> a product of matrices as they lie (gemm.h)
//   bfloat16 and half            -> products of pairs, on CPUs that have them (conv_amx.h)
//   rows of pixels with channels -> read where they lie (conv_direct_isa.cpp), see suits_direct
//   results that lie by channels -> a product with channels as rows (conv_channel_rows_isa.cpp)
//   results that lie by pixels   -> a product with pixels as rows (conv_pixel_rows_isa.cpp)
// The gradient by the input is a convolution again, one for each remainder of the stride. That by
// the weights has files of its own (conv_weight_isa.cpp, conv_winograd_weight_isa.cpp).
#include "cpu/conv.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/amx.h"
#include "cpu/cast.h"
#include "cpu/conv_amx.h"
#include "cpu/conv_kernels.h"
#include "cpu/gemm_kernels.h"
#include "cpu/strided_copy.h"

namespace facula {

namespace {

#ifdef FACULA_X86
#define FACULA_CONV_TABLE(name) \
  (*(isa_level() == 2 ? v4::name : isa_level() == 1 ? v3::name : baseline::name))
#else
#define FACULA_CONV_TABLE(name) (*baseline::name)
#endif

const void* advance(const Conv& v, const void* p, int64_t elements) {
  return static_cast<const char*>(p) + elements * int64_t(item_size(v.dtype));
}
void* advance(const Conv& v, void* p, int64_t elements) {
  return static_cast<char*>(p) + elements * int64_t(item_size(v.dtype));
}

struct HostBlock {
  explicit HostBlock(size_t n) : bytes(n), data(n ? host_allocate(n) : nullptr) {}
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  ~HostBlock() {
    if (data) host_free(data, bytes);
  }
  size_t bytes;
  void* data;
};

void execute(const ConvFunction& f, const Conv& v) {
  ConvPlan plan;
  f.plan(v, in_parallel_region() ? 1 : num_threads(), plan);
  const HostBlock shared(plan.shared_bytes);
  if (f.prepare) {
    parallel_for(0, plan.prepare_tasks, 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) f.prepare(v, plan, begin, shared.data);
    });
  }
  parallel_for(0, plan.tasks, plan.grain, [&](int64_t begin, int64_t end) {
    const HostBlock scratch(plan.scratch_bytes);
    for (; begin < end; ++begin) f.run(v, plan, begin, scratch.data, shared.data);
  });
  if (f.finish) {
    parallel_for(0, plan.finish_tasks, 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) f.finish(v, plan, begin, shared.data);
    });
  }
}

constexpr int64_t kImageElements = 64 << 10;
constexpr int64_t kFewOutputs = 4, kFewTaps = 16;
constexpr int64_t kTurnedColumns = 64;  // of planes that are worth turning, at most
constexpr int64_t kFewChannels = 8;     // of a group, for which taps are applied without a product

bool is_trivial(const ConvAxis& a) {
  return a.taps == 1 && a.step == 1 && a.start == 0 && a.in == a.out;
}

// An axis that the kernel does not reach across becomes part of the one outside it: rows get
// longer. A 1x1 kernel makes one row of each image.
Conv with_axes_merged(Conv v) {
  ConvAxis* a = v.axis;
  auto merge = [&](ConvAxis& outer, ConvAxis& inner) {
    const int64_t n = inner.in;
    if (!is_trivial(inner) || outer.step != 1 ||
        (outer.in > 1 && outer.x_stride != n * inner.x_stride) ||
        (outer.out > 1 && outer.y_stride != n * inner.y_stride))
      return false;
    inner.out = outer.out * n;
    inner.in = outer.in * n;
    inner.taps = outer.taps;
    inner.spread = outer.spread * n;
    inner.start = outer.start * n;
    inner.w_stride = outer.w_stride;
    return true;
  };
  if (merge(a[1], a[2])) {
    a[1] = a[0];
    a[0] = ConvAxis();
    if (merge(a[1], a[2])) a[1] = ConvAxis();
  } else if (merge(a[0], a[1])) {
    a[0] = ConvAxis();
  }
  return v;
}

// Others are faster as they are packed here.
bool has_fast_product(DType dtype) {
  return packed_product_available(dtype) || amx_available(dtype) ||
         (dtype == DType::BFloat16 && bf16_product_available());
}

// Whether one tap meets every pixel where it lies, and there is enough to multiply: few channels do
// not fill the blocks of a product. Axes are merged.
bool has_one_tap(const Conv& v) {
  constexpr int64_t kFewest = 16;
  return has_fast_product(v.dtype) && v.groups == 1 && v.in >= kFewest && v.out >= kFewest &&
         v.batch * v.pixels() >= kFewest && v.axis[0].out == 1 && v.axis[1].out == 1 &&
         is_trivial(v.axis[0]) && is_trivial(v.axis[1]) && is_trivial(v.axis[2]);
}

// Matrices of images that lie by pixels: a row for each pixel, so many elements apart.
struct PixelRows {
  explicit PixelRows(const Conv& v)
      : count(v.batch * v.axis[2].out),
        x(v.axis[2].out == 1 ? v.x_batch : v.axis[2].x_stride),
        y(v.axis[2].out == 1 ? v.y_batch : v.axis[2].y_stride) {}
  int64_t count, x, y;
};
bool has_pixel_rows(const Conv& v) {
  const PixelRows rows(v);
  auto follow = [&](int64_t batch, int64_t row) {
    return v.batch == 1 || batch == v.axis[2].out * row;
  };
  return has_one_tap(v) && v.x_channel == 1 && v.y_channel == 1 && follow(v.x_batch, rows.x) &&
         follow(v.y_batch, rows.y);
}
// Matrices of images that lie by planes: a row for each channel. Tiny planes do not fill vectors.
bool has_plane_rows(const Conv& v) {
  constexpr int64_t kTiny = 128;
  return has_one_tap(v) && v.axis[2].x_stride == 1 && v.axis[2].y_stride == 1 &&
         v.axis[2].out >= kTiny;
}

// The product packs its rows. For one or two panels of columns that are full, it is as good to read
// them where they lie.
bool pays_to_pack_pixels(const Conv& v) {
  constexpr int64_t kPanel = 32;
  return is_reduced_float(v.dtype) || v.out > 2 * kPanel || v.out % kPanel != 0;
}

void multiply_pixels(const Conv& v) {  // y = x w
  const PixelRows rows(v);
  Gemm g{v.dtype, 1, rows.count, v.out, v.in};
  g.a = v.x, g.a_row = rows.x, g.a_col = 1;
  g.b = v.w, g.b_row = v.w_in, g.b_col = v.w_out;
  g.c = v.y, g.c_row = rows.y, g.c_col = 1;
  g.bias = v.bias;
  gemm(g);
}

void multiply_planes(const Conv& v) {  // y = w x, for each image
  Gemm g{v.dtype, v.batch, v.out, v.axis[2].out, v.in};
  g.a = v.w, g.a_batch = 0, g.a_row = v.w_out, g.a_col = v.w_in;
  g.b = v.x, g.b_batch = v.x_batch, g.b_row = v.x_channel, g.b_col = 1;
  g.c = v.y, g.c_batch = v.y_batch, g.c_row = v.y_channel, g.c_col = 1;
  if (v.bias) {  // of 16 bits: the sum starts from it and is rounded once
    const int64_t grain = std::max<int64_t>(1, 32768 / g.n);
    parallel_for(0, v.batch * v.out, grain, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t channel = i % v.out, row = i / v.out * v.y_batch + channel * v.y_channel;
        std::fill_n(static_cast<uint16_t*>(v.y) + row, g.n,
                    static_cast<const uint16_t*>(v.bias)[channel]);
      }
    });
    g.beta_re = 1;
  }
  // Weights that lie across the rows are packed as they lie when pixels are the rows. Those are
  // packed too, which wide planes do not gain by.
  constexpr int64_t kWide = 512;
  const bool turn = g.a_row == 1 && g.n <= kWide && packed_product_available(v.dtype);
  gemm(turn ? transposed(g) : g);
}

// w = y' x. A small result is too little to share between threads, so its depth should be cut.
bool has_large_weight(const Conv& v) {
  return v.in * v.out >= 128 * 128;
}
void multiply_pixels_for_weight(const Conv& v) {
  const PixelRows rows(v);
  Gemm g{v.dtype, 1, v.out, v.in, rows.count};
  g.a = v.y, g.a_row = 1, g.a_col = rows.y;
  g.b = v.x, g.b_row = rows.x, g.b_col = 1;
  g.c = const_cast<void*>(v.w), g.c_row = v.w_out, g.c_col = v.w_in;
  gemm(g);
}
void multiply_planes_for_weight(const Conv& v) {
  Gemm g{v.dtype, 1, v.out, v.in, v.axis[2].out};
  g.a_row = v.y_channel, g.a_col = 1;
  g.b_row = 1, g.b_col = v.x_channel;
  g.c = const_cast<void*>(v.w), g.c_row = v.w_out, g.c_col = v.w_in;
  for (int64_t n = 0; n < v.batch; ++n) {
    g.a = advance(v, static_cast<const void*>(v.y), n * v.y_batch);
    g.b = advance(v, v.x, n * v.x_batch);
    g.beta_re = n > 0;
    gemm(g);
  }
}

// The same convolution with taps that go forward.
ConvAxis turned(ConvAxis a, int64_t& w_offset) {
  if (a.spread > 0) return a;
  w_offset += (a.taps - 1) * a.w_stride;
  a.start += (a.taps - 1) * a.spread;
  a.spread = -a.spread;
  a.w_stride = -a.w_stride;
  return a;
}

Conv with_taps_onward(Conv v) {
  int64_t w_offset = 0;
  for (ConvAxis& a : v.axis) a = turned(a, w_offset);
  v.w = advance(v, v.w, w_offset);
  return v;
}

// 3x3 taps on images, in float32.
bool allows_winograd(const Conv& v) {
  if (v.dtype == DType::Float64 || !is_floating(v.dtype) || v.axis[0].in != 1 ||
      v.axis[0].out != 1 || v.axis[0].taps != 1)
    return false;
  for (const ConvAxis* a : {&v.axis[1], &v.axis[2]})
    if (a->taps != 3 || a->step != 1 || (a->spread != 1 && a->spread != -1)) return false;
  return true;
}

// The side of the tiles of outputs by which Winograd's algorithm should go, 0 where plain sums cost
// less. Costs are vector instructions, counted and measured; the choice depends on the shape alone.
// Tiles of 2x2 round no worse than plain sums, those of 4x4 some three times as much: with few
// channels less is gained by these, and small networks train through the same steps as in PyTorch
// as long as errors are no larger than its own (bench/curves.py).
int winograd_tile(const Conv& v, bool gradient) {
  constexpr int64_t kEnough = 64;
  if (!allows_winograd(v)) return 0;
  // Results by planes are written as rows without gaps, which those of a remainder have.
  if (!gradient && v.y_channel != 1 && v.axis[2].y_stride != 1) return 0;
  const auto in = double((v.in + 15) / 16 * 16), out = double((v.out + 15) / 16 * 16);
  const bool turn = v.x_channel != 1;
  // Of one element of a tile's input and output, and of a kernel.
  struct Transforms {
    double input, input_turned, output, output_turned, kernel;
  };
  auto cost = [&](int64_t tile, const Transforms& t) {
    const int64_t down = (v.axis[1].out + tile - 1) / tile, side = tile + 2;
    const auto tiles = double(v.batch * down * ((v.axis[2].out + tile - 1) / tile));
    const double x = in * (turn ? t.input_turned : t.input);
    const double y = out * (turn ? t.output_turned : t.output);
    // A weight gradient has its sums read and written for each block of tiles.
    const double products =
        double(side * side) * in * out / 16 * (tiles * 1.15 + (gradient ? 4 : 0));
    const double transforms =
        gradient ? tiles * (x * double((v.out + 63) / 64) + y * double((v.in + 127) / 128))
                 : tiles * (x + y);
    return products + transforms + t.kernel * in * out;
  };
  const double direct = double(v.batch * v.pixels()) * double(v.in * v.out) * 9 / 16;
  if (v.dtype != DType::Float32 || (v.in >= kEnough && v.out >= kEnough))
    return cost(4, {14, 24, 12, gradient ? 16. : 17., 12}) < 0.9 * direct ? 4 : 0;
  return cost(2, {5, 9, 4, 6, 6}) < 0.9 * direct ? 2 : 0;
}

// Whether pixels should be read where they lie: for kernels that see many pixels of a row at once,
// with enough channels to fill vectors.
bool suits_direct(const Conv& v) {
  if (v.dtype == DType::Float64 || !is_floating(v.dtype) || v.in < 8 || v.taps() == 1) return false;
  const int64_t columns = v.transposed ? v.axis[2].in / v.axis[2].step : v.axis[2].out;
  return columns >= 4 && v.batch * v.pixels() >= 32 && 4 * v.out >= 3 * ((v.out + 15) / 16 * 16);
}

// The weight gradient of a single tap is a product of x and y, in which either may come first.
Conv with_sides_swapped(const Conv& v) {
  for (const ConvAxis& a : v.axis)  // y has no padding
    if (a.start < 0 || a.start + (a.out - 1) * a.step >= a.in) return v;
  Conv s = v;
  std::swap(s.in, s.out);
  int64_t offset = 0;
  for (int i = 0; i < 3; ++i) {
    offset += v.axis[i].start * v.axis[i].x_stride;
    ConvAxis& a = s.axis[i];
    a.in = a.out;
    a.step = 1;
    a.start = 0;
    a.x_stride = v.axis[i].y_stride;
    a.y_stride = v.axis[i].x_stride * v.axis[i].step;
  }
  s.x = v.y, s.x_batch = v.y_batch, s.x_channel = v.y_channel;
  s.y = const_cast<void*>(advance(v, v.x, offset));
  s.y_batch = v.x_batch, s.y_channel = v.x_channel;
  std::swap(s.w_out, s.w_in);
  return s;
}

// Axes seen from the other side, where all steps are 1: what output t sees through tap j sees t
// through the same tap of a kernel that goes the other way.
void reverse_axes(Conv& v) {
  int64_t w_offset = 0;
  for (ConvAxis& a : v.axis) {
    std::swap(a.in, a.out);
    a.start = -a.start - (a.taps - 1) * a.spread;
    w_offset += (a.taps - 1) * a.w_stride;
    a.w_stride = -a.w_stride;
  }
  v.w = advance(v, v.w, w_offset);
}

// The same weight gradient with x and y in each other's place, where all steps are 1.
Conv with_roles_swapped(const Conv& v) {
  Conv s = v;
  reverse_axes(s);
  for (ConvAxis& a : s.axis) std::swap(a.x_stride, a.y_stride);
  std::swap(s.in, s.out);
  s.x = v.y, s.x_batch = v.y_batch, s.x_channel = v.y_channel;
  s.y = const_cast<void*>(v.x), s.y_batch = v.x_batch, s.y_channel = v.x_channel;
  std::swap(s.w_out, s.w_in);
  return s;
}

bool has_steps(const Conv& v) {
  return v.axis[0].step * v.axis[1].step * v.axis[2].step > 1;
}

bool is_empty(const Conv& v) {
  return v.batch == 0 || v.groups == 0 || v.out == 0 || v.pixels() == 0;
}

// Images, one group, with rows of taps that are contiguous in the side of `few` channels. Both
// sides lie by pixels, and the other has enough channels for a vector to be worth it.
bool has_few_channels(const Conv& v, int64_t few, int64_t few_channel, int64_t few_stride,
                      int64_t many, int64_t many_channel) {
  return v.groups == 1 && few >= 1 && few <= kFewChannels && many >= 4 && many_channel == 1 &&
         (few_channel == 1 || few == 1) && few_stride == few && v.axis[0].in == 1 &&
         v.axis[0].out == 1 && v.axis[0].taps == 1 && v.axis[0].start == 0 && v.taps() > 1 &&
         v.axis[1].spread > 0 && v.axis[2].spread == 1 && is_floating(v.dtype);
}
// Of the transposed operator, whose axes are those of the forward one.
bool has_few_outputs(const Conv& v) {
  return v.out <= kFewOutputs &&
         has_few_channels(v, v.out, v.y_channel, v.axis[2].y_stride, v.in, v.x_channel);
}
// By planes, with so many products for each output that it pays to turn both sides.
bool has_few_deep_outputs(const Conv& v) {
  constexpr int64_t kFewest = 16, kDepth = 256;
  return v.out <= kFewOutputs && v.in >= kFewest && v.axis[2].x_stride == 1 &&
         v.axis[2].y_stride == 1 && v.in * v.taps() >= kDepth &&
         has_few_channels(v, v.out, 1, v.out, v.in, 1);
}
bool has_few_inputs(const Conv& v) {
  return has_few_channels(v, v.in, v.x_channel, v.axis[2].x_stride, v.out, v.y_channel);
}
// Images by planes, for which it pays to turn the side of many channels: with many products for
// each output, or where long vectors of pixels would be made of single planes.
bool has_few_deep_planes(const Conv& v, bool others) {
  constexpr int64_t kFewest = 16;
  const int64_t depth = others ? 128 : v.in == 1 ? 1 : 64;
  return v.out >= kFewest && v.axis[2].x_stride == 1 && v.axis[2].y_stride == 1 &&
         v.in * v.taps() >= depth && (v.axis[1].spread == 1 || v.axis[1].taps == 1) &&
         has_few_channels(v, v.in, 1, v.in, v.out, 1);
}

// The functions for single channels that lie by pixels; null where those do not fit. The sums of
// many taps do not stay in registers, and bands of one vector of channels do better.
const ConvFunction* depthwise_pixels(const Conv& v, bool gradient) {
  const ConvTable& table = gradient ? FACULA_CONV_TABLE(conv_depthwise_pixels_weight_table)
                                    : FACULA_CONV_TABLE(conv_depthwise_pixels_table);
  const int64_t lanes = table.lanes[int(v.dtype)];
  if (!lanes || v.in != 1 || v.out != 1 || v.groups < lanes || v.x_channel != 1 ||
      v.y_channel != 1 || (gradient && v.taps() > kFewTaps))
    return nullptr;
  return &table.of[int(v.dtype)];
}

// The functions for planes of few channels in or out; null where there are none, or too few pixels,
// or enough channels for vectors of them. Taps go forward.
const ConvFunction* few_planes(const Conv& v, bool gradient) {
  constexpr int64_t kFewest = 64, kVector = 8;
  const ConvFunction& f = (gradient ? FACULA_CONV_TABLE(conv_few_planes_weight_table)
                                    : FACULA_CONV_TABLE(conv_few_planes_table))
                              .of[int(v.dtype)];
  const bool few = gradient ? v.in <= kFewChannels && v.out >= kVector && v.axis[2].y_stride == 1
                            : v.in <= kFewChannels || v.out <= kFewChannels;
  const bool fits = f.run && few && !suits_direct(v) && v.groups == 1 && v.in >= 1 &&
                    v.taps() > 1 && v.axis[2].x_stride == 1 && v.batch * v.pixels() >= kFewest;
  return fits ? &f : nullptr;
}

// The functions for vectors of channels with whole groups; null where those do not fit.
const ConvFunction* channelwise(const Conv& v, bool by_pixels, bool gradient) {
  const ConvTable& table = gradient ? FACULA_CONV_TABLE(conv_channelwise_weight_table)
                                    : FACULA_CONV_TABLE(conv_channelwise_table);
  const int dtype = int(v.dtype);
  const int64_t lanes = table.lanes[dtype];
  if (!lanes || v.groups == 1 || v.in < 1 || v.in > kFewChannels || v.in != v.out ||
      lanes % v.in != 0 || v.groups * v.in < lanes)
    return nullptr;
  // Of planes that are worth turning. Short vectors gain less by it, unless columns would have to
  // be put in order.
  const int64_t columns = std::min(kTurnedColumns, 4 * lanes * v.axis[2].step);
  if (!by_pixels && (!table.turns[dtype] || v.axis[2].out > columns)) return nullptr;
  return &table.of[dtype];
}

// The functions for few input channels per group; null where a matrix product does better.
const ConvFunction* depthwise(const Conv& v, bool by_pixels, bool gradient) {
  if (v.in < 1 || v.in > kFewChannels || !is_floating(v.dtype)) return nullptr;
  // One plane with few taps, too, has too little to multiply.
  const bool one_plane = v.in == 1 && v.out >= 4 && v.taps() > 1 && v.taps() <= kFewTaps;
  if (v.groups == 1 && (by_pixels || gradient || !one_plane)) return nullptr;
  if (const ConvFunction* f = channelwise(v, by_pixels, gradient)) return f;
  if (gradient && v.in > 1) return nullptr;
  return &(gradient ? FACULA_CONV_TABLE(conv_depthwise_weight_table)
                    : FACULA_CONV_TABLE(conv_depthwise_table))
              .of[int(v.dtype)];
}

// Whether products of pairs should do it. By dots they are as fast as Winograd's algorithm at best,
// whose sums are of floats.
bool by_pairs(const Conv& onward, bool gradient) {
  return suits_conv_amx(onward) &&
         (amx_available(onward.dtype) || !winograd_tile(onward, gradient));
}
// Not so where one tap meets every pixel, which is a product of matrices.
bool by_tiles(const Conv& v) {
  if (!conv_amx_available(v.dtype) || !by_pairs(with_taps_onward(v), false)) return false;
  const Conv merged = with_axes_merged(v);
  return !has_pixel_rows(merged) && !has_plane_rows(merged);
}

// Without channels or taps every result is its bias.
void write_sums_of_nothing(const Conv& v) {
  static constexpr double kZero = 0;  // of any dtype
  const int64_t shape[] = {v.batch, v.groups * v.out, v.axis[0].out, v.axis[1].out, v.axis[2].out};
  const int64_t to[] = {v.y_batch, v.y_channel, v.axis[0].y_stride, v.axis[1].y_stride,
                        v.axis[2].y_stride};
  const int64_t from[] = {0, v.bias ? 1 : 0, 0, 0, 0};
  const int64_t item = int64_t(item_size(v.dtype));
  Iteration copy;
  copy.begin(shape);
  copy.add(static_cast<char*>(v.y), shape, to, item);
  const void* value = v.bias ? v.bias : &kZero;
  copy.add(static_cast<char*>(const_cast<void*>(value)), shape, from, item);
  copy.finish();
  copy_strided_operands(copy, cast_loop(v.dtype, v.dtype), item, item, true);
}

}  // namespace

void conv_forward(const Conv& problem) {
  if (is_empty(problem)) return;
  Conv v = problem;
  if (v.in == 0 || v.taps() == 0) return write_sums_of_nothing(v);
  Conv onward = with_taps_onward(v);  // which these want
  if (by_tiles(v)) return conv_amx_forward(onward);
  if (const int tile = winograd_tile(onward, false))
    return execute((tile == 2 ? FACULA_CONV_TABLE(conv_small_winograd_table)
                              : FACULA_CONV_TABLE(conv_winograd_table))
                       .of[int(v.dtype)],
                   onward);
  const ConvFunction* planes = few_planes(onward, false);
  if (has_few_inputs(onward) || has_few_deep_planes(onward, planes))
    return execute(FACULA_CONV_TABLE(conv_few_channels_table).of[int(v.dtype)], onward);
  if (planes) return execute(*planes, onward);
  if (!has_steps(v)) {
    reverse_axes(onward);
    if (has_few_outputs(onward))
      return execute(FACULA_CONV_TABLE(conv_few_channels_input_table).of[int(v.dtype)], onward);
  }
  v = with_axes_merged(v);
  if (has_pixel_rows(v) && pays_to_pack_pixels(v)) return multiply_pixels(v);
  if (has_plane_rows(v) && (!v.bias || is_reduced_float(v.dtype))) return multiply_planes(v);
  if (const ConvFunction* f = depthwise_pixels(v, false)) return execute(*f, with_taps_onward(v));
  const bool by_pixels = v.y_channel == 1 && (v.axis[2].y_stride != 1 || v.pixels() == 1);
  if (const ConvFunction* f = depthwise(v, by_pixels, false)) return execute(*f, v);
  if (suits_direct(v)) return execute(FACULA_CONV_TABLE(conv_direct_table).of[int(v.dtype)], v);
  execute((by_pixels ? FACULA_CONV_TABLE(conv_pixel_rows_table)
                     : FACULA_CONV_TABLE(conv_channel_rows_table))
              .of[int(v.dtype)],
          v);
}

namespace {

// Pixel i of the result is met by pixel o of x through tap j when i = o * step + j * spread +
// start. Pixels with the same i % step see the same taps, so each remainder is a convolution with
// step 1. With `spaced`, zeros between the pixels of x take the place of the width's remainders.
template <class F>
void for_each_remainder(const Conv& forward, bool spaced, F f) {
  int64_t remainders[3];
  for (int i = 0; i < 3; ++i) remainders[i] = std::min(forward.axis[i].step, forward.axis[i].in);
  if (spaced) remainders[2] = 1;
  for (int64_t task = 0; task < remainders[0] * remainders[1] * remainders[2]; ++task) {
    const int64_t remainder[3] = {task / (remainders[1] * remainders[2]),
                                  task / remainders[2] % remainders[1], task % remainders[2]};
    Conv v = forward;
    int64_t w_offset = 0, y_offset = 0;
    for (int i = 0; i < 3; ++i) {
      const ConvAxis& a = forward.axis[i];
      const int64_t r = remainder[i], common = std::gcd(a.step, a.spread), every = a.step / common;
      ConvAxis& back = v.axis[i];
      if (i == 2 && spaced) {
        back.out = a.in;
        back.in = (a.out - 1) * a.step + 1;
        back.gap = a.step;
        back.step = 1;
        back.spread = -a.spread;
        back.start = -a.start;
        continue;
      }
      back.out = r < a.in ? (a.in - r - 1) / a.step + 1 : 0;
      back.in = a.out;
      back.step = 1;
      back.spread = -(a.spread / common);
      back.w_stride = a.w_stride * every;
      back.y_stride = a.y_stride * a.step;
      y_offset += r * a.y_stride;
      int64_t first = 0;  // the first tap whose distance is a multiple of step
      const int64_t last = std::min(every, a.taps);
      while (first < last && (r - a.start - first * a.spread) % a.step != 0) ++first;
      back.taps = first < last ? (a.taps - first - 1) / every + 1 : 0;
      back.start = back.taps ? (r - a.start - first * a.spread) / a.step : 0;
      w_offset += back.taps ? first * a.w_stride : 0;
    }
    v.w = advance(v, v.w, w_offset);
    v.y = advance(v, v.y, y_offset);
    f(v);
  }
}

// A remainder has a share of the taps and of the pixels, which may be none for all of them.
bool remainders_by_tiles(const Conv& forward) {
  bool fits = conv_amx_available(forward.dtype), any = false;
  for_each_remainder(forward, false, [&](const Conv& v) {
    if (is_empty(v) || v.taps() == 0) return;
    fits = fits && by_pairs(with_taps_onward(v), false);
    any = true;
  });
  return fits && any;
}

// A tensor (batch, channels, three axes) in a memory of its own, by pixels.
struct PixelCopy {
  int64_t shape[5], strides[5];
  HostBlock block;

  PixelCopy(const Conv& v, int64_t channels, int64_t (*size)(const ConvAxis&))
      : shape{v.batch, channels, size(v.axis[0]), size(v.axis[1]), size(v.axis[2])},
        strides{channels * shape[2] * shape[3] * shape[4], 1, channels * shape[3] * shape[4],
                channels * shape[4], channels},
        block(size_t(v.batch * strides[0]) * item_size(v.dtype)) {}
};

void copy_tensor(const int64_t (&shape)[5], const void* from, const int64_t (&from_strides)[5],
                 void* to, const int64_t (&to_strides)[5], DType dtype) {
  const int64_t item = int64_t(item_size(dtype));
  Iteration copy;
  copy.begin(shape);
  copy.add(static_cast<char*>(to), shape, to_strides, item);
  copy.add(static_cast<char*>(const_cast<void*>(from)), shape, from_strides, item);
  copy.finish();
  copy_strided_operands(copy, cast_loop(dtype, dtype), item, item, true);
}

// y, and with `both` x, too, lie by planes: y is computed by pixels, of which x is made, and copied
// to its place.
void transposed_through_pixels(const Conv& forward, bool both) {
  Conv v = forward;
  const ConvAxis* a = forward.axis;
  const PixelCopy y(v, v.groups * v.out, [](const ConvAxis& k) { return k.in; });
  v.y = y.block.data, v.y_batch = y.strides[0], v.y_channel = 1;
  for (int i = 0; i < 3; ++i) v.axis[i].y_stride = y.strides[2 + i];
  std::optional<PixelCopy> x;
  if (both) {
    x.emplace(v, v.groups * v.in, [](const ConvAxis& k) { return k.out; });
    copy_tensor(x->shape, v.x,
                {v.x_batch, v.x_channel, a[0].x_stride, a[1].x_stride, a[2].x_stride},
                x->block.data, x->strides, v.dtype);
    v.x = x->block.data, v.x_batch = x->strides[0], v.x_channel = 1;
    for (int i = 0; i < 3; ++i) v.axis[i].x_stride = x->strides[2 + i];
  }
  conv_transposed(v);
  copy_tensor(y.shape, y.block.data, y.strides, forward.y,
              {forward.y_batch, forward.y_channel, a[0].y_stride, a[1].y_stride, a[2].y_stride},
              v.dtype);
}

}  // namespace

void conv_transposed(const Conv& forward) {
  if (has_few_outputs(forward) && !is_empty(forward))
    return execute(FACULA_CONV_TABLE(conv_few_channels_input_table).of[int(forward.dtype)],
                   forward);
  const bool by_pixels = forward.y_channel == 1 && forward.axis[2].y_stride != 1;
  const bool strided = has_steps(forward);
  const bool by_forward = !strided && depthwise_pixels(forward, false);
  if (const ConvFunction* f = channelwise(forward, by_pixels, false);
      f && !by_forward && !is_empty(forward)) {
    Conv whole = forward;
    whole.transposed = true;
    return execute(*f, whole);
  }
  const bool tiles = !is_empty(forward) && remainders_by_tiles(forward);
  if (tiles && forward.axis[2].step > 1 && forward.y_channel != 1)
    return transposed_through_pixels(forward, false);
  if (!tiles && has_few_deep_outputs(forward) && !is_empty(forward))
    return transposed_through_pixels(forward, true);
  if (strided && !is_empty(forward) && !tiles) {
    Conv whole = forward;
    whole.transposed = true;
    if (suits_direct(whole))
      return execute(FACULA_CONV_TABLE(conv_direct_table).of[int(whole.dtype)], whole);
  }
  if (!strided || forward.in > kFewChannels || forward.groups == 1 || is_empty(forward))
    return for_each_remainder(forward, false, conv_forward);
  // With little to multiply, all remainders of a part are computed while it is in the cache: of
  // some rows where channels are contiguous, of some channels where rows are.
  const ConvAxis* a = forward.axis;
  const int64_t row = forward.out * a[0].in * a[2].in;
  int64_t rows = a[1].in, groups = forward.groups;
  if (by_pixels)
    rows = std::max<int64_t>(kImageElements / (row * groups) / a[1].step, 1) * a[1].step;
  else groups = std::min(groups, std::max<int64_t>(kImageElements / (row * rows), 16));
  const int64_t row_blocks = (a[1].in + rows - 1) / rows;
  const int64_t blocks = (forward.groups + groups - 1) / groups * row_blocks;
  const bool spaced =
      a[2].y_stride == 1 && a[2].step == 2 && a[2].taps > 1 && is_floating(forward.dtype);
  const ConvFunction& planes = FACULA_CONV_TABLE(conv_depthwise_table).of[int(forward.dtype)];
  parallel_for(0, forward.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) {
      const int64_t n = begin / blocks, first = begin % row_blocks * rows;
      const int64_t group = begin % blocks / row_blocks * groups;
      Conv part = forward;
      part.batch = 1;
      part.groups = std::min(groups, forward.groups - group);
      part.axis[1].in = std::min(rows, a[1].in - first);
      part.axis[1].start -= first;
      part.x = advance(part, part.x, n * part.x_batch + group * part.in * part.x_channel);
      part.y =
          advance(part, part.y,
                  n * part.y_batch + group * part.out * part.y_channel + first * a[1].y_stride);
      part.w = advance(part, part.w, group * part.w_group);
      if (part.bias) part.bias = advance(part, part.bias, group * part.out);
      for_each_remainder(part, spaced, [&](const Conv& v) {
        if (spaced && v.in > 0 && v.taps() > 0 && !is_empty(v)) execute(planes, v);
        else conv_forward(v);
      });
    }
  });
}

void conv_weight_gradient(const Conv& v) {
  if (v.groups == 0 || v.out == 0 || v.in == 0 || v.taps() == 0) return;
  if (const Conv merged = with_axes_merged(v); has_large_weight(v)) {
    if (has_pixel_rows(merged)) return multiply_pixels_for_weight(merged);
    // Sums over several images are rounded once, which halves would not be.
    if (has_plane_rows(merged) && (v.batch == 1 || !is_reduced_float(v.dtype)))
      return multiply_planes_for_weight(merged);
  }
  if (const Conv onward = with_taps_onward(v);
      by_pairs(onward, true) && conv_amx_weight_gradient(onward))
    return;
  const bool by_pixels = v.x_channel == 1 && v.axis[2].x_stride != 1;
  if (const ConvFunction* f = depthwise_pixels(v, true)) return execute(*f, v);
  if (const ConvFunction* f = depthwise(v, by_pixels, true)) return execute(*f, v);
  if (const int tile = winograd_tile(v, true))
    return execute((tile == 2 ? FACULA_CONV_TABLE(conv_small_winograd_weight_table)
                              : FACULA_CONV_TABLE(conv_winograd_weight_table))
                       .of[int(v.dtype)],
                   v);
  if (has_few_inputs(v) && v.pixels() > 0)
    return execute(FACULA_CONV_TABLE(conv_few_channels_weight_table).of[int(v.dtype)], v);
  if (const Conv other = with_roles_swapped(v);
      !has_steps(v) && has_few_inputs(other) && v.pixels() > 0)
    return execute(FACULA_CONV_TABLE(conv_few_channels_weight_table).of[int(v.dtype)], other);
  if (const ConvFunction* f = few_planes(v, true)) return execute(*f, v);
  if (has_few_deep_planes(v, false) && v.pixels() > 0)
    return execute(FACULA_CONV_TABLE(conv_few_channels_weight_table).of[int(v.dtype)], v);
  if (suits_direct(v))
    return execute(FACULA_CONV_TABLE(conv_direct_weight_table).of[int(v.dtype)], v);
  // Of images by planes, vectors run along the side that gets turned; by pixels, the other is
  // copied more.
  auto cost = [](int64_t rows, int64_t columns) { return (rows + 4) * ((columns + 15) / 16); };
  const bool swap =
      v.taps() == 1 && (by_pixels ? v.in > v.out : cost(v.out, v.in) < cost(v.in, v.out));
  execute(FACULA_CONV_TABLE(conv_weight_table).of[int(v.dtype)], swap ? with_sides_swapped(v) : v);
}

}  // namespace facula
