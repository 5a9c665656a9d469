// The callables of the operators: one type for functions and one for methods, both over the same
// records and the same parser.
#include <algorithm>
#include <cstring>
#include <map>

#include "autograd/node.h"
#include "core/sparse.h"
#include "op/ops/creation.h"
#include "op/settings.h"
#include "python/allocation_site.h"
#include "python/interop.h"
#include "python/parse.h"
#include "sparse/convert.h"

namespace facula::python {
namespace {

struct Overload {
  const OpDef* op;
  uint8_t variants;
};

struct PyOperator {
  PyObject_HEAD vectorcallfunc vectorcall;
  const char* name;  // with the namespace, "linalg.norm"
  Overload* overloads;
  struct Deprecation* deprecation;  // null: none
  int count;
  bool in_place;
  bool method;
};

PyTypeObject *function_type, *method_type;
PyObject* g_functions;                         // name -> function
PyObject* g_methods;                           // name -> method
constexpr int64_t kReleaseGilAbove = 1 << 16;  // elements

int64_t work_of(const OpDef& op, const Value* args) {
  int64_t n = 0;
  for (int i = 0; i < op.arg_count; ++i) {
    if (args[i].tag() == Value::Tag::Tensor) n += args[i].tensor().numel();
    else if (args[i].tag() == Value::Tag::Tensors) n += int64_t(args[i].tensors().size()) * 256;
    else if (args[i].tag() == Value::Tag::Ints && i == 0)  // creation by size
      for (int64_t k = 1; int64_t s : args[i].ints()) n = k *= s > 0 && k < (1 << 24) ? s : 1;
  }
  return n;
}

void run(const OpDef& op, const Value* args, Rets& rets) {
  if (work_of(op, args) < kReleaseGilAbove) return call(op, args, rets);
  note_allocation_site();
  WithoutGil released;
  call(op, args, rets);
}

// ---- named results: facula.return_types.max(values=..., indices=...)
PyObject* named_result_repr(PyObject* self) {
  return guarded([&] {
    std::string text = std::string(Py_TYPE(self)->tp_name) + "(\n";
    const PyMemberDef* field = Py_TYPE(self)->tp_members;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      Ref part(check(PyObject_Repr(PyTuple_GET_ITEM(self, i))));
      const char* shown = PyUnicode_AsUTF8(part.get());
      if (!shown) throw PythonError{};
      text += std::string(i ? ",\n" : "") + field[i].name + "=" + shown;
    }
    return check(PyUnicode_FromString((text + ")").c_str()));
  });
}

// With out=, the name ends in _out. Overloads share a type: pickle finds it by its name.
PyTypeObject* result_type_of(const OpDef& op, bool out = false) {
  static std::map<std::pair<std::string_view, bool>, PyTypeObject*> types;
  auto& t = types[{op.name, out}];
  if (!t) {
    auto* fields = new PyStructSequence_Field[size_t(op.ret_count) + 1]{};
    for (int i = 0; i < op.ret_count; ++i) fields[i].name = op.ret_names[i];
    auto* name =
        new std::string(std::string("facula.return_types.") + op.name + (out ? "_out" : ""));
    PyStructSequence_Desc desc{name->c_str(), nullptr, fields, op.ret_count};
    t = PyStructSequence_NewType(&desc);
    if (!t) throw PythonError{};
    t->tp_repr = named_result_repr;  // each on lines of its own: tensors take several
  }
  return t;
}

// facula.return_types.NAME for one of the operators with named results; None when there is none.
PyObject* find_result_type(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const char* given = PyUnicode_AsUTF8(name);
    if (!given) throw PythonError{};
    std::string_view wanted = given;
    const bool out = wanted.ends_with("_out");
    if (out) wanted.remove_suffix(4);
    for (int i = 0; i < kPythonEntryCount; ++i) {
      const OpDef& op = *kPythonEntries[i].op;
      if (op.ret_names && wanted == op.name && (!out || kPythonEntries[i].variants & kPyOut))
        return Py_NewRef(reinterpret_cast<PyObject*>(result_type_of(op, out)));
    }
    return Py_NewRef(Py_None);
  });
}
PyMethodDef operator_functions[] = {
    {"_result_type", find_result_type, METH_O, "The type of an operator's named results, or None."},
    {}};

bool any_tensor(const OpDef& op, const Value* args) {
  return std::any_of(args, args + op.arg_count, [](const Value& v) { return v.is_tensor(); });
}

