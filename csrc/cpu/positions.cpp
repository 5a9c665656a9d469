#include "cpu/positions.h"

#include <algorithm>
#include <cstring>

#include "cpu/cast.h"
#include "cpu/index_items.h"
#include "cpu/iterate.h"

namespace facula {

namespace {

// A stretch of the result that is a stretch of the input, or outside of it (from = -1).
struct Run {
  int64_t to, from, n;
};

std::vector<Run> runs_of(const std::vector<int64_t>& at) {
  std::vector<Run> runs;
  for (size_t t = 0; t < at.size(); ++t) {
    const bool longer =
        !runs.empty() &&
        (at[t] < 0 ? runs.back().from < 0
                   : runs.back().from >= 0 && runs.back().from + runs.back().n == at[t]);
    if (longer) ++runs.back().n;
    else runs.push_back({int64_t(t), at[t], 1});
  }
  return runs;
}

// A row of the result as its longest stretch of the input and a few elements beside it, which is
// what small pads come to.
struct RowPlan {
  static constexpr int64_t kMostBeside = 8;
  Run main{0, 0, 0};
  int beside = -1;  // elements of the row that are not in the stretch; -1: too many
  int64_t to[kMostBeside], from[kMostBeside];
};

RowPlan row_plan(const std::vector<Run>& runs, int64_t inner) {
  RowPlan plan;
  int64_t all = 0;
  for (const Run& r : runs) {
    all += r.n;
    if (r.from >= 0 && r.n > plan.main.n) plan.main = r;
  }
  if (plan.main.n == 0 || (all - plan.main.n) * inner > RowPlan::kMostBeside) return plan;
  plan.beside = 0;
  for (const Run& r : runs)
    for (int64_t i = 0; r.to != plan.main.to && i < r.n * inner; ++i, ++plan.beside) {
      plan.to[plan.beside] = r.to * inner + i;
      plan.from[plan.beside] = r.from < 0 ? -1 : r.from * inner + i;
    }
  plan.main = {plan.main.to * inner, plan.main.from * inner, plan.main.n * inner};
  return plan;
}

// A few vectors, without a call; the last one overlaps the one in front. The C library has wider
// vectors, which longer stretches gain by.
void copy_stretch(char* to, const char* from, size_t bytes) {
  constexpr size_t kVector = 16, kMost = 64;
  if (bytes < kVector || bytes > kMost) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto move = [&](size_t at) {
    char vector[kVector];
    std::memcpy(vector, from + at, kVector);
    std::memcpy(to + at, vector, kVector);
  };
  move(0);
  if (bytes > 2 * kVector) move(kVector);
  if (bytes > 3 * kVector) move(2 * kVector);
  move(bytes - kVector);
}

template <class T>
void copy_items(T* to, const T* from, int64_t n) {
  copy_stretch(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from),
               size_t(n) * sizeof(T));
}

int64_t grain_of(int64_t work) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
}

}  // namespace

