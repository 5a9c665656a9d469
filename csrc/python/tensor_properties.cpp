// Properties of Tensor.
#include "autograd/leaf_grad.h"
#include "autograd/used_grads.h"
#include "core/sparse.h"
#include "core/type_names.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "python/interop.h"
#include "python/method_override.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

// A subclass with its own __torch_function__, or a mode, sees reads, writes and deletions of a
// property as calls of its __get__, __set__ and __delete__. Null when nobody wants to.
PyObject* overridden_property(PyObject* o, const char* name, const char* action = "__get__",
                              PyObject* value = nullptr) {
  if (!may_be_overridden(o)) return nullptr;
  std::vector<PyObject*> found;
  collect_overloaded(o, found);
  if (found.empty() && !override_active()) return nullptr;
  PyObject* descriptor = PyDict_GetItemString(tensor_base_type->tp_dict, name);
  Ref function(check(PyObject_GetAttrString(descriptor, action)));
  PyObject* args[] = {o, value};
  return call_override(function.get(), args, value ? 2 : 1, nullptr, found);
}

template <class F>
PyObject* property(PyObject* o, const char* name, F&& f) {
  return guarded([&]() -> PyObject* {
    if (PyObject* r = overridden_property(o, name)) return r;
    return f(unwrap(o));
  });
}
// f writes `value`, or deletes where it is null.
template <class F>
int write_property(PyObject* o, const char* name, PyObject* value, F&& f) {
  return guarded(
      [&]() -> int {
        Ref r(overridden_property(o, name, value ? "__set__" : "__delete__", value));
        return r ? 0 : f();
      },
      -1);
}
#define PROPERTY(name, expression)                                                              \
  PyObject* get_##name(PyObject* o, void*) {                                                    \
    return property(o, #name,                                                                   \
                    [&]([[maybe_unused]] const Tensor& t) -> PyObject* { return expression; }); \
  }

// As PyTorch still has them, though no matrix is transposed.
void warn_of_a_number(const char* name) {
  static bool shown;
  warn_once(text("Tensor.", name, " is deprecated on 0-D tensors. ",
                 *name == 'H' ? "Consider using x.conj()." : "It gives the tensor itself.")
                .c_str(),
            shown);
}

Tensor matrix_transpose(const Tensor& t, const char* name) {
  if (t.dim() == 0) {
    warn_of_a_number(name);
    return t;
  }
  if (t.dim() < 2)
    runtime_error("tensor.", name, " is only supported on matrices or batches of matrices. Got ",
                  t.dim(), "-D tensor.");
  return op::transpose(t, -2, -1);
}
Tensor reverse_dims(const Tensor& t) {
  static bool shown;
  if (t.dim() == 0) warn_of_a_number("T");
  else if (t.dim() != 2)
    warn_once(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated and it will throw an error in a future release. `x.mT` transposes batches of "
        "matrices, `x.permute(*range(x.ndim - 1, -1, -1))` reverses all dimensions.",
        shown);
  Dims order;
  for (int64_t d = t.dim(); d-- > 0;) order.push_back(d);
  return op::permute(t, order);
}
Tensor hermitian(const Tensor& t) {
  if (t.dim() != 2 && t.dim() != 0)
    runtime_error("tensor.H is only supported on matrices (2-D tensors). Got ", t.dim(),
                  "-D tensor. For batches of matrices, consider using tensor.mH");
  if (t.dim() == 0) warn_of_a_number("H");
  return t.dim() ? op::conj(op::transpose(t, 0, 1)) : op::conj(t);
}

NodeRef valid_grad_fn(const Tensor& t) {
  if (t->flags & kNoGradView && t->base && t->base->keys & kKeyGrad && t->made_at != t.version())
    runtime_error(
        "A view was created in no_grad mode and its base or another view of its base has been "
        "modified inplace "
        "with grad mode enabled. The history of this view is not known; make the view outside of "
        "the no_grad block.");
  return grad_fn_of(t);
}

