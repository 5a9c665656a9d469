// Which setting decides whether float32 products on a device may be rounded to TF32.
#pragma once

namespace facula {

// While one lives, products of this thread are those of a layer that PyTorch leaves to cuDNN: they
// follow backends.cudnn.allow_tf32 and not the precision of matrix products.
class LayerPrecision {
 public:
  LayerPrecision() : before_(active) { active = true; }
  ~LayerPrecision() { active = before_; }
  LayerPrecision(const LayerPrecision&) = delete;
  LayerPrecision& operator=(const LayerPrecision&) = delete;

  static inline thread_local bool active = false;

 private:
  bool before_;
};

}  // namespace facula
