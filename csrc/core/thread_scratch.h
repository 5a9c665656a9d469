// Memory that a kernel needs while it runs. A thread keeps one block for this, which stays in the
// caches of its core: blocks of the allocator come from a list of all threads, so that one that
// every piece of a loop asks for goes from core to core, and its lines with it.
#pragma once
#include <cstddef>

namespace facula {

class ThreadScratch {
 public:
  // The thread's own block where nobody above on its stack has it, and for at most kMostBytes;
  // otherwise one of the allocator. 64-byte aligned, not cleared; for the thread that made it to
  // destroy, others may use it until then.
  explicit ThreadScratch(size_t bytes);
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(const ThreadScratch&) = delete;
  ~ThreadScratch();
  void* data() const { return data_; }

  static constexpr size_t kMostBytes = size_t(3) << 20;

 private:
  void* data_;
  size_t bytes_;
  bool own_;
};

}  // namespace facula
