#include "cuda/nvrtc.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>

#include "cuda/error.h"
#include "cuda/libraries.h"

namespace facula::cuda {
namespace {

using Result = int;
using Program = struct NvrtcProgramRecord*;

#define FACULA_NVRTC_FUNCTIONS(X)                                                      \
  X(nvrtcVersion, Result, (int*, int*))                                                \
  X(nvrtcGetNumSupportedArchs, Result, (int*))                                         \
  X(nvrtcGetSupportedArchs, Result, (int*))                                            \
  X(nvrtcGetErrorString, const char*, (Result))                                        \
  X(nvrtcCreateProgram, Result,                                                        \
    (Program*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(nvrtcDestroyProgram, Result, (Program*))                                           \
  X(nvrtcCompileProgram, Result, (Program, int, const char* const*))                   \
  X(nvrtcGetPTXSize, Result, (Program, size_t*))                                       \
  X(nvrtcGetPTX, Result, (Program, char*))                                             \
  X(nvrtcGetCUBINSize, Result, (Program, size_t*))                                     \
  X(nvrtcGetCUBIN, Result, (Program, char*))                                           \
  X(nvrtcGetProgramLogSize, Result, (Program, size_t*))                                \
  X(nvrtcGetProgramLog, Result, (Program, char*))

// NVRTC takes some ten megabytes from malloc for a kernel and gives them all back, and the C
// library would give them back to the system: the next kernel would meet thousands of page faults,
// a tenth of its time. glibc keeps at the top of its heap twice as much as the largest block of up
// to 32 MB that was ever freed; this one is never written to.
void keep_heap() {
  constexpr size_t kBlock = size_t(16) << 20;
  void* volatile block = std::malloc(kBlock);
  std::free(block);
}

// A process that is forked off while others compile has NVRTC's locks as they are then, and nobody
// who opens them: it would wait for one when it exits. So a fork waits for those that compile.
class Compiling {
 public:
  Compiling() {
    Gate& g = gate();
    std::unique_lock lock(g.mutex);
    g.changed.wait(lock, [&] { return !g.forking; });
    ++g.running;
  }
  ~Compiling() {
    Gate& g = gate();
    std::lock_guard lock(g.mutex);
    --g.running;
    g.changed.notify_all();
  }
  Compiling(const Compiling&) = delete;

 private:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    int running = 0;
    bool forking = false;
  };
  // Never destroyed: threads compile until the process has ended.
  static Gate& gate() {
    static Gate* const instance = [] {
      pthread_atfork(before_fork, after_fork, after_fork_in_child);
      return new Gate;
    }();
    return *instance;
  }
  static void before_fork() {
    Gate& g = gate();
    std::unique_lock lock(g.mutex);
    g.forking = true;
    g.changed.wait(lock, [&] { return g.running == 0; });
    lock.release();  // locked until the fork is over
  }
  static void after_fork() {
    gate().forking = false;
    gate().changed.notify_all();
    gate().mutex.unlock();
  }
  static void after_fork_in_child() {
    new (&gate().changed) std::condition_variable;  // those who waited are not there any more
    after_fork();
  }
};

struct Table {
#define X(name, result, parameters) result(*name) parameters;
  FACULA_NVRTC_FUNCTIONS(X)
#undef X

  Table() {
    keep_heap();
#define X(name, result, parameters) \
  name = reinterpret_cast<result(*) parameters>(library_symbol(Library::Nvrtc, #name));
    FACULA_NVRTC_FUNCTIONS(X)
#undef X
  }
};

// A throwing constructor leaves the static unmade, so that a library installed later is found.
const Table& nvrtc() {
  static const Table* table = new Table;
  return *table;
}

void check(Result result, const char* function) {
  if (result == 0) return;
  throw CudaError(
      std::string("NVRTC error: ") + nvrtc().nvrtcGetErrorString(result) + " (" + function + ")",
      result);
}

struct ProgramHandle {
  Program program = nullptr;
  ~ProgramHandle() {
    if (program) nvrtc().nvrtcDestroyProgram(&program);
  }
};

// NVRTC's messages begin with "name(line): "; the numbers it mentions, in order.
std::set<int> mentioned_lines(const std::string& log, const std::string& file) {
  std::set<int> lines;
  const std::string mark = file + "(";
  for (size_t at = log.find(mark); at != std::string::npos; at = log.find(mark, at + 1)) {
    if (int line = std::atoi(log.c_str() + at + mark.size())) lines.insert(line);
  }
  return lines;
}

std::string numbered_excerpt(const std::string& source, const std::set<int>& lines) {
  constexpr int kAround = 2;
  std::string out;
  int last = 0, number = 1;
  for (size_t at = 0; at < source.size(); ++number) {
    const size_t end = std::min(source.find('\n', at), source.size());
    const std::string text = source.substr(at, end - at);
    at = end + 1;
    auto next = lines.lower_bound(number - kAround);
    // Specialisations open the source, so #define lines are always worth showing.
    bool definition = text.rfind("#define FACULA_", 0) == 0 && number < 64;
    if (!definition && (next == lines.end() || *next > number + kAround)) continue;
    if (last && number != last + 1) out += "     ...\n";
    const std::string digits = std::to_string(number);
    out += std::string(digits.size() < 4 ? 4 - digits.size() : 0, ' ') + digits;
    out += (lines.count(number) ? " > " : " | ") + text + '\n';
    last = number;
  }
  return out;
}

}  // namespace

NvrtcVersion nvrtc_version() {
  NvrtcVersion version;
  check(nvrtc().nvrtcVersion(&version.major, &version.minor), "nvrtcVersion");
  return version;
}

const std::vector<int>& nvrtc_architectures() {
  static const std::vector<int>* list = [] {
    int count = 0;
    check(nvrtc().nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
    auto* archs = new std::vector<int>(size_t(count));
    check(nvrtc().nvrtcGetSupportedArchs(archs->data()), "nvrtcGetSupportedArchs");
    std::sort(archs->begin(), archs->end());
    return archs;
  }();
  return *list;
}

std::string nvrtc_target(int compute_capability) {
  const std::vector<int>& known = nvrtc_architectures();
  auto above = std::upper_bound(known.begin(), known.end(), compute_capability);
  if (above == known.begin()) {
    NvrtcVersion v = nvrtc_version();
    throw CudaError("NVRTC " + std::to_string(v.major) + "." + std::to_string(v.minor) +
                    " no longer compiles for GPUs of compute capability " +
                    std::to_string(compute_capability / 10) + "." +
                    std::to_string(compute_capability % 10) +
                    "; install an older one: pip install nvidia-cuda-nvrtc-cu12");
  }
  int best = *--above;
  // Machine code runs on later devices of its own major version only.
  bool same_generation = best / 10 == compute_capability / 10;
  return (same_generation ? "sm_" : "compute_") + std::to_string(best);
}

std::string nvrtc_compile(const std::string& name, const std::string& source,
                          const std::string& target, const std::vector<std::string>& options) {
  const Table& n = nvrtc();
  const Compiling compiling;
  const std::string file = name + ".cu";
  ProgramHandle handle;
  check(n.nvrtcCreateProgram(&handle.program, source.c_str(), file.c_str(), 0, nullptr, nullptr),
        "nvrtcCreateProgram");
  const std::string arch = "--gpu-architecture=" + target;
  std::vector<const char*> arguments = {arch.c_str()};
  for (const std::string& option : options) arguments.push_back(option.c_str());
  Result result = n.nvrtcCompileProgram(handle.program, int(arguments.size()), arguments.data());
  if (result != 0) {
    size_t size = 0;
    std::string log;
    if (n.nvrtcGetProgramLogSize(handle.program, &size) == 0 && size > 1) {
      log.resize(size);
      n.nvrtcGetProgramLog(handle.program, log.data());
      log.resize(size - 1);
    }
    throw CudaError("NVRTC could not compile kernel '" + name + "' for " + target + ": " +
                        n.nvrtcGetErrorString(result) + "\n" + log + "\n" +
                        numbered_excerpt(source, mentioned_lines(log, file)),
                    result);
  }
  const bool machine_code = target.rfind("sm_", 0) == 0;
  auto get_size = machine_code ? n.nvrtcGetCUBINSize : n.nvrtcGetPTXSize;
  auto get_image = machine_code ? n.nvrtcGetCUBIN : n.nvrtcGetPTX;
  size_t size = 0;
  check(get_size(handle.program, &size), machine_code ? "nvrtcGetCUBINSize" : "nvrtcGetPTXSize");
  std::string image(size, '\0');
  check(get_image(handle.program, image.data()), machine_code ? "nvrtcGetCUBIN" : "nvrtcGetPTX");
  return image;
}

}  // namespace facula::cuda
