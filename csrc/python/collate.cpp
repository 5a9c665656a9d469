// default_collate for what nearly every dataset gives: tuples, lists and dicts of tensors, numbers
// and texts. In Python, the walk through a sample takes longer than all that is done there.
#include <cstring>

#include "op/kernel_hook.h"
#include "op/profiler.h"
#include "python/interop.h"

namespace facula::python {
namespace {

constexpr size_t kLarge = 1 << 16;  // bytes: from here on, stack() copies with all threads

// Whether new tensors are plain ones of the host, which nobody watches being made.
bool nothing_special() {
  return !override_active() && !thread_state.inference && !current_level && !kernel_hook &&
         !profiling.load(std::memory_order_relaxed) && default_device().is_cpu();
}

class Collator {
 public:
  // table: what is done by type; own: the same as it was at first; otherwise: what does the rest.
  Collator(PyObject* table, PyObject* own, PyObject* otherwise)
      : table_(table), own_(own), otherwise_(otherwise), plain_(nothing_special()) {}

  PyObject* collate(PyObject* column) {
    if (!plain_ || !is_plain_sequence(column) || !PySequence_Fast_GET_SIZE(column))
      return rest(column);
    PyTypeObject* type = Py_TYPE(PySequence_Fast_GET_ITEM(column, 0));
    PyObject* made = nullptr;
    if (type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type) {
      if (PyDict_GET_SIZE(table_) != PyDict_GET_SIZE(own_)) return rest(column);
      if (Py_EnterRecursiveCall(" while samples are collated")) throw PythonError{};
      struct Leave {
        ~Leave() { Py_LeaveRecursiveCall(); }
      } leave;
      made = type == &PyDict_Type ? of_dicts(column) : of_sequences(column);
    } else if (is_as_ever(type)) {
      if (type == tensor_type) {
        made = of_tensors(column);
      } else if (type == &PyFloat_Type) {
        made = of_floats(column);
      } else if (type == &PyLong_Type) {
        made = of_ints(column);
      } else if (type == &PyUnicode_Type || type == &PyBytes_Type) {
        made = Py_NewRef(column);
      }
    }
    return made ? made : rest(column);
  }

 private:
  static bool is_plain_sequence(PyObject* o) {
    return PyTuple_CheckExact(o) || PyList_CheckExact(o);
  }
  PyObject* rest(PyObject* column) { return check(PyObject_CallOneArg(otherwise_, column)); }

  bool is_as_ever(PyTypeObject* type) {
    auto* key = reinterpret_cast<PyObject*>(type);
    PyObject* now = PyDict_GetItemWithError(table_, key);
    if (!now && PyErr_Occurred()) throw PythonError{};
    return now && now == PyDict_GetItemWithError(own_, key);
  }

  // Each of these gives null where samples differ, or are none of its business.

  PyObject* of_sequences(PyObject* column) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(column);
    const Py_ssize_t width = PySequence_Fast_GET_SIZE(PySequence_Fast_GET_ITEM(column, 0));
    Ref parts(check(PyList_New(width)));
    for (Py_ssize_t j = 0; j < width; ++j) {
      Ref part(check(PyTuple_New(n)));
      if (PySequence_Fast_GET_SIZE(column) != n) return nullptr;
      for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* sample = PySequence_Fast_GET_ITEM(column, i);
        if (!is_plain_sequence(sample) || PySequence_Fast_GET_SIZE(sample) != width) return nullptr;
        PyTuple_SET_ITEM(part.get(), i, Py_NewRef(PySequence_Fast_GET_ITEM(sample, j)));
      }
      PyList_SET_ITEM(parts.get(), j, collate(part.get()));
    }
    return parts.release();
  }

  PyObject* of_dicts(PyObject* column) {
    Ref keys(check(PyDict_Keys(PySequence_Fast_GET_ITEM(column, 0))));
    Ref parts(check(PyDict_New()));
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(keys.get()); ++k) {
      PyObject* key = PyList_GET_ITEM(keys.get(), k);
      Ref part(check(PyList_New(0)));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(column); ++i) {
        PyObject* sample = PySequence_Fast_GET_ITEM(column, i);
        if (!PyDict_CheckExact(sample)) return nullptr;
        PyObject* value = PyDict_GetItemWithError(sample, key);
        if (!value && PyErr_Occurred()) throw PythonError{};
        if (!value) return nullptr;
        check(PyList_Append(part.get(), value));
      }
      Ref collated(collate(part.get()));
      check(PyDict_SetItem(parts.get(), key, collated.get()));
    }
    return parts.release();
  }

  static PyObject* of_tensors(PyObject* column) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(column);
    PyObject** items = PySequence_Fast_ITEMS(column);
    const Tensor& first = unwrap(items[0]);
    const size_t row = size_t(first.numel()) * item_size(first.dtype());
    if (row * size_t(n) >= kLarge) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (Py_TYPE(items[i]) != tensor_type) return nullptr;
      const Tensor& t = unwrap(items[i]);
      if (t->keys || t.dtype() != first.dtype() || !t.is_contiguous() ||
          !same(t.sizes(), first.sizes()))
        return nullptr;
    }
    Dims sizes;
    sizes.push_back(n);
    for (int64_t s : first.sizes()) sizes.push_back(s);
    Tensor out = empty_tensor(sizes, first.dtype(), Device{});
    if (row) {
      char* to = out.data();
      for (Py_ssize_t i = 0; i < n; ++i, to += row) std::memcpy(to, unwrap(items[i]).data(), row);
    }
    return wrap(std::move(out));
  }

  static PyObject* of_floats(PyObject* column) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(column);
    PyObject** items = PySequence_Fast_ITEMS(column);
    Tensor out = empty_tensor(Dims{n}, DType::Float64, Device{});
    auto* to = out.data_as<double>();
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (!PyFloat_CheckExact(items[i])) return nullptr;
      to[i] = PyFloat_AS_DOUBLE(items[i]);
    }
    return wrap(std::move(out));
  }

  static PyObject* of_ints(PyObject* column) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(column);
    PyObject** items = PySequence_Fast_ITEMS(column);
    Tensor out = empty_tensor(Dims{n}, DType::Int64, Device{});
    auto* to = out.data_as<int64_t>();
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (!PyLong_CheckExact(items[i])) return nullptr;
      int overflow = 0;
      to[i] = PyLong_AsLongLongAndOverflow(items[i], &overflow);
      if (overflow) return nullptr;
    }
    return wrap(std::move(out));
  }

  PyObject *table_, *own_, *otherwise_;
  bool plain_;
};

PyObject* collate(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4 || !PyDict_CheckExact(args[1]) || !PyDict_CheckExact(args[2]))
      type_error("_collate() takes samples, two tables and a function");
    return Collator(args[1], args[2], args[3]).collate(args[0]);
  });
}

PyMethodDef functions[] = {
    {"_collate", (PyCFunction)(void*)collate, METH_FASTCALL,
     "_collate(samples, table, own, otherwise): a batch; columns for which `table` is not as in "
     "`own`, or of unusual types, are made by `otherwise`."},
    {}};

}  // namespace

void init_collate(PyObject* module) {
  add_functions(module, functions);
}

}  // namespace facula::python
