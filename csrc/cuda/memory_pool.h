// Memory apart from the common cache, for facula.cuda.MemPool. Graphs have the same pools
// (allocator.h), which they fill while they are captured.
#pragma once
#include <cstdint>

namespace facula::cuda {

// The pool is kept until as many release_memory_pool calls have been made.
void hold_memory_pool(int device, uint64_t pool);
int memory_pool_users(int device, uint64_t pool);
// From here to end_pool_route, what this thread allocates comes from the pool.
void begin_pool_route(int device, uint64_t pool);
void end_pool_route(int device, uint64_t pool);

}  // namespace facula::cuda
