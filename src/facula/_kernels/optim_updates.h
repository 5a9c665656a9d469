// The updates of the optimisers. Shared text: cpu/optim_rules.h for the host, optim.cuh for devices;
// both define FACULA_UPDATE, FACULA_UPDATES (a namespace) and the functions that are used here.
//
// `update` changes the parameter p and its state tensors a, b, c, given the gradient g and the
// coefficients k. Options that decide which state there is (`slots`: bit i for state i), or which
// terms, are flags known at compile time.
#include "optim_flags.h"

namespace facula::FACULA_UPDATES {

// What several rules share: the sign of the gradient (maximize) and weight decay.
template <unsigned F, class T>
FACULA_UPDATE T decayed(T& p, const T& g, const T& sign, const T& decay) {
  const T signed_grad = g * sign;
  if constexpr (F & kDecoupledDecay) {
    p = p * decay;
    return signed_grad;
  } else if constexpr (F & kDecay) {
    return signed_grad + decay * p;
  } else {
    return signed_grad;
  }
}

struct SgdUpdate {
  static constexpr unsigned slots(unsigned f) { return f & kMomentum ? 1 : 0; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T&, T&, const T* k) {
    T g = decayed<F>(p, grad, k[0], k[1]);
    if constexpr (F & kMomentum) {
      a = a * k[2] + k[3] * g;
      if constexpr (F & kNesterov) g = g + k[4] * a;
      else g = a;
    }
    p = p + k[5] * g;
  }
};

struct AdamUpdate {
  static constexpr unsigned slots(unsigned f) { return f & kAmsgrad ? 7 : 3; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T& b, T& c, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    a = mix(a, g, k[2]);
    b = b * k[3] + k[4] * g * g;
    if constexpr (F & kAmsgrad) {
      c = larger(c, b);
      p = p + k[7] * a / (root(c) / k[5] + k[6]);
    } else {
      p = p + k[7] * a / (root(b) / k[5] + k[6]);
    }
  }
};

struct AdamaxUpdate {
  static constexpr unsigned slots(unsigned) { return 3; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T& b, T&, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    a = mix(a, g, k[2]);
    b = larger(T(b * k[3]), T(magnitude(g) + k[4]));
    p = p + k[5] * a / b;
  }
};

struct NAdamUpdate {
  static constexpr unsigned slots(unsigned) { return 3; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T& b, T&, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    a = mix(a, g, k[2]);
    b = b * k[3] + k[4] * g * g;
    const T width = root(T(b / k[5])) + k[6];
    p = p + k[7] * g / width;
    p = p + k[8] * a / width;
  }
};

struct RAdamUpdate {
  static constexpr unsigned slots(unsigned) { return 3; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T& b, T&, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    a = mix(a, g, k[2]);
    b = b * k[3] + k[4] * g * g;
    T step = a / k[5] * k[6];
    if constexpr (F & kRectified) step = step * (k[8] / (root(b) + k[7])) * k[9];
    p = p - step;
  }
};

struct AdagradUpdate {
  static constexpr unsigned slots(unsigned) { return 1; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T&, T&, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    a = a + g * g;
    p = p + k[3] * g / (root(a) + k[2]);
  }
};

struct AdadeltaUpdate {
  static constexpr unsigned slots(unsigned) { return 3; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T& b, T&, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    a = a * k[2] + k[3] * g * g;
    const T step = root(T(b + k[4])) / root(T(a + k[4])) * g;
    b = b * k[2] + k[3] * step * step;
    p = p + k[5] * step;
  }
};

struct RmsPropUpdate {
  static constexpr unsigned slots(unsigned f) {
    return 1u | (f & kMomentum ? 2u : 0u) | (f & kCentered ? 4u : 0u);
  }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T& b, T& c, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    a = a * k[2] + k[3] * g * g;
    T width = a;
    if constexpr (F & kCentered) {
      c = mix(c, g, k[3]);
      width = a - c * c;
    }
    width = root(width) + k[4];
    if constexpr (F & kMomentum) {
      b = b * k[5] + g / width;
      p = p + k[6] * b;
    } else {
      p = p + k[6] * g / width;
    }
  }
};

struct RpropUpdate {
  static constexpr unsigned slots(unsigned) { return 3; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T& b, T&, const T* k) {
    const T g = grad * k[0];
    const T turn = sign_of(T(g * a));  // -1 where the gradient changed its sign
    const T factor = choose(turn > k[5], k[2], choose(turn < k[5], k[1], k[6]));
    b = smaller(larger(T(b * factor), k[3]), k[4]);
    a = choose(equals(factor, k[1]), k[5], g);
    p = p - sign_of(a) * b;
  }
};

struct AsgdUpdate {
  static constexpr unsigned slots(unsigned) { return 1; }

  template <unsigned F, class T>
  static FACULA_UPDATE void update(T& p, const T& grad, T& a, T&, T&, const T* k) {
    const T g = decayed<F>(p, grad, k[0], k[1]);
    p = p * k[2];
    p = p + k[3] * g;
    if constexpr (F & kAveraged) a = a + (p - a) * k[4];
    else a = p;
  }
};

}  // namespace facula::FACULA_UPDATES