// No overload took the arguments: says what each of them missed.
[[noreturn]] void raise_misfit(PyOperator* self, PyObject* const* args, Py_ssize_t count,
                               PyObject* names) {
  ParseArena arena;
  Parsed parsed;
  auto why = [&](const Overload& o) {
    std::string text;
    arena.reset();
    parse_arguments(*o.op, o.variants & kPyOut && !self->in_place, args, count, names, arena,
                    parsed, &text, self->method);
    return text;
  };
  std::string message = self->name;
  if (self->count == 1) {
    const Overload& only = self->overloads[0];
    raise_python(PyExc_TypeError, message + why(only) + ". The signature is " + self->name +
                                      signature_text(*only.op));
  }
  message += "() received an invalid combination of arguments - got (";
  const Py_ssize_t first = self->method;
  for (Py_ssize_t i = first; i < count; ++i)
    message += (i > first ? ", " : "") + type_name(args[i]);
  for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k)
    message += std::string(count + k > first ? ", " : "") +
               PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k)) + "=" + type_name(args[count + k]);
  message += "), but expected one of:";
  for (int i = 0; i < self->count; ++i)
    message += "\n * " + signature_text(*self->overloads[i].op) +
               "\n      does not fit: " + self->name + why(self->overloads[i]);
  raise_python(PyExc_TypeError, message);
}

PyObject* invoke(PyOperator* self, PyObject* const* args, Py_ssize_t count, PyObject* names);

// PyTorch's older order, numbers before tensors: x.add_(-lr, g) for x.add_(g, alpha=-lr),
// x.addmm(beta, alpha, a, b) and torch.addmm(beta, x, alpha, a, b) for x.addmm(a, b, beta=beta,
// alpha=alpha), also torch.add(x, other, alpha) of numbers. Null when it is not that.
PyObject* invoke_in_older_order(PyOperator* self, PyObject* const* args, Py_ssize_t count,
                                PyObject* names) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  const bool out =
      named == 1 && !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out");
  if (count < 3 || (named && !out)) return nullptr;
  std::vector<PyObject*> given(args, args + count);
  const bool number_first = !self->method && is_number(given[0]) && is_tensor(given[1]);
  if (number_first) std::swap(given[0], given[1]);
  if (!is_tensor(given[0])) return nullptr;
  Py_ssize_t numbers = 0;
  while (1 + numbers < count && is_number(given[size_t(1 + numbers)])) ++numbers;
  if (numbers == 0) return nullptr;
  for (Py_ssize_t i = 1 + numbers; i < count; ++i)
    if (!is_tensor(given[size_t(i)])) return nullptr;
  const bool numbers_alone = 1 + numbers == count;
  for (int k = 0; k < self->count; ++k) {
    const OpDef& op = *self->overloads[k].op;
    std::vector<const char*> factors;  // alpha, value, or beta and alpha
    Py_ssize_t positional = 0;
    for (int i = 0; i < op.arg_count; ++i) {
      if (!op.args[i].keyword_only) ++positional;
      else if (op.args[i].type == ArgType::Scalar) factors.push_back(op.args[i].name);
    }
    std::vector<PyObject*> ordered{given[0]};
    if (numbers_alone) {  // the last one is alpha
      if (numbers != 2 || positional != 2 || factors.size() != 1 ||
          std::strcmp(factors[0], "alpha") || !op.args[1].operand)
        continue;
      numbers = 1;
      ordered = given;
    } else {
      if (positional != count - numbers || numbers > Py_ssize_t(factors.size())) continue;
      if (!self->method && number_first != (factors.size() > 1)) continue;
      ordered.insert(ordered.end(), given.begin() + 1 + numbers, given.end());
      ordered.insert(ordered.end(), given.begin() + 1, given.begin() + 1 + numbers);
    }
    if (out) ordered.push_back(args[count]);
    Ref factor_names(check(PyTuple_New(numbers + named)));
    for (Py_ssize_t i = 0; i < numbers; ++i)
      PyTuple_SET_ITEM(factor_names.get(), i, check(PyUnicode_FromString(factors[size_t(i)])));
    if (out) PyTuple_SET_ITEM(factor_names.get(), numbers, Py_NewRef(PyTuple_GET_ITEM(names, 0)));
    const std::string_view name = self->name;
    // Of these PyTorch documents the form with numbers alone.
    if (!numbers_alone || !(name.starts_with("rsub") || name.starts_with("subtract"))) {
      const std::string text =
          std::string("This overload of ") + self->name +
          " is deprecated: numbers come after the tensors, by name: " + self->name +
          signature_text(op);
      check(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1));
    }
    return invoke(self, ordered.data(), count - numbers, factor_names.get());
  }
  return nullptr;
}

