#include "cpu/blas.h"

#include <dlfcn.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/thread_pool.h"

namespace facula {

namespace {

#ifdef __APPLE__
constexpr const char* kLibraryName = "libscipy_openblas.dylib";
#else
constexpr const char* kLibraryName = "libscipy_openblas.so";
#endif

// Never destroyed, so that products work during static destruction.
struct Library {
  std::mutex mutex;
  std::string path;  // empty: search beside our own shared object
  void* handle = nullptr;
  BlasTable table{};
  void (*set_num_threads)(int) = nullptr;
  std::atomic<const BlasTable*> ready{nullptr};
};
Library& library() {
  static Library& instance = *new Library;
  return instance;
}
std::mutex threads_mutex;  // of BlasThreads

// site-packages/facula/_core.so -> site-packages/scipy_openblas32/lib/<name>
std::string path_beside_ourselves() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&path_beside_ourselves), &info) || !info.dli_fname) return {};
  std::string own = info.dli_fname;
  const size_t slash = own.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : own.substr(0, slash);
  return folder + "/../scipy_openblas32/lib/" + kLibraryName;
}

// OpenBLAS starts one thread per visible CPU while it loads, and they spin for a while. It counts
// the CPUs of the loading thread, so this thread shows it a single one.
class SingleCpu {
 public:
#ifdef __linux__
  SingleCpu() {
    if (sched_getaffinity(0, sizeof previous_, &previous_) != 0) return;
    int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &previous_)) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    changed_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~SingleCpu() {
    if (changed_) sched_setaffinity(0, sizeof previous_, &previous_);
  }

 private:
  cpu_set_t previous_;
  bool changed_ = false;
#else
  SingleCpu() {}
#endif
};

void* find(void* handle, const char* name) {
  const std::string prefixed = std::string("scipy_") + name;
  if (void* symbol = dlsym(handle, prefixed.c_str())) return symbol;
  return dlsym(handle, name);
}

template <class F>
void require(void* handle, const char* name, F& function) {
  void* symbol = find(handle, name);
  if (!symbol) {
    throw std::runtime_error(std::string("the BLAS library has no routine ") + name +
                             "; reinstall it with `pip install --force-reinstall "
                             "scipy-openblas32`");
  }
  function = reinterpret_cast<F>(symbol);
}

BlasTable load_table(void* h) {
  BlasTable t;
  require(h, "cblas_sgemm", t.sgemm);
  require(h, "cblas_dgemm", t.dgemm);
  require(h, "cblas_cgemm", t.cgemm);
  require(h, "cblas_zgemm", t.zgemm);
  require(h, "cblas_sgemv", t.sgemv);
  require(h, "cblas_dgemv", t.dgemv);
  require(h, "cblas_cgemv", t.cgemv);
  require(h, "cblas_zgemv", t.zgemv);
  require(h, "cblas_sdot", t.sdot);
  require(h, "cblas_ddot", t.ddot);
  require(h, "cblas_cdotu_sub", t.cdotu);
  require(h, "cblas_zdotu_sub", t.zdotu);
  return t;
}

const BlasTable& open_library() {
  Library& lib = library();
  std::lock_guard lock(lib.mutex);
  if (const BlasTable* table = lib.ready.load(std::memory_order_acquire)) return *table;
  const std::string path = lib.path.empty() ? path_beside_ourselves() : lib.path;
  void* handle;
  {
    SingleCpu during_load;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!handle) {
    const char* reason = dlerror();
    throw std::runtime_error("matrix products need OpenBLAS, which could not be opened (" +
                             std::string(reason ? reason : "unknown reason") +
                             "); install it with `pip install scipy-openblas32`");
  }
  lib.table = load_table(handle);  // a handle without the routines stays open: it may be in use
  lib.set_num_threads = reinterpret_cast<void (*)(int)>(find(handle, "openblas_set_num_threads"));
  if (lib.set_num_threads) lib.set_num_threads(1);
  lib.handle = handle;
  lib.ready.store(&lib.table, std::memory_order_release);
  return lib.table;
}

}  // namespace

const BlasTable& blas() {
  if (const BlasTable* table = library().ready.load(std::memory_order_acquire)) return *table;
  return open_library();
}

void* blas_symbol(const char* name) {
  blas();
  return find(library().handle, name);
}

void set_blas_library(const char* path) {
  Library& lib = library();
  std::lock_guard lock(lib.mutex);
  lib.path = path ? path : "";
}

BlasThreads::BlasThreads() : threaded_(!in_parallel_region() && num_threads() > 1) {
  if (!threaded_) return;
  blas();
  threads_mutex.lock();
  if (auto set = library().set_num_threads) set(num_threads());
}

BlasThreads::~BlasThreads() {
  if (!threaded_) return;
  if (auto set = library().set_num_threads) set(1);
  threads_mutex.unlock();
}

}  // namespace facula
