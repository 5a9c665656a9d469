#include "kernels/loss_reduction.h"

#include "op/elementwise.h"
#include "op/ops/reductions.h"
#include "op/settings.h"

namespace facula {

Reduction reduction_named(std::string_view name) {
  if (name == "mean") return Reduction::Mean;
  if (name == "sum") return Reduction::Sum;
  if (name == "none") return Reduction::None;
  if (name == "elementwise_mean") {
    if (warn)
      warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.");
    return Reduction::Mean;
  }
  value_error(name, " is not a valid value for reduction; 'none', 'mean' and 'sum' are");
}

Reduction reduction_numbered(int64_t number) {
  if (number < 0 || number > 2)
    value_error("reduction must be 0 (none), 1 (mean) or 2 (sum), got ", number);
  return Reduction(number);
}

Reduction reduction_of(std::optional<bool> size_average, std::optional<bool> reduce,
                       std::string_view name) {
  if (!size_average && !reduce) return reduction_named(name);
  const char* now = !reduce.value_or(true) ? "none" : size_average.value_or(true) ? "mean" : "sum";
  if (warn)
    warn(text("size_average and reduce args will be deprecated, please use reduction='", now,
              "' instead.")
             .c_str());
  return reduction_named(now);
}

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::Mean) return op::mean(loss);
  return reduction == Reduction::None ? loss : op::sum(loss);
}

void warn_of_broadcast(const Tensor& input, const Tensor& target) {
  if (same(input.sizes(), target.sizes()) || !warn || !settings.loss_broadcast_warning) return;
  warn(
      text("Using a target size (facula.Size(", target.sizes(),
           ")) that is different to the input size (facula.Size(", input.sizes(),
           ")). This will likely lead to incorrect results due to broadcasting. Please ensure they "
           "have the same size. facula.nn.functional.set_broadcast_warning(False) turns this "
           "warning off.")
          .c_str());
}

}  // namespace facula