void select_positions(DType dtype, int64_t outer, int64_t inner, const AxisPositions axis[3],
                      const void* x, void* y, const void* outside) {
  const AxisPositions &d = axis[0], &h = axis[1], &w = axis[2];
  const std::vector<Run> runs = runs_of(w.at);
  const RowPlan plan = row_plan(runs, inner);
  const bool by_runs = inner > 1 || outside || int64_t(runs.size()) * 4 < w.out();
  with_item_type(int64_t(item_size(dtype)), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t row = w.out() * inner;
    const T value = outside ? *static_cast<const T*>(outside) : T{};
    const std::vector<T> around(outside ? size_t(row) : 0, value);
    // Copies that stores of elements cannot change, so that they stay in registers.
    auto fill_rows = [=, around = around.data(), runs = runs.data(),
                      run_count = int64_t(runs.size()), at = w.at.data(), depth_at = d.at.data(),
                      row_at = h.at.data(), depths = d.out(), rows = h.out(), in_rows = h.in,
                      in_depths = d.in, in_row = w.in * inner](int64_t b, int64_t e) {
      const T* before = nullptr;  // the input row of the result row in front
      int64_t j = b % rows, k = b / rows % depths, image = b / (rows * depths);
      auto next_row = [&] {
        if (++j < rows) return;
        j = 0;
        if (++k < depths) return;
        k = 0;
        ++image;
      };
      for (; b < e; ++b, next_row()) {
        T* const to = static_cast<T*>(y) + b * row;
        if (depth_at[k] < 0 || row_at[j] < 0) {
          copy_items(to, around, row);
          before = nullptr;
          continue;
        }
        const T* const from = static_cast<const T*>(x) +
                              ((image * in_depths + depth_at[k]) * in_rows + row_at[j]) * in_row;
        if (from == before) {
          copy_items(to, to - row, row);
        } else if (plan.beside >= 0) {
          copy_items(to + plan.main.to, from + plan.main.from, plan.main.n);
          for (int i = 0; i < plan.beside; ++i)
            to[plan.to[i]] = plan.from[i] < 0 ? value : from[plan.from[i]];
        } else if (by_runs) {
          for (int64_t i = 0; i < run_count; ++i) {
            const Run r = runs[i];
            T* const piece = to + r.to * inner;
            const T* const seen = from + r.from * inner;
            const int64_t n = r.n * inner;
            if (n <= 4)
              for (int64_t i = 0; i < n; ++i) piece[i] = r.from < 0 ? value : seen[i];
            else if (r.from < 0) std::fill(piece, piece + n, value);
            else copy_items(piece, seen, n);
          }
        } else {
          for (int64_t t = 0; t < row; ++t) to[t] = from[at[t]];
        }
        before = from;
      }
    };
    parallel_for(0, outer * d.out() * h.out(), grain_of(row), fill_rows);
  });
}

namespace {

template <class A>
void add_plane(int64_t inner, const AxisPositions axis[3], const std::vector<Run>& runs, const A* y,
               A* x) {
  const AxisPositions &d = axis[0], &h = axis[1], &w = axis[2];
  const int64_t row = w.out() * inner;
  const bool by_runs = inner > 1 || int64_t(runs.size()) * 4 < w.out();
  for (int64_t k : d.at)
    for (int64_t j : h.at) {
      A* to = x + (k * h.in + j) * w.in * inner;
      if (by_runs) {
        for (const Run& r : runs) {
          A* sums = to + r.from * inner;
          const A* add = y + r.to * inner;
          for (int64_t i = 0; i < r.n * inner; ++i) sums[i] += add[i];
        }
      } else {
        const int64_t* at = w.at.data();
        for (int64_t t = 0; t < row; ++t) {
          asm("" : "+r"(t));  // no vectors, which would have to look for positions that meet
          to[at[t]] += y[t];
        }
      }
      y += row;
    }
}

}  // namespace

void add_positions(DType dtype, int64_t outer, int64_t inner, const AxisPositions axis[3],
                   const void* y, void* x) {
  const int64_t in = axis[0].in * axis[1].in * axis[2].in * inner;
  const int64_t out = axis[0].out() * axis[1].out() * axis[2].out() * inner;
  const std::vector<Run> runs = runs_of(axis[2].at);
  dispatch_dtype(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<S, bool>) {
      using A = std::conditional_t<is_small_float_v<S>, float, S>;
      parallel_for(0, outer, grain_of(in + out), [&](int64_t b, int64_t e) {
        std::vector<A> sums(std::is_same_v<A, S> ? 0 : size_t(in + out));
        for (; b < e; ++b) {
          const S* from = static_cast<const S*>(y) + b * out;
          S* to = static_cast<S*>(x) + b * in;
          if constexpr (std::is_same_v<A, S>) {
            std::fill(to, to + in, S(0));
            add_plane(inner, axis, runs, from, to);
          } else {
            A* wide = sums.data() + in;
            cast_loop(dtype, DType::Float32)(reinterpret_cast<char*>(wide), sizeof(A),
                                             reinterpret_cast<const char*>(from), sizeof(S), out);
            std::fill(sums.data(), wide, A(0));
            add_plane(inner, axis, runs, static_cast<const A*>(wide), sums.data());
            cast_loop(DType::Float32, dtype)(reinterpret_cast<char*>(to), sizeof(S),
                                             reinterpret_cast<const char*>(sums.data()), sizeof(A),
                                             in);
          }
        }
      });
    }
  });
}

}  // namespace facula
