// SHA-256 (FIPS 180-4), for the names and checksums of cached kernels.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace facula::cuda {

std::array<uint8_t, 32> sha256(std::string_view data);
std::string to_hex(const uint8_t* bytes, size_t count);

}  // namespace facula::cuda
