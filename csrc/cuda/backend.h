// The CUDA backend as the families see it.
#pragma once

namespace facula::cuda {

// Runs a function, which waits for the device, without the GIL where this thread has it; the Python
// layer sets it. The function throws nothing.
extern void (*let_go_of_interpreter)(void (*wait)(void*), void* argument);

void register_backend();  // cheap: no library is opened before a CUDA tensor is made

}  // namespace facula::cuda
