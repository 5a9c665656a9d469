// What a device reports about work that it was given: facula.AcceleratorError in Python.
#pragma once
#include "core/error.h"

namespace facula {

class DeviceError : public Error {
 public:
  // `code`: the error number of the device's runtime, 0 where it has none.
  DeviceError(ErrorKind kind, std::string message, int code)
      : Error(kind, std::move(message)), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

}  // namespace facula