// Operators that PyTorch advises against, when called by their older name. `unless` is the
// argument whose presence makes the call a good one.
struct Deprecation {
  const char* name;
  const char* text;
  int unless;
  bool shown;
} deprecations[] = {
    {"qr",
     "qr is deprecated in favor of linalg.qr and will be removed in a future release. `some` is "
     "called `mode` there: linalg.qr(A, 'reduced' if some else 'complete').",
     -1, false},
    {"cholesky",
     "cholesky is deprecated in favor of linalg.cholesky and will be removed in a future release. "
     "In place of upper=True write linalg.cholesky(A).mH.",
     -1, false},
    {"lu_solve",
     "lu_solve is deprecated in favor of linalg.lu_solve and will be removed in a future release. "
     "Its arguments are in another order there: linalg.lu_solve(LU, pivots, B).",
     -1, false},
    {"triangular_solve",
     "triangular_solve is deprecated in favor of linalg.solve_triangular and will be removed in a "
     "future release. Its arguments are in another order there: linalg.solve_triangular(A, B, "
     "upper=upper).",
     -1, false},
    {"cross",
     "Using cross without specifying the dim arg is deprecated: it takes the first dimension of "
     "size 3. Pass dim, or use linalg.cross, whose default is the last dimension.",
     2, false},
};

Deprecation* deprecation_of(const std::string& name) {
  for (Deprecation& d : deprecations)
    if (name == d.name) return &d;
  return nullptr;
}

// layout=: a tensor without elements in the layout that the call names. Undefined where the
// operator makes that by itself.
Tensor made_in_layout(const OpDef& op, const Value* args, int64_t layout) {
  constexpr std::string_view kEmpty[] = {"empty",      "zeros",     "empty_like",
                                         "zeros_like", "new_empty", "new_zeros"};
  const Tensor self = args[0].is_tensor() ? args[0].tensor() : Tensor();
  const SparseLayout asked = SparseLayout(layout);
  if (asked == (self.defined() ? layout_of(self) : SparseLayout::Strided)) return {};
  const std::string_view name = op.name;
  if (std::find(std::begin(kEmpty), std::end(kEmpty), name) == std::end(kEmpty)) {
    if (layout == 0) return {};
    value_error("is implemented for strided tensors only, got: layout=facula.", layout_name(asked));
  }
  // ..., dtype, layout, device, pin_memory, requires_grad
  int at = 0;
  while (op.args[at].type != ArgType::Layout) ++at;
  const bool like = name.ends_with("_like");
  const IntSpan size = like ? self.sizes() : args[self.defined()].ints();
  DType dtype = args[at - 1].dtype();
  if (dtype == DType::None) dtype = self.defined() ? self.dtype() : default_dtype();
  Device device = args[at + 1].device();
  if (device.type == DeviceType::None) device = self.defined() ? self.device() : default_device();
  const Tensor made = layout == 0 ? op::zeros(size, dtype, std::nullopt, device)
                      : like && is_sparse(self)
                          ? sparse::without_elements(self, asked, dtype, device)
                          : sparse::without_elements(size, asked, dtype, device);
  if (args[at + 3].to_bool()) set_requires_grad(made, true);
  return made;
}

