// What the items of a list are. Of thousands of samples, Python would take longer to find that out
// than to make batches of them.
#include "python/interop.h"

namespace facula::python {
namespace {

PyObject* type_in_module(const char* module, const char* name) {
  Ref found(check(PyImport_ImportModule(module)));
  return check(PyObject_GetAttrString(found.get(), name));
}

// Adds the types of values to a set, and None for those that are more than their elements: tensors
// with a gradient or of a device, arrays of objects.
class Types {
 public:
  Types() : set_(check(PySet_New(nullptr))) {}
  Ref take() { return std::move(set_); }

  void add(PyObject* value) {
    static PyObject* array_type = type_in_module("numpy", "ndarray");
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (type == last_ && Py_TYPE(value) != tensor_type && type != array_type) return;
    if (Py_TYPE(value) == tensor_type && unwrap(value)->keys) {
      type = Py_None;
    } else if (type == array_type) {
      Ref dtype(check(PyObject_GetAttrString(value, "dtype")));
      if (dtype.get() != last_dtype_.get()) {
        Ref kind(check(PyObject_GetAttrString(dtype.get(), "kind")));
        const char* letter = PyUnicode_AsUTF8(kind.get());
        if (!letter) throw PythonError{};
        plain_ = std::strchr("biufc", *letter);
        last_dtype_ = std::move(dtype);
      }
      if (!plain_) type = Py_None;
    }
    if (type == last_) return;
    check(PySet_Add(set_.get(), type));
    last_ = type;
  }

 private:
  Ref set_, last_dtype_;
  PyObject* last_ = nullptr;
  bool plain_ = false;
};

// An item's own item at an index; null where it has none.
PyObject* part_at(PyObject* item, Py_ssize_t at) {
  if (!PyTuple_CheckExact(item) && !PyList_CheckExact(item)) return nullptr;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(item);
  return at < -n || at >= n ? nullptr : PySequence_Fast_GET_ITEM(item, at < 0 ? at + n : at);
}

// The same under a key; null also where it would run code to find it.
PyObject* part_of(PyObject* item, PyObject* key) {
  if (!PyDict_CheckExact(item) || !PyUnicode_CheckExact(key)) return nullptr;
  PyObject *other, *value;
  for (Py_ssize_t at = 0; PyDict_Next(item, &at, &other, &value);)
    if (!PyUnicode_CheckExact(other) && !PyLong_CheckExact(other)) return nullptr;
  value = PyDict_GetItemWithError(item, key);
  if (!value && PyErr_Occurred()) throw PythonError{};
  return value;
}

bool is_sequence(PyObject* o) {
  return PyList_CheckExact(o) || PyTuple_CheckExact(o);
}

// _item_types(values, key=None): the types of the items of a list or tuple, or of what each of them
// has under that index or key. None where not all have it. With Ellipsis, of all that lies in them.
PyObject* item_types(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *values, *key = nullptr;
    if (!PyArg_ParseTuple(args, "O|O:_item_types", &values, &key)) throw PythonError{};
    if (!is_sequence(values))
      type_error("_item_types(): expected a list or a tuple, got ", type_name(values));
    Types types;
    const bool by_index = key && PyLong_CheckExact(key);
    const Py_ssize_t index = by_index ? index_of(key) : 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); ++i) {
      Ref item = Ref::borrow(PySequence_Fast_GET_ITEM(values, i));
      if (!key) {
        types.add(item.get());
        continue;
      }
      if (key == Py_Ellipsis) {
        if (!is_sequence(item.get())) return Py_NewRef(Py_None);
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(item.get()); ++k)
          types.add(Ref::borrow(PySequence_Fast_GET_ITEM(item.get(), k)).get());
        continue;
      }
      PyObject* part = by_index ? part_at(item.get(), index) : part_of(item.get(), key);
      if (!part) return Py_NewRef(Py_None);
      types.add(Ref::borrow(part).get());
    }
    return types.take().release();
  });
}

// _are_of_length(values, length): whether all items of a list or tuple are lists or tuples of it.
PyObject* are_of_length(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* values;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "On:_are_of_length", &values, &length)) throw PythonError{};
    if (!is_sequence(values)) return Py_NewRef(Py_False);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(values, i);
      if (!is_sequence(item) || PySequence_Fast_GET_SIZE(item) != length)
        return Py_NewRef(Py_False);
    }
    return Py_NewRef(Py_True);
  });
}

}  // namespace

void init_item_types(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_item_types", item_types, METH_VARARGS,
       "_item_types(values, key=None): the types of a list's items, or of their parts."},
      {"_are_of_length", are_of_length, METH_VARARGS,
       "_are_of_length(values, length): whether a list's items are lists of that length."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
