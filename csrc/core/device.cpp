#include "core/device.h"

#include <iterator>

#include "core/error.h"

namespace facula {

// In the order of DeviceType.
static constexpr const char* kTypeNames[] = {
    "cpu",  "cuda", "meta", "mps",  "xpu", "xla",    "hpu",    "mtia",   "privateuseone", "ipu",
    "maia", "hip",  "fpga", "lazy", "ve",  "vulkan", "opengl", "opencl", "ideep",         "mkldnn"};

const char* device_type_name(DeviceType type) {
  return size_t(type) < std::size(kTypeNames) ? kTypeNames[size_t(type)] : "none";
}

std::string to_string(Device device) {
  std::string s = device_type_name(device.type);
  if (device.index >= 0) s += ":" + std::to_string(int(device.index));
  return s;
}

Device parse_device(const std::string& text_) {
  auto bad = [&](const char* why) {
    runtime_error(
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, "
        "xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device "
        "string: ",
        text_, ". Invalid device string: '", text_, "' (", why, ")");
  };
  if (text_.empty()) bad("it is empty");
  auto colon = text_.find(':');
  std::string kind = text_.substr(0, colon);
  Device d;
  size_t type = 0;
  while (type < std::size(kTypeNames) && kind != kTypeNames[type]) ++type;
  if (type == std::size(kTypeNames)) bad("unknown device type");
  d.type = DeviceType(type);
  if (colon != std::string::npos) {
    std::string digits = text_.substr(colon + 1);
    if (digits.empty() || digits.size() > 3 ||
        digits.find_first_not_of("0123456789") != std::string::npos ||
        (digits.size() > 1 && digits[0] == '0'))
      bad("the index must be a whole number without leading zeros");
    int index = std::stoi(digits);
    if (index > 127) bad("the index must be below 128");
    d.index = int8_t(index);
  }
  return d;
}

}  // namespace facula
