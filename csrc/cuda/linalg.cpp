#include "cuda/linalg.h"

#include <algorithm>
#include <climits>
#include <mutex>
#include <vector>

#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/fault.h"
#include "cuda/jit.h"
#include "cuda/layout.h"
#include "cuda/libraries.h"
#include "cuda/translate.h"
#include "op/hooks/creation.h"
#include "op/hooks/linalg.h"

namespace facula::cuda {
namespace {

using Handle = struct LinalgHandleRecord*;

// ---- calling the libraries

char letter(DType d) {
  return d == DType::Float32 ? 'S' : d == DType::Float64 ? 'D' : d == DType::Complex64 ? 'C' : 'Z';
}

void check(int status, const std::string& function) {
  if (status == 0) return;
  constexpr const char* kNames[] = {
      "success",          "not initialized",       "allocation failed",
      "invalid value",    "architecture mismatch", "mapping error",
      "execution failed", "internal error"};
  const bool known = status > 0 && status < int(std::size(kNames));
  throw CudaError(std::string("cuSOLVER error: ") + (known ? kNames[status] : "unknown") + " (" +
                      function + " gave " + std::to_string(status) + ")",
                  status);
}

// One handle of each library for a device, used by one thread at a time.
struct Handles {
  std::recursive_mutex mutex;
  Handle solver = nullptr, blas = nullptr;
  void* parameters = nullptr;  // of cuSOLVER's 64-bit functions
};

Handles& handles_of(int device) {
  static auto* all = new Handles[kMaxDevices];
  return all[device];
}

// The libraries on the current stream of a tensor's device, for the span of a scope.
class Libraries {
 public:
  explicit Libraries(const Tensor& t)
      : device(t.device().index),
        stream(current_stream(device)),
        dtype_(t.dtype()),
        handles_(handles_of(device)),
        lock_(handles_.mutex) {
    use_device(device);
  }

  const int device;
  CuStream const stream;

  // solve("potrf", arguments...) calls cusolverDn<letter>potrf with the handle first.
  template <class... Args>
  void solve(const std::string& name, Args... args) {
    call_solver("cusolverDn" + std::string(1, letter(dtype_)) + name, args...);
  }
  template <class... Args>
  void call_solver(const std::string& name, Args... args) {
    auto function =
        reinterpret_cast<int (*)(Handle, Args...)>(library_symbol(Library::Cusolver, name.c_str()));
    check(function(solver(), args...), name);
  }
  // blas("trsm_v2", arguments...) calls cublas<letter>trsm_v2 with the handle first.
  template <class... Args>
  void blas(const char* name, Args... args) {
    const std::string full = "cublas" + std::string(1, letter(dtype_)) + name;
    auto function =
        reinterpret_cast<int (*)(Handle, Args...)>(library_symbol(Library::Cublas, full.c_str()));
    const int status = function(blas_handle(), args...);
    if (status == 0) return;
    auto describe = reinterpret_cast<const char* (*)(int)>(
        library_symbol(Library::Cublas, "cublasGetStatusString"));
    throw CudaError(std::string("cuBLAS error: ") + describe(status) + " (" + full + ")", status);
  }
  void* parameters() {
    if (!handles_.parameters) {
      auto create = reinterpret_cast<int (*)(void**)>(
          library_symbol(Library::Cusolver, "cusolverDnCreateParams"));
      check(create(&handles_.parameters), "cusolverDnCreateParams");
    }
    return handles_.parameters;
  }

 private:
  Handle solver() {
    Handle& handle = handles_.solver;
    if (!handle) {
      auto create =
          reinterpret_cast<int (*)(Handle*)>(library_symbol(Library::Cusolver, "cusolverDnCreate"));
      check(create(&handle), "cusolverDnCreate");
    }
    auto set = reinterpret_cast<int (*)(Handle, CuStream)>(
        library_symbol(Library::Cusolver, "cusolverDnSetStream"));
    check(set(handle, stream), "cusolverDnSetStream");
    return handle;
  }
  Handle blas_handle() {
    Handle& handle = handles_.blas;
    if (!handle) {
      auto create =
          reinterpret_cast<int (*)(Handle*)>(library_symbol(Library::Cublas, "cublasCreate_v2"));
      if (create(&handle) != 0) throw CudaError("cublasCreate failed");
    }
    auto set = reinterpret_cast<int (*)(Handle, CuStream)>(
        library_symbol(Library::Cublas, "cublasSetStream_v2"));
    if (set(handle, stream) != 0) throw CudaError("cublasSetStream failed");
    return handle;
  }

