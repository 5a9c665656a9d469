// The single-threaded parts that conv.cpp cuts a convolution into, one table per instruction set.
#pragma once
#include "cpu/conv.h"

namespace facula {

// How a convolution is cut into tasks; made and read by the functions of one table.
struct ConvPlan {
  int64_t tasks = 0;
  int64_t grain = 1;                                         // tasks that are worth a thread
  size_t scratch_bytes = 0;                                  // for the task that is running
  int64_t row_block = 0, column_block = 0, depth_block = 0;  // of the matrix product
  int64_t row_blocks = 1, column_blocks = 1, depth_chunks = 1;
  int64_t tap_block = 0, tap_blocks = 1;
  int64_t prepare_tasks = 0;
  size_t shared_bytes = 0;  // memory that all tasks write to, for partial sums
  int64_t finish_tasks = 1, finish_block = 0;
};

// Tasks write disjoint parts of the result (or of the shared memory) and may run in any order.
struct ConvFunction {
  void (*plan)(const Conv&, int threads, ConvPlan&);
  void (*run)(const Conv&, const ConvPlan&, int64_t task, void* scratch, void* shared);
  // After all tasks.
  void (*finish)(const Conv&, const ConvPlan&, int64_t task, void* shared) = nullptr;
  // Fills the shared memory, before the tasks.
  void (*prepare)(const Conv&, const ConvPlan&, int64_t task, void* shared) = nullptr;
};

// By dtype; none for bool, float8 and complex, in some tables none for integers and float64.
struct ConvTable {
  ConvFunction of[kDTypes];
  // Where vectors run along channels: how many make one, and whether images by planes become such
  // vectors fast.
  int64_t lanes[kDTypes];
  bool turns[kDTypes];
};

#define FACULA_CONV_TABLES(isa)                                                                \
  namespace isa {                                                                              \
  extern const ConvTable* const conv_channel_rows_table;   /* NCHW, as a matrix product */     \
  extern const ConvTable* const conv_pixel_rows_table;     /* NHWC, as a matrix product */     \
  extern const ConvTable* const conv_winograd_table;       /* 3x3, step and spread 1 */        \
  extern const ConvTable* const conv_small_winograd_table; /* by tiles of 2x2, float32 */      \
  extern const ConvTable* const conv_direct_table;         /* pixels read where they lie */    \
  extern const ConvTable* const conv_depthwise_table;      /* few input channels per group */  \
  extern const ConvTable* const conv_channelwise_table;    /* few in and out per group */      \
  extern const ConvTable* const conv_weight_table;         /* the same for weight gradients */ \
  extern const ConvTable* const conv_direct_weight_table;                                      \
  extern const ConvTable* const conv_winograd_weight_table;                                    \
  extern const ConvTable* const conv_small_winograd_weight_table;                              \
  extern const ConvTable* const conv_depthwise_weight_table; /* one input channel */           \
  extern const ConvTable* const conv_channelwise_weight_table;                                 \
  extern const ConvTable* const conv_depthwise_pixels_table; /* NHWC, one in and out each */   \
  extern const ConvTable* const conv_depthwise_pixels_weight_table;                            \
  extern const ConvTable* const conv_few_channels_table; /* NHWC, few channels, one group */   \
  extern const ConvTable* const conv_few_channels_weight_table;                                \
  extern const ConvTable* const conv_few_channels_input_table;                                 \
  extern const ConvTable* const conv_few_planes_table; /* NCHW, few in or out, one group */    \
  extern const ConvTable* const conv_few_planes_weight_table;                                  \
  }
FACULA_CONV_TABLES(baseline)
#ifdef FACULA_X86
FACULA_CONV_TABLES(v3)
FACULA_CONV_TABLES(v4)
#endif
#undef FACULA_CONV_TABLES

}  // namespace facula
