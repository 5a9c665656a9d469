#include "cuda/matmul.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/cublas_lt.h"
#include "cuda/cudnn.h"
#include "cuda/kernel_types.h"
#include "cuda/libraries.h"
#include "cuda/translate.h"
#include "op/hooks/products.h"
#include "op/layer_precision.h"

namespace facula::cuda {
namespace {

using Status = int;
using Handle = struct CublasHandleRecord*;

enum Operation : int { kNone = 0, kTranspose = 1 };
enum : int { kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77, kDefaultAlgorithm = -1 };

struct Table {
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, CuStream);
  const char* (*status_string)(Status);
  Status (*gemm)(Handle, int, int, int64_t, int64_t, int64_t, const void*, const void*, int,
                 int64_t, long long, const void*, int, int64_t, long long, const void*, void*, int,
                 int64_t, long long, int64_t, int, int);

  Table() {
    load(create, "cublasCreate_v2");
    load(set_stream, "cublasSetStream_v2");
    load(status_string, "cublasGetStatusString");
    load(gemm, "cublasGemmStridedBatchedEx_64");
  }

 private:
  template <class Function>
  static void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(library_symbol(Library::Cublas, name));
  }
};

const Table& cublas() {
  static const Table* table = new Table;
  return *table;
}

void check(Status status, const char* function) {
  if (status == 0) return;
  throw CudaError(
      std::string("cuBLAS error: ") + cublas().status_string(status) + " (" + function + ")",
      status);
}

// A handle serves one thread at a time. Threads borrow one per device and leave it to others when
// they end; making one takes long.
struct HandlePool {
  std::mutex mutex;
  std::vector<Handle> idle[kMaxDevices];
};
HandlePool& pool() {
  static auto* instance = new HandlePool;
  return *instance;
}

struct ThreadHandles {
  Handle handles[kMaxDevices] = {};
  ~ThreadHandles() {
    std::lock_guard lock(pool().mutex);
    for (int d = 0; d < kMaxDevices; ++d) {
      if (handles[d]) pool().idle[d].push_back(handles[d]);
    }
  }
};

Handle handle_of(int device) {
  static thread_local std::unique_ptr<ThreadHandles> mine;  // large arrays do not belong in TLS
  if (!mine) mine = std::make_unique<ThreadHandles>();
  Handle& handle = mine->handles[device];
  if (!handle) {
    std::lock_guard lock(pool().mutex);
    auto& idle = pool().idle[device];
    if (!idle.empty()) {
      handle = idle.back();
      idle.pop_back();
    }
  }
  if (!handle) check(cublas().create(&handle), "cublasCreate");
  return handle;
}

std::atomic<bool> tf32_allowed{false};

int cublas_type(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 2;
    case DType::BFloat16: return 14;
    case DType::Float32: return 0;
    case DType::Float64: return 1;
    case DType::Complex64: return 4;
    case DType::Complex128: return 5;
    default: return -1;
  }
}

int compute_type(DType dtype) {
  if (to_real(dtype) == DType::Float64) return kCompute64;
  const bool rounded = LayerPrecision::active ? cudnn_settings.allow_tf32.load() : allow_tf32();
  return rounded && to_real(dtype) == DType::Float32 ? kComputeTf32 : kCompute32;
}

// alpha and beta in the type that the compute type asks for.
struct Factor {
  alignas(16) unsigned char bytes[16];
  Factor(DType dtype, Complex<double> value) {
    const DType d = is_reduced_float(dtype) ? DType::Float32 : dtype;
    dispatch_dtype(d, [&](auto tag) {
      using Stored = typename decltype(tag)::type;
      *reinterpret_cast<Stored*>(bytes) = convert<Stored>(value);
    });
  }
};

// A batch of matrices in elements.
struct Matrix {
  void* data;
  int64_t rows, cols, batch_stride, row, col;

