// The two ends of a worker's stream of batches, as far as every batch passes them: making batches
// and writing them down in the worker, reading them in turn in the loader. Small batches are made
// in a microsecond, of which Python would take the most if it stood in between.
#include <chrono>
#include <new>

#include "python/batch_codec.h"

namespace facula::python {
namespace {

double now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

// ---- in the worker

struct Piece {
  int64_t kind;
  int64_t batches;
  std::string data;
};

// What has been made and not sent so far. Another thread may take it at any time, between batches
// or while one of them is being made; the GIL keeps them apart.
struct Writer {
  size_t limit = 0;        // bytes of a batch in its short form
  int64_t small_kind = 0;  // of pieces that are such batches
  Ref marker;              // the type of what stands among the tasks and is none
  std::vector<Piece> pieces;
  size_t bytes = 0;
  int64_t batches = 0;
  double seconds = 0;  // spent on what is here
  double last = 0;     // spent on the last batch

  std::string& short_forms() {
    if (pieces.empty() || pieces.back().kind != small_kind) pieces.push_back({small_kind, 0, {}});
    return pieces.back().data;
  }
  void count(size_t size, double spent, int64_t made) {
    bytes += size;
    batches += made;
    seconds += spent;
    last = spent;
  }
};

struct PyWriter {
  PyObject_HEAD Writer w;
};
Writer& writer_of(PyObject* o) {
  return reinterpret_cast<PyWriter*>(o)->w;
}

PyObject* new_writer(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t limit;
    long long kind;
    PyObject* marker;
    if (!PyArg_ParseTuple(args, "nLO:_BatchWriter", &limit, &kind, &marker)) throw PythonError{};
    PyObject* self = check(type->tp_alloc(type, 0));
    Writer& w = *new (&writer_of(self)) Writer;
    w.limit = size_t(limit);
    w.small_kind = kind;
    w.marker = Ref::borrow(marker);
    return self;
  });
}

void free_writer(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  writer_of(self).~Writer();
  type->tp_free(self);
  Py_DECREF(type);
}

// The exception that is set, as an object; others than Exception (an interrupt) go on their way.
PyObject* caught() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError{};
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return value;
}

PyObject* places_of(const std::vector<BatchEncoder::Placed>& placed) {
  Ref list(check(PyList_New(0)));
  for (const auto& p : placed) {
    Ref place(
        check(Py_BuildValue("(Lnn)", (long long)p.slot, Py_ssize_t(p.bytes), Py_ssize_t(p.at))));
    check(PyList_Append(list.get(), place.get()));
  }
  return list.release();
}

// make(tasks, fetch, lent, quick, patience, bytes): does tasks of a deque one after the other.
// None when it is time to send, when a marker comes, or when there are no more; else what is left
// to the caller: an exception, a batch without a short form (in a list), or one that lies in slots.
PyObject* make(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    static PyObject* popleft = PyUnicode_InternFromString("popleft");
    static PyObject* appendleft = PyUnicode_InternFromString("appendleft");
    PyObject *tasks, *fetch, *lent;
    double quick, patience;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "OOO!ddn:make", &tasks, &fetch, &PyDict_Type, &lent, &quick,
                          &patience, &most))
      throw PythonError{};
    Writer& w = writer_of(self);
    double began = now();
    while (w.last <= quick && w.seconds <= patience && w.bytes <= size_t(most) &&
           check(int(PyObject_IsTrue(tasks)))) {
      Ref task(check(PyObject_CallMethodNoArgs(tasks, popleft)));
      if (PyObject* marker = w.marker.get(); (PyObject*)Py_TYPE(task.get()) == marker) {
        Ref(check(PyObject_CallMethodOneArg(tasks, appendleft, task.get())));
        break;
      }
      Ref batch(PyObject_CallOneArg(fetch, task.get()));
      if (!batch) return caught();
      // Another thread may have taken the pieces meanwhile.
      std::string& out = w.short_forms();
      const size_t start = out.size();
      BatchEncoder encoder(out, w.limit, lent);
      const bool written = encoder.write(batch.get());
      const double ended = now();
      const double spent = ended - began;
      began = ended;
      if (!written || !encoder.placed.empty()) {
        w.seconds += spent;
        w.last = spent;
        Ref list(check(PyList_New(1)));
        if (!written) {
          PyList_SET_ITEM(list.get(), 0, batch.release());
          return list.release();
        }
        Ref form(
            check(PyBytes_FromStringAndSize(out.data() + start, Py_ssize_t(out.size() - start))));
        out.resize(start);
        Ref places(places_of(encoder.placed));
        return check(PyTuple_Pack(2, form.get(), places.get()));
      }
      ++w.pieces.back().batches;
      w.count(out.size() - start, spent, 1);
    }
    return Py_NewRef(Py_None);
  });
}

// add(kind, data, batches, seconds): what Python has written.
PyObject* add(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    long long kind, batches;
    const char* data;
    Py_ssize_t size;
    double spent;
    if (!PyArg_ParseTuple(args, "Ly#Ld:add", &kind, &data, &size, &batches, &spent))
      throw PythonError{};
    Writer& w = writer_of(self);
    w.pieces.push_back({kind, batches, std::string(data, size_t(size))});
    w.bytes += size_t(size);
    w.batches += batches;
    w.seconds += spent;
    w.last = std::max(w.last, spent);
    return Py_NewRef(Py_None);
  });
}

