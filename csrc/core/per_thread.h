// State of a thread that few threads need, made when it is first asked for.
#pragma once
#include <memory>

namespace facula {

// Only a pointer to it lies in thread-local storage. The dynamic linker of glibc keeps the storage
// of a library beside the thread's own, two instructions away, as long as all of it takes at most
// 512 bytes; beyond that every access of a call (some forty) goes through a table.
template <class State>
State& per_thread() {
  static thread_local std::unique_ptr<State> mine;
  if (!mine) mine = std::make_unique<State>();
  return *mine;
}

}  // namespace facula