PyObject* invoke(PyOperator* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  ParseArena arena;
  Parsed parsed;
  const Overload* chosen = nullptr;
  try {
    for (int pass = self->count > 1 ? 0 : 1; pass < 2 && !chosen; ++pass) {
      arena.tensors_as_numbers = pass == 1;
      for (int i = 0; i < self->count && !chosen; ++i) {
        const Overload& o = self->overloads[i];
        if (i || pass) arena.reset();
        parsed.out = nullptr;
        if (parse_arguments(*o.op, o.variants & kPyOut && !self->in_place, args, count, names,
                            arena, parsed, nullptr))
          chosen = &o;
      }
    }
  } catch (Error& e) {
    e.name_operator(self->name);
    throw;
  }
  if (!chosen) {
    if (PyObject* r = invoke_in_older_order(self, args, count, names)) return r;
    raise_misfit(self, args, count, names);
  }
  if (Deprecation* d = self->deprecation; d && (d->unless < 0 || parsed.args[d->unless].is_none()))
    warn_once(d->text, d->shown);
  const OpDef& op = *chosen->op;
  const bool writes = self->in_place || op.flags & kOpMutates;
  if (writes && !parsed.args[0].is_tensor())
    raise_python(PyExc_TypeError, std::string(self->name) + "(): argument '" + op.args[0].name +
                                      "' (position 1) must be Tensor: it is written to");
  if (arena.layout >= 0) {
    Tensor made;
    try {
      made = made_in_layout(op, parsed.args, arena.layout);
    } catch (Error& e) {
      e.name_operator(self->name);
      throw;
    }
    if (made.defined()) return wrap(made);
  }
  Tensor first;  // of a call with numbers alone: one of them becomes a tensor of its usual dtype
  if ((op.elementwise || op.flags & kOpNumbers) && !parsed.args[0].is_tensor() &&
      !any_tensor(op, parsed.args)) {
    if (!(op.flags & kOpNumbers))
      raise_python(
          PyExc_TypeError,
          std::string(self->name) + "(): at least one argument must be Tensor, all are numbers");
    const Scalar number = parsed.args[0].scalar();
    first = number_tensor(number, number.is_float()     ? default_dtype()
                                  : number.is_complex() ? default_complex_dtype()
                                                        : number.dtype());
    parsed.args[0] = Value(first);
  }
  Rets rets;
  std::vector<Tensor> list;
  if (op.flags & kOpListResult) rets.list = &list;
  if (writes) {
    rets.destination = Destination::InPlace;
    rets.t[0] = parsed.args[0].tensor();
  } else if (parsed.out) {
    rets.destination = Destination::Out;
    bool many = op.ret_count > 1;
    auto bad_out = [&] {
      raise_python(
          PyExc_TypeError,
          std::string(self->name) + "(): argument 'out' must be " +
              (many ? "a tuple of " + std::to_string(op.ret_count) + " Tensors" : "Tensor") +
              ", not " + type_name(parsed.out));
    };
    if (!many) {
      if (!is_tensor(parsed.out)) bad_out();
      rets.t[0] = unwrap(parsed.out);
    } else {
      if (!PyTuple_Check(parsed.out) && !PyList_Check(parsed.out)) bad_out();
      if (PySequence_Size(parsed.out) != op.ret_count) bad_out();
      for (int i = 0; i < op.ret_count; ++i) {
        Ref item(check(PySequence_GetItem(parsed.out, i)));
        if (!is_tensor(item.get())) bad_out();
        rets.t[i] = unwrap(item.get());
      }
    }
    // dtype= beside out= must agree with it.
    for (int i = 0; i < op.arg_count; ++i)
      if (op.args[i].type == ArgType::DType) {
        if (parsed.args[i].is_none()) {
          if (op.flags & kOpComposite && !op.args[0].operand && op.args[0].type != ArgType::Tensor)
            parsed.args[i] = Value(rets.t[0].dtype());
        } else if (parsed.args[i].dtype() != rets.t[0].dtype()) {
          runtime_error(self->name, "(): dtype ", parsed.args[i].dtype(),
                        " does not match dtype of out parameter (", rets.t[0].dtype(), ")");
        }
      }
    for (int i = 0; i < op.ret_count; ++i)
      if (grad_enabled() && requires_grad(rets.t[i]))
        runtime_error(self->name,
                      "(): functions with out=... arguments don't support automatic "
                      "differentiation, but one of the arguments requires grad.");
  }
  run(op, parsed.args, rets);
  if (writes) return count ? Py_NewRef(args[0]) : wrap(parsed.args[0].tensor());
  if (parsed.out) {
    if (op.ret_count == 1 || !op.ret_names) return Py_NewRef(parsed.out);
    Ref named(check(PyStructSequence_New(result_type_of(op, true))));
    for (int i = 0; i < op.ret_count; ++i)  // the caller's own objects
      PyStructSequence_SetItem(named.get(), i, check(PySequence_GetItem(parsed.out, i)));
    return named.release();
  }
  return results_to_python(op, rets);
}

