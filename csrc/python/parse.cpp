#include "python/parse.h"

#include "python/tensor_methods.h"

#include <cstring>

namespace facula::python {
namespace {

bool is_plain_int(PyObject* o) {
  return PyLong_Check(o) && !PyBool_Check(o);
}

bool is_int_argument(PyObject* o) {
  return !PyBool_Check(o) && is_index(o);
}

bool is_float_argument(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  if (is_tensor(o))
    return unwrap(o).numel() == 1 && unwrap(o).dim() == 0 && !unwrap(o).is_complex();
  return is_number(o) && !PyComplex_Check(o);
}

bool int_list(PyObject* const* items, Py_ssize_t n, ParseArena& arena, Value& out) {
  int64_t* p = arena.ints(size_t(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is_int_argument(items[i])) return false;
    p[i] = index_of(items[i], ErrorKind::Type);
  }
  out = Value(IntSpan(p, size_t(n)));
  return true;
}

// PyTorch takes None for a list that is empty unless it is given, and for requires_grad.
bool none_is_default(const ArgDef& def) {
  if (!def.has_default) return false;
  if (def.type == ArgType::IntList)
    return def.value.tag() == Value::Tag::Ints && def.value.ints().empty();
  return def.type == ArgType::Bool && !std::strcmp(def.name, "requires_grad");
}

// The older arguments of losses: PyTorch asks whether they are true, so that numbers do.
bool is_reduction_flag(const ArgDef& def) {
  return !std::strcmp(def.name, "size_average") || !std::strcmp(def.name, "reduce");
}

// Tensors that tensor_split does not take have an error of their own.
void refuse_split_tensor(const OpDef& op, const ArgDef& def, PyObject* o) {
  if (def.type != ArgType::IntList || !is_tensor(o) || std::strcmp(op.name, "tensor_split")) return;
  const Tensor& t = unwrap(o);
  const char* expected = "tensor_split expected tensor_indices_or_sections to ";
  if (t.dim() > 1)
    runtime_error(expected, "be a zero-dimensional or one-dimensional tensor, but got a tensor ",
                  "with ", t.dim(), " dims");
  if (t.dim() == 1)
    runtime_error(expected, "have dtype of long, but got ", legacy_dtype_name(t.dtype()));
}

// Converts one argument; false when its type does not fit.
bool convert(const ArgDef& def, PyObject* o, ParseArena& arena, Value& out) {
  if (o == Py_None && def.optional && def.type != ArgType::TensorList) {
    out = Value();
    return true;
  }
  if (o == Py_None && none_is_default(def)) {
    out = def.value;
    return true;
  }
  switch (def.type) {
    case ArgType::Tensor:
      if (is_tensor(o)) {
        out = Value(unwrap(o));
        return true;
      }
      if (def.operand && is_number(o)) {
        out = arena.number(scalar_of(o));
        return true;
      }
      return false;
    case ArgType::Scalar:
      if (is_tensor(o)) {
        const Tensor& t = unwrap(o);
        if (!arena.tensors_as_numbers || t.dim() != 0 || requires_grad(t)) return false;
        out = arena.number(read_item(t));
        return true;
      }
      if (!is_number(o)) return false;
      out = arena.number(scalar_of(o));
      return true;
    case ArgType::Int:
      if (!is_int_argument(o) || (!arena.tensors_as_numbers && is_tensor(o))) return false;
      out = Value(index_of(o));
      return true;
    case ArgType::Float:
      if (!is_float_argument(o)) return false;
      out = Value(scalar_of(o).to_double());
      return true;
    case ArgType::Bool:
      if (!PyBool_Check(o)) {
        if (is_reduction_flag(def) && PyLong_Check(o)) {
          out = Value(check(PyObject_IsTrue(o)) == 1);
          return true;
        }
        if (std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) != 0) return false;
        out = Value(PyObject_IsTrue(o) == 1);
        return true;
      }
      out = Value(o == Py_True);
      return true;
    case ArgType::IntList: {
      if (PyTuple_Check(o))
        return int_list(&PyTuple_GET_ITEM(o, 0), PyTuple_GET_SIZE(o), arena, out);
      if (PyList_Check(o)) {
        Ref t(check(PyList_AsTuple(o)));
        return int_list(&PyTuple_GET_ITEM(t.get(), 0), PyTuple_GET_SIZE(t.get()), arena, out);
      }
      if (def.list_size && is_int_argument(o)) return int_list(&o, 1, arena, out);
      if (is_tensor(o) && unwrap(o).dim() == 1 && is_integral(unwrap(o).dtype())) {
        Ref t(check(PySequence_Tuple(o)));
        return int_list(&PyTuple_GET_ITEM(t.get(), 0), PyTuple_GET_SIZE(t.get()), arena, out);
      }
      return false;
    }
    case ArgType::FloatList: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      Ref t(check(PySequence_Tuple(o)));
      Py_ssize_t n = PyTuple_GET_SIZE(t.get());
      double* p = arena.floats(size_t(n));
      for (Py_ssize_t i = 0; i < n; ++i) {
        if (!is_float_argument(PyTuple_GET_ITEM(t.get(), i))) return false;
        p[i] = scalar_of(PyTuple_GET_ITEM(t.get(), i)).to_double();
      }
      out = Value(std::span<const double>(p, size_t(n)));
      return true;
    }
    case ArgType::TensorList: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      Ref t(check(PySequence_Tuple(o)));
      std::vector<Tensor>& list = arena.tensors();
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t.get()); ++i) {
        PyObject* item = PyTuple_GET_ITEM(t.get(), i);
        if (is_tensor(item)) list.push_back(unwrap(item));
        else if (item == Py_None && def.optional) list.emplace_back();
        else return false;
      }
      out = Value(TensorSpan(list));
      return true;
    }
    case ArgType::String: {
      if (!PyUnicode_Check(o)) return false;
      Py_ssize_t n;
      const char* s = PyUnicode_AsUTF8AndSize(o, &n);
      if (!s) throw PythonError{};
      out = Value(std::string_view(s, size_t(n)));
      return true;
    }
    case ArgType::DType:
      if (!accepts_dtype(o)) return false;
      out = Value(dtype_of(o));
      return true;
    case ArgType::Device:
      if (!is_device(o) && !PyUnicode_Check(o) && !is_plain_int(o)) return false;
      out = Value(tensor_device_of(o));
      return true;
    case ArgType::Format:
      if (!is_memory_format(o)) return false;
      out = Value(memory_format_of(o));
      return true;
    case ArgType::Layout:
      if (!is_layout(o)) return false;
      arena.layout = layout_number(o);
      out = Value(arena.layout);
      return true;
    case ArgType::Generator:
      if (!is_generator(o)) return false;
      out = Value(generator_of(o));
      return true;
  }
  return false;
}

