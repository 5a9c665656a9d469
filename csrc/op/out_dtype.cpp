#include "op/out_dtype.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "core/error.h"
#include "core/type_names.h"

namespace facula {

static bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_out_dtype(const OpDef& op, int i, DType dtype, DType given) {
  if (dtype == given) return;
  const std::string_view name = op.name;
  if (is_one_of(name, {"quantile", "nanquantile"}))
    runtime_error("quantile() out tensor must be same dtype as the input tensor, but got ", given,
                  " and ", dtype);
  if (name == "polar")
    runtime_error("Expected object of scalar type ", legacy_dtype_name(dtype),
                  " but got scalar type ", legacy_dtype_name(given), " for argument 'out'");
  if (is_one_of(name, {"linalg_norm", "linalg_matrix_norm"}))
    runtime_error("linalg.", name.substr(7), " expected out tensor dtype ",
                  legacy_dtype_name(dtype), " but got: ", legacy_dtype_name(given));
  if (name == "linalg_multi_dot")
    runtime_error("expected out tensor to have dtype ", cpp_type_name(dtype), " but got ",
                  cpp_type_name(given));
  if (can_cast(dtype, given) && name != "linalg_vector_norm") return;
  if (is_one_of(name,
                {"linalg_eig", "linalg_eigvals", "linalg_pinv", "linalg_matrix_rank", "linalg_cond",
                 "linalg_matrix_power", "linalg_tensorinv", "linalg_tensorsolve", "geqrf",
                 "linalg_householder_product", "cholesky", "cholesky_inverse", "cholesky_solve"})) {
    const char* result = op.ret_names               ? op.ret_names[i]
                         : name == "linalg_eigvals" ? "eigenvalues"
                                                    : "result";
    runtime_error("Expected ", result, " to be safely castable from ", legacy_dtype_name(dtype),
                  " dtype, but got ", result, " with dtype ", legacy_dtype_name(given));
  }
  if (name.starts_with("linalg_") ||
      is_one_of(name, {"inverse", "det", "lu_solve", "triangular_solve", "tril", "triu", "diag"}))
    runtime_error("Expected out tensor to have dtype ", cpp_type_name(dtype), ", but got ",
                  cpp_type_name(given), " instead: the result is ", dtype, ", out= ", given);
}

}  // namespace facula
