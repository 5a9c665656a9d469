#include "core/storage.h"

#include <cstring>
#include <new>

#include "core/device_copy.h"
#include "core/error.h"
#include "core/host_allocator.h"

namespace facula {

SourceLocation (*capture_location)() = nullptr;
bool track_locations = true;
void (*copy_within_device)(void*, const void*, size_t, Device) = nullptr;

namespace {

DeviceMemory g_device_memory[3];

void release_host(Storage* s) {
  host_free(s->data, s->nbytes);
}

void release_device(Storage* s) {
  g_device_memory[int(s->device.type)].release(s->data, s->nbytes, s->device.index);
}

void* allocate_host(size_t nbytes) {
  try {
    return host_allocate(nbytes);
  } catch (const std::bad_alloc&) {
    runtime_error("not enough memory: you tried to allocate ", nbytes, " bytes (",
                  double(nbytes) / (1 << 30), " GiB)");
  }
}

}  // namespace

void register_device_memory(DeviceType type, DeviceMemory memory) {
  g_device_memory[int(type)] = memory;
}

Storage* allocate_storage(size_t nbytes, Device device) {
  if (device.is_absent())
    fail(ErrorKind::NotImplemented, "device ", device,
         " can be named, but holds no tensors: Facula has no backend for it. There are cpu, cuda "
         "and meta");
  auto* s = new (host_allocate(sizeof(Storage))) Storage;
  s->device = device;
  s->nbytes = nbytes;
  if (device.is_meta() || nbytes == 0) {
    s->release = device.is_cpu() ? release_host : nullptr;
    return s;
  }
  try {
    if (device.is_cpu()) {
      s->data = allocate_host(nbytes);
      s->release = release_host;
    } else {
      auto& memory = g_device_memory[int(device.type)];
      if (!memory.allocate) runtime_error("device ", device, " is not available in this process");
      s->data = memory.allocate(nbytes, device.index);
      s->release = release_device;
    }
  } catch (...) {
    host_free(s, sizeof(Storage));
    throw;
  }
  return s;
}

Storage* borrow_storage(void* data, size_t nbytes, Device device, void (*release)(Storage*),
                        void* context) {
  auto* s = new (host_allocate(sizeof(Storage))) Storage;
  s->data = data;
  s->nbytes = nbytes;
  s->device = device;
  s->release = release;
  s->context = context;
  s->resizable = false;
  return s;
}

void Storage::destroy() {
  if (release && (data || context)) release(this);
  this->~Storage();
  host_free(this, sizeof(Storage));
}

void Storage::resize(size_t bytes) {
  if (!resizable) runtime_error("Trying to resize storage that is not resizable");
  if (device.is_meta()) {
    nbytes = bytes;
    return;
  }
  if (!device.is_cpu()) {
    auto& memory = g_device_memory[int(device.type)];
    void* fresh = bytes ? memory.allocate(bytes, device.index) : nullptr;
    if (fresh && data) copy_within_device(fresh, data, bytes < nbytes ? bytes : nbytes, device);
    if (data) memory.release(data, nbytes, device.index);
    data = fresh;
    nbytes = bytes;
    release = release_device;
    return;
  }
  void* fresh = bytes ? allocate_host(bytes) : nullptr;
  if (fresh && data) std::memcpy(fresh, data, bytes < nbytes ? bytes : nbytes);
  if (data) host_free(data, nbytes);
  data = fresh;
  nbytes = bytes;
}

}  // namespace facula
