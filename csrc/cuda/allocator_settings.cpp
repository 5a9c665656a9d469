// How the allocator is set up: FACULA_CUDA_ALLOC_CONF, or PyTorch's name of it.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "core/error.h"
#include "cuda/allocator.h"

namespace facula::cuda {
namespace {

std::mutex mutex;

// Settings of PyTorch's allocator that this one has no use for.
constexpr std::string_view kOthers[] = {
    "backend",
    "garbage_collection_threshold",
    "graph_capture_record_stream_reuse",
    "large_segment_size_mb",
    "max_non_split_rounding_mb",
    "per_process_memory_fraction",
    "pinned_num_register_threads",
    "pinned_use_background_threads",
    "pinned_use_cuda_host_register",
    "release_lock_on_cudamalloc",
    "roundup_power2_divisions",
};

AllocatorSettings parsed(AllocatorSettings settings, std::string_view text) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    const size_t colon = part.find(':');
    const std::string_view name = part.substr(0, colon);
    const std::string value(colon == std::string_view::npos ? "" : part.substr(colon + 1));
    if (name == "max_split_size_mb") {
      const long long megabytes = std::atoll(value.c_str());
      if (megabytes <= 20) value_error("max_split_size_mb must be more than 20, got ", value);
      settings.max_split = size_t(megabytes) << 20;
    } else if (name == "expandable_segments") {
      if (value != "True" && value != "False")
        value_error("expandable_segments must be True or False, got ", value);
      settings.expandable = value == "True";
    } else if (std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers)) {
      value_error("Unrecognized CachingAllocator option: ", std::string(name),
                  "; known are max_split_size_mb and expandable_segments");
    }
  }
  return settings;
}

AllocatorSettings from_environment() {
  for (const char* name : {"FACULA_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (const char* text = std::getenv(name)) return parsed({}, text);
  }
  return {};
}

AllocatorSettings& current() {
  static AllocatorSettings settings = from_environment();
  return settings;
}

}  // namespace

AllocatorSettings allocator_settings() {
  std::lock_guard lock(mutex);
  return current();
}

void configure_allocator(const std::string& text) {
  std::lock_guard lock(mutex);
  current() = parsed(current(), text);
}

}  // namespace facula::cuda
