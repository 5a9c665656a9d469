#include "cuda/driver.h"

#include <unistd.h>

#include "cuda/libraries.h"

namespace facula::cuda {
namespace {

struct Driver {
  DriverTable table;
  std::string reason;  // why the driver cannot be used; "" if it can
  int devices = 0;
  int version = 0;
  pid_t pid = 0;  // of the process that called cuInit

  Driver() {
    try {
      load();
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }

 private:
  void load() {
#define X(name, parameters) \
  table.name = reinterpret_cast<CuResult(*) parameters>(library_symbol(Library::Driver, #name));
    FACULA_DRIVER_FUNCTIONS(X)
#undef X
    pid = getpid();
    CuResult result = table.cuInit(0);
    if (result == kCuNoDevice) {
      reason =
          "The NVIDIA driver finds no GPU (is one installed, and is CUDA_VISIBLE_DEVICES "
          "right?)";
    } else if (result == kCuStubLibrary) {
      reason = "libcuda.so.1 is the stub from a CUDA toolkit, not a driver: " +
               library_path(Library::Driver);
    } else if (result != kCuSuccess) {
      reason = "The NVIDIA driver could not start: cuInit gave error " + std::to_string(result) +
               text_of(result);
    } else {
      table.cuDriverGetVersion(&version);
      result = table.cuDeviceGetCount(&devices);
      if (result != kCuSuccess) {
        reason = "The NVIDIA driver could not list its GPUs: error " + std::to_string(result) +
                 text_of(result);
      } else if (devices == 0) {
        reason = "The NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide them)";
      }
    }
  }

  std::string text_of(CuResult result) const {
    const char* text = nullptr;
    return table.cuGetErrorString(result, &text) == kCuSuccess && text
               ? std::string(" (") + text + ")"
               : "";
  }
};

// Made on first use and never destroyed, since static destructors elsewhere may still free memory.
Driver& instance() {
  static Driver* driver = new Driver;
  return *driver;
}

}  // namespace

const DriverTable& driver() {
  Driver& d = instance();
  if (d.devices == 0) [[unlikely]] {
    throw NoDevice("CUDA is not available: " + d.reason);
  }
  return d.table;
}

int device_count() {
  return instance().devices;
}
bool is_available() {
  return device_count() > 0;
}
const char* unavailable_reason() {
  return instance().reason.c_str();
}
int driver_version() {
  return instance().version;
}

void throw_driver_error(CuResult result, const char* function) {
  Driver& d = instance();
  const char* name = nullptr;
  const char* text = nullptr;
  if (d.table.cuGetErrorName) {
    d.table.cuGetErrorName(result, &name);
    d.table.cuGetErrorString(result, &text);
  }
  std::string what = std::string("CUDA error: ") + (text ? text : "unknown error") + " (" +
                     function + " gave " + (name ? name : "error") + ", " + std::to_string(result) +
                     ")";
  if (getpid() != d.pid) {
    what +=
        ". CUDA was started before this process was forked and cannot be used in it; start "
        "worker processes with the 'spawn' method";
  } else if (result == kCuUnsupportedPtxVersion) {
    what +=
        ". The NVRTC in use is newer than the driver; update the driver or install an NVRTC "
        "of CUDA " +
        std::to_string(d.version / 1000) + "." + std::to_string(d.version % 1000 / 10);
  } else if (result >= 700 && result < 720) {
    // Launch failures are reported by whichever call comes next.
    what += ". The error comes from an earlier kernel; set CUDA_LAUNCH_BLOCKING=1 to find it";
  }
  throw DriverError(what, result);
}

}  // namespace facula::cuda
