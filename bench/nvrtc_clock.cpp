// An NVRTC that hands everything to the real one, at the path in FACULA_CLOCKED_NVRTC, and writes
// what compiling took to the file FACULA_NVRTC_CLOCK: one line for each kernel, with its name,
// milliseconds on the clock, milliseconds of the thread's processor time, and when it was done, in
// milliseconds. The texts go to the folder FACULA_NVRTC_TEXTS, if it is given.
#include <dlfcn.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace {

using Program = void*;

template <class Function>
Function real(const char* name, Function) {
  static void* library = dlopen(std::getenv("FACULA_CLOCKED_NVRTC"), RTLD_NOW | RTLD_LOCAL);
  void* found = library ? dlsym(library, name) : nullptr;
  if (!found) std::fprintf(stderr, "nvrtc_clock: no %s: %s\n", name, dlerror()), std::abort();
  return reinterpret_cast<Function>(found);
}

double milliseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

struct Text {
  std::string name, source;
};
std::mutex mutex;
std::map<Program, Text> texts;

}  // namespace

#define FORWARD(name, parameters, arguments) \
  API int name parameters {                  \
    return real(#name, name) arguments;      \
  }
FORWARD(nvrtcVersion, (int* major, int* minor), (major, minor))
FORWARD(nvrtcGetNumSupportedArchs, (int* count), (count))
FORWARD(nvrtcGetSupportedArchs, (int* archs), (archs))
FORWARD(nvrtcDestroyProgram, (Program * program), (program))
FORWARD(nvrtcGetPTXSize, (Program program, size_t* size), (program, size))
FORWARD(nvrtcGetPTX, (Program program, char* to), (program, to))
FORWARD(nvrtcGetCUBINSize, (Program program, size_t* size), (program, size))
FORWARD(nvrtcGetCUBIN, (Program program, char* to), (program, to))
FORWARD(nvrtcGetProgramLogSize, (Program program, size_t* size), (program, size))
FORWARD(nvrtcGetProgramLog, (Program program, char* to), (program, to))

API const char* nvrtcGetErrorString(int result) {
  return real("nvrtcGetErrorString", nvrtcGetErrorString)(result);
}

API int nvrtcCreateProgram(Program* program, const char* source, const char* name, int count,
                           const char* const* headers, const char* const* names) {
  const int result =
      real("nvrtcCreateProgram", nvrtcCreateProgram)(program, source, name, count, headers, names);
  std::lock_guard lock(mutex);
  if (result == 0) texts[*program] = {name, source};
  return result;
}

API int nvrtcCompileProgram(Program program, int count, const char* const* options) {
  const auto compile = real("nvrtcCompileProgram", nvrtcCompileProgram);
  static const bool warm = [&] {  // the first kernel of a process pays for the compiler's start
    Program first;
    if (real("nvrtcCreateProgram", nvrtcCreateProgram)(
            &first, "extern \"C\" __global__ void first(float* x) { *x = 1; }", "first.cu", 0,
            nullptr, nullptr) == 0) {
      compile(first, count, options);
      nvrtcDestroyProgram(&first);
    }
    return true;
  }();
  (void)warm;
  const double wall = milliseconds(CLOCK_MONOTONIC), work = milliseconds(CLOCK_THREAD_CPUTIME_ID);
  const int result = compile(program, count, options);  // several threads may do so at once
  const double wall_end = milliseconds(CLOCK_MONOTONIC),
               work_end = milliseconds(CLOCK_THREAD_CPUTIME_ID);
  std::lock_guard lock(mutex);
  const Text& text = texts[program];
  static int number = 0;
  if (const char* folder = std::getenv("FACULA_NVRTC_TEXTS")) {
    const std::string path = std::string(folder) + "/" + std::to_string(number++) + "_" + text.name;
    if (std::FILE* file = std::fopen(path.c_str(), "w")) {
      std::fputs(text.source.c_str(), file);
      std::fclose(file);
    }
  }
  if (std::FILE* file = std::fopen(std::getenv("FACULA_NVRTC_CLOCK"), "a")) {
    std::fprintf(file, "%s %.3f %.3f %.3f\n", text.name.substr(0, text.name.find('.')).c_str(),
                 wall_end - wall, work_end - work, wall_end);
    std::fclose(file);
  }
  return result;
}
