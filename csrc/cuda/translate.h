// Calls from outside into the CUDA layer: its errors in the words and types of the core, and the
// thread's context as it was.
#pragma once
#include "core/device_error.h"
#include "cuda/context.h"
#include "cuda/fault.h"

namespace facula::cuda {

template <class F>
auto translated(F&& f) {
  ContextScope scope;
  try {
    return f();
  } catch (const OutOfMemory& e) {
    fail(ErrorKind::OutOfMemory, e.what());
  } catch (const BadIndex& e) {
    throw DeviceError(ErrorKind::Index, e.what(), e.code());
  } catch (const DriverError& e) {
    throw DeviceError(ErrorKind::Runtime, e.what(), e.code());
  } catch (const CudaError& e) {
    fail(ErrorKind::Runtime, e.what());
  }
}

// translate<function> is `function` with its errors translated; what hooks are set to.
template <auto Function>
struct Translate;
template <class Result, class... Args, Result (*Function)(Args...)>
struct Translate<Function> {
  static Result call(Args... args) {
    return translated([&]() -> Result { return Function(static_cast<Args>(args)...); });
  }
};
template <auto Function>
constexpr auto translate = &Translate<Function>::call;

}  // namespace facula::cuda
