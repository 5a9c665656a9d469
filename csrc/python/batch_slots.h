// Slots: memory that a worker and its loader have both mapped, one file without a name for each.
// The worker stacks large tensors there, the loader's tensors lie there, and when the last of them
// is gone the slot goes back to the worker.
#pragma once
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "python/interop.h"

namespace facula::python {

// Calls what belongs to the program. It may run when the interpreter ends, and a thread that is in
// there at that time must not be unwound through our destructors either: see wait_for_gil().
inline PyObject* call_in_worker(PyObject* f, PyObject* argument) noexcept {
  return wait_for_gil([&] { return PyObject_CallOneArg(f, argument); });
}

// Tensors from here on lie in a slot: handing one over costs less than copying so much twice.
inline constexpr size_t kSharedBytes = 1 << 15;

// Copies a part of a batch of `whole` bytes. The slots of large batches take turns, so none of them
// is in the cache: they are written past it.
void copy_to_slot(char* to, const char* from, size_t bytes, size_t whole);

// A mapped file.
struct Mapping {
  char* data;
  size_t size;
  Mapping(int descriptor, size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
};

// Slots whose tensors are gone. Whichever thread drops the last one puts the slot here, without a
// lock: a process that is forked meanwhile could not open it.
class Returns {
 public:
  struct Node {
    int64_t slot;
    std::shared_ptr<Mapping> mapping;
    std::shared_ptr<Returns> to;
    Node* next = nullptr;
  };
  ~Returns() {
    for_each([](int64_t) {});
  }
  void push(Node* node) {
    node->next = head_.load(std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(node->next, node, std::memory_order_release)) {}
  }
  template <class F>
  void for_each(F&& f) {
    for (Node* node = head_.exchange(nullptr, std::memory_order_acquire); node;) {
      std::unique_ptr<Node> owned(node);
      node = node->next;
      f(owned->slot);
    }
  }

 private:
  std::atomic<Node*> head_{nullptr};
};

// The slots of a worker, on its side. Used with the GIL held; tensors may die anywhere.
class SlotWriter {
 public:
  // Lent: a tensor of the worker lies in it. Sending: the same, and when that tensor dies the slot
  // is the loader's. Away: it is the loader's.
  enum class State : uint8_t { Free, Lent, Sending, Away };
  struct Fresh {
    int64_t number;
    size_t size;
    int descriptor;
  };
  std::vector<Fresh> fresh;  // made, and not known to the loader so far

  ~SlotWriter();

  // A slot for so many bytes, which is away from now on; with `make` false, -1 when none is free.
  int64_t take(size_t bytes, bool make = true);
  // Whether one more of that size should be made.
  bool may_make(size_t bytes) const;
  char* data(int64_t number) { return slots_.at(number).mapping->data; }
  // A tensor in a slot of its own; none where there are many of them already.
  Tensor tensor(IntSpan sizes, DType dtype);

  // The slot at whose begin a lent tensor lies, which will be sent; -1 for other tensors.
  int64_t send(const void* address);
  // Called when a batch is gone: a slot that the worker's own code still holds on to may change,
  // so the loader gets a copy. Returns the slot that is away.
  int64_t sent(int64_t number, size_t bytes);
  void cancel(int64_t number);   // it will not be sent
  void release(int64_t number);  // the loader is done with it
  // Drops free slots beyond some memory, the smallest first, and says which.
  std::vector<int64_t> surplus();
  size_t size() const { return slots_.size(); }
  // A process that was forked from the worker has the same slots mapped, and no right to them.
  bool is_ours() const { return int(getpid()) == process_; }
  size_t lent() {
    settle();
    return lent_.size();
  }
  size_t free() {
    settle();
    return free_.size();
  }

 private:
  struct Slot {
    std::shared_ptr<Mapping> mapping;
    State state;
  };
  struct FreeSlot {
    int64_t number;
    size_t size;
  };
  void settle();
  void set_free(int64_t number, Slot& slot);

  std::unordered_map<int64_t, Slot> slots_;
  std::vector<FreeSlot> free_;  // those that were in use last come last
  size_t free_bytes_ = 0;
  std::vector<int64_t> lent_;
  int64_t count_ = 0;
  const int process_ = int(getpid());
  std::shared_ptr<Returns> ended_ = std::make_shared<Returns>();
};

// The slots of a worker, on the loader's side.
class SlotReader {
 public:
  void open(int64_t number, int descriptor, size_t bytes);
  // Memory of the slot, which is free again when the last tensor lets go of it.
  Storage* storage(int64_t number, size_t bytes);
  size_t bytes(int64_t number) const;
  void forget(int64_t number) { slots_.erase(number); }
  size_t size() const { return slots_.size(); }
  Returns& released() { return *released_; }

 private:
  std::unordered_map<int64_t, std::shared_ptr<Mapping>> slots_;
  std::shared_ptr<Returns> released_ = std::make_shared<Returns>();
};

// The memory of tensors that came from a worker is borrowed, but nobody else's: it may be left for
// memory of the storage's own, unless others point into it (see fix_memory()).
bool may_leave_slot(const Storage* s);
void leave_slot(Storage* s);
void stay_in_slot(Storage* s);
void release_slot_buffer(Storage* s);  // for borrow_storage: release_buffer() of such memory

SlotWriter* slots_here();              // where large batches of this thread are stacked, or null
SlotWriter& slot_writer(PyObject* o);  // both throw for objects of other types
SlotReader& slot_reader(PyObject* o);

void init_batch_slots(PyObject* module);

}  // namespace facula::python