uint32_t tracked_version(const Tensor& t) {
  if (t->flags & kInference) runtime_error("Inference tensors do not track version counter.");
  return t->flags & kUntracked ? 0 : t.version();  // .data counts for itself
}
Tensor grad_of(const Tensor& t) {
  Tensor grad = t->autograd ? load_grad(*t->autograd) : Tensor();
  if (grad.defined()) return grad;
  if (t.needs_grad() && !is_leaf(t) && !t->autograd->retain_cell)
    check(PyErr_WarnEx(PyExc_UserWarning,
                       "The .grad attribute of a Tensor that is not a leaf Tensor is being "
                       "accessed. Its .grad attribute won't be "
                       "populated during autograd.backward(). If you indeed want the .grad field "
                       "to be populated for a non-leaf "
                       "Tensor, use .retain_grad() on the non-leaf Tensor.",
                       1));
  return Tensor();
}

PROPERTY(shape, make_size(t.sizes()))
PROPERTY(dtype, to_python(t.dtype()))
PROPERTY(device, to_python(t.device()))
PROPERTY(layout,
         check(PyObject_GetAttrString(PyImport_AddModule("facula._C"), layout_name(layout_of(t)))))
PROPERTY(is_sparse, PyBool_FromLong(layout_of(t) == SparseLayout::Coo))
PROPERTY(is_sparse_csr, PyBool_FromLong(layout_of(t) == SparseLayout::Csr))
PROPERTY(ndim, PyLong_FromLongLong(t.dim()))
PROPERTY(itemsize, PyLong_FromSize_t(t.item_size()))
PROPERTY(nbytes, PyLong_FromLongLong(t.numel() * int64_t(t.item_size())))
PROPERTY(T, wrap(reverse_dims(t)))
PROPERTY(mT, wrap(matrix_transpose(t, "mT")))
PROPERTY(H, wrap(hermitian(t)))
PROPERTY(mH, wrap(op::conj(matrix_transpose(t, "mH"))))
PROPERTY(is_cuda, PyBool_FromLong(t.is_cuda()))
PROPERTY(is_cpu, PyBool_FromLong(t.is_cpu()))
PROPERTY(is_meta, PyBool_FromLong(t.is_meta()))
PROPERTY(is_leaf, PyBool_FromLong(is_leaf(t)))
PROPERTY(requires_grad, PyBool_FromLong(requires_grad(t)))
PROPERTY(_version, PyLong_FromUnsignedLong(tracked_version(t)))
PROPERTY(_base, t->base ? wrap(Tensor::share(t->base)) : Py_NewRef(Py_None))
PROPERTY(grad_fn, wrap_node(valid_grad_fn(t)))
PROPERTY(grad, wrap_or_none(grad_of(t)))
PROPERTY(_grad,
         wrap_or_none(t->autograd ? load_grad(*t->autograd) : Tensor()))  // without a warning
PROPERTY(output_nr, PyLong_FromUnsignedLong(t->autograd ? t->autograd->output_nr : 0))
PROPERTY(retains_grad, PyBool_FromLong(t->autograd && t->autograd->retain_cell && !is_leaf(t)))
PROPERTY(real, wrap(t.is_complex() ? op::real(t) : t))
PROPERTY(imag, wrap(op::imag(t)))
// The same for every tensor; `name` is the property's.
PyObject* get_never(PyObject* o, void* name) {
  return property(o, static_cast<const char*>(name),
                  [](const Tensor&) { return Py_NewRef(Py_False); });
}

Tensor untracked(const Tensor& t) {
  if (t.is_wrapped() && t->wrapper->kind == LevelKind::Vmap && find_level(t->wrapper->level))
    runtime_error("accessing `data` under vmap transform is not allowed. Use .detach()");
  Tensor d = detach_tensor(t);
  d->flags |= kUntracked;
  return d;
}
PROPERTY(data, wrap(untracked(t)))

