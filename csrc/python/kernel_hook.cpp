// Python's side of the kernel hook. Three functions stand for it: `before(name, args)` returns None
// to let the kernel run, True to be given its results by `after(results)`, or the results;
// `write(destinations)` hears of kernels that write into tensors. Any of them may be None. Beside
// them there is a watch, `watch(name, args, kwargs, results)`, which hears of every kernel that
// ran. In front of all stands `dispatch(name, args, kwargs, number)`, which returns the results and
// runs the kernel, if it wants to, by that number.
#include "op/kernel_hook.h"

#include "core/per_thread.h"
#include "python/interop.h"

namespace facula::python {
namespace {

// A kernel that waits for `dispatch` to run it.
struct Waiting {
  const OpDef& op;
  const Value* args;
  Rets& rets;
  Kernel kernel;
  uint64_t number;
  Waiting* outer;
};

struct Hooks {
  PyObject *before_kernel = nullptr, *after_kernel = nullptr, *before_write = nullptr;
  PyObject *after_any = nullptr, *in_front = nullptr;
  Waiting* waiting = nullptr;
  uint64_t last_number = 0;
};

Hooks& hooks() {
  return per_thread<Hooks>();
}

PyObject* value_to_python(const Value& v) {
  switch (v.tag()) {
    case Value::Tag::None:
    case Value::Tag::Generator: return Py_NewRef(Py_None);
    case Value::Tag::Tensor: return wrap(v.tensor());
    case Value::Tag::Tensors:
      return wrap_list(std::vector<Tensor>(v.tensors().begin(), v.tensors().end()));
    case Value::Tag::Ints: return make_tuple(v.ints());
    case Value::Tag::Floats: {
      Ref tuple(check(PyTuple_New(Py_ssize_t(v.floats().size()))));
      for (size_t i = 0; i < v.floats().size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), check(PyFloat_FromDouble(v.floats()[i])));
      return tuple.release();
    }
    case Value::Tag::String:
      return check(PyUnicode_FromStringAndSize(v.text().data(), Py_ssize_t(v.text().size())));
    case Value::Tag::DType: return to_python(v.dtype());
    case Value::Tag::Device: return to_python(v.device());
    case Value::Tag::Format: return to_python(v.format());
    default: return to_python(v.scalar());
  }
}

// The hook itself does not see what its functions do.
struct Off {
  KernelHook saved = kernel_hook;
  Off() { kernel_hook = nullptr; }
  ~Off() { kernel_hook = saved; }
};

void take_results(const OpDef& op, PyObject* given, Rets& rets) {
  Ref items(check(PySequence_Tuple(given)));
  if (PyTuple_GET_SIZE(items.get()) != op.ret_count)
    runtime_error("expected ", op.ret_count, " results of ", op.name, ", got ",
                  PyTuple_GET_SIZE(items.get()));
  for (int i = 0; i < op.ret_count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (item == Py_None) continue;
    if (!is_tensor(item)) type_error("expected results of ", op.name, " to be tensors");
    rets.t[i] = unwrap(item);
  }
}

void tell_of_write(const OpDef& op, const Rets& rets) {
  WithGil gil;
  Off off;
  Ref written(check(PyTuple_New(op.ret_count)));
  for (int i = 0; i < op.ret_count; ++i)
    PyTuple_SET_ITEM(written.get(), i,
                     rets.t[i].defined() ? check(wrap(rets.t[i])) : Py_NewRef(Py_None));
  Ref done(check(PyObject_CallOneArg(hooks().before_write, written.get())));
}

// The arguments of a call: a list, and a dict of those that can only be named and have not their
// default.
struct PythonArguments {
  Ref list{check(PyList_New(0))}, named{check(PyDict_New())};

