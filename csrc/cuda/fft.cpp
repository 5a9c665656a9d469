#include "cuda/fft.h"

#include <list>
#include <map>
#include <mutex>
#include <tuple>

#include "cuda/allocator.h"
#include "cuda/libraries.h"
#include "cuda/translate.h"
#include "op/hooks/fft.h"

namespace facula::cuda {
namespace {

using Plan = int;
using Result = int;

enum Type : int {
  kC2C = 0x29,
  kR2C = 0x2a,
  kC2R = 0x2c,
  kZ2Z = 0x69,
  kD2Z = 0x6a,
  kZ2D = 0x6c,
};

struct Table {
  Result (*create)(Plan*);
  Result (*destroy)(Plan);
  Result (*set_auto_allocation)(Plan, int);
  Result (*make_plan)(Plan, int, long long*, long long*, long long, long long, long long*,
                      long long, long long, Type, long long, size_t*);
  Result (*set_work_area)(Plan, void*);
  Result (*set_stream)(Plan, CuStream);
  Result (*c2c)(Plan, void*, void*, int);
  Result (*r2c)(Plan, void*, void*);
  Result (*c2r)(Plan, void*, void*);
  Result (*z2z)(Plan, void*, void*, int);
  Result (*d2z)(Plan, void*, void*);
  Result (*z2d)(Plan, void*, void*);

  Table() {
    load(create, "cufftCreate");
    load(destroy, "cufftDestroy");
    load(set_auto_allocation, "cufftSetAutoAllocation");
    load(make_plan, "cufftMakePlanMany64");
    load(set_work_area, "cufftSetWorkArea");
    load(set_stream, "cufftSetStream");
    load(c2c, "cufftExecC2C");
    load(r2c, "cufftExecR2C");
    load(c2r, "cufftExecC2R");
    load(z2z, "cufftExecZ2Z");
    load(d2z, "cufftExecD2Z");
    load(z2d, "cufftExecZ2D");
  }

 private:
  template <class Function>
  static void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(library_symbol(Library::Cufft, name));
  }
};

const Table& cufft() {
  static const Table* table = new Table;
  return *table;
}

void check(Result result, const char* function) {
  if (result == 0) return;
  constexpr const char* kNames[] = {"success",          "invalid plan",  "allocation failed",
                                    "invalid type",     "invalid value", "internal error",
                                    "execution failed", "setup failed",  "invalid size"};
  const bool known = result > 0 && result < int(std::size(kNames));
  throw CudaError(std::string("cuFFT error: ") + (known ? kNames[result] : "unknown") + " (" +
                      function + " gave " + std::to_string(result) + ")",
                  result);
}

// Making a plan takes a millisecond and more: those used last are kept.
using Key = std::tuple<int, int, int, long long, long long, long long, long long>;
struct Entry {
  Key key;
  Plan plan;
  size_t work_bytes;
};
constexpr size_t kMostPlans = 1024;

struct PlanCache {
  std::mutex mutex;  // also held while a plan is queued: it remembers its stream and its work area
  std::list<Entry> entries;  // the one used last comes first
  std::map<Key, std::list<Entry>::iterator> places;

  Entry& find(const Key& key) {
    auto known = places.find(key);
    if (known != places.end()) {
      entries.splice(entries.begin(), entries, known->second);
      return entries.front();
    }
    if (entries.size() >= kMostPlans) {
      cufft().destroy(entries.back().plan);
      places.erase(entries.back().key);
      entries.pop_back();
    }
    auto [device, type, rank, n0, n1, n2, batch] = key;
    long long sizes[] = {n0, n1, n2};
    Entry entry{key, 0, 0};
    check(cufft().create(&entry.plan), "cufftCreate");
    try {
      check(cufft().set_auto_allocation(entry.plan, 0), "cufftSetAutoAllocation");
      // Dense data: no embedding, unit strides.
      check(cufft().make_plan(entry.plan, rank, sizes, nullptr, 1, 0, nullptr, 1, 0, Type(type),
                              batch, &entry.work_bytes),
            "cufftMakePlanMany64");
    } catch (...) {
      cufft().destroy(entry.plan);
      throw;
    }
    entries.push_front(entry);
    places[key] = entries.begin();
    return entries.front();
  }
};

PlanCache& cache() {
  static auto* instance = new PlanCache;
  return *instance;
}

void transform(const Tensor& in, const Tensor& out, int rank, bool forward) {
  const int device = in.device().index;
  const bool twice = to_real(in.dtype()) == DType::Float64;
  const Type type = !in.is_complex()    ? (twice ? kD2Z : kR2C)
                    : !out.is_complex() ? (twice ? kZ2D : kC2R)
                                        : (twice ? kZ2Z : kC2C);
  // Sizes are those of the longer side.
  const Tensor& shape = type == kC2R || type == kZ2D ? out : in;
  long long n[3] = {1, 1, 1}, points = 1;
  for (int d = 0; d < rank; ++d) points *= n[d] = shape.size(d - rank);
  const long long batch = shape.numel() / points;
  CuStream stream = current_stream(device);
  use_device(device);
  std::lock_guard lock(cache().mutex);
  Entry& entry = cache().find({device, type, rank, n[0], n[1], n[2], batch});
  Scratch work(entry.work_bytes, device, stream);
  check(cufft().set_stream(entry.plan, stream), "cufftSetStream");
  check(cufft().set_work_area(entry.plan, work.get()), "cufftSetWorkArea");
  const int direction = forward ? -1 : 1;
  switch (type) {
    case kC2C: return check(cufft().c2c(entry.plan, in.data(), out.data(), direction), "C2C");
    case kZ2Z: return check(cufft().z2z(entry.plan, in.data(), out.data(), direction), "Z2Z");
    case kR2C: return check(cufft().r2c(entry.plan, in.data(), out.data()), "R2C");
    case kD2Z: return check(cufft().d2z(entry.plan, in.data(), out.data()), "D2Z");
    case kC2R: return check(cufft().c2r(entry.plan, in.data(), out.data()), "C2R");
    case kZ2D: return check(cufft().z2d(entry.plan, in.data(), out.data()), "Z2D");
  }
}

}  // namespace

void register_fft() {
  device_fft.transform.set(translate<transform>);
}

}  // namespace facula::cuda
