#include "cuda/cudnn.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "cuda/allocator.h"
#include "cuda/libraries.h"
#include "cuda/thread_state.h"
#include "op/settings.h"

namespace facula::cuda {

CudnnSettings cudnn_settings;

namespace {

// Binary compatible with cudnn.h.
using Status = int;
using Handle = struct CudnnHandleRecord*;
using TensorDescriptor = struct CudnnTensorRecord*;
using FilterDescriptor = struct CudnnFilterRecord*;
using ConvolutionDescriptor = struct CudnnConvolutionRecord*;
struct Performance {  // of an algorithm, in all three directions
  int algorithm;
  Status status;
  float time;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};
enum : int { kChannelsFirst = 0, kChannelsLast = 1 };
enum : int { kCrossCorrelation = 1 };
enum : int { kDefaultMath = 0, kTensorMath = 1, kConvertingMath = 2, kFmaMath = 3 };
constexpr int kDeterministic = 1;
constexpr int kMostAlgorithms = 10;
constexpr size_t kMostWorkspace = size_t(1) << 30;

// X(member, name, parameter types)
#define FACULA_CUDNN_FUNCTIONS(X)                                                                 \
  X(create, cudnnCreate, (Handle*))                                                               \
  X(set_stream, cudnnSetStream, (Handle, CuStream))                                               \
  X(create_tensor, cudnnCreateTensorDescriptor, (TensorDescriptor*))                              \
  X(set_tensor, cudnnSetTensorNdDescriptor, (TensorDescriptor, int, int, const int*, const int*)) \
  X(create_filter, cudnnCreateFilterDescriptor, (FilterDescriptor*))                              \
  X(set_filter, cudnnSetFilterNdDescriptor, (FilterDescriptor, int, int, int, const int*))        \
  X(create_convolution, cudnnCreateConvolutionDescriptor, (ConvolutionDescriptor*))               \
  X(set_convolution, cudnnSetConvolutionNdDescriptor,                                             \
    (ConvolutionDescriptor, int, const int*, const int*, const int*, int, int))                   \
  X(set_groups, cudnnSetConvolutionGroupCount, (ConvolutionDescriptor, int))                      \
  X(set_math, cudnnSetConvolutionMathType, (ConvolutionDescriptor, int))                          \
  X(choose_forward, cudnnGetConvolutionForwardAlgorithm_v7,                                       \
    (Handle, TensorDescriptor, FilterDescriptor, ConvolutionDescriptor, TensorDescriptor, int,    \
     int*, Performance*))                                                                         \
  X(choose_data, cudnnGetConvolutionBackwardDataAlgorithm_v7,                                     \
    (Handle, FilterDescriptor, TensorDescriptor, ConvolutionDescriptor, TensorDescriptor, int,    \
     int*, Performance*))                                                                         \
  X(choose_filter, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                 \
    (Handle, TensorDescriptor, TensorDescriptor, ConvolutionDescriptor, FilterDescriptor, int,    \
     int*, Performance*))                                                                         \
  X(time_forward, cudnnFindConvolutionForwardAlgorithmEx,                                         \
    (Handle, TensorDescriptor, const void*, FilterDescriptor, const void*, ConvolutionDescriptor, \
     TensorDescriptor, void*, int, int*, Performance*, void*, size_t))                            \
  X(time_data, cudnnFindConvolutionBackwardDataAlgorithmEx,                                       \
    (Handle, FilterDescriptor, const void*, TensorDescriptor, const void*, ConvolutionDescriptor, \
     TensorDescriptor, void*, int, int*, Performance*, void*, size_t))                            \
  X(time_filter, cudnnFindConvolutionBackwardFilterAlgorithmEx,                                   \
    (Handle, TensorDescriptor, const void*, TensorDescriptor, const void*, ConvolutionDescriptor, \
     FilterDescriptor, void*, int, int*, Performance*, void*, size_t))                            \
  X(forward, cudnnConvolutionForward,                                                             \
    (Handle, const void*, TensorDescriptor, const void*, FilterDescriptor, const void*,           \
     ConvolutionDescriptor, int, void*, size_t, const void*, TensorDescriptor, void*))            \
  X(backward_data, cudnnConvolutionBackwardData,                                                  \
    (Handle, const void*, FilterDescriptor, const void*, TensorDescriptor, const void*,           \
     ConvolutionDescriptor, int, void*, size_t, const void*, TensorDescriptor, void*))            \
  X(backward_filter, cudnnConvolutionBackwardFilter,                                              \
    (Handle, const void*, TensorDescriptor, const void*, TensorDescriptor, const void*,           \
     ConvolutionDescriptor, int, void*, size_t, const void*, FilterDescriptor, void*))

struct Table {
#define X(member, name, parameters) Status(*member) parameters;
  FACULA_CUDNN_FUNCTIONS(X)
#undef X
  size_t (*version)();
  const char* (*error_string)(Status);