  DType dtype_;
  Handles& handles_;
  std::lock_guard<std::recursive_mutex> lock_;
};

// ---- matrices

struct Matrices {
  explicit Matrices(const Tensor& t)
      : rows(size(t.size(-2))),
        columns(size(t.size(-1))),
        leading(std::max(rows, 1)),
        count(t.numel() / (int64_t(rows) * columns)),
        item(int64_t(t.item_size())),
        data(t.data()) {}

  void* at(int64_t i) const { return data + i * rows * columns * item; }
  // Their addresses, in device memory.
  Tensor addresses(const Tensor& t) const {
    Tensor out = empty_tensor(Dims{count}, DType::Int64, t.device());
    device_creation.progression(out, Scalar(int64_t(reinterpret_cast<intptr_t>(data))),
                                Scalar(int64_t(rows) * columns * item));
    return out;
  }

  const int rows, columns, leading;
  const int64_t count, item;
  char* const data;

 private:
  static int size(int64_t n) {
    if (n > INT_MAX) throw CudaError("matrices have at most 2147483647 rows and columns");
    return int(n);
  }
};

// Many small matrices are taken at once, few or large ones in turn.
bool batched(const Matrices& m) {
  return m.count > 1 && m.count <= INT_MAX && m.rows <= 512;
}

int fill_mode(bool upper) {
  return upper ? 1 : 0;
}
int operation(char trans) {
  return trans == 'N' ? 0 : trans == 'T' ? 1 : 2;
}
void* shifted(const Tensor& t, int64_t elements) {
  return t.data() + elements * int64_t(t.item_size());
}

// cudaDataType
int data_type(DType d) {
  return d == DType::Float32 ? 0 : d == DType::Float64 ? 1 : d == DType::Complex64 ? 4 : 5;
}

// ---- the hooks

void cholesky(const Tensor& a, bool upper, const Tensor& info) {
  Libraries lib(a);
  const Matrices m(a);
  if (batched(m)) {
    const Tensor pointers = m.addresses(a);
    lib.solve("potrfBatched", fill_mode(upper), m.rows, static_cast<void*>(pointers.data()),
              m.leading, static_cast<void*>(info.data()), int(m.count));
    return;
  }
  int size = 0;
  lib.solve("potrf_bufferSize", fill_mode(upper), m.rows, m.at(0), m.leading, &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i)
    lib.solve("potrf", fill_mode(upper), m.rows, m.at(i), m.leading, work.get(), size,
              shifted(info, i));
}

void lu(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  Libraries lib(a);
  const Matrices m(a);
  const int64_t k = std::min(m.rows, m.columns);
  if (batched(m) && m.rows == m.columns) {
    const Tensor pointers = m.addresses(a);
    lib.blas("getrfBatched", m.rows, static_cast<void*>(pointers.data()), m.leading,
             static_cast<void*>(pivots.data()), static_cast<void*>(info.data()), int(m.count));
    return;
  }
  int size = 0;
  lib.solve("getrf_bufferSize", m.rows, m.columns, m.at(0), m.leading, &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i)
    lib.solve("getrf", m.rows, m.columns, m.at(i), m.leading, work.get(), shifted(pivots, i * k),
              shifted(info, i));
}

void lu_solve(const Tensor& factors, const Tensor& pivots, const Tensor& b, char trans) {
  Libraries lib(b);
  const Matrices a(factors), x(b);
  if (batched(a)) {
    const Tensor of_a = a.addresses(factors), of_b = x.addresses(b);
    int info = 0;
    lib.blas("getrsBatched", operation(trans), a.rows, x.columns, static_cast<void*>(of_a.data()),
             a.leading, static_cast<void*>(pivots.data()), static_cast<void*>(of_b.data()),
             x.leading, &info, int(a.count));
    return;
  }
  Scratch info(sizeof(int), lib.device, lib.stream);
  for (int64_t i = 0; i < a.count; ++i)
    lib.solve("getrs", operation(trans), a.rows, x.columns, a.at(i), a.leading,
              shifted(pivots, i * a.rows), x.at(i), x.leading, info.get());
}

void triangular_solve(const Tensor& factor, const Tensor& b, bool left, bool upper, char trans,
                      bool unit) {
  Libraries lib(b);
  const Matrices a(factor), x(b);
  alignas(16) char one[16] = {};
  Scalar(1).store(b.dtype(), one);
  const int side = left ? 0 : 1;
  if (batched(a)) {
    const Tensor of_a = a.addresses(factor), of_b = x.addresses(b);
    lib.blas("trsmBatched", side, fill_mode(upper), operation(trans), int(unit), x.rows, x.columns,
             static_cast<void*>(one), static_cast<void*>(of_a.data()), a.leading,
             static_cast<void*>(of_b.data()), x.leading, int(a.count));
    return;
  }
  for (int64_t i = 0; i < a.count; ++i)
    lib.blas("trsm_v2", side, fill_mode(upper), operation(trans), int(unit), x.rows, x.columns,
             static_cast<void*>(one), a.at(i), a.leading, x.at(i), x.leading);
}

void qr(const Tensor& a, const Tensor& tau) {
  Libraries lib(a);
  const Matrices m(a);
  const int64_t k = std::min(m.rows, m.columns);
  int size = 0;
  lib.solve("geqrf_bufferSize", m.rows, m.columns, m.at(0), m.leading, &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  Scratch info(sizeof(int), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i)
    lib.solve("geqrf", m.rows, m.columns, m.at(i), m.leading, shifted(tau, i * k), work.get(), size,
              info.get());
}

void householder_product(const Tensor& a, const Tensor& tau) {
  Libraries lib(a);
  const Matrices m(a);
  const int k = int(tau.size(-1));
  const std::string name = a.is_complex() ? "ungqr" : "orgqr";
  int size = 0;
  lib.solve(name + "_bufferSize", m.rows, m.columns, k, m.at(0), m.leading, shifted(tau, 0), &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  Scratch info(sizeof(int), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i)
    lib.solve(name, m.rows, m.columns, k, m.at(i), m.leading, shifted(tau, i * k), work.get(), size,
              info.get());
}

void multiply_by_q(const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool adjoint) {
  Libraries lib(a);
  const Matrices m(a), x(c);
  const int k = int(tau.size(-1)), side = left ? 0 : 1;
  const int trans = !adjoint ? 0 : a.is_complex() ? 2 : 1;
  const std::string name = a.is_complex() ? "unmqr" : "ormqr";
  int size = 0;
  lib.solve(name + "_bufferSize", side, trans, x.rows, x.columns, k, m.at(0), m.leading,
            shifted(tau, 0), x.at(0), x.leading, &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  Scratch info(sizeof(int), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i)
    lib.solve(name, side, trans, x.rows, x.columns, k, m.at(i), m.leading, shifted(tau, i * k),
              x.at(i), x.leading, work.get(), size, info.get());
}

void svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& info) {
  Libraries lib(a);
  const Matrices m(a);
  const bool vectors = u.defined();
  const signed char job_u = !vectors ? 'N' : u.size(-1) == m.rows ? 'A' : 'S';
  const signed char job_v = vectors ? 'A' : 'N';
  int size = 0;
  lib.solve("gesvd_bufferSize", m.rows, m.columns, &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  Scratch real_work(5 * size_t(m.columns) * s.item_size(), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i) {
    void* const of_u = vectors ? Matrices(u).at(i) : nullptr;
    void* const of_v = vectors ? Matrices(vh).at(i) : nullptr;
    lib.solve("gesvd", job_u, job_v, m.rows, m.columns, m.at(i), m.leading,
              shifted(s, i * m.columns), of_u, m.leading, of_v, std::max(m.columns, 1), work.get(),
              size, real_work.get(), shifted(info, i));
  }
}

void eigh(const Tensor& a, bool lower, bool vectors, const Tensor& values, const Tensor& info) {
  Libraries lib(a);
  const Matrices m(a);
  const std::string name = a.is_complex() ? "heevd" : "syevd";
  const int job = vectors ? 1 : 0, uplo = fill_mode(!lower);
  int size = 0;
  lib.solve(name + "_bufferSize", job, uplo, m.rows, m.at(0), m.leading, shifted(values, 0), &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i)
    lib.solve(name, job, uplo, m.rows, m.at(i), m.leading, shifted(values, i * m.rows), work.get(),
              size, shifted(info, i));
}

void eig(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info) {
  Libraries lib(a);
  const Matrices m(a);
  const int type = data_type(a.dtype());
  const int none = 0, job = vectors.defined() ? 1 : 0;
  const int64_t n = m.rows, ld = m.leading;
  void* const parameters = lib.parameters();
  size_t device_bytes = 0, host_bytes = 0;
  auto vectors_at = [&](int64_t i) {
    return vectors.defined() ? Matrices(vectors).at(i) : nullptr;
  };
  lib.call_solver("cusolverDnXgeev_bufferSize", parameters, none, job, n, type, m.at(0), ld, type,
                  shifted(values, 0), type, static_cast<void*>(nullptr), int64_t(1), type,
                  vectors_at(0), ld, type, &device_bytes, &host_bytes);
  Scratch work(device_bytes, lib.device, lib.stream);
  std::vector<char> host_work(host_bytes);
  for (int64_t i = 0; i < m.count; ++i)
    lib.call_solver("cusolverDnXgeev", parameters, none, job, n, type, m.at(i), ld, type,
                    shifted(values, i * n), type, static_cast<void*>(nullptr), int64_t(1), type,
                    vectors_at(i), ld, type, work.get(), device_bytes,
                    static_cast<void*>(host_work.data()), host_bytes, shifted(info, i));
  // The host's part of the work area is in use until the work is done.
  if (host_bytes) wait_for_value(lib.device, lib.stream);
}

void ldl(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  Libraries lib(a);
  const Matrices m(a);
  int size = 0;
  lib.solve("sytrf_bufferSize", m.rows, m.at(0), m.leading, &size);
  Scratch work(size_t(size) * size_t(m.item), lib.device, lib.stream);
  for (int64_t i = 0; i < m.count; ++i)
    lib.solve("sytrf", fill_mode(false), m.rows, m.at(i), m.leading, shifted(pivots, i * m.rows),
              work.get(), size, shifted(info, i));
}

void ldl_solve(const Tensor& factors, const Tensor& pivots, const Tensor& b) {
  Libraries lib(b);
  const Matrices a(factors), x(b);
  const int type = data_type(b.dtype()), uplo = fill_mode(false);
  const int64_t n = a.rows, sides = x.columns, ld_a = a.leading, ld_b = x.leading;
  size_t device_bytes = 0, host_bytes = 0;
  lib.call_solver("cusolverDnXsytrs_bufferSize", uplo, n, sides, type, a.at(0), ld_a,
                  shifted(pivots, 0), type, x.at(0), ld_b, &device_bytes, &host_bytes);
  Scratch work(device_bytes, lib.device, lib.stream), info(sizeof(int), lib.device, lib.stream);
  std::vector<char> host_work(host_bytes);
  for (int64_t i = 0; i < a.count; ++i)
    lib.call_solver("cusolverDnXsytrs", uplo, n, sides, type, a.at(i), ld_a, shifted(pivots, i * n),
                    type, x.at(i), ld_b, work.get(), device_bytes,
                    static_cast<void*>(host_work.data()), host_bytes, info.get());
  // The host's part of the work area is in use until the work is done.
  if (host_bytes) wait_for_value(lib.device, lib.stream);
}

void lu_order(const Tensor& pivots, const Tensor& order, bool inverse) {
  static auto* kernels = new KernelTable;
  const int device = order.device().index;
  const int64_t rows = order.size(-1), matrices = order.numel() / rows;
  CuStream stream = current_stream(device);
  use_device(device);
  KernelKey key;
  key.bits[0] = inverse;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"lu_order.cuh", "facula_lu_order", {}};
    text.define("FACULA_INVERSE", inverse ? "1" : "0");
    return text;
  });
  Scratch spare(inverse ? size_t(order.numel()) * sizeof(int64_t) : 0, device, stream);
  ArgumentWriter arguments;
  arguments.put(fault_site(device, "lu_unpack", rows, 0));
  arguments.put<const void*>(pivots.data());
  arguments.put<void*>(order.data());
  arguments.put<void*>(spare.get());
  arguments.put<int64_t>(pivots.size(-1));
  arguments.put<int64_t>(rows);
  launch_kernel(function, {.grid_x = unsigned(matrices), .block_x = 128}, stream, arguments.data());
}

}  // namespace

void register_linalg() {
  device_linalg.cholesky.set(translate<cholesky>);
  device_linalg.lu.set(translate<lu>);
  device_linalg.lu_solve.set(translate<lu_solve>);
  device_linalg.triangular_solve.set(translate<triangular_solve>);
  device_linalg.qr.set(translate<qr>);
  device_linalg.householder_product.set(translate<householder_product>);
  device_linalg.multiply_by_q.set(translate<multiply_by_q>);
  device_linalg.svd.set(translate<svd>);
  device_linalg.eigh.set(translate<eigh>);
  device_linalg.eig.set(translate<eig>);
  device_linalg.ldl.set(translate<ldl>);
  device_linalg.ldl_solve.set(translate<ldl_solve>);
  device_linalg.lu_order.set(translate<lu_order>);
}

}  // namespace facula::cuda
