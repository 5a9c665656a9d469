// C++ exceptions become Python exceptions here and nowhere else.
#include <cstring>
#include <new>

#include "core/device_error.h"
#include "python/py.h"

namespace facula::python {

static PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Index: return PyExc_IndexError;
    case ErrorKind::Type: return PyExc_TypeError;
    case ErrorKind::Value: return PyExc_ValueError;
    case ErrorKind::NotImplemented: return PyExc_NotImplementedError;
    case ErrorKind::Buffer: return PyExc_BufferError;
    case ErrorKind::Memory: return PyExc_MemoryError;
    case ErrorKind::OutOfMemory:
    case ErrorKind::LinAlg: {
      static PyObject* linalg;
      import_once(linalg, "facula._errors", "LinAlgError");
      static PyObject* memory;
      import_once(memory, "facula._errors", "OutOfMemoryError");
      PyObject* found = kind == ErrorKind::LinAlg ? linalg : memory;
      return found ? found : PyExc_RuntimeError;
    }
    default: return PyExc_RuntimeError;
  }
}

static void set_operator_error(PyObject* type, const char* text, const int* code = nullptr) {
  Ref value(PyObject_CallFunction(type, "s", text));
  if (!value) return;
  // Modules put their names before errors of operators, and leave those of programs alone.
  if (PyObject_SetAttrString(value.get(), "_from_operator", Py_True) < 0) PyErr_Clear();
  if (code) {
    Ref number(PyLong_FromLong(*code));
    if (!number || PyObject_SetAttrString(value.get(), "error_code", number.get()) < 0)
      PyErr_Clear();
  }
  PyErr_SetObject(type, value.get());
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    // already set
  } catch (const DeviceError& e) {
    static PyObject* failed;
    import_once(failed, "facula._errors", "AcceleratorError");
    static PyObject* index;
    import_once(index, "facula._errors", "DeviceIndexError");
    PyObject* type = e.kind() == ErrorKind::Index ? index : failed;
    int code = e.code();
    set_operator_error(type ? type : PyExc_RuntimeError, e.what(), &code);
  } catch (const Error& e) {
    set_operator_error(exception_type(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "not enough memory");
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

std::string type_name(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  if (is_tensor_of_pytorch(o)) return std::string("torch.") + name;
  return std::strncmp(name, "facula.", 7) ? name : name + 7;
}

void raise_python(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw PythonError{};
}

PyObject* import_attribute(const char* module, const char* name) {
  PyObject* m = PyImport_ImportModule(module);
  if (!m) {
    PyErr_Clear();
    return nullptr;
  }
  PyObject* a = PyObject_GetAttrString(m, name);
  if (!a) PyErr_Clear();
  Py_DECREF(m);
  return a;
}

PyObject* import_once(PyObject*& kept, const char* module, const char* name) {
  if (kept) return kept;
  Ref found(import_attribute(module, name));
  if (!kept) kept = found.release();  // another thread may have been here meanwhile
  return kept;
}

void add_functions(PyObject* module, PyMethodDef* methods) {
  check(PyModule_AddFunctions(module, methods));
}

void add_methods(PyTypeObject* type, PyMethodDef* methods) {
  for (; methods->ml_name; ++methods) {
    Ref d(methods->ml_flags & METH_STATIC ? PyCFunction_New(methods, nullptr)
                                          : PyDescr_NewMethod(type, methods));
    check(d.get());
    check(PyDict_SetItemString(type->tp_dict, methods->ml_name, d.get()));
  }
  PyType_Modified(type);
}

}  // namespace facula::python
