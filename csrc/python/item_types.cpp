// What the items of a list are. Of thousands of samples, Python would take longer to find that out
// than to make batches of them.
#include <vector>

#include "python/interop.h"
#include "python/plain_values.h"

namespace facula::python {
namespace {

// To look at more before each epoch would take longer than processes take to start.
constexpr int64_t kMostLookedAt = 1 << 22;

PyObject* type_in_module(const char* module, const char* name) {
  Ref found(check(PyImport_ImportModule(module)));
  return check(PyObject_GetAttrString(found.get(), name));
}

bool is_dtype_of_numbers(PyObject* dtype) {
  const Ref kind(check(PyObject_GetAttrString(dtype, "kind")));
  const char* letter = PyUnicode_AsUTF8(kind.get());
  if (!letter) throw PythonError{};
  return std::strchr("biufc", *letter);
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
        plain_ = is_dtype_of_numbers(dtype.get());
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
  bool plain = true;
  for (Py_ssize_t at = 0; PyDict_Next(item, &at, &other, &value);) {
    if (other == key) return value;  // in most cases, which takes less time than to look for it
    plain &= PyUnicode_CheckExact(other) || PyLong_CheckExact(other);
  }
  if (!plain) return nullptr;
  value = PyDict_GetItemWithError(item, key);
  if (!value && PyErr_Occurred()) throw PythonError{};
  return value;
}

bool is_sequence(PyObject* o) {
  return PyList_CheckExact(o) || PyTuple_CheckExact(o);
}

// _item_types(values, key=None): the types of the items of a list or tuple, or of what each of them
// has under that index or key. None where not all have it. With Ellipsis, of all that lies in them,
// None where that is too much to look at.
PyObject* item_types(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *values, *key = nullptr;
    if (!PyArg_ParseTuple(args, "O|O:_item_types", &values, &key)) throw PythonError{};
    if (!is_sequence(values))
      type_error("_item_types(): expected a list or a tuple, got ", type_name(values));
    Types types;
    const bool by_index = key && PyLong_CheckExact(key);
    const Py_ssize_t index = by_index ? index_of(key) : 0;
    int64_t left = kMostLookedAt;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); ++i) {
      Ref item = Ref::borrow(PySequence_Fast_GET_ITEM(values, i));
      if (!key) {
        types.add(item.get());
        continue;
      }
      if (key == Py_Ellipsis) {
        if (!is_sequence(item.get())) return Py_NewRef(Py_None);
        if ((left -= PySequence_Fast_GET_SIZE(item.get())) < 0) return Py_NewRef(Py_None);
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

// Whether `found`, which a class has under a name, leaves what its objects have there to them, or
// takes it from their slots without code of the program's.
bool is_of_objects(PyObject* found, PyObject* tuple_getter) {
  if (!found || !Py_TYPE(found)->tp_descr_get) return true;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(found));
  return Py_IS_TYPE(found, &PyMemberDescr_Type) || type == tuple_getter;
}

// _attribute_types(values, name): the types of what all items of a list or tuple, which are of one
// class, have under that name. None where not all have it, or where to ask might run code.
PyObject* attribute_types(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    static PyObject* tuple_getter = type_in_module("_collections", "_tuplegetter");
    PyObject *values, *name;
    if (!PyArg_ParseTuple(args, "OU:_attribute_types", &values, &name)) throw PythonError{};
    if (!is_sequence(values) || !PySequence_Fast_GET_SIZE(values)) return Py_NewRef(Py_None);
    PyTypeObject* const of = Py_TYPE(PySequence_Fast_GET_ITEM(values, 0));
    // A tuple looks its attributes up as every object does.
    if (of->tp_getattro != PyObject_GenericGetAttr ||
        !is_of_objects(_PyType_Lookup(of, name), tuple_getter))
      return Py_NewRef(Py_None);
    Types types;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); ++i) {
      const Ref item = Ref::borrow(PySequence_Fast_GET_ITEM(values, i));
      if (Py_TYPE(item.get()) != of) return Py_NewRef(Py_None);
      const Ref found(PyObject_GenericGetAttr(item.get(), name));
      if (!found) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
      }
      types.add(found.get());
    }
    return types.take().release();
  });
}

