#include "cpu/resample_bytes.h"

#include <algorithm>
#include <cstring>

#include "cpu/cast.h"
#include "cpu/iterate.h"

namespace facula {

namespace baseline {
extern const ByteLoops byte_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const ByteLoops byte_loops;
}
namespace v4 {
extern const ByteLoops byte_loops;
}
#endif

static const ByteLoops& loops() {
#ifdef FACULA_X86
  static const ByteLoops* const table[] = {&baseline::byte_loops, &v3::byte_loops, &v4::byte_loops};
  return *table[isa_level()];
#else
  return baseline::byte_loops;
#endif
}

// As many bits behind the point as leave the largest weight below 2 to the power of 15.
static int bits_of(const ResampleTable& table) {
  double largest = 0;
  for (double w : table.weight) largest = std::max(largest, w);
  int bits = 0;
  while (bits < 22 && int(0.5 + largest * double(int64_t(1) << (bits + 1))) < (1 << 15)) ++bits;
  return bits;
}

static void along(const ResampleTable& table, int64_t outer, int64_t inner, const uint8_t* x,
                  uint8_t* y) {
  const int bits = bits_of(table);
  std::vector<int32_t> weight;
  for (double w : table.weight)
    weight.push_back(int32_t(w * double(1 << bits) + (w < 0 ? -0.5 : 0.5)));
  const ByteAxis a{table.in,           table.out,          inner,         table.width,
                   table.start.data(), table.count.data(), weight.data(), bits};
  const int64_t work = std::max<int64_t>(1, a.out * a.inner * a.width);
  parallel_for(0, outer, std::max<int64_t>(1, kGrain / work),
               [&](int64_t b, int64_t e) { loops().planes(a, x, y, b, e); });
}

void resample_bytes(int64_t outer, int64_t inner, const ResampleTable& height,
                    const ResampleTable& width, const uint8_t* x, uint8_t* y) {
  const bool across = !width.is_identity(), down = !height.is_identity();
  if (!across && !down) {
    std::memcpy(y, x, size_t(outer * height.in * width.in * inner));
    return;
  }
  std::vector<uint8_t> between;
  if (across && down) between.resize(size_t(outer * height.in * width.out * inner));
  if (across) along(width, outer * height.in, inner, x, down ? between.data() : y);
  if (down) along(height, outer, width.out * inner, across ? between.data() : x, y);
}

}  // namespace facula
