// A formula of an operator row as a function object. See elementwise.cuh for the macros.
#pragma once
#include "special.cuh"

#define FACULA_JOIN_(a, b) a##b
#define FACULA_JOIN(a, b) FACULA_JOIN_(a, b)

// X(0) X(1) ... for every input or parameter.
#define FACULA_EACH_0(X)
#define FACULA_EACH_1(X) X(0)
#define FACULA_EACH_2(X) FACULA_EACH_1(X) X(1)
#define FACULA_EACH_3(X) FACULA_EACH_2(X) X(2)
#define FACULA_EACH_4(X) FACULA_EACH_3(X) X(3)
#define FACULA_EACH_5(X) FACULA_EACH_4(X) X(4)
#define FACULA_EACH_6(X) FACULA_EACH_5(X) X(5)
#define FACULA_EACH_7(X) FACULA_EACH_6(X) X(6)
#define FACULA_EACH_8(X) FACULA_EACH_7(X) X(7)
#define FACULA_EACH_9(X) FACULA_EACH_8(X) X(8)
#define FACULA_EACH_10(X) FACULA_EACH_9(X) X(9)
#define FACULA_EACH_INPUT FACULA_JOIN(FACULA_EACH_, FACULA_INPUTS)
#define FACULA_EACH_PARAM FACULA_JOIN(FACULA_EACH_, FACULA_PARAMS)

// Names of the inputs inside formulas. The host gives others where an operand is a number, which
// comes as a parameter.
#ifndef FACULA_INPUT_NAME_0
#define FACULA_INPUT_NAME_0 a
#endif
#ifndef FACULA_INPUT_NAME_1
#define FACULA_INPUT_NAME_1 b
#endif
#ifndef FACULA_INPUT_NAME_2
#define FACULA_INPUT_NAME_2 c
#endif
#ifndef FACULA_INPUT_NAME_3
#define FACULA_INPUT_NAME_3 d
#endif
#ifndef FACULA_INPUT_NAME_4
#define FACULA_INPUT_NAME_4 e
#endif
#ifndef FACULA_INPUT_NAME_5
#define FACULA_INPUT_NAME_5 f
#endif
#ifndef FACULA_INPUT_NAME_6
#define FACULA_INPUT_NAME_6 g
#endif

namespace facula {
namespace math {

using T = FACULA_COMPUTE;
using R = real_of<T>;

// Bytes that stand for bools become bools.
template <class Type>
__device__ __forceinline__ Type as_value(stored<Type> x) {
  if constexpr (same<Type, bool>) return x != 0;
  else return x;
}

// Scalars given at launch, and constants by their Python names.
struct Parameters {
#define X(k) FACULA_P##k FACULA_PARAM_NAME##k;
  FACULA_EACH_PARAM(X)
#undef X
};
#define FACULA_READ_PARAM_(k) FACULA_P##k(read_slot<FACULA_SLOT##k>(FACULA_SLOTS[k])),
#define FACULA_FORMULA_FROM(arguments) {{FACULA_EACH_PARAM(FACULA_READ_PARAM_)}}
#define FACULA_SLOTS arguments.slot

// Names that formulas may use beside functions.
using Float = choose<is_real_float<R>, R, float>;
constexpr bool True = true, False = false;
constexpr T lowest = lowest_value<T>();
constexpr T highest = highest_value<T>();
constexpr Float inf = highest_value<Float>();
constexpr Float nan = Float(__builtin_bit_cast(float, 0x7fc00000u));
constexpr Float pi = Float(3.14159265358979323846);

#ifdef FACULA_BODY
struct Formula : Parameters {
#define X(k) , FACULA_ARG##k FACULA_INPUT_NAME_##k
  __device__ __forceinline__ auto operator()(
      [[maybe_unused]] int64 index FACULA_EACH_INPUT(X)) const {
    FACULA_BODY
  }
#undef X
};
#endif

}  // namespace math
}  // namespace facula
