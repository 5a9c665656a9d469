// The Python line that allocates device memory, where facula.cuda.memory._record_memory_history is
// on.
#pragma once

namespace facula::python {

// To be called before work that runs without the GIL: the allocator then knows the line without
// asking for the GIL, which it could wait for for ever, since it is called with locks held.
void note_allocation_site();

}  // namespace facula::python