// Tensors without a gradient or a device, arrays that are not of objects, and NumPy's numbers.
bool is_tensor_or_array(PyObject* o) {
  static PyObject* number_type = type_in_module("numpy", "number");
  static PyObject* bool_type = type_in_module("numpy", "bool_");
  if (Py_TYPE(o) == tensor_type) return !unwrap(o)->keys;
  if (is_array_of_numbers(o)) return true;
  if (PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE)) return false;  // a class of the program's
  for (PyObject* type : {number_type, bool_type})
    if (PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(type))) return true;
  return false;
}

bool holds_data(PyObject* o, int depth, int64_t& left) {
  if (--left < 0) return false;
  if (is_number_or_text(o)) return true;
  if (depth == 8) return false;  // it may lead to itself
  if (is_sequence(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (!holds_data(PySequence_Fast_GET_ITEM(o, i), depth + 1, left)) return false;
    return true;
  }
  if (PyDict_CheckExact(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!stays(key) || !holds_data(value, depth + 1, left)) return false;
    return true;
  }
  return is_tensor_or_array(o);
}

// _is_data(value): whether it is nothing but numbers, texts, tensors and arrays, in lists, tuples
// and dicts, so that nothing that is done with it runs code of the program.
PyObject* is_data(PyObject*, PyObject* value) {
  return guarded([&] {
    int64_t left = kMostLookedAt;
    return PyBool_FromLong(holds_data(value, 0, left));
  });
}

bool is_container(PyObject* o) {
  return is_sequence(o) || PyDict_CheckExact(o);
}

// _row_types(rows): of dicts that have the same keys in the same order, which are texts, pairs of a
// key and the type of what lies there; of lists and dicts, True for the type where they hold data
// alone. None where rows are anything else.
PyObject* row_types(PyObject*, PyObject* rows) {
  return guarded([&]() -> PyObject* {
    if (!is_sequence(rows) || !PySequence_Fast_GET_SIZE(rows)) return Py_NewRef(Py_None);
    struct Column {
      Ref key;
      Types types;
      bool nested = false, other = false;
    };
    std::vector<Column> columns;
    int64_t left = kMostLookedAt;
    PyObject *key, *value;
    const Ref first = Ref::borrow(PySequence_Fast_GET_ITEM(rows, 0));
    if (!PyDict_CheckExact(first.get())) return Py_NewRef(Py_None);
    for (Py_ssize_t at = 0; PyDict_Next(first.get(), &at, &key, &value);) {
      if (!PyUnicode_CheckExact(key)) return Py_NewRef(Py_None);
      columns.push_back({Ref::borrow(key), {}});
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(rows); ++i) {
      const Ref row = Ref::borrow(PySequence_Fast_GET_ITEM(rows, i));
      if (!PyDict_CheckExact(row.get()) || size_t(PyDict_GET_SIZE(row.get())) != columns.size())
        return Py_NewRef(Py_None);
      size_t k = 0;
      for (Py_ssize_t at = 0; PyDict_Next(row.get(), &at, &key, &value); ++k) {
        if (k == columns.size()) return Py_NewRef(Py_None);
        Column& c = columns[k];
        if (key != c.key.get() &&
            !(PyUnicode_CheckExact(key) && PyUnicode_Compare(key, c.key.get()) == 0))
          return Py_NewRef(Py_None);
        const Ref held = Ref::borrow(value);  // a class may have code that is asked for its hash
        if (!is_container(value)) c.types.add(value);
        else if (holds_data(value, 1, left)) c.nested = true;
        else c.other = true;
      }
    }
    Ref found(check(PySet_New(nullptr)));
    for (Column& c : columns) {
      const Ref types = c.types.take();
      if (c.nested) check(PySet_Add(types.get(), Py_True));
      if (c.other) check(PySet_Add(types.get(), Py_None));
      const Ref each(check(PyObject_GetIter(types.get())));
      while (const Ref type{PyIter_Next(each.get())}) {
        const Ref pair(check(PyTuple_Pack(2, c.key.get(), type.get())));
        check(PySet_Add(found.get(), pair.get()));
      }
      if (PyErr_Occurred()) throw PythonError{};
    }
    return found.release();
  });
}

// _are_plain(values): whether the items of a list, tuple or set, or the keys of a dict, are
// numbers, texts, or tuples of them.
PyObject* are_plain(PyObject*, PyObject* values) {
  return guarded([&]() -> PyObject* {
    bool plain = is_sequence(values) || PyAnySet_CheckExact(values) || PyDict_CheckExact(values);
    PyObject *key, *value;
    if (PyDict_CheckExact(values)) {
      for (Py_ssize_t at = 0; plain && PyDict_Next(values, &at, &key, &value);) plain = stays(key);
    } else if (is_sequence(values)) {
      for (Py_ssize_t i = 0; plain && i < PySequence_Fast_GET_SIZE(values); ++i)
        plain = stays(PySequence_Fast_GET_ITEM(values, i));
    } else if (plain) {
      const Ref each(check(PyObject_GetIter(values)));
      while (plain) {
        const Ref item(PyIter_Next(each.get()));
        if (!item) break;
        plain = stays(item.get());
      }
      if (PyErr_Occurred()) throw PythonError{};
    }
    return PyBool_FromLong(plain);
  });
}

// _holds_values(container, values): whether these are what a dict or a deque holds, in its order.
PyObject* holds_values(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *dict, *values, *key, *value;
    if (!PyArg_ParseTuple(args, "OO!:_holds_values", &dict, &PyList_Type, &values))
      throw PythonError{};
    if (!PyDict_Check(dict)) {
      const Ref held(check(PySequence_List(dict)));
      const Py_ssize_t n = PyList_GET_SIZE(held.get());
      bool same = n == PyList_GET_SIZE(values);
      for (Py_ssize_t i = 0; same && i < n; ++i)
        same = PyList_GET_ITEM(held.get(), i) == PyList_GET_ITEM(values, i);
      return PyBool_FromLong(same);
    }
    bool same = PyDict_GET_SIZE(dict) == PyList_GET_SIZE(values);
    Py_ssize_t i = 0;
    for (Py_ssize_t at = 0; same && PyDict_Next(dict, &at, &key, &value); ++i)
      same = value == PyList_GET_ITEM(values, i);
    return PyBool_FromLong(same);
  });
}

}  // namespace

