// Reading a few bytes of device memory, for numbers that decide what the host does next.
#pragma once
#include <cstddef>

namespace facula {

// Waits for the device's current stream. Set by the backend.
extern void (*read_device_memory)(void* host, const void* memory, size_t bytes, int device);

}  // namespace facula
