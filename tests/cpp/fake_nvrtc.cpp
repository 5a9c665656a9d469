// An NVRTC that compiles anything to nothing, at once: the fake driver does not run kernels.
#include <cstddef>
#include <cstring>

#define API extern "C" __attribute__((visibility("default")))

API int nvrtcVersion(int* major, int* minor) {
  return *major = 12, *minor = 9, 0;
}
API int nvrtcGetNumSupportedArchs(int* n) {
  return *n = 2, 0;
}
API int nvrtcGetSupportedArchs(int* archs) {
  return archs[0] = 80, archs[1] = 90, 0;
}
API const char* nvrtcGetErrorString(int) {
  return "an error of the fake compiler";
}
API int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*,
                           const char* const*) {
  static int any;
  return *program = &any, 0;
}
API int nvrtcDestroyProgram(void**) {
  return 0;
}
API int nvrtcCompileProgram(void*, int, const char* const*) {
  return 0;
}
#define IMAGE(what)                         \
  API int nvrtcGet##what##Size(void*, size_t* n) { \
    return *n = 8, 0;                       \
  }                                         \
  API int nvrtcGet##what(void*, char* to) { \
    return std::memcpy(to, "nothing", 8), 0; \
  }
IMAGE(PTX)
IMAGE(CUBIN)
IMAGE(ProgramLog)
