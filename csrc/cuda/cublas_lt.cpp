#include "cuda/cublas_lt.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "cuda/allocator.h"
#include "cuda/libraries.h"
#include "cuda/thread_state.h"

namespace facula::cuda {
namespace {

// Binary compatible with cublasLt.h.
using Status = int;
using Handle = struct LtHandleRecord*;
using Description = struct LtMatmulDescRecord*;
using MatrixLayout = struct LtMatrixLayoutRecord*;
using Preference = struct LtPreferenceRecord*;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};
enum : int { kDescLeftOp = 3, kDescRightOp = 4, kDescEpilogue = 7, kDescBias = 8 };
enum : int { kPreferWorkspace = 1, kPreferLeft = 5, kPreferRight, kPreferIn, kPreferOut };
constexpr int32_t kEpilogueBias = 4;
constexpr int kFloat32 = 0;
constexpr size_t kWorkspace = size_t(32) << 20;

struct Table {
  Status (*create)(Handle*);
  Status (*create_description)(Description*, int, int);
  Status (*set_description)(Description, int, const void*, size_t);
  Status (*create_layout)(MatrixLayout*, int, uint64_t, uint64_t, int64_t);
  Status (*create_preference)(Preference*);
  Status (*set_preference)(Preference, int, const void*, size_t);
  Status (*destroy_preference)(Preference);
  Status (*heuristic)(Handle, Description, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout,
                      Preference, int, Heuristic*, int*);
  Status (*matmul)(Handle, Description, const void*, const void*, MatrixLayout, const void*,
                   MatrixLayout, const void*, const void*, MatrixLayout, void*, MatrixLayout,
                   const Algorithm*, void*, size_t, CuStream);

  Table() {
    load(create, "cublasLtCreate");
    load(create_description, "cublasLtMatmulDescCreate");
    load(set_description, "cublasLtMatmulDescSetAttribute");
    load(create_layout, "cublasLtMatrixLayoutCreate");
    load(create_preference, "cublasLtMatmulPreferenceCreate");
    load(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    load(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    load(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    load(matmul, "cublasLtMatmul");
  }

 private:
  template <class Function>
  static void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(library_symbol(Library::CublasLt, name));
  }
};

const Table* library() {
  return table_if_present<Table>();
}

// Handles may be used by all threads.
Handle handle_of(int device) {
  static std::mutex mutex;
  static Handle handles[kMaxDevices] = {};
  std::lock_guard lock(mutex);
  if (!handles[device] && library()->create(&handles[device]) != 0) handles[device] = nullptr;
  return handles[device];
}

// All that the choice of a kernel depends on.
struct Key {
  int64_t words[12];
  bool operator==(const Key& other) const {
    return std::memcmp(words, other.words, sizeof words) == 0;
  }
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t h = 0;
    for (int64_t w : key.words) h = (h ^ uint64_t(w)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return size_t(h);
  }
};

int alignment(const void* pointer) {  // the largest power of two, up to 256
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return int(std::min<uintptr_t>(256, address & (~address + 1)));
}

Key key_of(const BiasedProduct& p, int device) {
  const int64_t aligned = alignment(p.left) | int64_t(alignment(p.right)) << 12 |
                          int64_t(alignment(p.out)) << 24 | int64_t(alignment(p.bias)) << 36;
  return {{device, p.type, p.compute, p.left_op, p.right_op, p.rows, p.columns, p.depth,
           p.left_leading, p.right_leading, p.out_leading, aligned}};
}

struct Plan {
  Description description = nullptr;
  MatrixLayout left = nullptr, right = nullptr, out = nullptr;
  Algorithm algorithm;
  size_t workspace = 0;
  bool usable = false;
};

Plan make_plan(const BiasedProduct& p, int device) {
  const Table& lt = *library();
  Plan plan;
  Preference preference = nullptr;
  auto layout = [&](MatrixLayout& to, int op, int64_t rows, int64_t columns, int64_t leading) {
    if (op) std::swap(rows, columns);
    return lt.create_layout(&to, p.type, uint64_t(rows), uint64_t(columns), leading) == 0;
  };
  auto describe = [&](int attribute, const auto& value) {
    return lt.set_description(plan.description, attribute, &value, sizeof value) == 0;
  };
  auto prefer = [&](int attribute, const auto& value) {
    return lt.set_preference(preference, attribute, &value, sizeof value) == 0;
  };
  const bool described =
      lt.create_description(&plan.description, p.compute, kFloat32) == 0 &&
      describe(kDescLeftOp, int32_t(p.left_op)) && describe(kDescRightOp, int32_t(p.right_op)) &&
      describe(kDescEpilogue, kEpilogueBias) && describe(kDescBias, p.bias) &&
      layout(plan.left, p.left_op, p.rows, p.depth, p.left_leading) &&
      layout(plan.right, p.right_op, p.depth, p.columns, p.right_leading) &&
      layout(plan.out, 0, p.rows, p.columns, p.out_leading) &&
      lt.create_preference(&preference) == 0 && prefer(kPreferWorkspace, uint64_t(kWorkspace)) &&
      prefer(kPreferLeft, uint32_t(alignment(p.left))) &&
      prefer(kPreferRight, uint32_t(alignment(p.right))) &&
      prefer(kPreferIn, uint32_t(alignment(p.out))) &&
      prefer(kPreferOut, uint32_t(alignment(p.out)));
  Heuristic best{};
  int found = 0;
  if (described &&
      lt.heuristic(handle_of(device), plan.description, plan.left, plan.right, plan.out, plan.out,
                   preference, 1, &best, &found) == 0 &&
      found > 0 && best.state == 0) {
    plan.algorithm = best.algorithm;
    plan.workspace = best.workspace;
    plan.usable = true;
  }
  if (preference) lt.destroy_preference(preference);
  return plan;
}

}  // namespace

bool biased_product(const BiasedProduct& product, int device, CuStream stream) {
  if (!library() || !handle_of(device)) return false;
  // A description holds the bias's address, so that threads cannot share it.
  auto& plans = thread_state<std::unordered_map<Key, Plan, KeyHash>>();
  const Key key = key_of(product, device);
  auto at = plans.find(key);
  if (at == plans.end()) at = plans.emplace(key, make_plan(product, device)).first;
  const Plan& plan = at->second;
  if (!plan.usable) return false;
  const Table& lt = *library();
  if (lt.set_description(plan.description, kDescBias, &product.bias, sizeof product.bias) != 0)
    return false;
  const float one = 1, zero = 0;
  Scratch workspace(plan.workspace, device, stream);
  const Status status =
      lt.matmul(handle_of(device), plan.description, &one, product.left, plan.left, product.right,
                plan.right, &zero, product.out, plan.out, product.out, plan.out, &plan.algorithm,
                workspace.get(), plan.workspace, stream);
  if (status != 0)
    throw CudaError("cuBLASLt error " + std::to_string(status) + " (cublasLtMatmul)", status);
  return true;
}

}  // namespace facula::cuda
