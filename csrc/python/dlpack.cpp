// DLPack in both directions. A capsule named "dltensor" or "dltensor_versioned" owns a managed
// tensor until somebody consumes it and renames it to "used_..."; from then on the consumer owns
// it.
#include "python/dlpack_abi.h"

#include <memory>

#include "core/sparse.h"
#include "cuda/context.h"
#include "op/tensor_operators.h"
#include "python/interop.h"
#include "python/method_override.h"
#include "transform/wrapper.h"

namespace facula::python {
namespace {

using dlpack::DLManagedTensor;
using dlpack::DLManagedTensorVersioned;

template <class Managed>
constexpr const char* kName = "dltensor";
template <>
constexpr const char* kName<DLManagedTensorVersioned> = "dltensor_versioned";
template <class Managed>
constexpr const char* kUsedName = "used_dltensor";
template <>
constexpr const char* kUsedName<DLManagedTensorVersioned> = "used_dltensor_versioned";

dlpack::DLDataType code_of(DType d) {
  auto bits = uint8_t(item_size(d) * 8);
  switch (d) {
    case DType::Bool: return {dlpack::kDLBool, bits, 1};
    case DType::BFloat16: return {dlpack::kDLBfloat, bits, 1};
    case DType::Float8E4M3: return {dlpack::kDLFloat8_e4m3fn, bits, 1};
    case DType::Float8E5M2: return {dlpack::kDLFloat8_e5m2, bits, 1};
    default: break;
  }
  if (is_complex(d)) return {dlpack::kDLComplex, bits, 1};
  if (is_floating(d)) return {dlpack::kDLFloat, bits, 1};
  return {uint8_t(is_unsigned(d) ? dlpack::kDLUInt : dlpack::kDLInt), bits, 1};
}

DType dtype_of_code(dlpack::DLDataType t) {
  for (int i = 0; i < kDTypes && t.lanes == 1; ++i) {
    dlpack::DLDataType own = code_of(DType(i));
    if (own.code == t.code && own.bits == t.bits) return DType(i);
  }
  fail(ErrorKind::Buffer, "DLPack: no dtype for code ", int(t.code), ", ", int(t.bits), " bits, ",
       t.lanes, " lanes");
}

dlpack::DLDevice device_of_tensor(const Tensor& t) {
  if (t.is_meta()) fail(ErrorKind::Buffer, "Cannot pack tensors on meta: they have no memory");
  if (t.is_cuda()) return {dlpack::kDLCUDA, t.device().index};
  return {dlpack::kDLCPU, 0};
}

Device device_of_code(dlpack::DLDevice d) {
  switch (d.device_type) {
    case dlpack::kDLCPU:
    case dlpack::kDLCUDAHost: return Device{};
    case dlpack::kDLCUDA:
    case dlpack::kDLCUDAManaged:
      if (d.device_id >= 0 && d.device_id < cuda::kMaxDevices)
        return Device{DeviceType::CUDA, int8_t(d.device_id)};
      break;
    default: break;
  }
  fail(ErrorKind::Buffer, "DLPack: unsupported device (type ", d.device_type, ", index ",
       d.device_id, ")");
}

// ---- tensors into capsules

// What a consumer holds: the storage and the arrays that the managed tensor points to. Letting go
// needs no GIL: a storage that borrows memory from Python takes it by itself.
template <class Managed>
struct Export {
  Managed managed{};
  Storage* storage;
  Dims sizes, strides;

  explicit Export(const Tensor& t) : storage(t->storage), sizes(t.sizes()), strides(t.strides()) {
    storage->retain();
    managed.manager_ctx = this;
    managed.deleter = [](Managed* m) { delete static_cast<Export*>(m->manager_ctx); };
    managed.dl_tensor = {t.numel() ? t.data() : nullptr,
                         device_of_tensor(t),
                         int32_t(sizes.size()),
                         code_of(t.dtype()),
                         sizes.data(),
                         strides.data(),
                         0};
  }
  Export(const Export&) = delete;
  ~Export() { storage->unref(); }
};

// Runs when a capsule dies. One that was consumed has another name and owns nothing.
template <class Managed>
void release_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName<Managed>)) return;
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName<Managed>));
  if (m->deleter) m->deleter(m);
}

template <class Managed>
PyObject* make_capsule(std::unique_ptr<Export<Managed>> e) {
  fix_memory(e->storage);
  PyObject* capsule = check(PyCapsule_New(&e->managed, kName<Managed>, release_capsule<Managed>));
  e.release();
  return capsule;
}

PyObject* to_capsule(const Tensor& t, bool versioned, bool copied) {
  if (!versioned) return make_capsule(std::make_unique<Export<DLManagedTensor>>(t));
  auto e = std::make_unique<Export<DLManagedTensorVersioned>>(t);
  e->managed.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  e->managed.flags = copied ? uint64_t(dlpack::kIsCopied) : 0;
  return make_capsule(std::move(e));
}

