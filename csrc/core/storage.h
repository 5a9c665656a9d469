// A block of memory shared by the tensors that view it, with the version that counts writes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/device.h"

namespace facula {

// Where in the Python program something happened; filled through a hook that the Python layer
// installs, so that the core knows nothing of frames. `code` is kept alive by that layer for good.
struct SourceLocation {
  void* code = nullptr;
  int32_t instruction = 0;
};

struct Storage {
  std::atomic<uint32_t> refs{1};
  std::atomic<uint32_t> version{0};
  void* data = nullptr;
  size_t nbytes = 0;
  Device device;
  bool saved_for_backward = false;  // a tape node holds a view: writes note where they happen
  bool resizable = true;
  void (*release)(Storage*) = nullptr;  // frees `data`; null for memory owned by nobody
  void* context = nullptr;              // what keeps borrowed memory alive
  SourceLocation last_write;
  const char* last_writer = nullptr;  // the operator that wrote, "add_"
  void* python = nullptr;  // borrowed pointer to the Python object of this storage, if one exists

  void retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void unref() {
    if (refs.load(std::memory_order_acquire) == 1 ||
        refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
      destroy();
  }
  void destroy();
  void resize(size_t bytes);  // keeps the old content
  void share();               // moves host memory to where processes forked from now on see it
  bool is_shared() const;     // after share(), and always on other devices
};

// Uninitialised memory on the device; meta has a size but no memory.
Storage* allocate_storage(size_t nbytes, Device device);
// Memory that belongs to somebody else; `release` is called when the last tensor lets go.
Storage* borrow_storage(void* data, size_t nbytes, Device device, void (*release)(Storage*),
                        void* context);

// Devices other than the CPU plug their memory in here.
struct DeviceMemory {
  void* (*allocate)(size_t nbytes, int device) = nullptr;
  void (*release)(void* data, size_t nbytes, int device) = nullptr;
};
void register_device_memory(DeviceType type, DeviceMemory memory);

// Hooks that the Python layer installs (see SourceLocation).
extern SourceLocation (*capture_location)();
extern bool track_locations;

}  // namespace facula
