// What the caching allocator is made of: blocks, the segments that they are cut from, and lists of
// free blocks by size. Nothing here calls the driver or takes a lock.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/storage.h"
#include "cuda/driver.h"

namespace facula::cuda {

constexpr size_t kRounding = 512;  // of every request, and the alignment of every block

struct Arena;
struct Block;

// Memory from the driver: one allocation, or a range of addresses that is mapped piece by piece.
struct Segment {
  char* base = nullptr;
  size_t size = 0;      // bytes that can be used
  size_t reserved = 0;  // bytes of addresses, where the segment can grow; else 0
  Arena* arena = nullptr;
  Block* first = nullptr;
  std::vector<CuMemHandle> pieces = {};  // of a segment that can grow, in order
};

// A piece of a segment. Neighbours are linked, so that free ones can be merged.
struct Block {
  char* pointer = nullptr;
  size_t size = 0;
  size_t requested = 0;  // what the caller asked for
  Segment* segment = nullptr;
  Block *before = nullptr, *after = nullptr;   // in the segment
  Block *next = nullptr, *previous = nullptr;  // in a list of free blocks
  bool free = false;
  uint32_t pending_events = 0;
  std::vector<CuStream> other_streams = {};  // that use the block beside its own
  SourceLocation made_at;                    // where tracking is on

  bool whole_segment() const { return !before && !after; }
};

// Free blocks in classes of sizes, 32 to each power of two: taking, adding and removing one are a
// few instructions and never allocate (two-level segregated fit; Masmano et al., 2004).
class FreeBlocks {
 public:
  void add(Block* block) {
    const Class c = class_of(block->size);
    Block*& head = heads_[c.row][c.column];
    block->previous = nullptr;
    block->next = head;
    if (head) head->previous = block;
    head = block;
    columns_[c.row] |= 1u << c.column;
    rows_ |= uint64_t(1) << c.row;
  }

  void remove(Block* block) {
    const Class c = class_of(block->size);
    if (block->next) block->next->previous = block->previous;
    if (block->previous) {
      block->previous->next = block->next;
      return;
    }
    heads_[c.row][c.column] = block->next;
    if (block->next) return;
    columns_[c.row] &= ~(1u << c.column);
    if (!columns_[c.row]) rows_ &= ~(uint64_t(1) << c.row);
  }

  // A block of at least `size` bytes, close to the smallest there is; it stays in its list.
  Block* find(size_t size) const {
    const Class c = class_of(size);
    Block* best = nullptr;
    int looked_at = 0;
    for (Block* b = heads_[c.row][c.column]; b && looked_at < 32; b = b->next, ++looked_at) {
      if (b->size == size) return b;
      if (b->size > size && (!best || b->size < best->size)) best = b;
    }
    if (best) return best;
    // Every block of a higher class is large enough.
    const uint32_t higher = c.column == 31 ? 0 : columns_[c.row] >> (c.column + 1);
    if (higher) return heads_[c.row][c.column + 1 + std::countr_zero(higher)];
    const uint64_t rows = rows_ >> (c.row + 1);
    if (!rows) return nullptr;
    const int row = c.row + 1 + std::countr_zero(rows);
    return heads_[row][std::countr_zero(columns_[row])];
  }

  template <class F>
  void for_each(F&& f) {  // f may remove the block it is given
    for (auto& row : heads_)
      for (Block* head : row)
        for (Block *b = head, *next; b; b = next) {
          next = b->next;
          f(b);
        }
  }

 private:
  static constexpr int kRows = 50;
  struct Class {
    int row, column;
  };
  static Class class_of(size_t size) {
    const uint64_t units = size / kRounding;
    const int top = 63 - std::countl_zero(units | 1);
    if (top < 5) return {0, int(units)};
    return {top - 4, int(units >> (top - 5) & 31)};
  }

  uint64_t rows_ = 0;
  uint32_t columns_[kRows] = {};
  Block* heads_[kRows][32] = {};
};

// Memory for one stream, one size of requests and one pool. Blocks of one arena may be used again
// as soon as they are free.
struct Arena {
  CuStream stream;
  uint64_t pool;  // 0: the common one
  bool small;
  FreeBlocks blocks;
  Segment* growing = nullptr;  // the segment that grows, where there is one
};

// Live blocks by address: open addressing, no allocation in the steady state.
class LiveBlocks {
 public:
  LiveBlocks() : slots_(1024) {}

  void add(Block* block) {
    if (2 * ++count_ > slots_.size()) grow();
    place(block);
  }
  Block* find(const void* pointer) const {
    for (size_t i = home(pointer);; i = next(i)) {
      if (!slots_[i] || slots_[i]->pointer == pointer) return slots_[i];
    }
  }
  void remove(Block* block) {
    size_t hole = home(block->pointer);
    while (slots_[hole] != block) hole = next(hole);
    // What follows moves up, unless it would come before its home.
    for (size_t i = next(hole); slots_[i]; i = next(i)) {
      const size_t distance = (i - home(slots_[i]->pointer)) & mask();
      if (distance >= ((i - hole) & mask())) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole] = nullptr;
    --count_;
  }
  template <class F>
  void for_each(F&& f) const {
    for (Block* block : slots_)
      if (block) f(block);
  }

 private:
  size_t mask() const { return slots_.size() - 1; }
  size_t next(size_t i) const { return (i + 1) & mask(); }
  size_t home(const void* pointer) const {
    const uint64_t x = uint64_t(reinterpret_cast<uintptr_t>(pointer)) / kRounding;
    return size_t((x * 0x9e3779b97f4a7c15u) >> 32) & mask();
  }
  void place(Block* block) {
    size_t i = home(block->pointer);
    while (slots_[i]) i = next(i);
    slots_[i] = block;
  }
  void grow() {
    std::vector<Block*> old(slots_.size() * 2);
    old.swap(slots_);
    for (Block* block : old)
      if (block) place(block);
  }

  std::vector<Block*> slots_;
  size_t count_ = 0;
};

}  // namespace facula::cuda
