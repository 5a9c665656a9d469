#include "cuda/indexing.h"

#include "cuda/kernel_types.h"
#include "cuda/translate.h"
#include "cuda/walk.h"
#include "op/hooks/indexing.h"

namespace facula::cuda {
namespace {

constexpr unsigned kThreads = 256;

void gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  static auto* kernels = new KernelTable;
  const int device = self.device().index;
  Walk walk(out.sizes());
  walk.add(out);
  walk.add(self, dim);
  walk.add(index);
  walk.finish();
  if (walk.count() == 0) return;
  use_device(device);
  const DType mover = mover_type(self.dtype());
  KernelKey key;
  key.bits[0] = walk.bits() | uint64_t(mover) << 6;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"gather.cuh", "facula_gather", {}};
    walk.define(text);
    text.define("FACULA_ITEM", device_type(mover));
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(fault_site(device, "gather", self.size(dim), int32_t(dim)));
  arguments.put(walk.count());
  arguments.put(out.data());
  arguments.put<const void*>(self.data());
  arguments.put<const void*>(index.data());
  arguments.put(self.stride(dim) * int64_t(self.item_size()));
  walk.write(arguments);
  const auto blocks = unsigned((walk.count() + kThreads - 1) / kThreads);
  launch_kernel(function, {.grid_x = blocks, .block_x = kThreads}, current_stream(device),
                arguments.data());
}

}  // namespace

void register_indexing() {
  device_indexing.gather.set(translate<gather>);
}

}  // namespace facula::cuda