  PythonArguments(const OpDef& op, const Value* args) {
    for (int i = 0; i < op.arg_count; ++i) {
      Ref value(check(value_to_python(args[i])));
      if (!op.args[i].keyword_only) {
        check(PyList_Append(list.get(), value.get()));
        continue;
      }
      Ref unchanged(check(value_to_python(op.args[i].value)));
      if (is_tensor(value.get()) ||
          !check(PyObject_RichCompareBool(value.get(), unchanged.get(), Py_EQ)))
        check(PyDict_SetItemString(named.get(), op.args[i].name, value.get()));
    }
  }
};

void tell_watch(const OpDef& op, const Value* args, const Rets& rets) {
  WithGil gil;
  Off off;
  PythonArguments given(op, args);
  Ref results(check(PyList_New(0)));
  auto add = [](PyObject* to, PyObject* item) {
    Ref owned(check(item));
    check(PyList_Append(to, owned.get()));
  };
  auto add_result = [&](const Tensor& t) {
    add(results.get(), t.defined() ? wrap(alias_tensor(t)) : Py_NewRef(Py_None));
  };
  if (rets.list)
    for (const Tensor& t : *rets.list) add_result(t);
  else
    for (int i = 0; i < op.ret_count; ++i) add_result(rets.t[i]);
  Ref done(check(PyObject_CallFunction(hooks().after_any, "sOOO", op.name, given.list.get(),
                                       given.named.get(), results.get())));
}

// Whether the kernel ran: a hook may have given the results.
bool run_with_hooks(const OpDef& op, const Value* args, Rets& rets, Kernel kernel) {
  if (hooks().before_write && rets.destination != Destination::New) tell_of_write(op, rets);
  // What writes into its arguments, draws random numbers or gives a list runs every time.
  const bool plain = hooks().before_kernel && rets.destination == Destination::New && !rets.list &&
                     !(op.flags & (kOpMutates | kOpRandom | kOpView));
  bool wanted = false;
  if (plain) {
    WithGil gil;
    Off off;
    Ref list(check(PyTuple_New(op.arg_count)));
    for (int i = 0; i < op.arg_count; ++i)
      PyTuple_SET_ITEM(list.get(), i, check(value_to_python(args[i])));
    Ref answer(check(PyObject_CallFunction(hooks().before_kernel, "sO", op.name, list.get())));
    if (answer.get() != Py_None && answer.get() != Py_True) {
      take_results(op, answer.get(), rets);
      return false;
    }
    wanted = answer.get() == Py_True;
  }
  kernel(op, args, rets);
  if (!wanted) return true;
  WithGil gil;
  Off off;
  Ref results(check(PyTuple_New(op.ret_count)));
  for (int i = 0; i < op.ret_count; ++i) {
    const Tensor& t = rets.t[i];
    // An alias: the result itself is about to get a history.
    PyTuple_SET_ITEM(results.get(), i, t.defined() ? wrap(alias_tensor(t)) : Py_NewRef(Py_None));
  }
  Ref done(check(PyObject_CallOneArg(hooks().after_kernel, results.get())));
  return true;
}

// What a kernel returned, as the operator returns it.
PyObject* results_to_python(const OpDef& op, const Rets& rets) {
  if (rets.list) return wrap_list(*rets.list);
  if (op.ret_count == 1) return wrap(rets.t[0]);
  Ref tuple(check(PyTuple_New(op.ret_count)));
  for (int i = 0; i < op.ret_count; ++i)
    PyTuple_SET_ITEM(tuple.get(), i,
                     rets.t[i].defined() ? check(wrap(rets.t[i])) : Py_NewRef(Py_None));
  return tuple.release();
}

// What `dispatch` returned. A tensor that is not the kernel's own comes as an alias: the result of
// a call is about to get a history.
void take_dispatched(const OpDef& op, PyObject* given, Rets& rets) {
  auto take = [&](PyObject* item, Tensor& into) {
    if (item == Py_None) return;
    if (!is_tensor(item))
      type_error("expected __torch_dispatch__ to return tensors for ", op.name, ", got ",
                 Py_TYPE(item)->tp_name);
    Tensor t = unwrap(item);
    if (!into.is(t)) into = alias_tensor(t);
  };
  if (!rets.list && op.ret_count == 1) return take(given, rets.t[0]);
  Ref items(check(PySequence_Tuple(given)));
  const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
  if (rets.list) {
    rets.list->resize(size_t(count));
    for (Py_ssize_t i = 0; i < count; ++i)
      take(PyTuple_GET_ITEM(items.get(), i), (*rets.list)[size_t(i)]);
    return;
  }
  if (count != op.ret_count)
    runtime_error("expected __torch_dispatch__ to return ", op.ret_count, " results for ", op.name,
                  ", got ", count);
  for (int i = 0; i < op.ret_count; ++i) take(PyTuple_GET_ITEM(items.get(), i), rets.t[i]);
}

void dispatched(const OpDef& op, const Value* args, Rets& rets, Kernel kernel) {
  WithGil gil;
  GradGuard off(false);  // below the tape
  PythonArguments given(op, args);
  const bool in_place = rets.destination == Destination::InPlace;
  if (rets.destination == Destination::Out) {
    Ref out(check(results_to_python(op, rets)));
    check(PyDict_SetItemString(given.named.get(), "out", out.get()));
  }
  Ref list(check(PyList_AsTuple(given.list.get())));
  struct Scope {
    Waiting here;
    Scope(Waiting w) : here(w) { hooks().waiting = &here; }
    ~Scope() { hooks().waiting = here.outer; }
  } scope({op, args, rets, kernel, ++hooks().last_number, hooks().waiting});
  Ref handler(Py_NewRef(hooks().in_front));
  Ref answer(check(
      PyObject_CallFunction(handler.get(), "sOOK", in_place ? op.in_place_name : op.name,
                            list.get(), given.named.get(), (unsigned long long)scope.here.number)));
  if (rets.destination == Destination::New) take_dispatched(op, answer.get(), rets);
}

PyObject* run_waiting(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    const uint64_t wanted = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) throw PythonError();
    if (!hooks().waiting || hooks().waiting->number != wanted)
      runtime_error("a kernel can only be run by the dispatch function that it was given to");
    Waiting& w = *hooks().waiting;
    if (kernel_hook) kernel_hook(w.op, w.args, w.rets, w.kernel);
    else w.kernel(w.op, w.args, w.rets);
    return results_to_python(w.op, w.rets);
  });
}

