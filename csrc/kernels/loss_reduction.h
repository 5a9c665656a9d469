// What losses do with the values of all elements.
#pragma once
#include <optional>
#include <string_view>

#include "core/tensor.h"

namespace facula {

enum class Reduction : int64_t { None, Mean, Sum, BatchMean };

Reduction reduction_named(std::string_view name);
Reduction reduction_numbered(int64_t number);  // 0 none, 1 mean, 2 sum
// With the older arguments, which come first where one of them is given.
Reduction reduction_of(std::optional<bool> size_average, std::optional<bool> reduce,
                       std::string_view name);

Tensor reduced(const Tensor& loss, Reduction reduction);

// Warns when input and target have different shapes, which broadcast: (N, 1) against (N,) gives
// N * N differences, rarely what is meant.
void warn_of_broadcast(const Tensor& input, const Tensor& target);

}  // namespace facula
