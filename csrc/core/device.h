// Where a tensor lives: a device type and an index (-1 means "the current one").
#pragma once
#include <cstdint>
#include <string>

namespace facula {

// Types from Absent on are names of PyTorch that programs compare with; nothing can be put there.
enum class DeviceType : uint8_t { CPU = 0, CUDA = 1, Meta = 2, Absent = 3, None = 255 };

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;

  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_cuda() const { return type == DeviceType::CUDA; }
  bool is_meta() const { return type == DeviceType::Meta; }
  bool is_absent() const { return type >= DeviceType::Absent && type != DeviceType::None; }
};
constexpr Device kNoDevice{DeviceType::None, -1};

const char* device_type_name(DeviceType type);
std::string to_string(Device device);
Device parse_device(const std::string& text);  // "cpu", "cuda:1", "meta"

enum class MemoryFormat : uint8_t {
  Contiguous,
  Preserve,
  ChannelsLast,
  ChannelsLast3d,
  None = 255
};

}  // namespace facula
