// What lookups and bags of lookups share.
#pragma once
#include <optional>

#include "core/tensor.h"

namespace facula::kernels {

void check_table(const Tensor& weight);                       // a matrix
void check_lookups(const Tensor& indices, const char* name);  // int32 or int64
// Dense int64, all within the table; what is not raises an error of the given kind.
Tensor checked_lookups(const Tensor& indices, int64_t rows, ErrorKind kind = ErrorKind::Index);
Tensor dense_rows(const Tensor& table);  // with neighbours side by side
int64_t wrapped_padding(std::optional<int64_t> padding_idx, int64_t rows,
                        ErrorKind kind = ErrorKind::Value);  // -1: none
void renorm_rows(const Tensor& weight, const Tensor& indices, std::optional<double> max_norm,
                 double norm_type);

}  // namespace facula::kernels
