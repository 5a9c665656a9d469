// facula.Generator: the Python object of a source of random numbers.
#include "core/thread_generator.h"
#include "op/kernel_hook.h"
#include "op/ops/copying.h"
#include "op/profiler.h"
#include "op/tensor_operators.h"
#include "python/interop.h"

namespace facula::python {
namespace {

struct PyGenerator {
  PyObject_HEAD Generator* generator;  // owned
  PyObject* weakrefs;
};
PyTypeObject* generator_type;

// Who acts as a worker finds the worker's generator in the place of the default one.
Generator& self_generator(PyObject* o) {
  Generator& own = *reinterpret_cast<PyGenerator*>(o)->generator;
  return thread_generator && &own == &default_generator() ? *thread_generator : own;
}

PyObject* adopt_generator(PyTypeObject* type, Generator* g) {  // takes over the caller's reference
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) {
    g->unref();
    throw PythonError{};
  }
  reinterpret_cast<PyGenerator*>(o)->generator = g;
  return o;
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"device", nullptr};
    PyObject* where = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                     &where))
      throw PythonError{};
    Device device = where == Py_None ? Device{} : resolve_device(device_of(where));
    if (device.is_meta() || device.is_absent())
      runtime_error("Generator(): device ", device, " has no random numbers");
    return adopt_generator(type, new Generator(device));
  });
}

void generator_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  auto* self = reinterpret_cast<PyGenerator*>(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  if (self->generator) self->generator->unref();
  type->tp_free(o);
  Py_DECREF(type);
}

// The methods below wait for a mutex that a thread without the GIL may hold, so they let go of it.

uint64_t seed_of(PyObject* o) {
  if (PyBool_Check(o) || !is_index(o))
    runtime_error("manual_seed expected an int, but got ", type_name(o));
  Ref number(check(PyNumber_Index(o)));
  int overflow = 0;
  int64_t v = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (!overflow) return uint64_t(v);  // negative seeds count from 2**64 down
  uint64_t u = overflow > 0 ? PyLong_AsUnsignedLongLong(number.get()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    value_error("Overflow when unpacking long: a seed is in [-2**63, 2**64)");
  }
  return u;
}

PyObject* manual_seed(PyObject* o, PyObject* value) {
  return guarded([&] {
    uint64_t seed = seed_of(value);
    {
      WithoutGil released;
      self_generator(o).manual_seed(seed);
    }
    return Py_NewRef(o);
  });
}
PyObject* seed(PyObject* o, PyObject*) {
  return guarded([&] {
    uint64_t v;
    {
      WithoutGil released;
      v = self_generator(o).seed();
    }
    return check(PyLong_FromUnsignedLongLong(v));
  });
}
PyObject* initial_seed(PyObject* o, PyObject*) {
  return guarded([&] {
    uint64_t v;
    {
      WithoutGil released;
      v = self_generator(o).initial_seed();
    }
    return check(PyLong_FromUnsignedLongLong(v));
  });
}

// The mutex of a generator. Mostly nobody has it, and there is no need to let go of the GIL.
std::unique_lock<std::mutex> locked(Generator& generator) {
  std::unique_lock lock(generator.mutex, std::try_to_lock);
  if (!lock) {
    WithoutGil released;
    lock.lock();
  }
  return lock;
}

void read_state(PyObject* o, uint8_t* bytes) {
  const auto lock = locked(self_generator(o));
  self_generator(o).write_state(bytes);
}
void write_state(PyObject* o, const void* bytes, size_t size) {
  WithoutGil released;
  self_generator(o).set_state(static_cast<const uint8_t*>(bytes), size);
}

