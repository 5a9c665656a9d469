// The matrix units of compute capability 9.0, whose right factors (and left ones, if wanted) lie in
// shared memory. Four warps that begin at a multiple of four work together; products are under way
// until wait_products. Needs code for sm_90a.
//
// A tile in shared memory has rows of 128 bytes, and piece i of 16 bytes of row r lies in place
// i ^ (r % 8): "128-byte swizzle". Tiles begin at multiples of 1024 bytes.
#pragma once
#include "mma.cuh"

namespace facula {

// How the matrix units find a tile: eight rows, 1024 bytes, follow one another. Right factors whose
// inner dimension are the rows may have 128 columns: the others lie `across` bytes further on.
__device__ __forceinline__ uint64 tile_descriptor(const void* tile, int across = 1024) {
  constexpr uint64 kEightRows = 1024 / 16;
  return uint64((shared_address(tile) & 0x3ffffu) >> 4) | uint64(across / 16) << 16 |
         kEightRows << 32 | uint64(1) << 62;
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

#define FACULA_SUMS4(io, s) io((s)[0]), io((s)[1]), io((s)[2]), io((s)[3])
#define FACULA_SUMS32(io, s)                                                        \
  FACULA_SUMS4(io, (s)[0]), FACULA_SUMS4(io, (s)[1]), FACULA_SUMS4(io, (s)[2]),     \
      FACULA_SUMS4(io, (s)[3]), FACULA_SUMS4(io, (s)[4]), FACULA_SUMS4(io, (s)[5]), \
      FACULA_SUMS4(io, (s)[6]), FACULA_SUMS4(io, (s)[7])
#define FACULA_SUMS64(io, s) FACULA_SUMS32(io, s), FACULA_SUMS32(io, (s) + 8)
#define FACULA_REGISTERS32                                                 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FACULA_REGISTERS64                                                             \
  FACULA_REGISTERS32                                                                   \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// 64 x N sums, 16 rows to each warp in the layout of mma.cuh: plus (`multiply`) or anew (`begin`) a
// 64 x 64 left factor, in registers or in shared memory (rows times columns), times a right one of
// 64 x N in shared memory: the transpose of N rows, or with Columns 64 rows. `begin` only writes
// its sums, so that they take no registers before. The matrix units take 16 of the 64 at a time,
// which lie 2 places of 16 bytes further in rows, 128 in columns. Four such products make one
// statement, as the compiler takes long over each. r0 to r16: the operands behind the N / 2 sums.
#define FACULA_PRODUCT(N, name, Half, left, right, adds, columns)                                  \
  "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." name "." name                                  \
  " {" FACULA_REGISTERS##Half "}, " left ", " right ", " adds ", 1, 1, " columns "; "
#define FACULA_FOUR_PLACES(name, first, step)                                                      \
  ".reg .b64 " name "1, " name "2, " name "3; add.s64 " name "1, " first ", " step "; "            \
  "add.s64 " name "2, " name "1, " step "; add.s64 " name "3, " name "2, " step "; "
#define FACULA_PRODUCTS(Type, name, N, Half, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12,\
                        r13, r14, r15, r16)                                                        \
  __device__ __forceinline__ void multiply_columns(Type, float (&s)[N / 8][4],                     \
                                                   const uint32(*a)[4], uint64 b) {                \
    asm volatile(                                                                                  \
        "{ " FACULA_FOUR_PLACES("b", r16, "128")                                                   \
        FACULA_PRODUCT(N, name, Half, "{" r0 ", " r1 ", " r2 ", " r3 "}", r16, "1", "1")           \
        FACULA_PRODUCT(N, name, Half, "{" r4 ", " r5 ", " r6 ", " r7 "}", "b1", "1", "1")          \
        FACULA_PRODUCT(N, name, Half, "{" r8 ", " r9 ", " r10 ", " r11 "}", "b2", "1", "1")        \
        FACULA_PRODUCT(N, name, Half, "{" r12 ", " r13 ", " r14 ", " r15 "}", "b3", "1", "1") "}"  \
        : FACULA_SUMS##Half("+f", s)                                                               \
        : "r"(a[0][0]), "r"(a[0][1]), "r"(a[0][2]), "r"(a[0][3]), "r"(a[1][0]), "r"(a[1][1]),      \
          "r"(a[1][2]), "r"(a[1][3]), "r"(a[2][0]), "r"(a[2][1]), "r"(a[2][2]), "r"(a[2][3]),      \
          "r"(a[3][0]), "r"(a[3][1]), "r"(a[3][2]), "r"(a[3][3]), "l"(b)                           \
        : "memory");                                                                               \
  }                                                                                                \
  template <bool Columns>                                                                          \
  __device__ __forceinline__ void multiply_rows(Type, float (&s)[N / 8][4], uint64 a, uint64 b) {  \
    asm volatile("{ " FACULA_FOUR_PLACES("a", r0, "2") FACULA_FOUR_PLACES("b", r1, r2)             \
                 FACULA_PRODUCT(N, name, Half, r0, r1, "1", "0, " r3)                              \
                 FACULA_PRODUCT(N, name, Half, "a1", "b1", "1", "0, " r3)                          \
                 FACULA_PRODUCT(N, name, Half, "a2", "b2", "1", "0, " r3)                          \
                 FACULA_PRODUCT(N, name, Half, "a3", "b3", "1", "0, " r3) "}"                      \
                 : FACULA_SUMS##Half("+f", s)                                                      \
                 : "l"(a), "l"(b), "n"(Columns ? 128 : 2), "n"(int(Columns))                       \
                 : "memory");                                                                      \
  }                                                                                                \
  template <bool Columns>                                                                          \
  __device__ __forceinline__ void begin_rows(Type, float (&s)[N / 8][4], uint64 a, uint64 b) {     \
    asm volatile("{ " FACULA_FOUR_PLACES("a", r0, "2") FACULA_FOUR_PLACES("b", r1, r2)             \
                 FACULA_PRODUCT(N, name, Half, r0, r1, "0", "0, " r3)                              \
                 FACULA_PRODUCT(N, name, Half, "a1", "b1", "1", "0, " r3)                          \
                 FACULA_PRODUCT(N, name, Half, "a2", "b2", "1", "0, " r3)                          \
                 FACULA_PRODUCT(N, name, Half, "a3", "b3", "1", "0, " r3) "}"                      \
                 : FACULA_SUMS##Half("=f", s)                                                      \
                 : "l"(a), "l"(b), "n"(Columns ? 128 : 2), "n"(int(Columns))                       \
                 : "memory");                                                                      \
  }
#define FACULA_PRODUCTS_OF(Type, name)                                                             \
  FACULA_PRODUCTS(Type, name, 64, 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38", "%39",      \
                  "%40", "%41", "%42", "%43", "%44", "%45", "%46", "%47", "%48")                   \
  FACULA_PRODUCTS(Type, name, 128, 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70", "%71",     \
                  "%72", "%73", "%74", "%75", "%76", "%77", "%78", "%79", "%80")
FACULA_PRODUCTS_OF(float16, "f16")
FACULA_PRODUCTS_OF(bfloat16, "bf16")
#undef FACULA_PRODUCTS_OF
#undef FACULA_PRODUCTS
#undef FACULA_FOUR_PLACES
#undef FACULA_PRODUCT
#undef FACULA_REGISTERS64
#undef FACULA_REGISTERS32
#undef FACULA_SUMS64
#undef FACULA_SUMS32
#undef FACULA_SUMS4

// 16 bytes from global to shared memory, or zeros.
__device__ __forceinline__ void copy_async_or_zero(uint32 shared, const void* global, bool exists) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(shared), "l"(global), "r"(exists ? 16 : 0)
               : "memory");
}
// Likewise 4 bytes.
__device__ __forceinline__ void copy_word_or_zero(uint32 shared, const void* global, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(shared), "l"(global), "r"(exists ? 4 : 0)
               : "memory");
}