// x.data = y: this tensor takes over y's memory, its history stays.
int set_data(PyObject* o, PyObject* value, void*) {
  return write_property(o, "data", value, [&]() -> int {
    if (!value || !is_tensor(value))
      type_error("Variable data has to be a tensor, but got ",
                 value ? Py_TYPE(value)->tp_name : "nothing");
    const Tensor& t = unwrap(o);
    const Tensor& v = unwrap(value);
    if (v.is(t)) return 0;
    if (t.is_wrapped() || v.is_wrapped())
      runtime_error(
          "mutating directly with `.data` inside of a function transform (vmap, grad, jvp ...) "
          "is not allowed. Use copy_() or make a new tensor.");
    if (requires_grad(t) && !is_differentiable_dtype(v.dtype()))
      runtime_error(
          "data set to a tensor that requires gradients must be floating point or complex "
          "dtype, got ",
          v.dtype());
    if (t.dtype() != v.dtype() || t.device() != v.device()) forget_accumulator(t);
    v->storage->retain();
    Storage* old = t->storage;
    t->storage = v->storage;
    t->dtype = v->dtype;
    t->device = v->device;
    constexpr uint8_t kMemoryKeys = kKeyCuda | kKeyMeta | kKeySparse;
    t->keys = uint8_t((t->keys & ~kMemoryKeys) | (v->keys & kMemoryKeys));
    t->offset = v->offset;
    t->set_geometry(v.sizes(), v.strides());
    old->unref();
    return 0;
  });
}

int set_grad(PyObject* o, PyObject* value, void*) {
  return write_property(o, "grad", value, [&]() -> int {
    const Tensor& t = unwrap(o);
    if (!value || value == Py_None) {
      if (t->autograd) {
        note_zero(*t->autograd);
        store_grad(*t->autograd, Tensor());
      }
      return 0;
    }
    if (!is_tensor(value))
      type_error("assigned grad expected to be a Tensor or None but got grad of type ",
                 Py_TYPE(value)->tp_name);
    const Tensor& g = unwrap(value);
    if (g.is(t)) runtime_error("can't assign Variable as its own grad");
    if (!same(g.sizes(), t.sizes()))
      runtime_error("attempting to assign a gradient of size '", g.sizes(),
                    "' to a tensor of size '", t.sizes(),
                    "'. Please ensure that the gradient and the tensor are the same size; the ",
                    "assigned grad has data of a different size");
    const DType wanted = grad_dtype_of(t);
    if (g.dtype() != wanted && wanted != DType::None)
      runtime_error("attempting to assign a gradient with dtype '", cpp_type_name(g.dtype()),
                    "' to a tensor with grad_dtype '", legacy_dtype_name(wanted),
                    "'. The assigned grad has data of a different type: the tensor is ", t.dtype(),
                    ", its grad_dtype ", wanted, " and the gradient ", g.dtype(),
                    ". Set grad_dtype to allow another one.");
    if (g.device() != t.device())
      runtime_error("assigned grad has data located on a different device");
    AutogradMeta& m = ensure_autograd(t);
    if (!load_grad(m).is(g)) note_zero(m);
    store_grad(m, g);
    return 0;
  });
}

PyObject* grad_dtype(const Tensor& t) {
  if (!is_leaf(t)) runtime_error("grad_dtype can only be accessed on leaf tensors.");
  const DType dtype = grad_dtype_of(t);
  return dtype == DType::None ? Py_NewRef(Py_None) : to_python(dtype);
}
PROPERTY(grad_dtype, grad_dtype(t))

int set_grad_dtype_property(PyObject* o, PyObject* value, void*) {
  return write_property(o, "grad_dtype", value, [&]() -> int {
    const Tensor& t = unwrap(o);
    if (!value || (value != Py_None && !is_dtype(value)))
      runtime_error("grad_dtype must be a dtype or None, but got ",
                    value ? Py_TYPE(value)->tp_name : "nothing");
    if (!is_leaf(t)) runtime_error("grad_dtype can only be set on leaf tensors.");
    const DType dtype = value == Py_None ? DType::None : dtype_of(value);
    const Tensor grad = t->autograd ? load_grad(*t->autograd) : Tensor();
    if (dtype != DType::None && grad.defined() && grad.dtype() != dtype)
      runtime_error("Cannot set grad_dtype to ", dtype, " because there is already a gradient of ",
                    grad.dtype(), ". Clear the gradient first.");
    set_grad_dtype(t, dtype);
    return 0;
  });
}

