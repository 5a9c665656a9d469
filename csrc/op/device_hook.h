// A kernel that a device backend provides: the part of an operator that is left when its arguments
// have been checked and its results made. A family of operators declares its hooks in
// op/hooks/<family>.h, calls them where the tensors are not in host memory, and the backend sets
// them when it loads.
#pragma once
#include "core/tensor.h"

namespace facula {

template <class Signature>
class DeviceHook;

template <class Result, class... Args>
class DeviceHook<Result(Args...)> {
 public:
  using Function = Result (*)(Args...);

  constexpr explicit DeviceHook(const char* name) : name_(name) {}
  void set(Function function) { function_ = function; }

  Result operator()(Args... args) const {
    if (!function_)
      fail(ErrorKind::NotImplemented, "'", name_,
           "' has no kernel for tensors on CUDA devices; move the input with .cpu() to compute it "
           "on the host");
    return function_(static_cast<Args>(args)...);
  }

 private:
  const char* name_;
  Function function_ = nullptr;
};

}  // namespace facula
