#include "cuda/fault.h"

#include <atomic>

#include "cuda/context.h"
#include "cuda/pinned.h"

namespace facula::cuda {
namespace {

std::atomic<FaultRecord*> records[kMaxDevices];

FaultRecord* record_of(int device) {
  if (FaultRecord* known = records[device].load(std::memory_order_acquire)) return known;
  auto* made = static_cast<FaultRecord*>(allocate_pinned(sizeof(FaultRecord)));
  *made = {};
  FaultRecord* expected = nullptr;
  if (records[device].compare_exchange_strong(expected, made)) return made;
  deallocate_pinned(made);  // another thread was first
  return expected;
}

}  // namespace

FaultSite fault_site(int device, const char* name, int64_t limit, int32_t dim, bool negative) {
  return {record_of(device), name, limit, dim, negative};
}

void check_faults(int device) {
  FaultRecord* record = records[device].load(std::memory_order_acquire);
  if (!record) return;
  std::atomic_ref<int32_t> state(record->state);
  if (state.load(std::memory_order_acquire) != 2) [[likely]]
    return;
  const FaultRecord found = *record;
  state.store(0, std::memory_order_release);
  const std::string value = std::to_string(found.value), limit = std::to_string(found.limit);
  std::string what = std::string(found.name) + "(): ";
  if (found.dim == kParameters)
    throw DriverError(what + "the distribution has no samples for the parameter at element " +
                          std::to_string(found.position) +
                          " (found on the device, when the program waited for it)",
                      kCuAssert);
  what += found.dim == kLabels
              ? "label " + value + " is out of bounds: there are " + limit + " classes"
              : "index " + value + " is out of bounds for dimension " + std::to_string(found.dim) +
                    " with size " + limit;
  throw BadIndex(what + " (element " + std::to_string(found.position) +
                     " of the indices, on the device; found when the program waited for it)",
                 kCuAssert);
}

}  // namespace facula::cuda
