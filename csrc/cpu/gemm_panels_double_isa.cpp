// Packed products of double; see gemm_panels.h.
#include "cpu/gemm_panel_loops.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_PANELS
const PanelTable<double>* const panels_of_double = &kPanelTable<double>;
#else
const PanelTable<double>* const panels_of_double = nullptr;
#endif

}  // namespace facula::FACULA_ISA
