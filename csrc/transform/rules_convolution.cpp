// Batching rules of convolutions: each becomes one larger convolution. A batch of inputs joins the
// images (N), a batch of weights the output channels; with both it becomes groups.
#include "op/ops/convolution.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

namespace {

// (batch, N, groups * C, ...) -> (N, groups * batch * C, ...): the batch within each group.
Tensor into_channels(const Tensor& value, int64_t dim, int64_t groups) {
  Tensor t = split(value, dim, groups, value.size(dim) / groups);  // (batch, .., groups, C, ...)
  t = op::movedim(t, Dims{0}, Dims{dim});                          // (.., groups, batch, C, ...)
  return join(join(t, dim - 1), dim - 1);
}

// The reverse: dimension `dim` of (.., groups * batch * C, ...) gives up its batch to the front.
Tensor from_channels(const Tensor& t, int64_t dim, int64_t groups, int64_t batch) {
  Tensor parts = split(t, dim, groups, t.size(dim) / groups);
  parts = split(parts, dim + 1, batch, parts.size(dim + 1) / batch);
  return join(op::movedim(parts, Dims{dim + 1}, Dims{0}), dim + 1);
}

void expect_ranks(const OpDef& op, const Tensor& a, const Tensor& b) {
  if (a.dim() < 3 || a.dim() != b.dim())
    runtime_error("arguments '", op.args[0].name, "' and '", op.args[1].name, "' of ", op.name,
                  "() must have the same number of dimensions, 3 to 5, inside of vmap, but have "
                  "shapes ",
                  a.sizes(), " and ", b.sizes());
}

}  // namespace

void convolution(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[0].tensor(), &weight = args[1].tensor(), &bias = args[2].tensor();
  expect_ranks(op, input, weight);
  const int64_t batch = batch_size(level), groups = args[8].to_int();
  const bool transposed = args[6].to_bool();
  const bool of_input = is_batched(input, level), of_weight = is_batched(weight, level);
  const Tensor x = value_of(input, level), w = value_of(weight, level);
  if (groups <= 0) runtime_error("non-positive groups is not supported, got groups=", groups);
  if (weight.size(0) % groups != 0)
    runtime_error("Given groups=", groups, ", expected weight to be divisible by ", groups,
                  " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  // A bias joins the convolution where it is the same for the whole batch.
  const bool bias_apart = bias.defined() && (of_weight || is_batched(bias, level));
  auto run = [&](const Tensor& a, const Tensor& b, int64_t in_groups) {
    return op::convolution(a, b, bias_apart ? Tensor() : bias, args[3].ints(), args[4].ints(),
                           args[5].ints(), transposed, args[7].ints(), in_groups);
  };
  Tensor out;
  if (!of_weight) {
    out = of_input ? split(run(join(x, 0), w, groups), 0, batch, input.size(0))
                   : in_front(run(x, w, groups), level);
  } else if (of_input) {
    // (N, batch * C, ...) and one group for each element and group.
    const Tensor images = join(op::movedim(x, Dims{0}, Dims{1}), 1);
    out = run(images, join(w, 0), batch * groups);
    out = op::movedim(split(out, 1, batch, out.size(1) / batch), Dims{1}, Dims{0});
  } else {
    // More output channels: dimension 0 of a weight, or 1 of a transposed one.
    const Tensor kernels =
        transposed ? join(op::movedim(w, Dims{0}, Dims{1}), 1) : into_channels(w, 1, groups);
    out = from_channels(run(x, kernels, groups), 1, groups, batch);
  }
  if (bias_apart) {
    Tensor b = aligned(bias, level, 1);
    Dims shape(size_t(out.dim()), 1);
    shape[2] = bias.size(0);
    if (is_batched(bias, level)) shape[0] = batch;
    out = out + op::reshape(b, shape);
  }
  deliver(rets, out, level);
}

void convolution_weight_gradient(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[0].tensor(), &grad = args[1].tensor();
  expect_ranks(op, input, grad);
  const int64_t batch = batch_size(level), groups = args[6].to_int();
  const bool of_input = is_batched(input, level), of_grad = is_batched(grad, level);
  const Tensor x = value_of(input, level), g = value_of(grad, level);
  Dims size(args[2].ints());
  auto run = [&](const Tensor& a, const Tensor& b, int64_t in_groups) {
    return op::_convolution_weight_gradient(a, b, size, args[3].ints(), args[4].ints(),
                                            args[5].ints(), in_groups);
  };
  auto into_groups = [](const Tensor& t) { return join(op::movedim(t, Dims{0}, Dims{1}), 1); };
  Tensor out;
  if (of_input && of_grad) {
    size[0] *= batch;
    out = split(run(into_groups(x), into_groups(g), batch * groups), 0, batch, size[0] / batch);
  } else if (of_input) {
    const int64_t channels = size[1];
    size[1] *= batch;
    out = run(into_channels(x, 2, groups), g, groups);
    out = op::movedim(split(out, 1, batch, channels), Dims{1}, Dims{0});
  } else if (of_grad) {
    size[0] *= batch;
    out = from_channels(run(x, into_channels(g, 2, groups), groups), 0, groups, batch);
  } else {
    out = in_front(run(x, g, groups), level);
  }
  deliver(rets, out, level);
}

}  // namespace facula::batch
