// Roots and reciprocals of float32 without the compiler's subroutines for numbers near the ends of
// the range, which take longer to compile than a small kernel. The steps are those that the compiler
// takes for other numbers, and so are the results, to the last bit.
#pragma once

namespace facula {

__device__ __forceinline__ float exact_root(float x) {
  const bool tiny = x < 0x1p-100f;
  const float near = tiny ? x * 0x1p100f : x;
  float inverse;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(near));
  const float root = near * inverse;
  const float better = __fmaf_rn(__fmaf_rn(-root, root, near), 0.5f * inverse, root);
  if (x == 0.0f || x == __int_as_float(0x7f800000)) return x;
  return tiny ? better * 0x1p-50f : better;
}

// Of a number between 2^-120 and 2^120, of 0 and of infinities.
__device__ __forceinline__ float exact_reciprocal(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  const float better = __fmaf_rn(inverse, __fmaf_rn(-x, inverse, 1.0f), inverse);
  return better == better ? better : inverse;
}

// a / b for whole numbers from 0 to 2^100, b above 0 (Markstein, 1990).
__device__ __forceinline__ float quotient_of_counts(float a, float b) {
  const float inverse = exact_reciprocal(b), quotient = a * inverse;
  return __fmaf_rn(__fmaf_rn(-b, quotient, a), inverse, quotient);
}
__device__ __forceinline__ double quotient_of_counts(double a, double b) { return a / b; }

}  // namespace facula
