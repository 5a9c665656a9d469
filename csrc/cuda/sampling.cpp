#include "cuda/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/grid_sample.h"
#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/kernel_types.h"
#include "cuda/translate.h"
#include "op/hooks/sampling.h"

namespace facula::cuda {
namespace {

constexpr int64_t kThreads = 256;

const void* pointer(const Tensor& t) {
  return t.defined() ? t.data() : nullptr;
}
unsigned blocks_for(int64_t count) {
  return unsigned((count + kThreads - 1) / kThreads);
}

void grid_sample(GridSampleKind kind, const GridSample& g, const Tensor& input, const Tensor& grid,
                 const Tensor& direction, const Tensor& output, const Tensor& slopes) {
  static auto* kernels = new KernelTable;
  const int device = grid.device().index;
  use_device(device);
  const int64_t count = g.batch * g.points;
  if (count == 0 || g.channels == 0) return;
  KernelKey key;
  key.bits[0] = uint64_t(grid.dtype()) | uint64_t(kind) << 5 | uint64_t(g.dims) << 7 |
                uint64_t(g.mode) << 9 | uint64_t(g.padding) << 11 |
                uint64_t(g.align_corners) << 13 | uint64_t(direction.defined()) << 14;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"grid_sample.cuh", "facula_grid_sample", {}};
    text.define("FACULA_COMPUTE", device_type(grid.dtype()));
    text.define("FACULA_KIND", std::to_string(int(kind)));
    text.define("FACULA_DIMS", std::to_string(g.dims));
    text.define("FACULA_MODE", std::to_string(int(g.mode)));
    text.define("FACULA_PADDING", std::to_string(int(g.padding)));
    text.define("FACULA_CORNERS", g.align_corners ? "1" : "0");
    text.define("FACULA_ALONG", direction.defined() ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  for (int64_t n : {g.batch, g.channels, g.points, g.pixels(), g.size[0], g.size[1], g.size[2]})
    arguments.put(n);
  for (const Tensor* t : {&input, &grid, &direction, &output, &slopes}) arguments.put(pointer(*t));
  // Channels are shared out where each may be worked on alone.
  const int64_t shares = kind == GridSampleKind::Slopes ? 1 : std::min<int64_t>(g.channels, 8);
  launch_kernel(
      function,
      {.grid_x = blocks_for(count), .grid_y = unsigned(shares), .block_x = unsigned(kThreads)},
      current_stream(device), arguments.data());
}

void run_distances(bool derivative, const Tensor& grad, const Tensor& known, const Tensor& x1,
                   const Tensor& x2, double p, const Tensor& out) {
  static auto* kernels = new KernelTable;
  const int device = x1.device().index;
  use_device(device);
  if (out.numel() == 0) return;
  const int norm = p == 0 ? 0 : p == 1 ? 1 : p == 2 ? 2 : std::isinf(p) ? 3 : 4;
  KernelKey key;
  key.bits[0] = uint64_t(out.dtype()) | uint64_t(norm) << 5 | uint64_t(derivative) << 8;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"distances.cuh", "facula_distances", {}};
    text.define("FACULA_COMPUTE", device_type(out.dtype()));
    text.define("FACULA_NORM", std::to_string(norm));
    text.define("FACULA_KIND", derivative ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  for (int64_t n : {out.numel(), x1.size(-2), x2.size(-2), x1.size(-1)}) arguments.put(n);
  for (const Tensor* t : {&x1, &x2, &grad, &known, &out}) arguments.put(pointer(*t));
  arguments.put(p);
  launch_kernel(function, {.grid_x = blocks_for(out.numel()), .block_x = unsigned(kThreads)},
                current_stream(device), arguments.data());
}

void distances(const Tensor& x1, const Tensor& x2, double p, const Tensor& out) {
  run_distances(false, Tensor(), Tensor(), x1, x2, p, out);
}
void distance_slopes(const Tensor& grad, const Tensor& known, const Tensor& x1, const Tensor& x2,
                     double p, const Tensor& out) {
  run_distances(true, grad, known, x1, x2, p, out);
}

// ---- alignments

struct Alignment {
  const LabelSequences& q;
  int device;
  CuStream stream;
  int64_t steps, batch, classes, states;
  Scratch lengths;  // of inputs, of targets, and offsets

  explicit Alignment(const LabelSequences& sequences)
      : q(sequences),
        device(q.log_probs.device().index),
        stream(current_stream(device)),
        steps(q.log_probs.size(0)),
        batch(q.log_probs.size(1)),
        classes(q.log_probs.size(2)),
        states(2 * q.longest + 1),
        lengths(size_t(3 * batch) * sizeof(int64_t), device, stream) {
    use_device(device);
    std::vector<int64_t> all;
    for (const int64_t* numbers : {q.input_lengths, q.target_lengths, q.offsets})
      all.insert(all.end(), numbers, numbers + batch);
    copy_to_device(lengths.get(), all.data(), all.size() * sizeof(int64_t), device, stream);
  }

  void run(int kind, const Tensor& loss, const Tensor& alpha, void* beta, const Tensor& grad,
           bool zero_infinity, const Tensor& out, int64_t blocks) const {
    static auto* kernels = new KernelTable;
    const DType dtype = q.log_probs.dtype();
    KernelKey key;
    key.bits[0] = uint64_t(dtype) | uint64_t(kind) << 5;
    CuFunction function = kernels->find(key).on(device, [&] {
      KernelText text{"ctc.cuh", "facula_ctc", {}};
      text.define("FACULA_COMPUTE", device_type(dtype));
      text.define("FACULA_KIND", std::to_string(kind));
      return text;
    });
    const auto* numbers = static_cast<const int64_t*>(lengths.get());
    ArgumentWriter arguments;
    arguments.put(fault_site(device, "ctc_loss", classes, kLabels));
    arguments.put(pointer(q.log_probs));
    arguments.put(pointer(q.labels));
    for (int i = 0; i < 3; ++i) arguments.put<const void*>(numbers + i * batch);
    arguments.put(pointer(loss));
    arguments.put(pointer(alpha));
    arguments.put(beta);
    arguments.put(pointer(grad));
    arguments.put(pointer(out));
    for (int64_t n : {steps, batch, classes, q.blank, states}) arguments.put(n);
    arguments.put(int32_t(zero_infinity));
    launch_kernel(function, {.grid_x = unsigned(blocks), .block_x = unsigned(kThreads)}, stream,
                  arguments.data());
  }
};

void ctc(const LabelSequences& q, const Tensor& loss, const Tensor& alpha) {
  const Alignment a(q);
  if (a.batch == 0) return;
  a.run(0, loss, alpha, nullptr, Tensor(), false, Tensor(), a.batch);
}

void ctc_grad(const LabelSequences& q, const Tensor& loss, const Tensor& alpha, const Tensor& grad,
              bool zero_infinity, const Tensor& out) {
  const Alignment a(q);
  if (out.numel() == 0) return;
  Scratch beta(size_t(alpha.numel()) * alpha.item_size(), a.device, a.stream);
  a.run(1, loss, alpha, beta.get(), grad, zero_infinity, out, a.batch);
  a.run(2, loss, alpha, beta.get(), grad, zero_infinity, out, a.steps * a.batch);
}

}  // namespace

void register_sampling() {
  device_sampling.grid_sample.set(translate<grid_sample>);
  device_sampling.distances.set(translate<distances>);
  device_sampling.distance_slopes.set(translate<distance_slopes>);
  device_sampling.ctc.set(translate<ctc>);
  device_sampling.ctc_grad.set(translate<ctc_grad>);
}

}  // namespace facula::cuda
