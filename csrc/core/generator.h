// The source of random numbers. On the host: MT19937 (Matsumoto and Nishimura, 1998) with PyTorch's
// seeding and state, so that a seed gives PyTorch's CPU numbers and states can be exchanged with
// it. On CUDA devices: a seed and an offset for Philox (Salmon and others, 2011), whose numbers
// kernels compute from their place in the sequence.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "core/device.h"

namespace facula {

// Where a kernel's Philox numbers begin. Offsets count 32-bit words and are multiples of 4.
struct PhiloxPlace {
  uint64_t seed, offset;
};

struct Generator {
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  static constexpr size_t kStateBytes = 5056;      // of the host's engine, PyTorch's layout
  static constexpr size_t kPhiloxStateBytes = 16;  // seed and offset

  std::atomic<uint32_t> refs{1};
  const Device device;
  // Drawing changes the state: hold this from the first to the last draw of one operation, so that
  // threads that share a generator interleave by operation and not by number.
  std::mutex mutex;

  explicit Generator(Device device = {}, uint64_t seed = kDefaultSeed);
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  void retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void unref() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  Generator* clone();  // same device and state; the caller owns the reference

  // These take the mutex themselves.
  void manual_seed(uint64_t seed);  // the engine takes the low 32 bits, initial_seed keeps all
  uint64_t seed();                  // from the system's entropy; returns what it chose
  uint64_t initial_seed();
  void set_state(const uint8_t* bytes, size_t size);

  // state_bytes() of them, in PyTorch's layout, with the mutex held.
  void write_state(uint8_t* bytes);

  // Remembers the host's place in the sequence, to go back there.
  void mark();
  void rewind();

  // ---- generators of CUDA devices
  bool counts() const { return device.is_cuda(); }
  size_t state_bytes() const { return counts() ? kPhiloxStateBytes : kStateBytes; }
  // The place of an operation whose threads take `words` words each, and goes on behind them.
  PhiloxPlace take(uint64_t words);
  uint64_t offset();
  void set_offset(uint64_t offset);

  // ---- drawing, with the mutex held
  uint32_t random32() {
    if (--left_ == 0) next_block();
    return tempered_[next_++];
  }
  uint64_t random64() {  // the high word is drawn first
    const uint64_t high = random32();
    return high << 32 | random32();
  }
  void fill(uint32_t* words, int64_t n);
  // The second normal of the last pair that Box and Muller's transform made, for the next call.
  std::optional<double> kept_normal;

 private:
  static constexpr int kWords = 624, kShift = 397;

  ~Generator();
  void reset(uint64_t seed);
  void make_words();
  void keep_marked_words();
  void set_place(const uint8_t* bytes, size_t size);
  void next_block();
  void temper();

  uint64_t seed_ = 0;
  bool has_words_ = false;  // a seed becomes words when they are needed: many are replaced at once
  uint64_t offset_ = 0;     // of counting generators
  int32_t left_ = 1;        // draws until the next block, plus one
  uint32_t next_ = 0;       // index of the next word
  std::optional<float> kept_float_normal_;  // part of the state's layout; nothing here draws it
  struct Mark;
  std::unique_ptr<Mark> mark_;
  alignas(64) uint32_t state_[kWords];
  alignas(64) uint32_t tempered_[kWords];  // the outputs that state_ stands for
};

// The generator of every draw on the host that names none. It starts from the system's entropy.
Generator& default_generator();
// That of a CUDA device (the first one, where the device has no number).
Generator& default_generator(Device device);
// Seeds those of all CUDA devices, also of devices that have not been used yet.
void seed_device_generators(uint64_t seed);

}  // namespace facula
