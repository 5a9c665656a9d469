#include "cpu/bags.h"

#include "cpu/cast.h"

namespace facula {

namespace baseline {
extern const SumBags sum_bags;
}
#ifdef FACULA_X86
namespace v3 {
extern const SumBags sum_bags;
}
namespace v4 {
extern const SumBags sum_bags;
}
#endif

void sum_bags(DType dtype, const Bags& bags, const void* table, const void* factors, void* out,
              int64_t* sizes) {
#ifdef FACULA_X86
  static const SumBags loops[] = {baseline::sum_bags, v3::sum_bags, v4::sum_bags};
  loops[isa_level()](dtype, bags, table, factors, out, sizes);
#else
  baseline::sum_bags(dtype, bags, table, factors, out, sizes);
#endif
}

}  // namespace facula
