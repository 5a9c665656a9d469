#include "cuda/cupti.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "cuda/libraries.h"

namespace facula::cuda::cupti {

Table::Table() {
  auto load = [](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        library_symbol(Library::Cupti, name));
  };
#define X(member, name, parameters) load(member, #name);
  FACULA_CUPTI_FUNCTIONS(X)
#undef X
  void* library = open_library(Library::Cupti);
  choose_driver_call = reinterpret_cast<decltype(choose_driver_call)>(
      dlsym(library, "cuptiActivityEnableDriverApi"));
  choose_runtime_call = reinterpret_cast<decltype(choose_runtime_call)>(
      dlsym(library, "cuptiActivityEnableRuntimeApi"));
}

const Table& table() {
  static const Table* table = new Table;
  return *table;
}

void check(Result result, const char* function) {
  if (result == kSuccess) return;
  const char* text = nullptr;
  table().result_text(result, &text);
  throw CudaError(std::string("CUPTI error: ") + (text ? text : "unknown error") + " (" + function +
                      " gave " + std::to_string(result) + ")",
                  result);
}

}  // namespace facula::cuda::cupti