PyObject* operator_call(PyObject* callable, PyObject* const* args, size_t flagged,
                        PyObject* names) {
  auto* self = reinterpret_cast<PyOperator*>(callable);
  Py_ssize_t count = PyVectorcall_NARGS(flagged);
  return guarded([&]() -> PyObject* {
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    bool plain = !override_active();
    for (Py_ssize_t i = 0; i < total && plain; ++i) {
      PyTypeObject* t = Py_TYPE(args[i]);
      plain = t == tensor_type || t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type ||
              args[i] == Py_None || t == &PyUnicode_Type || is_dtype(args[i]) || is_size(args[i]);
    }
    if (!plain && torch_function_enabled()) {
      std::vector<PyObject*> overloaded;
      for (Py_ssize_t i = 0; i < total; ++i) collect_overloaded(args[i], overloaded);
      if (!overloaded.empty() || override_active())
        return call_override(callable, args, size_t(count), names, overloaded);
    }
    return invoke(self, args, count, names);
  });
}

PyObject* operator_repr(PyObject* o) {
  auto* self = reinterpret_cast<PyOperator*>(o);
  return self->method ? PyUnicode_FromFormat("<method '%s' of 'facula.Tensor' objects>", self->name)
                      : PyUnicode_FromFormat("<built-in method %s of facula>", self->name);
}
const char* short_name(const PyOperator* self) {
  const char* dot = std::strrchr(self->name, '.');
  return dot ? dot + 1 : self->name;
}
PyObject* operator_name(PyObject* o, void*) {
  return PyUnicode_FromString(short_name(reinterpret_cast<PyOperator*>(o)));
}
PyObject* operator_qualname(PyObject* o, void*) {
  auto* self = reinterpret_cast<PyOperator*>(o);
  return PyUnicode_FromFormat(self->method ? "Tensor.%s" : "%s", short_name(self));
}
PyObject* operator_module(PyObject*, void*) {
  return PyUnicode_FromString("facula");
}
PyObject* operator_doc(PyObject* o, void*) {
  static PyObject* docs;
  import_once(docs, "facula._op_docs", "DOCS");
  auto* self = reinterpret_cast<PyOperator*>(o);
  if (!docs) Py_RETURN_NONE;
  std::string name = self->name;
  PyObject* found = PyDict_GetItemString(docs, name.c_str());
  if (!found && self->in_place) {
    name.pop_back();
    found = PyDict_GetItemString(docs, name.c_str());
    if (found)
      return PyUnicode_FromFormat("In-place version of :func:`facula.%s`.\n\n%U", name.c_str(),
                                  found);
  }
  return Py_NewRef(found ? found : Py_None);
}
PyObject* operator_signature(PyObject* o, void*) {
  auto* self = reinterpret_cast<PyOperator*>(o);
  Ref make(import_attribute("facula._signatures", "signature_of"));
  if (!make) return PyErr_Format(PyExc_AttributeError, "facula._signatures could not be imported");
  PyObject* found =
      PyObject_CallFunction(make.get(), "sO", self->name, self->method ? Py_True : Py_False);
  if (!found && PyErr_ExceptionMatches(PyExc_ValueError)) {  // an operator that is not public
    PyErr_Clear();
    PyErr_Format(PyExc_AttributeError, "%s has no signature", self->name);
  }
  return found;
}
PyObject* operator_reduce(PyObject* o, PyObject*) {
  auto* self = reinterpret_cast<PyOperator*>(o);
  Ref getter(import_attribute("facula._pickling", self->method ? "find_method" : "find_function"));
  if (!getter) return nullptr;
  return Py_BuildValue("(O(s))", getter.get(), self->name);
}
PyObject* method_get(PyObject* o, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(o);
  return PyMethod_New(o, instance);
}

PyGetSetDef operator_getset[] = {{"__name__", operator_name, nullptr, nullptr, nullptr},
                                 {"__qualname__", operator_qualname, nullptr, nullptr, nullptr},
                                 {"__module__", operator_module, nullptr, nullptr, nullptr},
                                 {"__doc__", operator_doc, nullptr, nullptr, nullptr},
                                 {"__signature__", operator_signature, nullptr, nullptr, nullptr},
                                 {}};
