#include "cuda/libraries.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "cuda/error.h"

namespace facula::cuda {
namespace {

struct Description {
  const char* title;
  const char* stem;  // libraries are named <stem>.so.<major>
  const char* advice;
  const char* probe;  // a function that it has
  // Major versions of the library for CUDA 13 and CUDA 12; 0: libraries for all are named alike.
  int versions[2];
};

constexpr const char* kPipLine = "pip install facula[cuda]";

const Description kDescriptions[] = {
    {"the NVIDIA driver",
     "libcuda",
     "Install NVIDIA's display/compute driver on this machine",
     "cuInit",
     {0, 0}},
    {"NVRTC, CUDA's run-time compiler", "libnvrtc", kPipLine, "nvrtcVersion", {13, 12}},
    {"cuBLASLt", "libcublasLt", kPipLine, "cublasLtCreate", {13, 12}},
    {"cuBLAS", "libcublas", kPipLine, "cublasCreate_v2", {13, 12}},
    {"cuDNN", "libcudnn", kPipLine, "cudnnGetVersion", {9, 9}},
    {"cuFFT", "libcufft", kPipLine, "cufftCreate", {12, 11}},
    {"cuSOLVER", "libcusolver", kPipLine, "cusolverDnCreate", {12, 11}},
    {"CUPTI, CUDA's profiling interface", "libcupti", kPipLine, "cuptiGetVersion", {13, 12}},
};

struct State {
  std::mutex mutex;
  std::vector<std::string> search_paths;
  void* handles[int(Library::Count)] = {};
};

// Never destroyed: libraries may be used by threads that outlive static destruction.
State& state() {
  static State* instance = new State;
  return *instance;
}

const Description& describe(Library library) {
  return kDescriptions[int(library)];
}

void add_matches(const std::string& pattern, std::vector<std::string>& out) {
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = found.gl_pathc; i-- > 0;) out.push_back(found.gl_pathv[i]);  // newest first
  }
  globfree(&found);
}

// A CUDA toolkit, a conda prefix, or a folder of libraries.
void add_installation(const std::string& root, std::vector<std::string>& out) {
  out.push_back(root + "/lib64");
  out.push_back(root + "/lib");
#if defined(__aarch64__)
  out.push_back(root + "/targets/sbsa-linux/lib");
#else
  out.push_back(root + "/targets/x86_64-linux/lib");
#endif
  out.push_back(root + "/extras/CUPTI/lib64");
  out.push_back(root);
}

// site-packages/nvidia/<package>/lib holds CUDA 12 libraries, nvidia/cu13/lib those of CUDA 13.
void add_wheels(const std::string& site_packages, std::vector<std::string>& out) {
  add_matches(site_packages + "/nvidia/*/lib", out);
}

// In order of preference. An empty entry stands for the loader's own search (LD_LIBRARY_PATH,
// ldconfig's cache, default folders).
std::vector<std::string> candidate_directories(Library library) {
  std::vector<std::string> out;
  for (const char* name : {"FACULA_CUDA_PATH", "CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(name);
    if (value && *value) {
      add_wheels(value, out);
      add_installation(value, out);
    }
  }
  if (library == Library::Driver) {
    out.push_back("");
    out.insert(out.end(), {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                           "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"});
    return out;
  }
  for (const std::string& path : state().search_paths) {
    add_wheels(path, out);
    out.push_back(path);
  }
  std::string own = own_directory();
  if (!own.empty()) {
    add_wheels(own + "/..", out);
    out.push_back(own + "/../../..");  // a conda prefix's lib, seen from its site-packages/facula
  }
  out.push_back("");
  add_matches("/usr/local/cuda*/lib64", out);
  add_matches("/usr/local/cuda*/targets/*/lib", out);
  add_matches("/usr/local/cuda*/extras/CUPTI/lib64", out);
  out.insert(out.end(), {"/opt/cuda/lib64", "/opt/cuda/extras/CUPTI/lib64"});
  return out;
}

// CUDA's major version that the driver supports, or 0 without a driver. Called with the lock held
// and the driver possibly open.
int driver_major() {
  void* handle = state().handles[int(Library::Driver)];
  if (!handle) return 0;
  auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(handle, "cuDriverGetVersion"));
  int version = 0;
  return get_version && get_version(&version) == 0 ? version / 1000 : 0;
}