// "add(): argument 'other' (position 2) must be ...", without the name in front.
std::string describe_misfit(const ArgDef& a, Py_ssize_t position, PyObject* o) {
  const std::string name = argument_name(a),
                    where = position < 0 ? "" : " (position " + std::to_string(position + 1) + ")";
  if (a.type == ArgType::TensorList && (PyTuple_Check(o) || PyList_Check(o)))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      if (!is_tensor(item) && !(item == Py_None && a.optional))
        return "(): expected Tensor as element " + std::to_string(i) + " in argument " +
               (position < 0 ? "'" + name + "'" : std::to_string(position)) + ", but got " +
               type_name(item);
    }
  std::string text =
      "(): argument '" + name + "'" + where + " must be " + type_text(a) + ", not " + type_name(o);
  if (a.type == ArgType::Tensor && (PyList_Check(o) || PyTuple_Check(o)))
    text += "; facula.tensor(...) makes a tensor of it";
  if (a.type == ArgType::Tensor && !std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray"))
    text += "; facula.from_numpy(...) makes a tensor of it";
  if (a.type == ArgType::Tensor && is_tensor_of_pytorch(o))
    text += " of PyTorch; facula.from_dlpack(...) makes a tensor of it";
  return text;
}

// NumPy's names for PyTorch's arguments, and others that it knows.
bool same_name(const char* name, const char* given) {
  if (!std::strcmp(name, given)) return true;
  if (!std::strcmp(name, "self"))
    return !std::strcmp(given, "input") || !std::strcmp(given, "x") || !std::strcmp(given, "a") ||
           !std::strcmp(given, "x1");
  if (!std::strcmp(name, "dim")) return !std::strcmp(given, "axis");
  if (!std::strcmp(name, "dim0")) return !std::strcmp(given, "axis0");
  if (!std::strcmp(name, "dim1")) return !std::strcmp(given, "axis1");
  if (!std::strcmp(name, "keepdim")) return !std::strcmp(given, "keepdims");
  if (!std::strcmp(name, "other")) return !std::strcmp(given, "x2");
  // isin(): PyTorch's names where one of the two is a number.
  if (!std::strcmp(name, "elements")) return !std::strcmp(given, "element");
  if (!std::strcmp(name, "test_elements")) return !std::strcmp(given, "test_element");
  return false;
}

}  // namespace

