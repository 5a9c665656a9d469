// Packed products of float; see gemm_panels.h.
#include "cpu/gemm_panel_loops.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_PANELS
const PanelTable<float>* const panels_of_float = &kPanelTable<float>;
#else
const PanelTable<float>* const panels_of_float = nullptr;
#endif

}  // namespace facula::FACULA_ISA
