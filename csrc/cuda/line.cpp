#include "cuda/line.h"

#include <algorithm>
#include <bit>

#include "cuda/kernel_types.h"

namespace facula::cuda {
namespace {

constexpr int kMostHeld = 32;  // elements in registers of a thread
constexpr int64_t kBlock = 256;

int64_t power_at_least(int64_t n) {
  return int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(n, 1))));
}

}  // namespace

int vector_width(int64_t n, std::initializer_list<const Tensor*> tensors, int most) {
  size_t widest = 1;
  for (const Tensor* t : tensors)
    if (t->defined()) widest = std::max(widest, t->item_size());
  int64_t width = std::min<int64_t>(most, int64_t(16 / widest));
  for (const Tensor* t : tensors)
    while (t->defined() && width > 1 &&
           (n % width != 0 || reinterpret_cast<uintptr_t>(t->data()) %
                                      std::min<size_t>(16, size_t(width) * t->item_size()) !=
                                  0))
      width /= 2;
  return int(std::max<int64_t>(width, 1));
}

LinePlan::LinePlan(int64_t outer, int64_t n, int64_t inner, int held,
                   std::initializer_list<const Tensor*> tensors)
    : lines_(outer * inner), n_(n), inner_(inner) {
  if (inner > 1) {
    beside_ = int(std::min<int64_t>(32, power_at_least(inner)));
    lanes_ = int(std::min<int64_t>(power_at_least((n + 7) / 8), 32));
    beside_ = std::max(beside_, int(std::min<int64_t>(kBlock / lanes_, power_at_least(inner))));
  } else {
    vector_ = vector_width(n, tensors);
    const int64_t loads = n / vector_;
    lanes_ = int(std::min<int64_t>(power_at_least(loads), 32));
    const int64_t each = vector_ == 1 ? 8 : 4;  // loads in flight
    while (lanes_ >= 32 && lanes_ < 1024 && lanes_ * each < loads) lanes_ *= 2;
    beside_ = lanes_ > 32 ? 1 : int(kBlock / lanes_);
  }
  const int64_t items = power_at_least((n_ / vector_ + lanes_ - 1) / lanes_);
  items_ = items * vector_ * std::max(held, 1) <= kMostHeld ? int(items) : 0;
}

LaunchShape LinePlan::launch() const {
  const auto blocks = unsigned((lines_ + beside_ - 1) / beside_);
  if (inner_ > 1)
    return {.grid_x = blocks, .block_x = unsigned(beside_), .block_y = unsigned(lanes_)};
  return {.grid_x = blocks, .block_x = unsigned(lanes_), .block_y = unsigned(beside_)};
}

uint64_t LinePlan::bits() const {
  auto power = [](int n) { return uint64_t(std::bit_width(unsigned(n))); };  // 0 for 0
  return uint64_t(inner_ > 1) | power(lanes_) << 1 | power(beside_) << 5 | power(vector_) << 9 |
         power(items_) << 12;
}

void LinePlan::define(KernelText& text, DType compute) const {
  text.define("FACULA_COLUMNS", inner_ > 1 ? "1" : "0");
  text.define("FACULA_LANES", std::to_string(lanes_));
  text.define("FACULA_BESIDE", std::to_string(beside_));
  text.define("FACULA_VECTOR", std::to_string(vector_));
  text.define("FACULA_ITEMS", std::to_string(items_));
  text.define("FACULA_COMPUTE", compute == DType::Float64 ? "double" : "float");
}

void LinePlan::write(ArgumentWriter& out) const {
  out.put<int64_t>(lines_);
  out.put<int64_t>(n_);
  out.put<int64_t>(inner_);
  out.put<double>(1.0 / double(float(n_)));
}

}  // namespace facula::cuda
