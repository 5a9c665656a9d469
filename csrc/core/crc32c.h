// The checksum of TensorBoard's event files: CRC-32 with Castagnoli's polynomial.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula {

uint32_t crc32c(const void* data, size_t size, uint32_t before = 0);

}  // namespace facula
