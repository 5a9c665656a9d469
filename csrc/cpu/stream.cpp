#include "cpu/stream.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cpu/line_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace facula {

#if defined(__x86_64__)

namespace {

// What the kernel says about the last cache of the first processor: its size, and how many
// processors have one together. Most machines have several of these caches.
struct LastCache {
  int64_t bytes = int64_t(32) << 20;
  int processors = 1 << 20;

  LastCache() {
    char text[256];
    if (read("size", text)) {
      char* unit;
      const int64_t size = std::strtoll(text, &unit, 10);
      if (size > 0) bytes = size << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
    }
    if (read("shared_cpu_list", text)) {  // such as 0-3,8-11
      int count = 0;
      for (char* at = text; *at >= '0' && *at <= '9';) {
        const long first = std::strtol(at, &at, 10);
        const long last = *at == '-' ? std::strtol(at + 1, &at, 10) : first;
        count += int(last - first) + 1;
        if (*at == ',') ++at;
      }
      if (count > 0) processors = count;
    }
  }

  static bool read(const char* name, char (&text)[256]) {
    char path[96];
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index3/%s", name);
    std::FILE* file = std::fopen(path, "r");
    if (!file) return false;
    const bool found = std::fgets(text, sizeof text, file) != nullptr;
    std::fclose(file);
    return found;
  }
};

}  // namespace

bool exceeds_cache(int64_t bytes) {
  constexpr int64_t kNever = int64_t(8) << 20;  // smaller work is not worth a look
  if (bytes < kNever) return false;
  static const LastCache cache;
  const int64_t caches = (num_threads() - 1) / cache.processors + 1;
  // Up to here, what the cache still holds from one operator to the next is worth more.
  return bytes > cache.bytes / 4 * 7 * caches;
}

void finish_streams() {
  _mm_sfence();
}

#else

bool exceeds_cache(int64_t) {
  return false;
}
void finish_streams() {}

#endif

void copy_many_bytes(char* to, const char* from, int64_t bytes) {
  line_loops().copy(to, from, bytes);
}

void stream_copy(char* to, const char* from, int64_t bytes) {
  const int64_t head = int64_t(-reinterpret_cast<uintptr_t>(to) & 63);
  if (bytes < 64 + head) {
    std::memcpy(to, from, size_t(bytes));
    return;
  }
  std::memcpy(to, from, size_t(head));
  const int64_t whole = (bytes - head) & ~int64_t(63), done = head + whole;
  line_loops().stream_lines(to + head, from + head, whole / 64);
  std::memcpy(to + done, from + done, size_t(bytes - done));
}

}  // namespace facula
