// Compiled kernels on disk: a cache shared by all processes of a user, and those that came with the
// package. What cannot be read or written only costs time: no function here throws or fails.
#pragma once
#include <string>

namespace facula::cuda {

// $FACULA_CACHE_DIR/kernels, $XDG_CACHE_HOME/facula/kernels or ~/.cache/facula/kernels;
// "" if none of the variables is set.
std::string kernel_cache_directory();

// $FACULA_READY_KERNELS ("" for none), else _kernels/ready beside the binary: kernels that take
// long to compile, made when the package was built (gen/ready_kernels.py).
std::string ready_kernel_directory();

// The name under which an image is kept: a hash of everything that decides its content.
std::string kernel_cache_key(const std::string& everything);

// True, and the image, if there is a complete one under this key.
bool read_cached_kernel(const std::string& key, std::string* image);
bool read_ready_kernel(const std::string& key, std::string* image);
void write_cached_kernel(const std::string& key, const std::string& image);

}  // namespace facula::cuda