int set_requires(PyObject* o, PyObject* value, void*) {
  return write_property(o, "requires_grad", value, [&]() -> int {
    if (!value || !PyBool_Check(value))
      raise_python(PyExc_RuntimeError, "requires_grad must be a bool");
    const Tensor& t = unwrap(o);
    // Unlike requires_grad_(), which leaves results that require grad anyway as they are.
    if (value == Py_True && !is_leaf(t))
      runtime_error("you can only change requires_grad flags of leaf variables.");
    set_requires_grad(t, value == Py_True);
    return 0;
  });
}

int set_part(PyObject* o, PyObject* value, bool real) {
  return write_property(o, real ? "real" : "imag", value, [&]() -> int {
    if (!value) type_error("the ", real ? "real" : "imaginary", " part cannot be deleted");
    Tensor part =
        real ? (unwrap(o).is_complex() ? op::real(unwrap(o)) : unwrap(o)) : op::imag(unwrap(o));
    if (is_tensor(value)) op::copy_(part, unwrap(value));
    else op::fill_(part, scalar_of(value));
    return 0;
  });
}
int set_real(PyObject* o, PyObject* v, void*) {
  return set_part(o, v, true);
}
int set_imag(PyObject* o, PyObject* v, void*) {
  return set_part(o, v, false);
}

}  // namespace

#define GETTER(name, doc) {#name, get_##name, nullptr, doc, nullptr}
#define NEVER(name, doc) {#name, get_never, nullptr, doc, (void*)#name}
static constexpr const char* kOtherDevice =
    "False: tensors live on the CPU, on CUDA devices or on the meta device.";
PyGetSetDef tensor_properties[] = {
    GETTER(shape, "The sizes of the dimensions."),
    GETTER(dtype, "The type of the elements."),
    GETTER(device, "Where the tensor lives."),
    GETTER(layout, "How the elements lie in memory: facula.strided, facula.sparse_coo ..."),
    GETTER(ndim, "How many dimensions."),
    GETTER(itemsize, "Bytes of one element."),
    GETTER(nbytes, "Bytes of all elements."),
    GETTER(T, "All dimensions reversed."),
    GETTER(mT, "The last two dimensions exchanged."),
    GETTER(H, "The conjugate transposed matrix."),
    GETTER(mH, "mT of the conjugate."),
    GETTER(is_cuda, "True on a CUDA device."),
    GETTER(is_cpu, "True in host memory."),
    GETTER(is_meta, "True without memory."),
    GETTER(is_leaf, "True when no operation made this tensor under autograd."),
    {"requires_grad", get_requires_grad, set_requires, "True when gradients are wanted.", nullptr},
    GETTER(_version, "How often the memory was written in place."),
    GETTER(_base, "The tensor this one is a view of."),
    GETTER(grad_fn, "The node that made this tensor."),
    {"grad", get_grad, set_grad, "The gradient, or None.", nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype_property,
     "The dtype that gradients of a leaf are cast to, by default its own; None: any.", nullptr},
    {"_grad", get__grad, set_grad, nullptr, nullptr},
    {"_grad_fn", get_grad_fn, nullptr, nullptr, nullptr},
    GETTER(output_nr, "Which output of grad_fn this is."),
    GETTER(retains_grad, "True after retain_grad()."),
    {"data", get_data, set_data, "The same memory without history.", nullptr},
    {"real", get_real, set_real, "The real part.", nullptr},
    {"imag", get_imag, set_imag, "The imaginary part.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict,
     "The attributes of this one object.", nullptr},
    GETTER(is_sparse, "True in the layout facula.sparse_coo."),
    GETTER(is_sparse_csr, "True in the layout facula.sparse_csr."),
    NEVER(is_quantized, "True for tensors of quantized integers."),
    NEVER(is_nested, "True for nested tensors, which are a subclass."),
    NEVER(is_mkldnn, "False: oneDNN's own layouts are not used."),
    NEVER(is_mps, kOtherDevice),
    NEVER(is_xpu, kOtherDevice),
    NEVER(is_vulkan, kOtherDevice),
    NEVER(is_ipu, kOtherDevice),
    NEVER(is_maia, kOtherDevice),
    NEVER(is_xla, kOtherDevice),
    NEVER(is_mtia, kOtherDevice),
    {}};

}  // namespace facula::python