// take(): ([(kind, batches, data), ...], batches, seconds); nothing is left.
PyObject* take(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Writer& w = writer_of(self);
    std::vector<Piece> pieces;
    pieces.swap(w.pieces);
    const int64_t batches = w.batches;
    const double seconds = w.seconds;
    w.bytes = 0;
    w.batches = 0;
    w.seconds = w.last = 0;
    Ref list(check(PyList_New(0)));
    for (const Piece& p : pieces) {
      if (p.data.empty() && !p.batches) continue;
      Ref piece(check(Py_BuildValue("(LLy#)", (long long)p.kind, (long long)p.batches,
                                    p.data.data(), Py_ssize_t(p.data.size()))));
      check(PyList_Append(list.get(), piece.get()));
    }
    return check(Py_BuildValue("(Old)", list.get(), long(batches), seconds));
  });
}

int holds_any(PyObject* self) {
  return writer_of(self).batches > 0;
}

PyMethodDef writer_methods[] = {{"make", make, METH_VARARGS, nullptr},
                                {"add", add, METH_VARARGS, nullptr},
                                {"take", take, METH_NOARGS, nullptr},
                                {}};
PyType_Slot writer_slots[] = {{Py_tp_new, (void*)new_writer},
                              {Py_tp_dealloc, (void*)free_writer},
                              {Py_tp_methods, writer_methods},
                              {Py_nb_bool, (void*)holds_any},
                              {0, nullptr}};
PyType_Spec writer_spec = {"facula._C._BatchWriter", sizeof(PyWriter), 0, Py_TPFLAGS_DEFAULT,
                           writer_slots};

// ---- in the loader

// Batches that have arrived, in the order in which the workers take turns. What is not simply the
// next batch of a reader is left to the method `_next_after_turns` of the subclass.
struct Turns {
  std::vector<Ref> readers;      // of each worker
  std::vector<Py_ssize_t> came;  // from each worker
  std::vector<uint32_t> order;   // whose turn it is
  size_t at = 0;
};

struct PyStream {
  PyObject_HEAD Turns t;
};
Turns& turns_of(PyObject* o) {
  return reinterpret_cast<PyStream*>(o)->t;
}

PyObject* new_stream(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&turns_of(self)) Turns;
  return self;
}

void free_stream(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  turns_of(self).~Turns();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* next_in_turn(PyObject* self) {
  return guarded([&]() -> PyObject* {
    static PyObject* otherwise = PyUnicode_InternFromString("_next_after_turns");
    Turns& t = turns_of(self);
    if (t.at < t.order.size()) {
      const uint32_t number = t.order[t.at];
      auto* reader = reinterpret_cast<BatchReader*>(t.readers[number].get());
      if (reader && reader->left > 0) {
        ++t.at;
        ++t.came[number];
        return next_batch(reader);
      }
    }
    return PyObject_CallMethodNoArgs(self, otherwise);
  });
}

// _set_turns(readers, order): whose batch comes next, and after it; an empty list to stop.
PyObject* set_turns(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *readers, *order;
    if (!PyArg_ParseTuple(args, "O!O!:_set_turns", &PyList_Type, &readers, &PyList_Type, &order))
      throw PythonError{};
    Turns made;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(readers); ++i) {
      PyObject* reader = PyList_GET_ITEM(readers, i);
      made.readers.push_back(is_batch_reader(reader) ? Ref::borrow(reader) : Ref());
    }
    made.came.resize(made.readers.size());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); ++i) {
      const int64_t number = index_of(PyList_GET_ITEM(order, i));
      if (number < 0 || size_t(number) >= made.readers.size())
        index_error("_set_turns(): there is no worker ", number);
      made.order.push_back(uint32_t(number));
    }
    std::swap(turns_of(self), made);
    return Py_NewRef(Py_None);
  });
}

// _turns_taken(): how many batches came from each worker since the last call.
PyObject* turns_taken(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Turns& t = turns_of(self);
    Ref list(check(PyList_New(Py_ssize_t(t.came.size()))));
    for (size_t i = 0; i < t.came.size(); ++i) {
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), check(PyLong_FromSsize_t(t.came[i])));
      t.came[i] = 0;
    }
    return list.release();
  });
}

PyMethodDef stream_methods[] = {{"_set_turns", set_turns, METH_VARARGS, nullptr},
                                {"_turns_taken", turns_taken, METH_NOARGS, nullptr},
                                {}};
PyType_Slot stream_slots[] = {
    {Py_tp_new, (void*)new_stream},         {Py_tp_dealloc, (void*)free_stream},
    {Py_tp_iter, (void*)PyObject_SelfIter}, {Py_tp_iternext, (void*)next_in_turn},
    {Py_tp_methods, stream_methods},        {0, nullptr}};
PyType_Spec stream_spec = {"facula._C._BatchStream", sizeof(PyStream), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, stream_slots};

void add_type(PyObject* module, PyType_Spec& spec, const char* name) {
  Ref type(check(PyType_FromSpec(&spec)));
  check(PyModule_AddObjectRef(module, name, type.get()));
}

}  // namespace

void init_batch_stream(PyObject* module) {
  add_type(module, writer_spec, "_BatchWriter");
  add_type(module, stream_spec, "_BatchStream");
}

}  // namespace facula::python
