// State of a thread that few threads need, made when it is first asked for.
#pragma once
#include <memory>
#include <utility>

namespace facula {

// Called when the calling thread ends, before what was given earlier.
void at_thread_end(void (*run)());

// Only a pointer to it lies in thread-local storage. The dynamic linker of glibc keeps the storage
// of a library beside the thread's own, two instructions away, as long as all of it takes at most
// 512 bytes; beyond that every access of a call (some forty) goes through a table. A destructor of
// its own would take as much again, for the flag that it is to be called.
template <class State>
State& per_thread() {
  static thread_local constinit State* mine = nullptr;
  if (!mine) {
    auto made = std::make_unique<State>();
    at_thread_end([] { delete std::exchange(mine, nullptr); });
    mine = made.release();
  }
  return *mine;
}

}  // namespace facula
