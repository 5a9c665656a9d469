// Sobol's sequence, by Gray code: the next point is the last one with one direction number xored
// in, that of the lowest zero bit of the count (Antonov and Saleev 1979). Coordinates are 30-bit
// integers.
#include <algorithm>
#include <bit>

#include "core/thread_pool.h"
#include "kernels/host_only.h"
#include "op/elementwise.h"
#include "op/kernels/sampling.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

constexpr int kBits = 30;

void check_integers(const Tensor& t, const char* name, const Dims& shape) {
  require_host(t, "SobolEngine");
  if (t.dtype() != DType::Int64) type_error(name, " must be int64, got ", t.dtype());
  if (!std::ranges::equal(t.sizes(), IntSpan(shape)))
    value_error(name, " must have the shape ", IntSpan(shape), ", got ", t.sizes());
}

void check_count(int64_t done, int64_t n) {
  if (n < 0 || done < 0) value_error("the number of points must not be negative, got ", n);
  if (done > (int64_t(1) << kBits) - 1 - n)
    value_error("the sequence has 2**30 points; ", n, " more after ", done, " are too many");
}

}  // namespace

std::tuple<Tensor, Tensor> _sobol_engine_draw(const Tensor& quasi, int64_t n,
                                              const Tensor& sobolstate, int64_t dimension,
                                              int64_t num_generated, DType dtype) {
  check_integers(quasi, "quasi", {dimension});
  check_integers(sobolstate, "sobolstate", {dimension, kBits});
  check_count(num_generated, n);
  const DType d = dtype == DType::None ? default_dtype() : dtype;
  if (!is_floating(d) || item_size(d) < 2) dtype_error(d, "float16, bfloat16, float32, float64");
  const DType wide = d == DType::Float64 ? d : DType::Float32;
  Tensor result = empty_tensor(Dims{n, dimension}, wide, Device{});
  Tensor state = op::clone(op::contiguous(quasi));
  const Tensor directions = op::contiguous(sobolstate);
  const int64_t* direction = directions.data_as<int64_t>();
  int64_t* last = state.data_as<int64_t>();
  auto fill = [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    for (int64_t k = 0; k < n; ++k, to += dimension) {
      const int64_t* column = direction + std::countr_one(uint64_t(num_generated + k));
      for (int64_t j = 0; j < dimension; ++j) {
        last[j] ^= column[j * kBits];
        to[j] = T(last[j]) * T(0x1p-30);
      }
    }
  };
  if (wide == DType::Float64) fill(result.data_as<double>());
  else fill(result.data_as<float>());
  return {d == wide ? result : op::_to_copy(result, d), state};
}

Tensor _sobol_engine_ff(const Tensor& quasi, int64_t n, const Tensor& sobolstate, int64_t dimension,
                        int64_t num_generated) {
  check_integers(quasi, "quasi", {dimension});
  check_integers(sobolstate, "sobolstate", {dimension, kBits});
  check_count(num_generated, n);
  // Point k has the direction numbers of the bits of its Gray code.
  const auto gray = [](uint64_t k) { return k ^ (k >> 1); };
  const uint64_t change = gray(uint64_t(num_generated)) ^ gray(uint64_t(num_generated + n));
  const Tensor directions = op::contiguous(sobolstate);
  const int64_t* direction = directions.data_as<int64_t>();
  Tensor state = op::clone(op::contiguous(quasi));
  int64_t* last = state.data_as<int64_t>();
  for (int64_t j = 0; j < dimension; ++j)
    for (uint64_t bits = change; bits != 0; bits &= bits - 1)
      last[j] ^= direction[j * kBits + std::countr_zero(bits)];
  return state;
}

Tensor _sobol_engine_scramble(const Tensor& sobolstate, const Tensor& ltm, int64_t dimension) {
  check_integers(sobolstate, "sobolstate", {dimension, kBits});
  check_integers(ltm, "ltm", {dimension, kBits, kBits});
  const Tensor matrices = op::contiguous(ltm);
  const Tensor numbers = op::clone(op::contiguous(sobolstate));
  const int64_t* bit = matrices.data_as<int64_t>();
  int64_t* number = numbers.data_as<int64_t>();
  parallel_for(0, dimension, 64, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      uint32_t rows[kBits];  // the rows of the matrix, with ones on the diagonal; high bit first
      for (int p = 0; p < kBits; ++p) {
        rows[p] = uint32_t(1) << (kBits - 1 - p);
        for (int q = 0; q < p; ++q)
          rows[p] |= uint32_t(bit[(j * kBits + p) * kBits + q] & 1) << (kBits - 1 - q);
      }
      for (int64_t k = j * kBits; k < (j + 1) * kBits; ++k) {
        uint32_t product = 0;
        for (int p = 0; p < kBits; ++p)
          product = product << 1 | uint32_t(std::popcount(rows[p] & uint32_t(number[k])) & 1);
        number[k] = product;
      }
    }
  });
  return numbers;
}

}  // namespace facula::kernels
