// Noting bad indices for the host, which raises at the next synchronisation (csrc/cuda/fault.h).
#pragma once
#include "types.cuh"

namespace facula {

// Mirrored by FaultRecord and FaultSite in csrc/cuda/fault.h.
struct FaultRecord {
  int32 state, dim;
  uint64 name;
  int64 value, limit, position;
};
struct FaultSite {
  FaultRecord* record;
  uint64 name;
  int64 limit;
  int32 dim, negative;
};

__device__ __noinline__ void note_fault(const FaultSite& site, int64 value, int64 position) {
  FaultRecord* record = site.record;
  if (atomicCAS(&record->state, 0, 1) != 0) return;  // the first one is reported
  record->dim = site.dim;
  record->name = site.name;
  record->value = value;
  record->limit = site.limit;
  record->position = position;
  __threadfence_system();
  *const_cast<volatile int32*>(&record->state) = 2;
}

// The last bad index of a thread that checks several, the first of them last: it is noted in one
// place, which is compiled once.
struct LastFault {
  int site = -1;
  int64 value = 0, position = 0;

  // Whether an index is good; negative ones become positive.
  __device__ __forceinline__ bool check(const FaultSite* sites, int at, int64& index,
                                        int64 position_of_index) {
    const int64 given = index;
    if (sites[at].negative && given < 0) index += sites[at].limit;
    if (uint64(index) < uint64(sites[at].limit)) return true;
    site = at;
    value = given;
    position = position_of_index;
    return false;
  }
  __device__ __forceinline__ void note(const FaultSite* sites) const {
    if (site >= 0) note_fault(sites[site], value, position);
  }
};

// Whether an index is good; negative ones become positive. A bad one is noted, and the element must
// be left out.
__device__ __forceinline__ bool good_index(const FaultSite& site, int64& value, int64 position) {
  if (uint64(value) < uint64(site.limit)) return true;
  if (site.negative && value < 0 && value >= -site.limit) {
    value += site.limit;
    return true;
  }
  note_fault(site, value, position);
  return false;
}

}  // namespace facula
