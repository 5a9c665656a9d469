// Compiled kernels on disk, shared by all processes of a user. A cache that cannot be read or
// written only costs time: no function here throws or fails.
#pragma once
#include <string>

namespace facula::cuda {

// $FACULA_CACHE_DIR/kernels, $XDG_CACHE_HOME/facula/kernels or ~/.cache/facula/kernels;
// "" if none of the variables is set.
std::string kernel_cache_directory();

// The name under which an image is kept: a hash of everything that decides its content.
std::string kernel_cache_key(const std::string& everything);

// True, and the image, if the cache holds a complete one under this key.
bool read_cached_kernel(const std::string& key, std::string* image);
void write_cached_kernel(const std::string& key, const std::string& image);

}  // namespace facula::cuda
