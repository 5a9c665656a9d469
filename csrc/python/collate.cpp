// default_collate for what nearly every dataset gives: tuples, lists and dicts of tensors, numbers
// and texts. In Python, the walk through a sample takes longer than all that is done there.
#include <cstring>
#include <utility>

#include "cpu/stream.h"
#include "op/kernel_hook.h"
#include "op/profiler.h"
#include "python/batch_slots.h"

namespace facula::python {
namespace {

constexpr size_t kLarge = 1 << 18;  // bytes: from here on, stack() copies with all threads

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
      const Deeper deeper(depth_);
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
  // One level of nesting more, up to Python's limit: what Python counts of calls in C may be
  // deeper than the stack (from Python 3.12 on).
  class Deeper {
   public:
    explicit Deeper(int& depth) : depth_(depth) {
      if (depth_ >= Py_GetRecursionLimit())
        raise_python(PyExc_RecursionError,
                     "maximum recursion depth exceeded while samples are collated");
      if (Py_EnterRecursiveCall(" while samples are collated")) throw PythonError{};
      ++depth_;
    }
    ~Deeper() {
      --depth_;
      Py_LeaveRecursiveCall();
    }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  static bool is_plain_sequence(PyObject* o) {
    return PyTuple_CheckExact(o) || PyList_CheckExact(o);
  }
  // What does the rest is a function, or a tuple of types for which it is the second item, if the
  // table is as it was, and the third one for others.
  PyObject* rest(PyObject* column) {
    if (!PyTuple_CheckExact(otherwise_)) return check(call_in_worker(otherwise_, column));
    const bool known = is_plain_sequence(column) &&
                       check(PyObject_RichCompareBool(table_, own_, Py_EQ)) && are_known(column);
    return check(call_in_worker(PyTuple_GET_ITEM(otherwise_, known ? 1 : 2), column));
  }
  bool are_known(PyObject* column) {
    PyObject* types = PyTuple_GET_ITEM(otherwise_, 0);
    PyTypeObject* last = nullptr;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(column); ++i) {
      PyTypeObject* type = Py_TYPE(PySequence_Fast_GET_ITEM(column, i));
      if (type == last) continue;
      if (!check(PySet_Contains(types, reinterpret_cast<PyObject*>(type)))) return false;
      last = type;
    }
    return true;
  }

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
    SlotWriter* slots = row * size_t(n) >= kSharedBytes ? slots_here() : nullptr;
    if (!slots && row * size_t(n) >= kLarge) return nullptr;
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
    Tensor out;
    if (slots) out = slots->tensor(sizes, first.dtype());
    if (!out.defined()) out = empty_tensor(sizes, first.dtype(), Device{});
    if (row) {
      char* to = out.data();
      for (Py_ssize_t i = 0; i < n; ++i, to += row)
        copy_to_slot(to, unwrap(items[i]).data(), row, row * size_t(n));
      finish_streams();
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
  int depth_ = 0;
};

PyObject* collate(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4 || !PyDict_CheckExact(args[1]) || !PyDict_CheckExact(args[2]))
      type_error("_collate() takes samples, two tables and a function");
    return Collator(args[1], args[2], args[3]).collate(args[0]);
  });
}

// ---- a batch from a dataset

// _Fetch(getitem, samples, collate, tables, drop_last): makes batches of the samples that
// `getitem` gives for indices, or of the next ones of the iterator `samples`. `tables` are the
// arguments of _collate() after the first, or None where `collate` is called instead.
struct Fetch {
  PyObject_HEAD PyObject *getitem, *samples, *collate, *tables;
  bool drop_last;
  vectorcallfunc call;
};

Fetch* fetch_of(PyObject* o) {
  return reinterpret_cast<Fetch*>(o);
}

Ref samples_at(PyObject* getitem, PyObject* indices) {
  Ref at(
      check(PySequence_Fast(indices, "expected a batch of indices, which can be iterated over")));
  Ref list(check(PyList_New(0)));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(at.get()); ++i) {
    Ref index = Ref::borrow(PySequence_Fast_GET_ITEM(at.get(), i));
    Ref sample(check(call_in_worker(getitem, index.get())));
    check(PyList_Append(list.get(), sample.get()));
  }
  return list;
}

