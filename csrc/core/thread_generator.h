// A default generator for one thread: who acts as a worker process draws the worker's numbers.
#pragma once
#include "core/generator.h"

namespace facula {

// Unless it is null, draws of this thread on the host that name no generator are from this one.
inline thread_local Generator* thread_generator = nullptr;

}  // namespace facula
