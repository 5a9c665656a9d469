// What the autograd engine needs of streams (autograd/node_streams.h).
#include "cuda/backward_streams.h"

#include "autograd/node_streams.h"
#include "core/sparse.h"
#include "cuda/allocator.h"
#include "cuda/translate.h"

namespace facula::cuda {
namespace {

std::vector<DeviceStream> chosen() {
  std::vector<DeviceStream> out;
  for (int d = 0; d < device_count(); ++d)
    if (CuStream stream = current_stream(d)) out.emplace_back(d, stream);
  return out;
}

void* current(int device) {
  return current_stream(device);
}

void set(int device, void* stream) {
  set_current_stream(device, static_cast<CuStream>(stream));
}

void order(int device, void* earlier, void* later) {
  order_streams(device, static_cast<CuStream>(earlier), static_cast<CuStream>(later));
}

void record(const Tensor& t, void* stream) {
  if (is_sparse(t)) {
    const SparseParts& parts = sparse_parts(t);
    for (const Tensor* part : {&parts.indices, &parts.plain, &parts.values})
      if (part->defined()) record(*part, stream);
    return;
  }
  record_stream(t->storage->data, t.device().index, static_cast<CuStream>(stream));
}

}  // namespace

void register_backward_streams() {
  stream_hooks = {chosen, translate<current>, translate<set>, translate<order>, translate<record>};
}

}  // namespace facula::cuda