PyObject* get_state(PyObject* o, PyObject*) {
  return guarded([&] {
    const auto bytes = int64_t(self_generator(o).state_bytes());
    Tensor t = empty_tensor(Dims{bytes}, DType::UInt8, Device{});
    read_state(o, t.data_as<uint8_t>());
    return wrap(t);
  });
}
PyObject* set_state(PyObject* o, PyObject* state) {
  return guarded([&] {
    if (!is_tensor(state)) type_error("expected a facula.ByteTensor, but got ", type_name(state));
    if (unwrap(state).dtype() != DType::UInt8)
      type_error("RNG state must be a facula.ByteTensor, got dtype ", unwrap(state).dtype());
    if (unwrap(state).is_meta())
      runtime_error("RNG state must be on the CPU, got a tensor on meta");
    Tensor t = op::contiguous(convert_tensor(unwrap(state), DType::None, Device{}, false));
    write_state(o, t.data(), size_t(t.numel()));
    return Py_NewRef(o);
  });
}
PyObject* clone_state(PyObject* o, PyObject*) {
  return guarded([&] {
    Generator* copy;
    {
      WithoutGil released;
      copy = self_generator(o).clone();
    }
    return adopt_generator(generator_type, copy);
  });
}

// What only generators of CUDA devices have.
void require_offset(PyObject* o) {
  if (!self_generator(o).counts())
    runtime_error(
        "this Generator does not use an offset: its place in the sequence is the state that "
        "get_state() returns");
}
PyObject* get_offset(PyObject* o, PyObject*) {
  return guarded([&] {
    require_offset(o);
    uint64_t v;
    {
      WithoutGil released;
      v = self_generator(o).offset();
    }
    return check(PyLong_FromUnsignedLongLong(v));
  });
}
PyObject* set_offset(PyObject* o, PyObject* value) {
  return guarded([&] {
    require_offset(o);
    const uint64_t v = seed_of(value);
    {
      WithoutGil released;
      self_generator(o).set_offset(v);
    }
    return Py_NewRef(o);
  });
}
PyObject* not_graphsafe(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError,
                  "a Generator's state cannot be part of a graph; use get_state(), set_state() or "
                  "clone_state()");
  return nullptr;
}

PyObject* generator_reduce(PyObject* o, PyObject*) {
  return guarded([&] {
    uint8_t state[Generator::kStateBytes];
    read_state(o, state);
    const auto size = Py_ssize_t(self_generator(o).state_bytes());
    Ref bytes(check(PyBytes_FromStringAndSize(reinterpret_cast<char*>(state), size)));
    return check(Py_BuildValue("(O(s)O)", Py_TYPE(o), to_string(self_generator(o).device).c_str(),
                               bytes.get()));
  });
}
PyObject* generator_setstate(PyObject* o, PyObject* state) {
  return guarded([&] {
    if (PyTuple_Check(state) && PyTuple_GET_SIZE(state) == 3)  // PyTorch's: (seed, offset, state)
      return check(set_state(o, PyTuple_GET_ITEM(state, 2)));
    if (!PyBytes_Check(state)) type_error("__setstate__(): expected bytes, got ", type_name(state));
    write_state(o, PyBytes_AS_STRING(state), size_t(PyBytes_GET_SIZE(state)));
    return Py_NewRef(Py_None);
  });
}

PyObject* get_device(PyObject* o, void*) {
  return guarded([&] { return to_python(self_generator(o).device); });
}

// With a number, that of a CUDA device. A generator keeps one Python object.
PyObject* make_default_generator(PyObject*, PyObject* args) {
  return guarded([&] {
    static PyObject* objects[65] = {};
    int index = -1;
    if (!PyArg_ParseTuple(args, "|i", &index)) throw PythonError{};
    if (index < -1 || index >= 64) value_error("there is no CUDA device ", index);
    PyObject*& object = objects[index + 1];
    if (!object) {
      Generator& generator = index < 0 ? default_generator()
                                       : default_generator(Device{DeviceType::CUDA, int8_t(index)});
      generator.retain();
      object = adopt_generator(generator_type, &generator);
    }
    return Py_NewRef(object);
  });
}
PyObject* seed_devices(PyObject*, PyObject* value) {
  return guarded([&] {
    const uint64_t seed = seed_of(value);
    if (!thread_generator) {  // those of a worker process would not be the program's
      WithoutGil released;
      seed_device_generators(seed);
    }
    return Py_NewRef(Py_None);
  });
}