void hooked(const OpDef& op, const Value* args, Rets& rets, Kernel kernel) {
  if (hooks().in_front) return dispatched(op, args, rets, kernel);
  if (run_with_hooks(op, args, rets, kernel) && hooks().after_any) tell_watch(op, args, rets);
}

void set_kernel_hook() {
  const bool any = hooks().before_kernel || hooks().after_kernel || hooks().before_write ||
                   hooks().after_any || hooks().in_front;
  kernel_hook = any ? hooked : nullptr;
}

PyObject* set_hook(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 3) type_error("_set_kernel_hook() takes 3 arguments, got ", count);
    PyObject** places[] = {&hooks().before_kernel, &hooks().after_kernel, &hooks().before_write};
    Ref former(check(PyTuple_New(3)));
    for (int i = 0; i < 3; ++i) {
      PyTuple_SET_ITEM(former.get(), i, *places[i] ? *places[i] : Py_NewRef(Py_None));
      *places[i] = args[i] == Py_None ? nullptr : Py_NewRef(args[i]);
    }
    set_kernel_hook();
    return former.release();
  });
}

PyObject* set_watch(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    PyObject* former = hooks().after_any ? hooks().after_any : Py_NewRef(Py_None);
    hooks().after_any = function == Py_None ? nullptr : Py_NewRef(function);
    set_kernel_hook();
    return former;
  });
}

PyObject* set_dispatch(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    PyObject* former = hooks().in_front ? hooks().in_front : Py_NewRef(Py_None);
    hooks().in_front = function == Py_None ? nullptr : Py_NewRef(function);
    set_kernel_hook();
    return former;
  });
}

PyMethodDef functions[] = {
    {"_set_kernel_dispatch", set_dispatch, METH_O,
     "_set_kernel_dispatch(function): gives it the kernels of this thread; returns the former."},
    {"_run_waiting_kernel", run_waiting, METH_O,
     "_run_waiting_kernel(number): runs the kernel that the dispatch function was given."},
    {"_set_kernel_hook", (PyCFunction)(void*)set_hook, METH_FASTCALL,
     "_set_kernel_hook(before, after, write): watches this thread's kernels; returns the former."},
    {"_set_kernel_watch", set_watch, METH_O,
     "_set_kernel_watch(function): tells it of all kernels of this thread; returns the former."},
    {}};

}  // namespace

void init_kernel_hook(PyObject* module) {
  add_functions(module, functions);
}

}  // namespace facula::python