  // Strides of dimensions of size 1 are never used; the dense ones suit cuBLAS's checks.
  void normalise() {
    if (cols == 1) col = 1;
    if (rows == 1) row = cols == 1 || col == 1 ? cols : 1;
  }
  bool rows_dense() const { return col == 1 && row >= cols; }  // row-major
  bool cols_dense() const { return row == 1 && col >= rows; }  // column-major
  bool usable() const { return (rows_dense() || cols_dense()) && batch_stride >= 0; }
  int64_t leading() const { return std::max<int64_t>(1, rows_dense() ? row : col); }
};

void copy_matrix(const Matrix& to, const Matrix& from, int64_t batch, DType dtype, int device,
                 CuStream stream) {
  const int64_t item = int64_t(item_size(dtype));
  StridedCopy copy;
  copy.to = to.data;
  copy.from = from.data;
  copy.to_dtype = copy.from_dtype = dtype;
  copy.ndim = 3;
  const int64_t sizes[] = {batch, to.rows, to.cols};
  const int64_t to_strides[] = {to.batch_stride, to.row, to.col};
  const int64_t from_strides[] = {from.batch_stride, from.row, from.col};
  for (int d = 0; d < 3; ++d) {
    copy.sizes[d] = sizes[d];
    copy.to_strides[d] = to_strides[d] * item;
    copy.from_strides[d] = from_strides[d] * item;
  }
  copy_strided(copy, device, stream);
}

// `matrix` itself if cuBLAS can walk it, else a row-major place for a copy of it.
Matrix make_usable(const Matrix& matrix, int64_t batch, DType dtype, int device, CuStream stream,
                   std::optional<Scratch>& memory) {
  if (matrix.usable()) return matrix;
  const int64_t size = matrix.rows * matrix.cols;
  const bool shared = matrix.batch_stride == 0;
  memory.emplace(size_t(size * (shared ? 1 : batch)) * item_size(dtype), device, stream);
  return {memory->get(), matrix.rows, matrix.cols, shared ? 0 : size, matrix.cols, 1};
}

// Without a sum only beta * c is left.
void scale_only(const Gemm& g, int device, CuStream stream) {
  const int64_t item = int64_t(item_size(g.dtype));
  ElementwiseLaunch launch;
  launch.name = "gemm_scale";
  launch.ndim = 3;
  const int64_t sizes[] = {g.batch, g.m, g.n}, strides[] = {g.c_batch, g.c_row, g.c_col};
  for (int d = 0; d < 3; ++d) {
    launch.sizes[d] = sizes[d];
    launch.strides[0][d] = launch.strides[1][d] = strides[d] * item;
  }
  launch.ptrs[0] = launch.ptrs[1] = g.c;
  launch.dtypes[0] = launch.dtypes[1] = launch.compute = g.dtype;
  const bool clear = g.beta == Complex<double>(0.0);
  launch.inputs = clear ? 0 : 1;
  launch.body = clear ? "p0" : "a * p0";
  launch.params.add(is_reduced_float(g.dtype) ? DType::Float32 : g.dtype, g.beta);
  launch_elementwise(launch, device, stream);
}

