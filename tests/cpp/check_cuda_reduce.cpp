// Checks of the reduction launch.
#include "check_cuda.h"

namespace facula::cuda {
namespace {

// Reference: values of every result's elements in row-major order, folded by `fold`.
template <class In, class Out>
void check_reduce(const std::string& what, const ReduceFormula& formula, DType compute,
                  const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                  uint64_t reduced, double tolerance,
                  const std::function<double(const std::vector<double>&)>& fold, double low = -3,
                  double high = 3, double p0 = 0, int64_t start = 0, bool uses_index = false) {
  int64_t room = 1 + start, kept = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    room += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
    if (!(reduced >> d & 1)) kept *= sizes[d];
  }
  const auto values = random_values<In>(size_t(room), low, high);
  Buffer<In> in(values);
  Buffer<Out> out{size_t(kept)};
  auto launch = make_reduce(formula, compute, DTypeOf<In>::value, DTypeOf<Out>::value,
                            in.get() + start, out.get(), sizes, strides, reduced);
  launch.uses_index = uses_index;
  launch.params.add(compute_of(compute), p0);
  launch_reduce(launch);
  const auto got = out.host();
  std::vector<std::vector<double>> groups(static_cast<size_t>(kept));
  for (int64_t i = 0; i < count_of(sizes); ++i) {
    int64_t rest = i, o = 0, step = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      if (!(reduced >> d & 1)) o += rest % sizes[d] * step, step *= sizes[d];
      rest /= sizes[d];
    }
    groups[size_t(o)].push_back(
        convert<double>(values[size_t(start + offset_of(i, sizes, strides))]));
  }
  expect_near(got, [&](size_t o) { return fold(groups[o]); }, tolerance, what);
  launch_reduce(launch);
  const auto again = out.host();
  expect(std::memcmp(again.data(), got.data(), got.size() * sizeof(Out)) == 0, what + ", repeated");
}

double sum_of(const std::vector<double>& values) {
  double total = 0;
  for (double x : values) total += x;
  return total;
}

void check_sum_layouts() {
  const ReduceFormula sum = sum_formula();
  const DType f = DType::Float32;
  auto check = [&](const std::string& what, const std::vector<int64_t>& sizes,
                   const std::vector<int64_t>& strides, uint64_t reduced, int64_t start = 0) {
    check_reduce<float, float>("sum, " + what, sum, f, sizes, strides, reduced, 2e-4, sum_of, -1, 2,
                               0, start);
  };
  for (uint64_t reduced = 0; reduced < 8; ++reduced) {
    const std::string name = "dims " + std::to_string(reduced);
    check(name, {17, 12, 40}, {480, 40, 1}, reduced);
    check(name + " permuted", {17, 12, 40}, {1, 680, 17}, reduced);
    check(name + " padded", {17, 12, 40}, {13 * 44, 44, 1}, reduced);
    check(name + " misaligned", {17, 12, 41}, {492, 41, 1}, reduced, 1);
  }
  for (int64_t n : {1, 2, 3, 5, 7, 31, 33, 1000, 65537, 5000003}) {
    check("all of " + std::to_string(n), {n}, {1}, 1);
  }
  check("tall, 3 columns", {100000, 3}, {3, 1}, 1);
  check("tall, 257 columns", {50000, 257}, {257, 1}, 1);
  check("few long rows", {3, 700000}, {700000, 1}, 2);
  check("many short rows", {50000, 7}, {7, 1}, 2);
  check("rows of 100", {5000, 100}, {100, 1}, 2);
  check("every third element", {1000, 300}, {900, 3}, 2);
  check("broadcast", {100, 50}, {0, 1}, 1);
  check("five dims", {3, 4, 5, 6, 7}, {1, 3, 12, 60, 360}, 0b10101);
  check("nothing to reduce", {30, 0}, {1, 1}, 2);
  check("no results", {0, 30}, {30, 1}, 2);
  check("no dims", {}, {}, 0);
}

