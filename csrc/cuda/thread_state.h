// State that one thread at a time uses, such as library handles: made when a thread first needs it,
// left to others when the thread ends. Making it takes long, and it holds device memory.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

namespace facula::cuda {

template <class State>
struct StatePool {
  std::mutex mutex;
  std::vector<std::unique_ptr<State>> idle;
};
template <class State>
StatePool<State>& state_pool() {
  static auto* pool = new StatePool<State>;  // threads may outlive static destruction
  return *pool;
}

template <class State>
struct BorrowedState {
  std::unique_ptr<State> state;

  BorrowedState() {
    StatePool<State>& pool = state_pool<State>();
    std::lock_guard lock(pool.mutex);
    if (pool.idle.empty()) {
      state = std::make_unique<State>();
    } else {
      state = std::move(pool.idle.back());
      pool.idle.pop_back();
    }
  }
  ~BorrowedState() {
    StatePool<State>& pool = state_pool<State>();
    std::lock_guard lock(pool.mutex);
    pool.idle.push_back(std::move(state));
  }
};

template <class State>
State& thread_state() {
  static thread_local BorrowedState<State> mine;
  return *mine.state;
}

}  // namespace facula::cuda
