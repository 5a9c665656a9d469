// How storages on devices copy their bytes when they are resized; the backend sets it.
#pragma once
#include <cstddef>

#include "core/device.h"

namespace facula {

// In the order of the device's current stream.
extern void (*copy_within_device)(void* to, const void* from, size_t bytes, Device device);

}  // namespace facula