// The transposes of four 8 x 8 matrices; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void store_transposed(uint32 row, const uint32 (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
               :
               : "r"(row), "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}
// Four neighbours in global memory += values, in no certain order with others.
__device__ __forceinline__ void add_to_global(float* sums, const float (&values)[4]) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(sums), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}

// Barriers in shared memory: a phase ends when all have arrived. Phase n is over when one waits for
// n % 2 and the phase under way is not n.
__device__ __forceinline__ void begin_barrier(uint32 barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(barrier), "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void arrive(uint32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}
// When this thread's asynchronous copies so far are there.
__device__ __forceinline__ void arrive_with_copies(uint32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" : : "r"(barrier) : "memory");
}
__device__ __forceinline__ void wait(uint32 barrier, uint32 phase) {
  asm volatile(
      "{ .reg .pred over; again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1; "
      "@over bra done; bra again; done: }"
      :
      : "r"(barrier), "r"(phase % 2)
      : "memory");
}

// Barriers by number, for `threads` threads: those that wait and those that only come by.
__device__ __forceinline__ void wait_for_threads(int number, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void come_by(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" : : "r"(number), "r"(threads) : "memory");
}

// Registers of each thread of this group of four warps: groups give what others take.
template <int N>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(N));
}
template <int N>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(N));
}

}  // namespace facula