void check_exportable(const Tensor& t) {
  if (is_sparse(t)) fail(ErrorKind::Buffer, "Can't export sparse tensors, use tensor.to_dense()");
  if (t.is_lazy())
    fail(ErrorKind::Buffer,
         "Can't export tensors with the conjugate or negative bit set, use "
         "tensor.resolve_conj() or tensor.resolve_neg()");
  if (requires_grad(t))
    fail(ErrorKind::Buffer, "Can't export tensors that require gradient, use tensor.detach()");
  device_of_tensor(t);
}

// The consumer's stream must wait for the work on this tensor. In the protocol 1 and 2 are CUDA's
// default streams, -1 asks for no waiting and None means 1.
void order_after(const Tensor& t, PyObject* stream) {
  if (t.is_cpu()) {
    if (stream == Py_None || (is_index(stream) && index_of(stream) == -1)) return;
    fail(ErrorKind::Buffer, "__dlpack__(): stream must be None for a tensor on the CPU");
  }
  int64_t number = stream == Py_None ? 1 : index_of(stream);
  if (number == -1) return;
  if (number == 0)
    value_error(
        "__dlpack__(): stream 0 is ambiguous; pass 1 for the default stream or 2 for the "
        "per-thread one");
  if (number < 0)
    value_error("__dlpack__(): stream must be None, -1 or a positive handle, got ", number);
  int device = t.device().index;
  auto consumer =
      number == 1 ? nullptr : reinterpret_cast<cuda::CuStream>(static_cast<uintptr_t>(number));
  cuda::CuStream own = cuda::current_stream(device);
  WithoutGil released;
  cuda::order_streams(device, own, consumer);
}

// A pair of integers: a version or a device. Enumerations count as integers.
std::pair<int64_t, int64_t> pair_of(PyObject* o, const char* what) {
  if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) != 2)
    type_error(what, " must be a tuple of 2 ints, not ", type_name(o));
  return {index_of(PyTuple_GET_ITEM(o, 0)), index_of(PyTuple_GET_ITEM(o, 1))};
}

PyObject* dlpack_method(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                     &stream, &max_version, &dl_device, &copy))
      throw PythonError{};
    Tensor t = unwrap(self);
    if (t.is_wrapped()) t = readable(t, ".__dlpack__()");
    check_exportable(t);
    bool versioned =
        max_version != Py_None && pair_of(max_version, "__dlpack__(): max_version").first >= 1;
    bool must_copy = copy != Py_None && check(PyObject_IsTrue(copy)),
         must_share = copy != Py_None && !must_copy;
    Device device = t.device();
    if (dl_device != Py_None) {
      auto [type, index] = pair_of(dl_device, "__dlpack__(): dl_device");
      device = device_of_code({int32_t(type), int32_t(index)});
    }
    if (device != t.device() && must_share)
      fail(ErrorKind::Buffer, "__dlpack__(): cannot move from ", t.device(), " to ", device,
           " without a copy");
    bool copied = must_copy || device != t.device();
    if (copied) t = convert_tensor(t, DType::None, device, true);
    order_after(t, stream);
    return to_capsule(t, versioned, copied);
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    dlpack::DLDevice d = device_of_tensor(unwrap(self));
    return check(Py_BuildValue("(ii)", d.device_type, d.device_id));
  });
}

PyObject* to_dlpack(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_tensor(o))
      type_error("to_dlpack(): argument 'tensor' (position 1) must be Tensor, not ", type_name(o));
    check_exportable(unwrap(o));
    return to_capsule(unwrap(o), false, false);
  });
}

// ---- capsules into tensors

// Deleters of other libraries may assume the GIL, as they mostly run when a Python object dies.
template <class Managed>
void release_managed(Storage* s) {
  auto* m = static_cast<Managed*>(s->context);
  if (m && m->deleter) run_with_gil([&] { m->deleter(m); });
}

template <class Managed>
Tensor consume(PyObject* capsule) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName<Managed>));
  if (!m) throw PythonError{};
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (m->version.major > dlpack::kMajorVersion)
      fail(ErrorKind::Buffer, "DLPack version ", m->version.major, ".", m->version.minor,
           " is not supported, only up to ", dlpack::kMajorVersion, ".x");
    static bool warned = false;
    if (m->flags & dlpack::kReadOnly) warn_not_writable("array", warned);
  }
  // Everything is checked before the capsule is touched: one that is refused still owns its tensor.
  const dlpack::DLTensor& source = m->dl_tensor;
  DType dtype = dtype_of_code(source.dtype);
  Device device = device_of_code(source.device);
  if (source.ndim < 0 || source.ndim > kMaxDims || (source.ndim && !source.shape))
    fail(ErrorKind::Buffer, "DLPack: a tensor has at most ", kMaxDims, " dimensions, this one has ",
         source.ndim);
  Dims sizes(IntSpan(source.shape, size_t(source.ndim)));
  for (int64_t s : sizes)
    if (s < 0) fail(ErrorKind::Buffer, "DLPack: negative size in shape ", IntSpan(sizes));
  Dims strides = source.strides ? Dims(IntSpan(source.strides, size_t(source.ndim)))
                                : contiguous_strides(sizes);
  size_t bytes = checked_extent(sizes, strides, dtype);
  if (bytes && !source.data)
    fail(ErrorKind::Buffer, "DLPack: the tensor has elements but no memory");

  char* data = bytes ? static_cast<char*>(source.data) + source.byte_offset : nullptr;
  Storage* s = borrow_storage(data, bytes, device, nullptr, nullptr);
  Tensor t = tensor_on_storage(s, sizes, strides, 0, dtype);
  if (PyCapsule_SetName(capsule, kUsedName<Managed>) != 0) throw PythonError{};
  s->release = release_managed<Managed>;
  s->context = m;
  return made_here(t);
}