// Integers and the smallest floats, in tiles.
void tiled_gemm(const Gemm& g, int device, CuStream stream) {
  static auto* kernels = new KernelTable;
  const DType compute = is_floating(g.dtype) ? DType::Float32 : g.dtype;
  KernelKey key;
  key.bits[0] = uint64_t(g.dtype);
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"gemm.cuh", "facula_gemm", {}};
    text.define("FACULA_ITEM", device_type(g.dtype));
    text.define("FACULA_COMPUTE", device_type(compute));
    return text;
  });
  constexpr int64_t kTile = 64, kMostBatches = 65535;
  const int64_t item = int64_t(item_size(g.dtype));
  for (int64_t first = 0; first < g.batch; first += kMostBatches) {
    ArgumentWriter arguments;
    arguments.put<const void*>(static_cast<const char*>(g.a) + first * g.a_batch * item);
    arguments.put<const void*>(static_cast<const char*>(g.b) + first * g.b_batch * item);
    arguments.put<void*>(static_cast<char*>(g.c) + first * g.c_batch * item);
    for (int64_t n : {g.m, g.n, g.k, g.a_batch, g.a_row, g.a_col, g.b_batch, g.b_row, g.b_col,
                      g.c_batch, g.c_row, g.c_col})
      arguments.put(n);
    dispatch_dtype(compute, [&](auto tag) {
      using Value = typename decltype(tag)::type;
      if constexpr (!std::is_same_v<Value, bool>) {
        arguments.put(convert<Value>(g.alpha.re));
        arguments.put(convert<Value>(g.beta.re));
      }
    });
    arguments.put(int32_t(g.beta != Complex<double>(0.0)));
    launch_kernel(function,
                  {.grid_x = unsigned((g.n + kTile - 1) / kTile * ((g.m + kTile - 1) / kTile)),
                   .grid_y = unsigned(std::min(kMostBatches, g.batch - first)),
                   .block_x = 256},
                  stream, arguments.data());
  }
}

// c = the bias in every row.
void fill_with_bias(const Gemm& g, int device, CuStream stream) {
  const int64_t item = int64_t(item_size(g.dtype));
  StridedCopy copy;
  copy.to = g.c;
  copy.from = g.bias;
  copy.to_dtype = copy.from_dtype = g.dtype;
  copy.ndim = 3;
  const int64_t sizes[] = {g.batch, g.m, g.n}, strides[] = {g.c_batch, g.c_row, g.c_col};
  for (int d = 0; d < 3; ++d) {
    copy.sizes[d] = sizes[d];
    copy.to_strides[d] = strides[d] * item;
    copy.from_strides[d] = d == 2 ? item : 0;
  }
  copy_strided(copy, device, stream);
}

Gemm describe(const Tensor& a, const Tensor& b, const Tensor& out) {
  auto batch = [](const Tensor& t) { return t.dim() == 3 && t.size(0) > 1 ? t.stride(0) : 0; };
  Gemm g;
  g.dtype = out.dtype();
  g.batch = out.dim() == 3 ? out.size(0) : 1;
  g.m = out.size(-2), g.n = out.size(-1), g.k = a.size(-1);
  g.a = a.data(), g.a_batch = batch(a), g.a_row = a.stride(-2), g.a_col = a.stride(-1);
  g.b = b.data(), g.b_batch = batch(b), g.b_row = b.stride(-2), g.b_col = b.stride(-1);
  g.c = out.data(), g.c_batch = batch(out), g.c_row = out.stride(-2), g.c_col = out.stride(-1);
  return g;
}

void multiply(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha,
              const Scalar& beta) {
  Gemm g = describe(a, b, out);
  g.alpha = alpha.to_complex(), g.beta = beta.to_complex();
  gemm(g, out.device().index, current_stream(out.device().index));
}

void multiply_biased(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  Gemm g = describe(a, b, out);
  g.bias = bias.data();
  gemm(g, out.device().index, current_stream(out.device().index));
}

}  // namespace

void register_products() {
  device_products.multiply.set(translate<multiply>);
  device_products.multiply_biased.set(translate<multiply_biased>);
}

void set_allow_tf32(bool allow) {
  tf32_allowed.store(allow, std::memory_order_relaxed);
}
bool allow_tf32() {
  return tf32_allowed.load(std::memory_order_relaxed);
}

