// An NVRTC that takes a while to compile nothing, and whose clean-up, like that of the real one,
// must not find that somebody compiles: it would wait for a lock. This one aborts.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#define API extern "C" __attribute__((visibility("default"))) int

static std::atomic<int> compiling{0};

static const struct CleanUp {
  ~CleanUp() {
    if (compiling) std::abort();
  }
} clean_up;

API nvrtcVersion(int* major, int* minor) {
  *major = 12, *minor = 9;
  return 0;
}
API nvrtcGetNumSupportedArchs(int* count) {
  return *count = 2, 0;
}
API nvrtcGetSupportedArchs(int* archs) {
  return archs[0] = 80, archs[1] = 90, 0;
}
API nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  return *program = &compiling, 0;
}
API nvrtcDestroyProgram(void**) {
  return 0;
}
API nvrtcCompileProgram(void*, int, const char* const*) {
  static std::atomic<int> count{0};
  ++compiling;
  usleep(100'000u * unsigned(++count));  // so that they do not end together
  --compiling;
  return 0;
}
API nvrtcGetCUBINSize(void*, size_t* size) {
  return *size = 4, 0;
}
API nvrtcGetCUBIN(void*, char* to) {
  return std::memcpy(to, "none", 4), 0;
}
API nvrtcGetPTXSize(void*, size_t* size) {
  return *size = 4, 0;
}
API nvrtcGetPTX(void*, char* to) {
  return std::memcpy(to, "none", 4), 0;
}
API nvrtcGetProgramLogSize(void*, size_t* size) {
  return *size = 0, 0;
}
API nvrtcGetProgramLog(void*, char*) {
  return 0;
}
extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int) {
  return "none";
}
