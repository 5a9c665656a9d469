// The coefficients of the optimisers' updates. Shared text, as optim_updates.h.
//
// `prepare` turns the options of a group and the scalar state of one parameter into coefficients, in
// double precision, and advances the state. It returns the flags of the update.
#include "optim_updates.h"

namespace facula::FACULA_UPDATES {

template <class S>
FACULA_PREPARE inline S decay_coefficient(unsigned flags, const S& lr, const S& decay) {
  if (flags & kDecoupledDecay) return 1.0 - lr * decay;
  return decay;
}

struct Sgd : SgdUpdate {
  enum Option { Lr, Momentum, Dampening, WeightDecay, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    k[0] = o[Sign];
    k[1] = o[WeightDecay];
    k[2] = o[Momentum];
    k[3] = 1.0 - o[Dampening];
    k[4] = o[Momentum];
    k[5] = -o[Lr];
    if (state.first)
      k[2] = number<S>(0.0), k[3] = number<S>(1.0);  // the buffer starts as the gradient
    return f;
  }
};

struct Adam : AdamUpdate {
  enum Option { Lr, Beta1, Beta2, Eps, WeightDecay, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    state.value[0] += 1;
    const S correction1 = 1.0 - power(o[Beta1], state.value[0]);
    const S correction2 = 1.0 - power(o[Beta2], state.value[0]);
    k[0] = o[Sign];
    k[1] = decay_coefficient(f, o[Lr], o[WeightDecay]);
    k[2] = 1.0 - o[Beta1];
    k[3] = o[Beta2];
    k[4] = 1.0 - o[Beta2];
    k[5] = root(correction2);
    k[6] = o[Eps];
    k[7] = -(o[Lr] / correction1);
    return f;
  }
};

struct Adamax : AdamaxUpdate {
  enum Option { Lr, Beta1, Beta2, Eps, WeightDecay, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    state.value[0] += 1;
    k[0] = o[Sign];
    k[1] = o[WeightDecay];
    k[2] = 1.0 - o[Beta1];
    k[3] = o[Beta2];
    k[4] = o[Eps];
    k[5] = -(o[Lr] / (1.0 - power(o[Beta1], state.value[0])));
    return f;
  }
};

struct NAdam : NAdamUpdate {
  enum Option { Lr, Beta1, Beta2, Eps, WeightDecay, MomentumDecay, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    const double step = state.value[0] += 1;
    auto momentum = [&](double t) {
      return o[Beta1] * (1.0 - 0.5 * power(0.96, t * number_of(o[MomentumDecay])));
    };
    const S mu = momentum(step), next = momentum(step + 1);
    const double product = state.value[1] =
        state.rounded(state.value[1] * state.rounded(number_of(mu)));
    k[0] = o[Sign];
    k[1] = decay_coefficient(f, o[Lr], o[WeightDecay]);
    k[2] = 1.0 - o[Beta1];
    k[3] = o[Beta2];
    k[4] = 1.0 - o[Beta2];
    k[5] = 1.0 - power(o[Beta2], step);
    k[6] = o[Eps];
    k[7] = -o[Lr] * (1.0 - mu) / (1.0 - product);
    k[8] = -o[Lr] * next / (1.0 - product * next);
    return f;
  }
};

struct RAdam : RAdamUpdate {
  enum Option { Lr, Beta1, Beta2, Eps, WeightDecay, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    const double step = state.value[0] += 1;
    const S correction1 = 1.0 - power(o[Beta1], step);
    const S correction2 = 1.0 - power(o[Beta2], step);
    const S longest = 2.0 / (1.0 - o[Beta2]) - 1.0;  // of the average, in steps
    const S length = longest - 2.0 * step * power(o[Beta2], step) / correction2;
    k[0] = o[Sign];
    k[1] = decay_coefficient(f, o[Lr], o[WeightDecay]);
    k[2] = 1.0 - o[Beta1];
    k[3] = o[Beta2];
    k[4] = 1.0 - o[Beta2];
    k[5] = correction1;
    k[6] = o[Lr];
    k[7] = o[Eps];
    if (!(number_of(length) > 5)) return f;
    k[8] = root(correction2);
    k[9] = root(S((length - 4.0) * (length - 2.0) * longest /
                  ((longest - 4.0) * (longest - 2.0) * length)));
    return f | kRectified;
  }
};

struct Adagrad : AdagradUpdate {
  enum Option { Lr, LrDecay, WeightDecay, Eps, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    state.value[0] += 1;
    k[0] = o[Sign];
    k[1] = o[WeightDecay];
    k[2] = o[Eps];
    k[3] = -(o[Lr] / (1.0 + (state.value[0] - 1) * o[LrDecay]));
    return f;
  }
};

struct Adadelta : AdadeltaUpdate {
  enum Option { Lr, Rho, Eps, WeightDecay, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    state.value[0] += 1;
    k[0] = o[Sign];
    k[1] = o[WeightDecay];
    k[2] = o[Rho];
    k[3] = 1.0 - o[Rho];
    k[4] = o[Eps];
    k[5] = -o[Lr];
    return f;
  }
};

struct RmsProp : RmsPropUpdate {
  enum Option { Lr, Alpha, Eps, WeightDecay, Momentum, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    state.value[0] += 1;
    k[0] = o[Sign];
    k[1] = o[WeightDecay];
    k[2] = o[Alpha];
    k[3] = 1.0 - o[Alpha];
    k[4] = o[Eps];
    k[5] = o[Momentum];
    k[6] = -o[Lr];
    return f;
  }
};

struct Rprop : RpropUpdate {
  enum Option { EtaMinus, EtaPlus, Smallest, Largest, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    state.value[0] += 1;
    k[0] = o[Sign];
    k[1] = o[EtaMinus];
    k[2] = o[EtaPlus];
    k[3] = o[Smallest];
    k[4] = o[Largest];
    k[5] = number<S>(0.0);
    k[6] = number<S>(1.0);
    return f;
  }
};

struct Asgd : AsgdUpdate {
  enum Option { Lr, Lambd, Alpha, T0, WeightDecay, Sign };

  template <class S>
  static FACULA_PREPARE unsigned prepare(unsigned f, const S* o, OptimScalars& state, S* k) {
    const double step = state.value[0] += 1, eta = state.value[1], mu = state.value[2];
    k[0] = o[Sign];
    k[1] = o[WeightDecay];
    k[2] = 1.0 - o[Lambd] * eta;
    k[3] = number<S>(-eta);
    k[4] = number<S>(mu);
    const double lr = number_of(o[Lr]), shrink = number_of(o[Lambd]);
    state.value[1] = lr / power(1 + shrink * lr * step, number_of(o[Alpha]));
    const double averaged = step - number_of(o[T0]);
    state.value[2] = 1 / (averaged > 1 ? averaged : 1);
    return mu == 1 ? f : f | kAveraged;
  }
};

}  // namespace facula::FACULA_UPDATES