PyMethodDef operator_methods[] = {{"__reduce__", operator_reduce, METH_NOARGS, nullptr}, {}};
PyMemberDef operator_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOperator, vectorcall), READONLY, nullptr}, {}};
PyType_Slot function_slots[] = {
    {Py_tp_call, (void*)PyVectorcall_Call}, {Py_tp_repr, (void*)operator_repr},
    {Py_tp_getset, operator_getset},        {Py_tp_members, operator_members},
    {Py_tp_methods, operator_methods},      {}};
PyType_Spec function_spec = {
    "facula._C.OperatorFunction", sizeof(PyOperator), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    function_slots};
PyType_Slot method_slots[] = {{Py_tp_call, (void*)PyVectorcall_Call},
                              {Py_tp_repr, (void*)operator_repr},
                              {Py_tp_getset, operator_getset},
                              {Py_tp_members, operator_members},
                              {Py_tp_methods, operator_methods},
                              {Py_tp_descr_get, (void*)method_get},
                              {}};
PyType_Spec method_spec = {"facula._C.OperatorMethod", sizeof(PyOperator), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                               Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           method_slots};

void add(PyObject* dict, PyTypeObject* type, const std::string& name,
         const std::vector<Overload>& overloads, bool in_place, bool method) {
  auto* o = reinterpret_cast<PyOperator*>(check(type->tp_alloc(type, 0)));
  o->vectorcall = operator_call;
  o->name = strdup(name.c_str());
  o->overloads = new Overload[overloads.size()];
  std::copy(overloads.begin(), overloads.end(), o->overloads);
  o->count = int(overloads.size());
  o->deprecation = deprecation_of(name);
  o->in_place = in_place;
  o->method = method;
  Ref owned(reinterpret_cast<PyObject*>(o));
  check(PyDict_SetItemString(dict, name.c_str(), owned.get()));
}

}  // namespace

PyObject* results_to_python(const OpDef& op, Rets& rets) {
  if (rets.list) return wrap_list(*rets.list);
  if (op.ret_count == 1) return wrap(std::move(rets.t[0]));
  if (!op.ret_names) {
    PyObject* t = check(PyTuple_New(op.ret_count));
    for (int i = 0; i < op.ret_count; ++i) PyTuple_SET_ITEM(t, i, wrap(std::move(rets.t[i])));
    return t;
  }
  PyObject* t = check(PyStructSequence_New(result_type_of(op)));
  for (int i = 0; i < op.ret_count; ++i) PyStructSequence_SetItem(t, i, wrap(std::move(rets.t[i])));
  return t;
}

PyObject* call_operator(const OpDef& op, const Value* args, Destination destination,
                        const Tensor* out) {
  Rets rets;
  std::vector<Tensor> list;
  if (op.flags & kOpListResult) rets.list = &list;
  rets.destination = destination;
  if (out) rets.t[0] = *out;
  run(op, args, rets);
  return results_to_python(op, rets);
}

void init_operators(PyObject* module) {
  function_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&function_spec)));
  method_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&method_spec)));
  std::map<std::string, std::vector<Overload>> functions, methods, in_place;
  for (int i = 0; i < kPythonEntryCount; ++i) {
    const PythonEntry& e = kPythonEntries[i];
    if (e.variants & kPyFunction) functions[e.name].push_back({e.op, e.variants});
    if (e.variants & kPyMethod) methods[e.name].push_back({e.op, e.variants});
    if (e.variants & kPyInplace) in_place[std::string(e.name) + "_"].push_back({e.op, e.variants});
  }
  g_functions = check(PyDict_New());
  g_methods = check(PyDict_New());
  for (auto& [name, list] : functions) add(g_functions, function_type, name, list, false, false);
  for (auto& [name, list] : methods) add(g_methods, method_type, name, list, false, true);
  for (auto& [name, list] : in_place) {
    add(g_methods, method_type, name, list, true, true);
    if (functions.count(name.substr(0, name.size() - 1)))
      add(g_functions, function_type, name, list, true, false);
  }
  add_functions(module, operator_functions);
  check(PyModule_AddObjectRef(module, "_operators", g_functions));
  check(PyModule_AddObjectRef(module, "_operator_methods", g_methods));
  check(PyModule_AddObjectRef(module, "OperatorFunction", (PyObject*)function_type));
  check(PyModule_AddObjectRef(module, "OperatorMethod", (PyObject*)method_type));
}

void add_operator_methods(PyTypeObject* type) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(g_methods, &at, &key, &value))
    check(PyDict_SetItem(type->tp_dict, key, value));
  PyType_Modified(type);
}

}  // namespace facula::python
