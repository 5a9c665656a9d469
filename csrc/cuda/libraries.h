// Finding and opening NVIDIA's libraries at run time. Nothing here is needed at build time, so one
// wheel serves machines with and without a GPU.
#pragma once
#include <cstddef>
#include <string>

#include "cuda/error.h"

namespace facula::cuda {

enum class Library { Driver, Nvrtc, CublasLt, Cublas, Cudnn, Cufft, Cusolver, Cupti, Count };

// Directories to look in, from Python: site-packages folders (their `nvidia/*/lib` are searched) or
// folders that hold the libraries themselves. Replaces the earlier list; libraries that are open
// stay open, ones that were missing are looked for again.
void set_cuda_search_paths(const char* const* directories, size_t count);

// The dlopen handle. Throws MissingLibrary.
void* open_library(Library library);

// True if the library can be opened; otherwise `reason` (may be null) gets the error text.
bool find_library(Library library, std::string* reason);

// A symbol of the library. Throws MissingLibrary if the library or the symbol is missing.
void* library_symbol(Library library, const char* symbol);

// Where an opened library lies on disk ("" if it is not open).
std::string library_path(Library library);

// The folder of the binary that holds this code; kernels and wheels are found relative to it.
std::string own_directory();

// The table of a library's functions, which its constructor looks up; null where the library is
// missing or too old.
template <class Table>
const Table* table_if_present() {
  static const Table* table = []() -> const Table* {
    try {
      return new Table;
    } catch (const MissingLibrary&) {
      return nullptr;
    }
  }();
  return table;
}

}  // namespace facula::cuda
