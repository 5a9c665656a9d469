// Names of element types for messages; those that begin with a capital are in core/error.h.
#pragma once
#include "core/dtype.h"

namespace facula {

// The C++ types as compilers spell them, which PyTorch's messages use too: "float", "long int".
const char* cpp_type_name(DType d);

}  // namespace facula
