// Convolutions of bfloat16 and half by matrix tiles (AMX), where the processor has them; of
// bfloat16 by dot products, with weights as tiles have them, where these are as fast as those of
// floats.
#pragma once
#include "cpu/conv.h"

namespace facula {

// Whether the one or the other can multiply this type.
bool conv_amx_available(DType);
// Whether it pays: enough channels on both sides to fill tiles, and enough to multiply. Taps go
// forward (spread > 0).
bool suits_conv_amx(const Conv&);
void conv_amx_forward(const Conv&);
// False, with w as it was, where x is not finite: tiles would multiply that by zeros.
bool conv_amx_weight_gradient(const Conv&);

// What one thread does, for one group; built per ISA, null where there are no tiles.
struct ConvAmxLoops {
  int64_t (*weight_elements)(const Conv&);  // of 16 packed output channels
  int64_t (*image_bytes)(const Conv&);      // of a packed image, 0 where it is read in place
  int64_t (*scratch_bytes)(const Conv&);    // beside these
  // 16 output channels, from `out` on.
  void (*pack_weights)(const Conv&, int64_t out, uint16_t* to);
  void (*forward)(const Conv&, const uint16_t* weights, void* memory);
};

// The gradient by weights: x as pairs of pixels, y as rows of pixels, sums in blocks of 32 x 32.
struct ConvAmxGradient {
  const char *pairs, *rows;  // packed images
  int64_t images;
  int64_t tap_groups;  // tasks that share the taps of a block
  float* sums;         // of all blocks
  bool go_on;          // adds to them
};
struct ConvAmxGradientLoops {
  int64_t (*pairs_bytes)(const Conv&);  // of an image
  int64_t (*rows_bytes)(const Conv&);
  int64_t (*scratch_bytes)(const Conv&);  // to pack one of either
  int64_t (*blocks)(const Conv&);
  int64_t (*taps)(const Conv&);  // of a block, each with 32 x 32 sums
  // An image. False if x is not finite.
  bool (*pack_pairs)(const Conv&, int64_t image, void* scratch, char* to);
  void (*pack_rows)(const Conv&, int64_t image, void* scratch, char* to);
  void (*add)(const Conv&, const ConvAmxGradient&, int64_t task);
  void (*store)(const Conv&, int64_t block, const float* sums);  // the sums of this block
};

#define FACULA_AMX_TABLE(isa)                                                                    \
  namespace isa {                                                                                \
  extern const ConvAmxLoops *const conv_of_tiles, *const conv_of_dots;                           \
  extern const ConvAmxGradientLoops *const conv_gradient_of_tiles, *const conv_gradient_of_dots; \
  }
FACULA_AMX_TABLE(baseline)
#ifdef FACULA_X86
FACULA_AMX_TABLE(v3)
FACULA_AMX_TABLE(v4)
#endif
#undef FACULA_AMX_TABLE

}  // namespace facula