// _draw_from(generator): draws of this thread that name no generator are from this one, which the
// caller keeps; with None they are from the default one again.
PyObject* draw_from(PyObject*, PyObject* o) {
  return guarded([&] {
    if (o != Py_None && !is_generator(o))
      type_error("_draw_from(): expected a Generator, got ", type_name(o));
    thread_generator = o == Py_None ? nullptr : generator_of(o);
    return Py_NewRef(Py_None);
  });
}

PyObject* get_drawn_seed(PyObject*, PyObject* given) {
  return guarded([&] { return drawn_seed(given); });
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\n"
     "Starts over from a seed.\n\n"
     "Example::\n\n    >>> facula.Generator().manual_seed(7).initial_seed()\n    7\n"},
    {"seed", seed, METH_NOARGS, "Starts over from a seed of the system, and returns it."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed from which the numbers started."},
    {"get_state", get_state, METH_NOARGS, "The state as a tensor of bytes, in PyTorch's layout."},
    {"set_state", set_state, METH_O, "Goes on from a state that get_state returned."},
    {"clone_state", clone_state, METH_NOARGS,
     "Another generator that goes on with the same numbers."},
    {"get_offset", get_offset, METH_NOARGS,
     "How many words of its sequence a CUDA device's generator has used."},
    {"set_offset", set_offset, METH_O,
     "Goes on behind so many words, a multiple of 4; for CUDA devices' generators."},
    {"graphsafe_get_state", not_graphsafe, METH_NOARGS, "Raises; see get_state."},
    {"graphsafe_set_state", not_graphsafe, METH_O, "Raises; see set_state."},
    {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
    {"__setstate__", generator_setstate, METH_O, nullptr},
    {}};
PyGetSetDef getset[] = {
    {"device", get_device, nullptr, "The device of the tensors that it fills.", nullptr}, {}};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyGenerator, weakrefs), READONLY, nullptr}, {}};
PyType_Slot slots[] = {
    {Py_tp_new, (void*)generator_new},
    {Py_tp_dealloc, (void*)generator_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_tp_doc, (void*)"Generator(device='cpu'): a source of random numbers with its own state."},
    {}};
PyType_Spec spec = {"facula.Generator", sizeof(PyGenerator), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

PyMethodDef functions[] = {
    {"_default_generator", make_default_generator, METH_VARARGS,
     "The generator of draws that name none, on the host or a CUDA device."},
    {"_draw_from", draw_from, METH_O, "_draw_from(generator): whose numbers this thread draws."},
    {"_seed_devices", seed_devices, METH_O, "Seeds the default generators of all CUDA devices."},
    {"_drawn_seed", get_drawn_seed, METH_O,
     "_drawn_seed(generator): what random_() draws for one int64; None where that is to be asked."},
    {}};

}  // namespace

void init_generator_type(PyObject* module) {
  generator_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  check(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type)));
  add_functions(module, functions);
}

bool is_generator(PyObject* o) {
  return PyObject_TypeCheck(o, generator_type);
}
Generator* generator_of(PyObject* o) {
  return &self_generator(o);
}
Ref new_generator(uint64_t seed) {
  return Ref(adopt_generator(generator_type, new Generator(Device{}, seed)));
}

PyObject* drawn_seed(PyObject* given) {
  const bool plain = !override_active() && !current_level && !kernel_hook &&
                     !profiling.load(std::memory_order_relaxed) && default_device().is_cpu();
  if (!plain || (given != Py_None && !is_generator(given))) return Py_NewRef(Py_None);
  Generator* own = given == Py_None ? thread_generator : generator_of(given);
  Generator& generator = own ? *own : default_generator();
  if (generator.counts()) return Py_NewRef(Py_None);
  const auto lock = locked(generator);
  return check(PyLong_FromUnsignedLongLong(generator.random64() & INT64_MAX));
}

}  // namespace facula::python
