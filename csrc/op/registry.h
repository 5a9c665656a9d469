// Which operators Python sees, under which names.
#pragma once
#include "op/def.h"

namespace facula {

enum PythonVariant : uint8_t { kPyFunction = 1, kPyMethod = 2, kPyInplace = 4, kPyOut = 8 };

struct PythonEntry {
  const char* name;  // "add", or with a namespace "linalg.norm"
  const OpDef* op;
  uint8_t variants;
};

extern const PythonEntry kPythonEntries[];
extern const int kPythonEntryCount;

}  // namespace facula