// Sonames in order of preference. A library of a newer major version than the driver's cannot work.
std::vector<std::string> sonames(Library library) {
  std::string stem = describe(library).stem;
  const int (&versions)[2] = describe(library).versions;
  if (versions[0] == 0) return {stem + ".so.1"};
  int driver = driver_major();
  std::vector<std::string> names;
  for (int major : {13, 12}) {
    if (driver == 0 || major <= driver)
      names.push_back(stem + ".so." + std::to_string(versions[13 - major]));
  }
  return names;
}

// cuSOLVER needs cuBLAS, cuSPARSE and nvJitLink; wheels keep each in a folder of its own, where the
// loader does not look.
void open_companions(const std::string& directory) {
  for (const char* stem : {"libnvJitLink", "libcusparse", "libcublasLt", "libcublas"}) {
    std::vector<std::string> found;
    add_matches(directory + "/" + stem + ".so.1[0-9]", found);
    add_matches(directory + "/../../*/lib/" + stem + ".so.1[0-9]", found);
    for (const std::string& path : found)
      if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) break;
  }
}

void* open_locked(Library library);

void* try_open(Library library) {
  std::vector<std::string> names = sonames(library);
  if (library == Library::Cudnn) {
    // cuDNN opens NVRTC and cuBLAS by name; those that are open already serve it.
    open_locked(Library::Nvrtc);
    open_locked(Library::Cublas);
  }
  // Sharing what another package (PyTorch, CuPy, JAX) has loaded saves memory.
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL)) return handle;
  }
  for (const std::string& directory : candidate_directories(library)) {
    for (const std::string& name : names) {
      std::string path = directory.empty() ? name : directory + "/" + name;
      if (library == Library::Cublas && !directory.empty()) {
        // cuBLAS needs the cuBLASLt of its own release, which lies beside it.
        std::string companion = directory + "/libcublasLt" + name.substr(name.find(".so"));
        dlopen(companion.c_str(), RTLD_NOW | RTLD_LOCAL);
      }
      if (library == Library::Cusolver && !directory.empty()) open_companions(directory);
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    }
  }
  return nullptr;
}

std::string missing_text(Library library) {
  std::string names;
  for (const std::string& name : sonames(library)) names += (names.empty() ? "" : " or ") + name;
  std::string text =
      std::string("Could not find ") + describe(library).title + " (" + names + "). ";
  if (library == Library::Driver) return text + describe(library).advice + ".";
  text += std::string("Install it with: ") + describe(library).advice;
  text += ", or set FACULA_CUDA_PATH to a CUDA installation.";
  if (int major = driver_major()) {
    text += " (The driver supports CUDA " + std::to_string(major) + " and older.)";
  }
  return text;
}

void* open_locked(Library library) {
  void*& handle = state().handles[int(library)];
  if (!handle) handle = try_open(library);
  return handle;
}

}  // namespace

void set_cuda_search_paths(const char* const* directories, size_t count) {
  std::lock_guard lock(state().mutex);
  state().search_paths.assign(directories, directories + count);
}

bool find_library(Library library, std::string* reason) {
  std::lock_guard lock(state().mutex);
  // The driver's version decides which releases of the others can be used.
  if (library != Library::Driver) open_locked(Library::Driver);
  if (open_locked(library)) return true;
  if (reason) *reason = missing_text(library);
  return false;
}

void* open_library(Library library) {
  std::string reason;
  if (!find_library(library, &reason)) throw MissingLibrary(reason);
  return state().handles[int(library)];
}

void* library_symbol(Library library, const char* symbol) {
  void* address = dlsym(open_library(library), symbol);
  if (!address) {
    throw MissingLibrary(library_path(library) + " has no function " + symbol +
                         "; this release is too old or too new for facula");
  }
  return address;
}

std::string library_path(Library library) {
  void* handle;
  {
    std::lock_guard lock(state().mutex);
    handle = state().handles[int(library)];
  }
  if (!handle) return "";
  Dl_info info;
  void* address = dlsym(handle, describe(library).probe);
  return address && dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

std::string own_directory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_directory), &info) || !info.dli_fname) return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace facula::cuda
