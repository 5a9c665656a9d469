// The matrix units of compute capability 9.0, whose right factors (and left ones, if wanted) lie in
// shared memory. Four warps that begin at a multiple of four work together; products are under way
// until wait_products. Needs code for sm_90a.
//
// A tile in shared memory has rows of 128 bytes, and piece i of 16 bytes of row r lies in place
// i ^ (r % 8): "128-byte swizzle". Tiles begin at multiples of 1024 bytes.
#pragma once
#include "mma.cuh"

namespace facula {

// How the matrix units find a tile: eight rows, 1024 bytes, follow one another.
__device__ __forceinline__ uint64 tile_descriptor(const void* tile) {
  constexpr uint64 kEightRows = 1024 / 16;
  return uint64((shared_address(tile) & 0x3ffffu) >> 4) | kEightRows << 16 | kEightRows << 32 |
         uint64(1) << 62;
}

// Ordinary writes to shared memory by this thread come before what the matrix units read.
__device__ __forceinline__ void publish_writes() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
// Registers written so far come before the products that follow.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}
// Until at most N of the last groups are under way.
template <int N>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory");
}
// Keeps the compiler from moving uses of the accumulators before the wait.
template <int N>
__device__ __forceinline__ void settle(float (&sums)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    asm volatile(""
                 : "+f"(sums[n][0]), "+f"(sums[n][1]), "+f"(sums[n][2]), "+f"(sums[n][3])
                 :
                 : "memory");
  }
}

// Left factors in registers are read while products are under way: they stay where they are, and
// no other value takes their place, until here, after the wait.
template <int N>
__device__ __forceinline__ void release(const uint32 (&left)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    asm volatile(""
                 :
                 : "r"(left[n][0]), "r"(left[n][1]), "r"(left[n][2]), "r"(left[n][3])
                 : "memory");
  }
}

#define FACULA_SUMS4(s) "+f"((s)[0]), "+f"((s)[1]), "+f"((s)[2]), "+f"((s)[3])
#define FACULA_SUMS32(s)                                                          \
  FACULA_SUMS4(s[0]), FACULA_SUMS4(s[1]), FACULA_SUMS4(s[2]), FACULA_SUMS4(s[3]), \
      FACULA_SUMS4(s[4]), FACULA_SUMS4(s[5]), FACULA_SUMS4(s[6]), FACULA_SUMS4(s[7])
#define FACULA_REGISTERS32                                                  \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "

// 64 x 64 sums, 16 rows to each warp in the layout of mma.cuh: plus a 64 x 16 left factor, in
// registers or in shared memory (rows times columns), times a right one of 16 x 64 in shared
// memory: the transpose of 64 rows, or with Columns 16 rows. Without `add` the sums begin here.
#define FACULA_PRODUCTS(Type, name)                                                            \
  template <bool Columns>                                                                      \
  __device__ __forceinline__ void multiply_group(Type, float (*s)[4], const uint32(&a)[4],     \
                                                 uint64 b, bool add) {                         \
    asm volatile(                                                                              \
        "{ .reg .pred p; setp.ne.b32 p, %37, 0; "                                              \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name " " FACULA_REGISTERS32     \
        "{%32, %33, %34, %35}, %36, p, 1, 1, %38; }"                                           \
        : FACULA_SUMS32(s)                                                                     \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)), "n"(int(Columns)) \
        : "memory");                                                                           \
  }                                                                                            \
  template <bool Columns>                                                                      \
  __device__ __forceinline__ void multiply_group(Type, float (*s)[4], uint64 a, uint64 b,      \
                                                 bool add) {                                   \
    asm volatile(                                                                              \
        "{ .reg .pred p; setp.ne.b32 p, %34, 0; "                                              \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name " " FACULA_REGISTERS32     \
        "%32, %33, p, 1, 1, 0, %35; }"                                                         \
        : FACULA_SUMS32(s)                                                                     \
        : "l"(a), "l"(b), "r"(int(add)), "n"(int(Columns))                                     \
        : "memory");                                                                           \
  }
FACULA_PRODUCTS(float16, "f16")
FACULA_PRODUCTS(bfloat16, "bf16")
#undef FACULA_PRODUCTS
#undef FACULA_REGISTERS32
#undef FACULA_SUMS32
#undef FACULA_SUMS4

// 16 bytes from global to shared memory, or zeros.
__device__ __forceinline__ void copy_async_or_zero(void* shared, const void* global, bool exists) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(exists ? 16 : 0)
               : "memory");
}
// Likewise 8 bytes.
__device__ __forceinline__ void copy_pair_or_zero(void* shared, const void* global, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(exists ? 8 : 0)
               : "memory");
}

}  // namespace facula