  Table() {
#define X(member, name, parameters) load(member, #name);
    FACULA_CUDNN_FUNCTIONS(X)
#undef X
    load(version, "cudnnGetVersion");
    load(error_string, "cudnnGetErrorString");
  }

 private:
  template <class Function>
  static void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(library_symbol(Library::Cudnn, name));
  }
};

const Table* library() {
  return table_if_present<Table>();
}

void check(Status status, const char* function) {
  if (status == 0) return;
  throw CudaError(
      std::string("cuDNN error: ") + library()->error_string(status) + " (" + function + ")",
      status);
}

int cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::Float32: return 0;
    case DType::Float64: return 1;
    case DType::Float16: return 2;
    case DType::BFloat16: return 9;
    default: return -1;
  }
}

// A problem in cuDNN's words: the operator is always a forward convolution or a derivative of it.
// Plain numbers, so that it is a key as well.
struct Shape {
  int kind, type, math, device, deterministic, benchmark, dims, groups, last;
  int image[5], result[5], filter[5];  // sizes of the forward input and output, and the weight
  int image_strides[5], result_strides[5];
  int pads[3], steps[3], spreads[3];

  bool operator==(const Shape& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(Shape) % sizeof(int) == 0);
struct ShapeHash {
  size_t operator()(const Shape& shape) const {
    int words[sizeof(Shape) / sizeof(int)];
    std::memcpy(words, &shape, sizeof words);
    uint64_t h = 0;
    for (int w : words) h = (h ^ unsigned(w)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return size_t(h);
  }
};

// False where some number does not fit.
bool describe(ConvolutionKind kind, const Conv& v, int dims, int device, Shape& s) {
  std::memset(&s, 0, sizeof s);
  const bool transposed = kind == ConvolutionKind::Transposed;
  const int axes = std::max(dims, 2), first = 3 - axes;  // sequences are images of height 1
  s.kind = int(kind);
  s.type = cudnn_type(v.dtype);
  s.device = device;
  s.dims = axes + 2;
  s.deterministic = cudnn_settings.deterministic || settings.deterministic;
  s.benchmark = cudnn_settings.benchmark;
  s.math = v.dtype == DType::Float32   ? (cudnn_settings.allow_tf32 ? kDefaultMath : kFmaMath)
           : v.dtype == DType::Float64 ? kDefaultMath
                                       : kTensorMath;
  bool fits = true;
  auto put = [&](int& to, int64_t value) {
    fits &= value >= INT_MIN && value <= INT_MAX;
    to = int(value);
  };
  // Of the transposed operator, x is the forward output and y the forward input.
  const int64_t image_channels = transposed ? v.out : v.in,
                result_channels = transposed ? v.in : v.out;
  put(s.groups, v.groups);
  put(s.image[0], v.batch), put(s.image[1], image_channels * v.groups);
  put(s.result[0], v.batch), put(s.result[1], result_channels * v.groups);
  put(s.filter[0], result_channels * v.groups), put(s.filter[1], image_channels);
  put(s.image_strides[0], transposed ? v.y_batch : v.x_batch);
  put(s.image_strides[1], transposed ? v.y_channel : v.x_channel);
  put(s.result_strides[0], transposed ? v.x_batch : v.y_batch);
  put(s.result_strides[1], transposed ? v.x_channel : v.y_channel);
  int64_t image_elements = v.batch * v.groups * image_channels,
          result_elements = v.batch * v.groups * result_channels;
  for (int i = 0; i < axes; ++i) {
    const ConvAxis& a = v.axis[first + i];
    put(s.image[2 + i], a.in), put(s.result[2 + i], a.out), put(s.filter[2 + i], a.taps);
    // Axes of size 1 that the tensor does not have need some stride, too.
    const bool missing = i < axes - dims;
    const ConvAxis& next = v.axis[std::min(first + i + 1, 2)];
    put(s.image_strides[2 + i], missing ? next.in * (transposed ? next.y_stride : next.x_stride)
                                : transposed ? a.y_stride
                                             : a.x_stride);
    put(s.result_strides[2 + i], missing ? next.out * (transposed ? next.x_stride : next.y_stride)
                                 : transposed ? a.x_stride
                                              : a.y_stride);
    put(s.pads[i], -a.start), put(s.steps[i], a.step), put(s.spreads[i], a.spread);
    image_elements *= a.in, result_elements *= a.out;
  }
  const int64_t filter_channel = transposed ? v.w_out : v.w_in;
  // A filter without extent or channels is the same in both layouts; then the tensors decide.
  s.last = v.taps() == 1 || image_channels == 1 ? s.image_strides[1] == 1 && s.image[1] > 1
                                                : filter_channel == 1;
  return fits && image_elements <= INT_MAX && result_elements <= INT_MAX;
}

struct Candidate {
  int algorithm, math;
  size_t workspace;
};

// What is left of cuDNN's algorithms, the fastest first: one that fails is not tried again.
struct Plan {
  TensorDescriptor image = nullptr, result = nullptr;
  FilterDescriptor filter = nullptr;
  ConvolutionDescriptor convolution = nullptr;
  std::vector<Candidate> candidates;
};

struct Pointers {
  void *image, *filter, *result;
};

// Handles and descriptors are a thread's own.
struct ThreadState {
  Handle handles[kMaxDevices] = {};
  std::unordered_map<Shape, Plan, ShapeHash> plans;
};
ThreadState& mine() {
  return thread_state<ThreadState>();
}

Handle handle_of(int device, CuStream stream) {
  Handle& handle = mine().handles[device];
  if (!handle) check(library()->create(&handle), "cudnnCreate");
  check(library()->set_stream(handle, stream), "cudnnSetStream");
  return handle;
}

bool make_descriptors(const Shape& s, Plan& p) {
  const Table& dnn = *library();
  const int compute = s.type == cudnn_type(DType::Float64) ? s.type : cudnn_type(DType::Float32);
  return dnn.create_tensor(&p.image) == 0 && dnn.create_tensor(&p.result) == 0 &&
         dnn.create_filter(&p.filter) == 0 && dnn.create_convolution(&p.convolution) == 0 &&
         dnn.set_tensor(p.image, s.type, s.dims, s.image, s.image_strides) == 0 &&
         dnn.set_tensor(p.result, s.type, s.dims, s.result, s.result_strides) == 0 &&
         dnn.set_filter(p.filter, s.type, s.last ? kChannelsLast : kChannelsFirst, s.dims,
                        s.filter) == 0 &&
         dnn.set_convolution(p.convolution, s.dims - 2, s.pads, s.steps, s.spreads,
                             kCrossCorrelation, compute) == 0 &&
         dnn.set_groups(p.convolution, s.groups) == 0 && dnn.set_math(p.convolution, s.math) == 0;
}

// Timed on the tensors at hand, or guessed from shapes.
Status candidates(const Shape& s, const Plan& p, const Pointers& at, Handle handle, int device,
                  CuStream stream, Performance* found, int* count) {
  const Table& dnn = *library();
  const auto kind = ConvolutionKind(s.kind);
  if (s.benchmark) {
    size_t bytes = std::min(kMostWorkspace, memory_info(device).free / 2);
    Scratch scratch(bytes, device, stream);
    switch (kind) {
      case ConvolutionKind::Forward:
        return dnn.time_forward(handle, p.image, at.image, p.filter, at.filter, p.convolution,
                                p.result, at.result, kMostAlgorithms, count, found, scratch.get(),
                                bytes);
      case ConvolutionKind::Transposed:
        return dnn.time_data(handle, p.filter, at.filter, p.result, at.result, p.convolution,
                             p.image, at.image, kMostAlgorithms, count, found, scratch.get(),
                             bytes);
      default:
        return dnn.time_filter(handle, p.image, at.image, p.result, at.result, p.convolution,
                               p.filter, at.filter, kMostAlgorithms, count, found, scratch.get(),
                               bytes);
    }
  }
  switch (kind) {
    case ConvolutionKind::Forward:
      return dnn.choose_forward(handle, p.image, p.filter, p.convolution, p.result, kMostAlgorithms,
                                count, found);
    case ConvolutionKind::Transposed:
      return dnn.choose_data(handle, p.filter, p.result, p.convolution, p.image, kMostAlgorithms,
                             count, found);
    default:
      return dnn.choose_filter(handle, p.image, p.result, p.convolution, p.filter, kMostAlgorithms,
                               count, found);
  }
}

Plan make_plan(const Shape& s, const Pointers& at, Handle handle, int device, CuStream stream) {
  Plan plan;
  if (!make_descriptors(s, plan)) return plan;
  Performance found[kMostAlgorithms];
  int count = 0;
  if (candidates(s, plan, at, handle, device, stream, found, &count) != 0) return plan;
  for (int i = 0; i < count; ++i) {
    const Performance& f = found[i];
    if (f.status != 0 || f.memory > kMostWorkspace) continue;
    if (s.deterministic && f.determinism != kDeterministic) continue;
    // Never less exact than was asked for.
    if (s.math == kFmaMath && f.math != kFmaMath && f.math != kDefaultMath) continue;
    if (s.math == kDefaultMath && f.math == kConvertingMath) continue;
    plan.candidates.push_back({f.algorithm, s.math == kFmaMath ? kFmaMath : f.math, f.memory});
  }
  return plan;
}

Status run_candidate(ConvolutionKind kind, const Plan& p, const Candidate& c, const Pointers& at,
                     const void* one, const void* zero, Handle handle, int device,
                     CuStream stream) {
  const Table& dnn = *library();
  if (const Status status = dnn.set_math(p.convolution, c.math)) return status;
  Scratch workspace(c.workspace, device, stream);
  switch (kind) {
    case ConvolutionKind::Forward:
      return dnn.forward(handle, one, p.image, at.image, p.filter, at.filter, p.convolution,
                         c.algorithm, workspace.get(), c.workspace, zero, p.result, at.result);
    case ConvolutionKind::Transposed:
      return dnn.backward_data(handle, one, p.filter, at.filter, p.result, at.result, p.convolution,
                               c.algorithm, workspace.get(), c.workspace, zero, p.image, at.image);
    default:
      return dnn.backward_filter(handle, one, p.image, at.image, p.result, at.result, p.convolution,
                                 c.algorithm, workspace.get(), c.workspace, zero, p.filter,
                                 at.filter);
  }
}

}  // namespace

size_t cudnn_version() {
  return library() ? library()->version() : 0;
}

bool cudnn_convolution(ConvolutionKind kind, const Conv& v, int dims, int device, CuStream stream) {
  if (cudnn_type(v.dtype) < 0 || !cudnn_settings.enabled || !library()) return false;
  Shape shape;
  if (!describe(kind, v, dims, device, shape)) return false;
  use_device(device);
  const bool transposed = kind == ConvolutionKind::Transposed;
  void *x = const_cast<void*>(v.x), *w = const_cast<void*>(v.w);
  const Pointers at{transposed ? v.y : x, w, transposed ? x : v.y};
  Handle handle = handle_of(device, stream);
  auto& plans = mine().plans;
  auto known = plans.find(shape);
  if (known == plans.end())
    known = plans.emplace(shape, make_plan(shape, at, handle, device, stream)).first;
  Plan& p = known->second;
  const double one64 = 1, zero64 = 0;
  const float one32 = 1, zero32 = 0;
  const bool wide = v.dtype == DType::Float64;
  const void *one = wide ? static_cast<const void*>(&one64) : &one32,
             *zero = wide ? static_cast<const void*>(&zero64) : &zero32;
  Status status = 0;
  while (!p.candidates.empty()) {
    status = run_candidate(kind, p, p.candidates.front(), at, one, zero, handle, device, stream);
    if (status == 0) return true;
    p.candidates.erase(p.candidates.begin());
  }
  check(status, "convolution");  // where there was an algorithm at all
  return false;
}

}  // namespace facula::cuda
