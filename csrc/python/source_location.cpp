// Which Python line runs now: recorded compactly with tape nodes and with writes to saved tensors,
// so that the in-place error names both lines.
#include <unordered_set>

#include "python/py.h"
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>  // lasti has no accessor before 3.11
#endif

namespace facula::python {
namespace {

// Code objects are kept for good, so that a location needs no reference count of its own and may be
// dropped without the GIL. Programs that make code without end stop being recorded at the cap.
constexpr size_t kMaxCodes = 1 << 16;
std::unordered_set<PyCodeObject*> g_codes;
PyCodeObject* g_last = nullptr;

SourceLocation capture() {
  if (!PyGILState_Check()) return {};
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_DECREF(code);  // the frame holds it
  if (code != g_last) {
    if (!g_codes.count(code)) {
      if (g_codes.size() >= kMaxCodes) return {};
      Py_INCREF(code);
      g_codes.insert(code);
    }
    g_last = code;
  }
#if PY_VERSION_HEX >= 0x030B0000
  return {code, PyFrame_GetLasti(frame)};
#else
  return {code, frame->f_lasti * 2};
#endif
}

std::string describe(const SourceLocation& where) {
  WithGil gil;
  auto* code = static_cast<PyCodeObject*>(where.code);
  Ref file(PyObject_GetAttrString(where.code ? (PyObject*)code : Py_None, "co_filename"));
  if (!file) {
    PyErr_Clear();
    return {};
  }
  const char* name = PyUnicode_AsUTF8(file.get());
  return std::string(name ? name : "?") + ":" +
         std::to_string(PyCode_Addr2Line(code, where.instruction));
}

}  // namespace

void init_source_locations() {
  capture_location = capture;
  describe_location = describe;
}

}  // namespace facula::python