void gemm(const Gemm& g, int device, CuStream stream) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  use_device(device);
  if (g.bias && (g.k == 0 || g.batch != 1 || cublas_type(g.dtype) < 0)) {
    fill_with_bias(g, device, stream);
    if (g.k == 0) return;
    Gemm rest = g;
    rest.bias = nullptr;
    rest.beta = 1.0;
    return gemm(rest, device, stream);
  }
  if (g.k == 0) return scale_only(g, device, stream);
  if (cublas_type(g.dtype) < 0) return tiled_gemm(g, device, stream);

  const bool single = g.batch == 1;
  Matrix a{const_cast<void*>(g.a), g.m, g.k, single ? 0 : g.a_batch, g.a_row, g.a_col};
  Matrix b{const_cast<void*>(g.b), g.k, g.n, single ? 0 : g.b_batch, g.b_row, g.b_col};
  Matrix c{g.c, g.m, g.n, single ? 0 : g.c_batch, g.c_row, g.c_col};
  for (Matrix* matrix : {&a, &b, &c}) matrix->normalise();
  std::optional<Scratch> a_memory, b_memory, c_memory;
  const Matrix a_used = make_usable(a, g.batch, g.dtype, device, stream, a_memory);
  const Matrix b_used = make_usable(b, g.batch, g.dtype, device, stream, b_memory);
  const Matrix c_used = make_usable(c, g.batch, g.dtype, device, stream, c_memory);
  const int64_t a_batches = a.batch_stride == 0 ? 1 : g.batch;
  const int64_t b_batches = b.batch_stride == 0 ? 1 : g.batch;
  if (a_memory) copy_matrix(a_used, a, a_batches, g.dtype, device, stream);
  if (b_memory) copy_matrix(b_used, b, b_batches, g.dtype, device, stream);
  if (c_memory && g.beta != Complex<double>(0.0)) {
    copy_matrix(c_used, c, g.batch, g.dtype, device, stream);
  }

  // cuBLAS is column-major. A row-major c is the column-major c^T = b^T a^T, so the operands swap;
  // a column-major c is taken as it is. Row-major operands look transposed to it.
  const bool swap = c_used.rows_dense();
  const Matrix& left = swap ? b_used : a_used;
  const Matrix& right = swap ? a_used : b_used;
  const Operation left_op = left.rows_dense() == swap ? kNone : kTranspose;
  const Operation right_op = right.rows_dense() == swap ? kNone : kTranspose;
  if (g.bias) {
    // cuBLASLt adds a bias to the rows of its column-major result, the columns of ours.
    const bool fits = swap && !c_memory && to_real(g.dtype) != DType::Float64 &&
                      !is_complex(g.dtype) && g.alpha == Complex<double>(1.0);
    if (fits && biased_product({.type = cublas_type(g.dtype),
                                .compute = compute_type(g.dtype),
                                .left_op = left_op,
                                .right_op = right_op,
                                .rows = g.n,
                                .columns = g.m,
                                .depth = g.k,
                                .left = left.data,
                                .right = right.data,
                                .bias = g.bias,
                                .out = c_used.data,
                                .left_leading = left.leading(),
                                .right_leading = right.leading(),
                                .out_leading = c_used.leading()},
                               device, stream))
      return;
    Gemm start = g;
    start.c = c_used.data, start.c_row = c_used.row, start.c_col = c_used.col;
    fill_with_bias(start, device, stream);
  }
  const Factor alpha(g.dtype, g.alpha), beta(g.dtype, g.bias ? 1.0 : g.beta);
  const int type = cublas_type(g.dtype);
  Handle handle = handle_of(device);
  check(cublas().set_stream(handle, stream), "cublasSetStream");
  check(cublas().gemm(handle, left_op, right_op, swap ? g.n : g.m, swap ? g.m : g.n, g.k,
                      alpha.bytes, left.data, type, left.leading(), left.batch_stride, right.data,
                      type, right.leading(), right.batch_stride, beta.bytes, c_used.data, type,
                      c_used.leading(), c_used.batch_stride, g.batch, compute_type(g.dtype),
                      kDefaultAlgorithm),
        "cublasGemmStridedBatchedEx");
  if (c_memory) copy_matrix(c, c_used, g.batch, g.dtype, device, stream);
}

}  // namespace facula::cuda
