// From a kernel template and its specialisation to a function on a device: NVRTC, the cache on
// disk, and tables in memory that make the second launch cost a few nanoseconds.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/context.h"

namespace facula::cuda {

// A template in _kernels/ and the macros that specialise it. The template defines one
// extern "C" __global__ function named by its macro FACULA_NAME.
struct KernelText {
  std::string file;   // "elementwise.cuh"
  std::string entry;  // value of FACULA_NAME; see kernel_name
  std::vector<std::pair<std::string, std::string>> defines;
  bool specific = false;  // uses instructions that only the device's own compute capability has

  void define(const char* name, std::string value) { defines.emplace_back(name, std::move(value)); }
};

// Where the templates lie. Default: $FACULA_KERNEL_DIR, or _kernels beside the binary.
void set_kernel_directory(const std::string& directory);

// The complete source for NVRTC: one #define line per macro, then what the kernel needs of the
// template and the files that it includes.
std::string assemble(const KernelText& text);

// A C identifier for profilers and error texts, e.g. "facula_logaddexp".
std::string kernel_name(const char* operator_name);

// `expression`, with floating literals given the type R of the surrounding template (0.5 is a
// double in C++ and would draw the whole expression into double), as a return statement.
// Text that already contains a return statement stays a function body.
std::string formula_body(const std::string& expression);

// Machine code or PTX for `target` (see nvrtc_target), from the cache on disk if it is there.
std::string compile_kernel(const KernelText& text, const std::string& target,
                           bool use_cache = true);

// One kernel: a caller-held slot whose look-up is one load.
class Kernel {
 public:
  // The function, for a launch that comes next: the device's context is current afterwards.
  // `build` returns the KernelText and is called once per device.
  template <class Build>
  CuFunction on(int device, Build&& build) {
    use_device(device);
    CuFunction function = functions_[device].load(std::memory_order_acquire);
    return function ? function : load(device, build());
  }
  // Begins to compile on another thread, for a caller who will soon want the kernel: what it
  // compiles meanwhile takes no longer.
  template <class Build>
  void prepare(int device, Build&& build) {
    if (!functions_[device].load(std::memory_order_acquire)) load_ahead(device, build());
  }

 private:
  CuFunction load(int device, const KernelText& text);
  void load_ahead(int device, KernelText text);

  std::mutex mutex_;  // one thread compiles, the others wait for its result
  std::atomic<CuFunction> functions_[kMaxDevices] = {};
};

// What tells the kernels of one template apart. Text is identified by address: formulas live in
// operator records or come from intern(), and never change.
struct KernelKey {
  const void* text[5] = {};
  uint64_t bits[3] = {};

  bool operator==(const KernelKey&) const = default;
};

// Kernels by key. Entries are never removed, so that look-ups need no lock.
class KernelTable {
 public:
  Kernel& find(const KernelKey& key) {
    std::atomic<Entry*>& bucket = buckets_[hash(key) % kBuckets];
    for (Entry* e = bucket.load(std::memory_order_acquire); e; e = e->next) {
      if (e->key == key) return e->kernel;
    }
    return insert(bucket, key);
  }

 private:
  struct Entry {
    KernelKey key;
    Entry* next;
    Kernel kernel;
  };
  static constexpr size_t kBuckets = 1021;

  static size_t hash(const KernelKey& key) {
    uint64_t words[sizeof(KernelKey) / 8], h = 0;
    std::memcpy(words, &key, sizeof words);
    for (uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return size_t(h);
  }
  Kernel& insert(std::atomic<Entry*>& bucket, const KernelKey& key);

  std::mutex mutex_;
  std::atomic<Entry*> buckets_[kBuckets] = {};
};

// A copy of `text` that lives for ever and is the same for equal texts, for formulas made at run
// time (fusion).
const char* intern(const std::string& text);

}  // namespace facula::cuda
