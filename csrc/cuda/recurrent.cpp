#include "cuda/recurrent.h"

#include <algorithm>

#include "cpu/recurrent.h"
#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/kernel_types.h"
#include "cuda/matmul.h"
#include "cuda/translate.h"
#include "op/hooks/recurrent.h"

namespace facula::cuda {
namespace {

// Places in a layer's tensors: rows that are `apart` elements from each other.
struct Rows {
  int64_t item;
  void* at(const void* base, int64_t row, int64_t apart) const {
    return base ? const_cast<char*>(static_cast<const char*>(base)) + row * apart * item : nullptr;
  }
};

// out = a @ b (+ out), where b is transposed or not; all dense but for the distances of rows.
struct Product {
  DType dtype;
  int64_t m, n, k;
  const void* a;
  int64_t a_row;
  const void* b;
  int64_t b_row;
  bool transposed;
  void* out;
  int64_t out_row;
  bool add;
};

void multiply(const Product& p, int device, CuStream stream) {
  Gemm g;
  g.dtype = p.dtype;
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.a = p.a, g.a_row = p.a_row, g.a_col = 1;
  g.b = p.b, g.b_row = p.transposed ? 1 : p.b_row, g.b_col = p.transposed ? p.b_row : 1;
  g.c = p.out, g.c_row = p.out_row, g.c_col = 1;
  g.beta = p.add ? 1.0 : 0.0;
  gemm(g, device, stream);
}

// What recurrent.cuh takes.
struct Step {
  int64_t n, hidden, gate_row;
  void *gates = nullptr, *share = nullptr;
  const void *bias_in = nullptr, *bias = nullptr;
  void *cells = nullptr, *out = nullptr, *state = nullptr, *cell_state = nullptr;
  const void *state_from = nullptr, *cell_from = nullptr, *grad_out = nullptr;
  const void *grad_state_from = nullptr, *grad_cell_from = nullptr;
  void *grad_state = nullptr, *grad_cell = nullptr, *grad_gates = nullptr, *grad_share = nullptr;
  const void *before = nullptr, *start = nullptr;
  int64_t continued = 0;
};

void run_gates(const RecurrentLayer& l, const Step& s, bool derivative, int device,
               CuStream stream) {
  static auto* kernels = new KernelTable;
  KernelKey key;
  key.bits[0] = uint64_t(l.dtype) | uint64_t(l.cell) << 8 | uint64_t(derivative) << 12;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"recurrent.cuh", "facula_recurrent", {}};
    text.define("FACULA_COMPUTE", device_type(l.dtype));
    text.define("FACULA_CELL", std::to_string(int(l.cell)));
    text.define("FACULA_KIND", derivative ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  for (int64_t n : {s.n, s.hidden, s.gate_row}) arguments.put(n);
  arguments.put(s.gates);
  arguments.put(s.share);
  for (const void* p : {s.bias_in, s.bias}) arguments.put(p);
  for (void* p : {s.cells, s.out, s.state, s.cell_state}) arguments.put(p);
  for (const void* p : {s.state_from, s.cell_from, s.grad_out, s.grad_state_from, s.grad_cell_from})
    arguments.put(p);
  for (void* p : {s.grad_state, s.grad_cell, s.grad_gates, s.grad_share}) arguments.put(p);
  arguments.put(s.before);
  arguments.put(s.start);
  arguments.put(s.continued);
  constexpr int64_t kThreads = 256;
  launch_kernel(
      function,
      {.grid_x = unsigned((s.n * s.hidden + kThreads - 1) / kThreads), .block_x = kThreads}, stream,
      arguments.data());
}

void forward(const RecurrentLayer& l, const Tensor& h, const Tensor& c) {
  const int device = h.device().index;
  use_device(device);
  CuStream stream = current_stream(device);
  const Rows rows{int64_t(item_size(l.dtype))};
  const int64_t width = gates_of(l.cell) * l.hidden, batch = h.size(0);
  const bool gru = l.cell == Cell::Gru;
  Scratch share(gru ? size_t(batch * width * rows.item) : 0, device, stream);
  for (int64_t i = 0; i < l.steps; ++i) {
    const int64_t t = l.reverse ? l.steps - 1 - i : i, n = l.batch_sizes[t], row = l.first_row[t];
    if (n == 0) continue;
    Step s{.n = n, .hidden = l.hidden, .gate_row = l.gate_row};
    s.gates = rows.at(l.gates, row, l.gate_row);
    const bool first = i == 0 && l.in_step;
    s.state_from = first ? l.hx : h.data();
    s.cell_from = first ? l.cx : c.defined() ? c.data() : nullptr;
    multiply({.dtype = l.dtype,
              .m = n,
              .n = width,
              .k = l.state,
              .a = s.state_from,
              .a_row = l.state,
              .b = l.w_hh,
              .b_row = l.state,
              .transposed = true,
              .out = gru ? share.get() : s.gates,
              .out_row = gru ? width : l.gate_row,
              .add = !gru},
             device, stream);
    void* output = rows.at(l.output, row, l.state);
    s.share = gru ? share.get() : nullptr;
    s.bias_in = l.b_ih;
    s.bias = l.b_hh;
    s.cells = rows.at(l.cells, row, l.hidden);
    s.out = l.w_hr ? rows.at(l.raw, row, l.hidden) : output;
    s.state = l.w_hr ? nullptr : h.data();
    s.cell_state = c.defined() ? c.data() : nullptr;
    run_gates(l, s, false, device, stream);
    if (!l.w_hr) continue;
    multiply({.dtype = l.dtype,
              .m = n,
              .n = l.state,
              .k = l.hidden,
              .a = s.out,
              .a_row = l.hidden,
              .b = l.w_hr,
              .b_row = l.hidden,
              .transposed = true,
              .out = output,
              .out_row = l.state,
              .add = false},
             device, stream);
    copy_on_device(h.data(), output, size_t(n * l.state * rows.item), device, stream);
  }
}

void backward(const RecurrentLayer& l, Device on) {
  const int device = on.index;
  use_device(device);
  CuStream stream = current_stream(device);
  const Rows rows{int64_t(item_size(l.dtype))};
  const int64_t width = gates_of(l.cell) * l.hidden, batch = l.batch_sizes[0];
  const bool gru = l.cell == Cell::Gru;
  // By the hidden state before it is projected, of one step.
  Scratch unprojected(l.w_hr ? size_t(batch * l.hidden * rows.item) : 0, device, stream);
  for (int64_t i = 0; i < l.steps; ++i) {
    const int64_t t = l.reverse ? i : l.steps - 1 - i, n = l.batch_sizes[t], row = l.first_row[t];
    if (n == 0) continue;
    Step s{.n = n, .hidden = l.hidden, .gate_row = l.gate_row};
    const int64_t earlier = l.reverse ? t + 1 : t - 1;
    const bool any = earlier >= 0 && earlier < l.steps;
    s.continued = any ? std::min(n, l.batch_sizes[earlier]) : 0;
    const int64_t earlier_row = any ? l.first_row[earlier] : 0;
    s.before =
        gru ? rows.at(l.output, earlier_row, l.state) : rows.at(l.cells, earlier_row, l.hidden);
    s.start = gru ? l.hx : l.cx;
    s.gates = rows.at(l.gates, row, l.gate_row);
    s.cells = rows.at(l.cells, row, l.hidden);
    s.grad_out = rows.at(l.grad_output, row, l.state);
    s.grad_state = l.grad_h;
    s.grad_cell = l.grad_c;
    s.grad_state_from = i == 0 && l.in_step ? l.grad_hy : l.grad_h;
    s.grad_cell_from = i == 0 && l.in_step ? l.grad_cy : l.grad_c;
    s.grad_gates = rows.at(l.grad_gates, row, l.gate_row);
    s.grad_share = gru ? rows.at(l.grad_state_gates, row, l.gate_row) : nullptr;
    if (l.w_hr) {
      void* projected = rows.at(l.grad_projected, row, l.state);
      ElementwiseLaunch sum;  // what comes from the output and from the next step
      sum.name = "recurrent_sum";
      sum.body = s.grad_out ? "a + b" : "a";
      sum.inputs = s.grad_out ? 2 : 1;
      sum.compute = l.dtype;
      sum.ndim = 1;
      sum.sizes[0] = n * l.state;
      void* operands[] = {projected, l.grad_h, const_cast<void*>(s.grad_out)};
      for (int k = 0; k < 3; ++k) {
        sum.ptrs[k] = operands[k];
        sum.dtypes[k] = l.dtype;
        sum.strides[k][0] = rows.item;
      }
      launch_elementwise(sum, device, stream);
      multiply({.dtype = l.dtype,
                .m = n,
                .n = l.hidden,
                .k = l.state,
                .a = projected,
                .a_row = l.state,
                .b = l.w_hr,
                .b_row = l.hidden,
                .transposed = false,
                .out = unprojected.get(),
                .out_row = l.hidden,
                .add = false},
               device, stream);
      s.grad_state_from = unprojected.get();
      s.grad_out = nullptr;
    }
    run_gates(l, s, true, device, stream);
    multiply({.dtype = l.dtype,
              .m = n,
              .n = l.state,
              .k = width,
              .a = gru ? s.grad_share : s.grad_gates,
              .a_row = l.gate_row,
              .b = l.w_hh,
              .b_row = l.state,
              .transposed = false,
              .out = l.grad_h,
              .out_row = l.state,
              .add = gru},
             device, stream);
  }
}

}  // namespace

void register_recurrent() {
  device_recurrent.forward.set(translate<forward>);
  device_recurrent.backward.set(translate<backward>);
}

}  // namespace facula::cuda
