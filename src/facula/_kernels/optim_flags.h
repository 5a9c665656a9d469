// Shared text, see optim_updates.h.
#pragma once

#ifdef __CUDACC_RTC__
#define FACULA_PREPARE __device__
#else
#define FACULA_PREPARE
#endif

namespace facula {

// The scalar state of one parameter: the step first.
struct OptimScalars {
  double value[3];
  bool first;   // there was no state before this step
  bool single;  // kept in float32
  FACULA_PREPARE double rounded(double x) const { return single ? double(float(x)) : x; }
};

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
