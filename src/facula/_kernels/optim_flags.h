// Shared text, see optim_updates.h.
#pragma once

namespace facula {

// Which terms an update has. Options that no rule has both of share a bit.
enum OptimFlag : unsigned {
  kDecay = 1,           // the decay is added to the gradient
  kDecoupledDecay = 2,  // the parameter is scaled
  kMomentum = 4,
  kAmsgrad = 4,
  kRectified = 4,
  kAveraged = 4,
  kNesterov = 8,
  kCentered = 8,
};

}  // namespace facula