bool is_array_of_numbers(PyObject* o) {
  static PyObject* array_type = type_in_module("numpy", "ndarray");
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != array_type) return false;
  const Ref dtype(check(PyObject_GetAttrString(o, "dtype")));
  return is_dtype_of_numbers(dtype.get());
}

void init_item_types(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_item_types", item_types, METH_VARARGS,
       "_item_types(values, key=None): the types of a list's items, or of their parts."},
      {"_are_of_length", are_of_length, METH_VARARGS,
       "_are_of_length(values, length): whether a list's items are lists of that length."},
      {"_attribute_types", attribute_types, METH_VARARGS,
       "_attribute_types(values, name): the types of what a list's items have under that name."},
      {"_row_types", row_types, METH_O,
       "_row_types(rows): pairs of a key and of a type of what dicts of the same keys hold."},
      {"_is_data", is_data, METH_O, "_is_data(value): numbers, texts, tensors and arrays alone."},
      {"_are_plain", are_plain, METH_O,
       "_are_plain(values): whether items or keys are numbers, texts, or tuples of them."},
      {"_holds_values", holds_values, METH_VARARGS,
       "_holds_values(container, values): whether these are what a dict or a deque holds."},
      {}};
  add_functions(module, functions);
}

}  // namespace facula::python