// Null with StopIteration set at the end, which every epoch comes to: to throw takes longer.
Ref next_samples(PyObject* samples, Py_ssize_t count, bool drop_last) {
  Ref list(check(PyList_New(0)));
  while (PyList_GET_SIZE(list.get()) < count) {
    Ref sample(wait_for_gil([&] { return PyIter_Next(samples); }));
    if (!sample && PyErr_Occurred()) throw PythonError{};
    if (!sample) break;
    check(PyList_Append(list.get(), sample.get()));
  }
  const Py_ssize_t found = PyList_GET_SIZE(list.get());
  if (found == 0 || (drop_last && found < count)) {
    PyErr_SetNone(PyExc_StopIteration);
    return Ref();
  }
  return list;
}

PyObject* call_fetch(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (PyVectorcall_NARGS(flags) != 1 || names) type_error("a fetcher takes one batch of indices");
    Fetch& f = *fetch_of(self);
    Ref list = f.getitem == Py_None
                   ? next_samples(f.samples, check(int(PyObject_Size(args[0]))), f.drop_last)
                   : samples_at(f.getitem, args[0]);
    if (!list) return nullptr;
    if (f.tables == Py_None) return check(call_in_worker(f.collate, list.get()));
    PyObject** t = PySequence_Fast_ITEMS(f.tables);
    return Collator(t[0], t[1], t[2]).collate(list.get());
  });
}

PyObject* new_fetch(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject *getitem, *samples, *collate_fn, *tables;
    int drop_last;
    if (!PyArg_ParseTuple(args, "OOOOp:_Fetch", &getitem, &samples, &collate_fn, &tables,
                          &drop_last))
      throw PythonError{};
    if (tables != Py_None && !(PyTuple_CheckExact(tables) && PyTuple_GET_SIZE(tables) == 3 &&
                               PyDict_CheckExact(PyTuple_GET_ITEM(tables, 0)) &&
                               PyDict_CheckExact(PyTuple_GET_ITEM(tables, 1))))
      type_error("_Fetch(): expected two tables and a function, or None");
    if (getitem == Py_None && !PyIter_Check(samples))
      type_error("_Fetch(): expected an iterator, got ", type_name(samples));
    PyObject* self = check(type->tp_alloc(type, 0));
    Fetch& f = *fetch_of(self);
    f.getitem = Py_NewRef(getitem);
    f.samples = Py_NewRef(samples);
    f.collate = Py_NewRef(collate_fn);
    f.tables = Py_NewRef(tables);
    f.drop_last = drop_last;
    f.call = call_fetch;
    return self;
  });
}

int traverse_fetch(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Fetch& f = *fetch_of(self);
  for (PyObject* o : {f.getitem, f.samples, f.collate, f.tables}) Py_VISIT(o);
  return 0;
}

int clear_fetch(PyObject* self) {
  Fetch& f = *fetch_of(self);
  for (PyObject** o : {&f.getitem, &f.samples, &f.collate, &f.tables})
    Py_XDECREF(std::exchange(*o, Py_NewRef(Py_None)));
  return 0;
}

void free_fetch(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Fetch& f = *fetch_of(self);
  for (PyObject* o : {f.getitem, f.samples, f.collate, f.tables}) Py_XDECREF(o);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef fetch_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Fetch, call), READONLY, nullptr}, {}};
PyType_Slot fetch_slots[] = {{Py_tp_new, (void*)new_fetch},
                             {Py_tp_dealloc, (void*)free_fetch},
                             {Py_tp_traverse, (void*)traverse_fetch},
                             {Py_tp_clear, (void*)clear_fetch},
                             {Py_tp_call, (void*)PyVectorcall_Call},
                             {Py_tp_members, fetch_members},
                             {0, nullptr}};
PyType_Spec fetch_spec = {"facula._C._Fetch", sizeof(Fetch), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                          fetch_slots};

PyMethodDef functions[] = {
    {"_collate", (PyCFunction)(void*)collate, METH_FASTCALL,
     "_collate(samples, table, own, otherwise): a batch; columns for which `table` is not as in "
     "`own`, or of unusual types, are made by `otherwise`."},
    {}};

}  // namespace

void init_collate(PyObject* module) {
  add_functions(module, functions);
  Ref fetch(check(PyType_FromSpec(&fetch_spec)));
  check(PyModule_AddObjectRef(module, "_Fetch", fetch.get()));
}

}  // namespace facula::python
