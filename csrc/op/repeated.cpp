#include "op/repeated.h"

#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::repeated {

// An expanded tensor holds what the mask covers anywhere along the dimensions that repeat.
void masked_fill(const Value* args, const Tensor& out) {
  if (warn)
    warn(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[mask] = "
        "scalar");
  GradGuard off(false);
  Tensor once = out, mask = op::expand(args[1].tensor(), out.sizes());
  for (int64_t d = 0; d < out.dim(); ++d) {
    if (out.strides()[d] != 0 || out.sizes()[d] <= 1) continue;
    once = op::narrow(once, d, 0, 1);
    mask = op::any_dim(mask, IntSpan(&d, 1), true);
  }
  const Value covered[] = {Value(once), Value(mask), args[2]};
  call_in_place(defs::masked_fill, covered, once);
}

}  // namespace facula::repeated
