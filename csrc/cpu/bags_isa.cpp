// Sums over bags, a few vectors of columns at a time so that they stay in registers; built once per
// ISA.
#include "cpu/bags.h"
#include "cpu/stored_lanes.h"

namespace facula::FACULA_ISA {
namespace {

// kVectors vectors of columns of one bag; `factors` belongs to its first lookup.
template <int kVectors, class A, class T>
FACULA_INLINE void sum_vectors(const T* table, int64_t apart, const int64_t* lookups, int64_t n,
                               int64_t padding, const T* factors, A divisor, T* out) {
  Wide<A> sum[kVectors] = {};
  for (int64_t i = 0; i < n; ++i) {
    if (lookups[i] == padding) continue;
    const T* row = table + lookups[i] * apart;
    const A factor = factors ? A(factors[i]) : A(1);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] += factor * read(row, v * kLanes<A>, AsWide{});
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) write(out, v * kLanes<A>, sum[v] / divisor);
}

template <class A, class T>
void sum_column(const T* table, int64_t apart, const int64_t* lookups, int64_t n, int64_t padding,
                const T* factors, A divisor, T* out) {
  A sum = 0;
  for (int64_t i = 0; i < n; ++i)
    if (lookups[i] != padding)
      sum += (factors ? A(factors[i]) : A(1)) * A(table[lookups[i] * apart]);
  *out = T(sum / divisor);
}

template <class T>
void sum_of(const Bags& b, const T* table, const T* factors, T* out, int64_t* sizes) {
  using A = Computed<T>;
  constexpr int L = kLanes<A>;
  for (int64_t bag = b.begin; bag < b.end; ++bag) {
    const int64_t first = b.offsets[bag], n = b.offsets[bag + 1] - first;
    const int64_t* lookups = b.lookups + first;
    const T* own = factors ? factors + first : nullptr;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += lookups[i] != b.padding;
    sizes[bag] = count;
    const A divisor = b.mean && count > 1 ? A(count) : A(1);
    T* to = out + bag * b.width;
    int64_t j = 0;
    for (; j + 4 * L <= b.width; j += 4 * L)
      sum_vectors<4>(table + j, b.apart, lookups, n, b.padding, own, divisor, to + j);
    for (; j + L <= b.width; j += L)
      sum_vectors<1>(table + j, b.apart, lookups, n, b.padding, own, divisor, to + j);
    for (; j < b.width; ++j)
      sum_column(table + j, b.apart, lookups, n, b.padding, own, divisor, to + j);
  }
}

void sum(DType dtype, const Bags& b, const void* table, const void* factors, void* out,
         int64_t* sizes) {
  auto run = [&]<class T>(T) {
    sum_of(b, static_cast<const T*>(table), static_cast<const T*>(factors), static_cast<T*>(out),
           sizes);
  };
  switch (dtype) {
    case DType::Float32: return run(float{});
    case DType::Float64: return run(double{});
    case DType::Float16: return run(Half{});
    default: return run(BFloat16{});
  }
}

}  // namespace

extern const SumBags sum_bags;
const SumBags sum_bags = sum;

}  // namespace facula::FACULA_ISA
