#include "core/thread_scratch.h"

#include <cstdlib>

#include "core/host_allocator.h"
#include "core/per_thread.h"

namespace facula {

namespace {

struct OwnBlock {
  void* data = nullptr;
  size_t bytes = 0;
  bool taken = false;
};

thread_local constinit OwnBlock own_block;  // no destructor: what ends after it may read it

void release() {
  std::free(own_block.data);
  own_block = {nullptr, 0, true};  // what the thread still runs asks the allocator
}

}  // namespace

ThreadScratch::ThreadScratch(size_t bytes) : bytes_(bytes) {
  OwnBlock& block = own_block;
  own_ = !block.taken && bytes <= kMostBytes;
  if (own_ && block.bytes < bytes) {
    if (!block.data) at_thread_end(release);
    const size_t room = (bytes + 4095) & ~size_t(4095);
    std::free(block.data);
    block.data = std::aligned_alloc(kHostAlignment, room);
    block.bytes = block.data ? room : 0;
    own_ = block.data != nullptr;
  }
  if (own_) block.taken = true;
  data_ = own_ ? block.data : host_allocate(bytes);
}

ThreadScratch::~ThreadScratch() {
  if (own_) own_block.taken = false;
  else host_free(data_, bytes_);
}

}  // namespace facula
