// softmax(scale Q K^T + mask) V and its derivative, in blocks: the matrix of scores is never whole.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

// (batch, heads, rows, width) in memory: strides in elements, the last one is 1.
struct HeadMatrix {
  void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
};

struct Attention {
  DType dtype;  // float32, float64, float16 or bfloat16; the latter two are computed in float32
  int64_t batch, heads, key_heads;  // `heads / key_heads` neighbouring heads share keys and values
  int64_t queries, keys, width, value_width;
  double scale;
  bool causal;  // query i sees keys 0 .. i
  HeadMatrix q, k, v, out;
  // What is added to the scores, of `dtype`, or a boolean mask of the keys that are seen; strides
  // may be 0.
  const void* mask = nullptr;
  bool mask_is_bool = false;
  int64_t mask_batch = 0, mask_head = 0, mask_row = 0, mask_column = 0;
  // The logarithm of each query's sum of exponentials, (batch, heads, queries), dense, of the type
  // that is computed in. Queries that see no key have +infinity, so that their weights are 0.
  void* logsumexp;
  bool differentiated = false;  // the derivative will probably be wanted, too
  // The derivative reads `out` and grad_out, and writes the others.
  HeadMatrix grad_out, grad_q, grad_k, grad_v;
};

void attention_forward(const Attention& problem);
void attention_backward(const Attention& problem);

constexpr int64_t kFewQueries = 4;  // of a head: packing its keys would cost more than it saves

// One instruction set's functions, on parts of a problem: [begin, end) counts blocks of queries
// over all heads, or heads of keys.
struct AttentionLoops {
  void (*forward[kDTypes])(const Attention&, int64_t begin, int64_t end);
  void (*backward[kDTypes])(const Attention&, int64_t begin, int64_t end);
  int64_t query_block;  // queries in a block of forward
};

}  // namespace facula