Tensor consume_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName<DLManagedTensorVersioned>))
    return consume<DLManagedTensorVersioned>(capsule);
  if (PyCapsule_IsValid(capsule, kName<DLManagedTensor>)) return consume<DLManagedTensor>(capsule);
  const char* name = PyCapsule_GetName(capsule);
  PyErr_Clear();
  runtime_error("from_dlpack received an invalid capsule, named '", name ? name : "",
                "'. Note that DLTensor capsules can be consumed only once, so you might have "
                "already constructed a tensor from it once.");
}

// Asks the exporter for a capsule; exporters from before DLPack 1.0 know no argument but stream.
Ref capsule_from(PyObject* exporter, bool refuse_copy) {
  Ref method = optional_attribute(exporter, "__dlpack__");
  if (!method)
    type_error(
        "from_dlpack(): expected an object with __dlpack__ and __dlpack_device__, or a DLPack "
        "capsule, got ",
        type_name(exporter));
  Ref where(check(PyObject_CallMethod(exporter, "__dlpack_device__", nullptr)));
  auto [type, index] = pair_of(where.get(), "__dlpack_device__()");
  Device device = device_of_code({int32_t(type), int32_t(index)});
  Ref named(check(PyDict_New())), none(check(PyTuple_New(0)));
  if (device.is_cuda()) {
    auto handle = reinterpret_cast<uintptr_t>(cuda::current_stream(device.index));
    Ref stream(check(PyLong_FromUnsignedLongLong(handle ? handle : 1)));
    check(PyDict_SetItemString(named.get(), "stream", stream.get()));
  }
  Ref older(check(PyDict_Copy(named.get())));
  Ref version(check(Py_BuildValue("(ii)", int(dlpack::kMajorVersion), int(dlpack::kMinorVersion))));
  check(PyDict_SetItemString(named.get(), "max_version", version.get()));
  if (refuse_copy) check(PyDict_SetItemString(named.get(), "copy", Py_False));
  Ref capsule(PyObject_Call(method.get(), none.get(), named.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = Ref(PyObject_Call(method.get(), none.get(), older.get()));
  }
  if (!capsule) throw PythonError{};
  if (!PyCapsule_CheckExact(capsule.get()))
    type_error(type_name(exporter), ".__dlpack__() must return a capsule, not ",
               type_name(capsule.get()));
  return capsule;
}

PyObject* from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"ext_tensor", "device", "copy", nullptr};
    PyObject *o, *device_arg = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(names),
                                     &o, &device_arg, &copy))
      throw PythonError{};
    bool must_copy = copy != Py_None && check(PyObject_IsTrue(copy)),
         must_share = copy != Py_None && !must_copy;
    Device device = device_arg == Py_None ? kNoDevice : resolve_device(device_of(device_arg));
    Tensor t = tensor_from_dlpack(o, must_share);
    if (must_share && device.type != DeviceType::None && device != t.device())
      value_error("from_dlpack(): cannot move from ", t.device(), " to ", device,
                  " with copy=False");
    return wrap(convert_tensor(t, DType::None, device, must_copy));
  });
}

PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void*)keyword_arguments<"__dlpack__", dlpack_method>,
     METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None): a DLPack capsule of "
     "this tensor."},
    FACULA_PLAIN("__dlpack_device__", dlpack_device, "Device type and index in DLPack's numbers."),
    {}};
PyMethodDef functions[] = {
    {"_to_dlpack", to_dlpack, METH_O,
     "to_dlpack(tensor): an unversioned DLPack capsule over the tensor's memory."},
    {"_from_dlpack", (PyCFunction)(void*)from_dlpack, METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor\n\n"
     "A tensor over the memory of an object with ``__dlpack__`` or of a DLPack capsule.\n\n"
     "Example::\n\n    >>> facula.from_dlpack(numpy.arange(3))\n    tensor([0, 1, 2])\n"},
    {}};

}  // namespace

bool is_dlpack_capsule(PyObject* o) {
  return PyCapsule_CheckExact(o);
}

Tensor tensor_from_dlpack(PyObject* o, bool refuse_copy) {
  if (PyCapsule_CheckExact(o)) return consume_capsule(o);
  Ref capsule = capsule_from(o, refuse_copy);
  return consume_capsule(capsule.get());
}

void init_dlpack(PyObject* module) {
  add_functions(module, functions);
  add_methods(tensor_base_type, methods);
}

}  // namespace facula::python
