// Sees the kernels that a thread runs, below the tape and the transforms: what selective
// checkpoints keep results with.
#pragma once
#include "op/def.h"

namespace facula {

// Runs `kernel`, or fills `rets` by other means.
using KernelHook = void (*)(const OpDef& op, const Value* args, Rets& rets, Kernel kernel);

extern thread_local constinit KernelHook kernel_hook;  // null almost always

}  // namespace facula