const char* argument_name(const ArgDef& arg) {
  return std::strcmp(arg.name, "self") ? arg.name : "input";
}

const char* type_text(const ArgDef& arg) {
  switch (arg.type) {
    case ArgType::Tensor:
      return arg.operand && std::strcmp(arg.name, "self") ? "Tensor or Number" : "Tensor";
    case ArgType::TensorList: return "tuple of Tensors";
    case ArgType::Scalar: return "Number";
    case ArgType::Int: return "int";
    case ArgType::Float: return "float";
    case ArgType::Bool: return "bool";
    case ArgType::IntList: return arg.list_size ? "int or tuple of ints" : "tuple of ints";
    case ArgType::FloatList: return "tuple of floats";
    case ArgType::String: return "str";
    case ArgType::DType: return "facula.dtype";
    case ArgType::Device: return "facula.device";
    case ArgType::Format: return "facula.memory_format";
    case ArgType::Layout: return "facula.layout";
    default: return "facula.Generator";
  }
}

std::string signature_text(const OpDef& op) {
  std::string s = "(";
  bool star = false;
  for (int i = 0; i < op.arg_count; ++i) {
    const ArgDef& a = op.args[i];
    if (i) s += ", ";
    if (a.keyword_only && !star) {
      s += "*, ";
      star = true;
    }
    s += std::string(type_text(a)) + " " + argument_name(a);
    if (a.has_default) s += "=...";
  }
  return s + ")";
}

bool parse_arguments(const OpDef& op, bool accepts_out, PyObject* const* args, Py_ssize_t count,
                     PyObject* names, ParseArena& arena, Parsed& parsed, std::string* why,
                     int bound) {
  auto misfit = [&](const ArgDef& a, Py_ssize_t position, PyObject* o) {
    if (why) *why = describe_misfit(a, position < 0 ? -1 : position - bound, o);
    return false;
  };
  uint32_t seen = 0;
  Py_ssize_t given = count;
  int slot = 0;
  for (Py_ssize_t i = 0; i < given; ++i, ++slot) {
    if (slot >= op.arg_count || op.args[slot].keyword_only) {
      if (why) {
        int most = -bound;
        while (most + bound < op.arg_count && !op.args[most + bound].keyword_only) ++most;
        *why = "() takes " + std::to_string(most) + " positional argument" +
               (most == 1 ? "" : "s") + " but " + std::to_string(given - bound) +
               (given - bound == 1 ? " was" : " were") + " given";
      }
      return false;
    }
    const ArgDef& a = op.args[slot];
    // x.view(2, 3) and zeros(2, 3): sizes without brackets, where the list is all there is.
    bool alone = (slot == 0 || (slot == 1 && op.args[0].type == ArgType::Tensor)) &&
                 (slot + 1 >= op.arg_count || op.args[slot + 1].keyword_only);
    if (a.type == ArgType::IntList && alone && is_int_argument(args[i])) {
      Py_ssize_t n = 0;
      while (i + n < given && is_int_argument(args[i + n])) ++n;
      if (i + n == given) {
        if (!int_list(args + i, n, arena, parsed.args[slot])) return misfit(a, i, args[i]);
        seen |= 1u << slot;
        i = given;
        continue;
      }
    }
    if (!convert(a, args[i], arena, parsed.args[slot])) {
      refuse_split_tensor(op, a, args[i]);
      return misfit(a, i, args[i]);
    }
    seen |= 1u << slot;
  }
  if (names) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
      PyObject* value = args[count + k];
      if (accepts_out && !std::strcmp(name, "out")) {
        if (value != Py_None) parsed.out = value;
        continue;
      }
      int at = 0;
      while (at < op.arg_count && !same_name(op.args[at].name, name)) ++at;
      if (at == op.arg_count) {
        if (why) *why = std::string("() got an unexpected keyword argument '") + name + "'";
        return false;
      }
      if (seen >> at & 1) {
        if (why) *why = std::string("() got multiple values for argument '") + name + "'";
        return false;
      }
      if (!convert(op.args[at], value, arena, parsed.args[at]))
        return misfit(op.args[at], -1, value);
      seen |= 1u << at;
    }
  }
  for (int i = 0; i < op.arg_count; ++i) {
    if (seen >> i & 1) continue;
    if (!op.args[i].has_default) {
      if (why)
        *why = std::string("() missing required argument '") + argument_name(op.args[i]) + "' (" +
               type_text(op.args[i]) + ")";
      return false;
    }
    parsed.args[i] = op.args[i].value;
  }
  return true;
}

}  // namespace facula::python
