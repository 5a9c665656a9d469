#include "op/settings.h"

#include "op/elementwise.h"

namespace facula {

Settings settings;

void check_fixed_order(const char* what) {
  if (!settings.deterministic) return;
  const std::string problem =
      text(what,
           " does not have a deterministic implementation on CUDA devices, but "
           "use_deterministic_algorithms(True) is set; turn it off for this operation, or pass "
           "warn_only=True");
  if (!settings.deterministic_warn_only) runtime_error(problem);
  if (warn) warn(problem.c_str());
}

}  // namespace facula
