// The arithmetic that turns raw 32-bit words into samples, built per ISA. Each loop reads the words
// in the order in which the generator made them; a 64-bit draw is two words, the high one first.
#pragma once
#include "core/dtype.h"

namespace facula {

struct RandomLoops {
  // Uniform on [from, to): one word per sample, two for double. `low` and `high` are the bounds in
  // the sample's own type: a sample that rounds up to `high` becomes `low`.
  void (*uniform_float)(float* out, const uint32_t* words, int64_t n, double from, double to);
  void (*uniform_half)(Half* out, const uint32_t* words, int64_t n, double from, double to);
  void (*uniform_bfloat16)(BFloat16* out, const uint32_t* words, int64_t n, double from, double to);
  void (*uniform_double)(double* out, const uint32_t* words, int64_t n, double from, double to);

  // Box and Muller's transform on blocks of 16 uniforms: the first 8 give the radii, the last 8 the
  // angles; the first 8 results are the cosines. 16 words per block, 32 for double.
  void (*normal_blocks_float)(float* out, const uint32_t* words, int64_t blocks, double mean,
                              double std);
  void (*normal_blocks_double)(double* out, const uint32_t* words, int64_t blocks, double mean,
                               double std);
  // Standard normals in pairs (cosine, sine) from 4 words each: the angle first, then the radius.
  void (*normal_pairs)(double* out, const uint32_t* words, int64_t pairs);

  // From one 53-bit uniform u each: -log(1 - u) / rate, median + sigma tan(pi (u - 1/2)),
  // ceil(log(u) / log(1 - p)).
  void (*exponential)(double* out, const uint32_t* words, int64_t n, double rate);
  void (*cauchy)(double* out, const uint32_t* words, int64_t n, double median, double sigma);
  void (*geometric)(double* out, const uint32_t* words, int64_t n, double p);

  // u < p, with one p for all (53-bit u) or one for each (24-bit u for float, 53-bit for double).
  void (*bernoulli)(bool* out, const uint32_t* words, int64_t n, double p);
  void (*bernoulli_float)(bool* out, const uint32_t* words, int64_t n, const float* p);
  void (*bernoulli_double)(bool* out, const uint32_t* words, int64_t n, const double* p);
};

}  // namespace facula