void check_reduce_kinds() {
  const std::vector<int64_t> shapes[] = {{60, 333}, {2, 300000}, {200000, 6}};
  for (const auto& sizes : shapes) {
    const std::vector<int64_t> strides = dense_strides(sizes);
    for (uint64_t reduced : {uint64_t(1), uint64_t(2), uint64_t(3)}) {
      const std::string where = " " + std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) +
                                " dims " + std::to_string(reduced);
      auto check = [&]<class In, class Out>(TypeTag<In>, TypeTag<Out>, const char* name,
                                            const ReduceFormula& formula, DType compute,
                                            double tolerance, auto fold, double low, double high,
                                            double p0 = 0, bool index = false) {
        check_reduce<In, Out>(name + where, formula, compute, sizes, strides, reduced, tolerance,
                              fold, low, high, p0, 0, index);
      };
      auto largest = [](const std::vector<double>& v) {
        double m = -INFINITY;
        for (double x : v) m = std::max(m, x);
        return m;
      };
      check(TypeTag<Half>{}, TypeTag<float>{}, "sum of float16", sum_formula(), DType::Float16,
            1e-4, sum_of, -1, 2);
      check(TypeTag<double>{}, TypeTag<double>{}, "sum of float64", sum_formula(), DType::Float64,
            1e-9, sum_of, -1, 2);
      check(TypeTag<int8_t>{}, TypeTag<int64_t>{}, "sum of int8", sum_formula(), DType::Int64, 0,
            sum_of, -100, 100);
      check(TypeTag<float>{}, TypeTag<float>{}, "amax", {"lowest", "a", "maximum(a, b)", "a"},
            DType::Float32, 0, largest, -3, 3);
      check(TypeTag<int16_t>{}, TypeTag<int16_t>{}, "amax of int16",
            {"lowest", "a", "maximum(a, b)", "a"}, DType::Int16, 0, largest, -3000, 3000);
      check(
          TypeTag<uint8_t>{}, TypeTag<uint8_t>{}, "any", {"False", "a", "a | b", "a"}, DType::Bool,
          0,
          [](const std::vector<double>& v) {
            for (double x : v)
              if (x != 0) return 1.0;
            return 0.0;
          },
          0, 1.002);
      check(TypeTag<float>{}, TypeTag<float>{}, "mean", {"0", "a", "a + b", "a / p0"},
            DType::Float32, 1e-4, sum_of, -1, 2, 1);
      check(
          TypeTag<float>{}, TypeTag<int64_t>{}, "argmax",
          {"return {lowest, 0x7fffffffffffffff};", "indexed(a, index)", "larger(a, b)", "a.index",
           "Indexed<T>", 16},
          DType::Float32, 0,
          [](const std::vector<double>& v) {
            size_t best = 0;
            for (size_t i = 1; i < v.size(); ++i)
              if (v[i] > v[best]) best = i;
            return double(best);
          },
          -3, 3, 0, true);
      check(
          TypeTag<float>{}, TypeTag<float>{}, "var",
          {"return {0, 0, 0};", "moments(a)", "merge(a, b)", "a.squares / (a.count - p0)",
           "Moments<T>", 12},
          DType::Float32, 1e-4,
          [](const std::vector<double>& v) {
            double mean = sum_of(v) / double(v.size()), total = 0;
            for (double x : v) total += (x - mean) * (x - mean);
            return total / double(v.size() - 1);
          },
          -1, 2, 1);
    }
  }
  // NaN wins in max, wherever it is.
  std::vector<float> values(10000, 1.0f);
  values[7777] = NAN;
  Buffer<float> in(values), out(1);
  launch_reduce(make_reduce({"lowest", "a", "maximum(a, b)", "a"}, DType::Float32, DType::Float32,
                            DType::Float32, in.get(), out.get(), {10000}, {1}, 1));
  expect(std::isnan(out.host()[0]), "amax gives NaN if there is one");
}

}  // namespace

void check_reductions() {
  run("sums over layouts", check_sum_layouts);
  run("kinds of reduction", check_reduce_kinds);
}

}  // namespace facula::cuda
