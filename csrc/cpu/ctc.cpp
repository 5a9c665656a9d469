#include "cpu/ctc.h"

#include "cpu/cast.h"

namespace facula {

#define FACULA_DECLARE(isa)                    \
  namespace isa {                              \
  extern const CtcLoops<float> ctc_loops_f32;  \
  extern const CtcLoops<double> ctc_loops_f64; \
  }
FACULA_DECLARE(baseline)
#ifdef FACULA_X86
FACULA_DECLARE(v3)
FACULA_DECLARE(v4)
#endif
#undef FACULA_DECLARE

template <>
const CtcLoops<float>& ctc_loops() {
#ifdef FACULA_X86
  static const CtcLoops<float>* const table[] = {&baseline::ctc_loops_f32, &v3::ctc_loops_f32,
                                                 &v4::ctc_loops_f32};
  return *table[isa_level()];
#else
  return baseline::ctc_loops_f32;
#endif
}
template <>
const CtcLoops<double>& ctc_loops() {
#ifdef FACULA_X86
  static const CtcLoops<double>* const table[] = {&baseline::ctc_loops_f64, &v3::ctc_loops_f64,
                                                  &v4::ctc_loops_f64};
  return *table[isa_level()];
#else
  return baseline::ctc_loops_f64;
#endif
}

}  // namespace facula
