#include "op/half_tables.h"

#include <atomic>
#include <cctype>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "core/float_mode.h"
#include "cpu/cast.h"
#include "cpu/look_up.h"

namespace facula {
namespace {

constexpr int64_t kValues = 1 << 16;
// A table pays at once where as many elements are computed as it has; one that is there is used for
// fewer.
constexpr int64_t kWorthMaking = kValues, kWorthReading = 4096;

// Tables are made once and stay, in a list that only grows: whoever finds one may read it.
struct Table {
  const ElementwiseDef* of;
  DType dtype;
  uint64_t mode;  // whether tiny numbers count as zero decides about results
  std::unique_ptr<char[]> results;
  Table* next;
};
std::atomic<Table*> tables{nullptr};

const Table* find(const ElementwiseDef& d, DType dtype, uint64_t mode) {
  for (const Table* t = tables.load(std::memory_order_acquire); t; t = t->next)
    if (t->of == &d && t->dtype == dtype && t->mode == mode) return t;
  return nullptr;
}

// Whether the formula is a * g(b) or a * b * g(c), by its text, which has all its parentheses.
bool multiplies_by_last(const ElementwiseDef& d) {
  const std::string_view text = d.formula[int(Category::Floating)];
  const std::string_view factors = d.inputs == 2 ? "(a * " : "((a * b) * ";
  if (d.inputs > 3 || text.substr(0, factors.size()) != factors) return false;
  auto is_part_of_name = [&](size_t i) {
    return i < text.size() && (std::isalnum(uint8_t(text[i])) || text[i] == '_');
  };
  for (size_t i = factors.size(); i < text.size(); ++i) {
    if (is_part_of_name(i - 1) || is_part_of_name(i + 1)) continue;
    if (text[i] >= 'a' && text[i] < 'a' + d.inputs - 1) return false;  // another operand
  }
  return true;
}

// Results of the definition's own loop: as they are stored, or in float32 what comes to 1 as the
// first factors.
const Table* make(const ElementwiseDef& d, DType dtype, uint64_t mode) {
  std::vector<uint16_t> bits(kValues);
  for (int64_t i = 0; i < kValues; ++i) bits[size_t(i)] = uint16_t(i);
  std::vector<float> values(kValues), results(kValues);
  cast_loop(dtype, DType::Float32)(reinterpret_cast<char*>(values.data()), 4,
                                   reinterpret_cast<const char*>(bits.data()), 2, kValues);
  float one = 1.0f;
  char* pointers[kMaxInputs + 1] = {reinterpret_cast<char*>(results.data())};
  int64_t strides[kMaxInputs + 1] = {4};
  for (int i = 1; i < d.inputs; ++i) pointers[i] = reinterpret_cast<char*>(&one);
  pointers[d.inputs] = reinterpret_cast<char*>(values.data());
  strides[d.inputs] = 4;
  d.loops[isa_level()][int(DType::Float32)](pointers, strides, kValues, nullptr);

  const int64_t item = d.inputs == 1 ? 2 : 4;
  auto made = std::make_unique<Table>(Table{&d, dtype, mode, {}, nullptr});
  made->results = std::make_unique<char[]>(size_t(kValues * item));
  cast_loop(DType::Float32, item == 2 ? dtype : DType::Float32)(made->results.get(), item,
                                                                pointers[0], 4, kValues);
  Table* first = tables.load();
  do {
    made->next = first;
    if (const Table* other = find(d, dtype, mode)) return other;
  } while (!tables.compare_exchange_weak(first, made.get()));
  return made.release();
}

}  // namespace

Loop half_table_loop(const ElementwiseDef& d, DType dtype, int64_t numel, void* params) {
  if (numel < kWorthReading || d.params || d.bool_operands) return nullptr;
  if (d.inputs != 1 && !multiplies_by_last(d)) return nullptr;
  const uint64_t mode = float_mode();
  const Table* table = find(d, dtype, mode);
  if (!table && numel < kWorthMaking) return nullptr;
  if (!table) table = make(d, dtype, mode);
  const LookUpLoops::Params given{table->results.get(), d.inputs - 1};
  std::memcpy(params, &given, sizeof given);
  return d.inputs == 1 ? look_up_loops().result : look_up_loops().product[int(dtype)];
}

}  // namespace facula
