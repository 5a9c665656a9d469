// Large products of float and double from packed panels, cut into pieces that gemm_packed.cpp deals
// out to threads. Every element's sum over k is taken in the same order however the matrix is cut:
// in blocks of up to block_k elements, one after the other, each added to c.
#pragma once
#include <cstdint>

namespace facula {

// Part of a product: c = alpha * a @ b + beta * start, (m, n), k <= block_k. c, start and a have
// any strides; b is cut into panels of `columns` columns, with rows of neighbours: packed ones,
// (panel, k, columns), with zeros beyond the last column, or the matrix itself, where n is a
// multiple of least_columns. start is c or apart from it, a bias with a stride of 0 too; beta == 0
// does not read it.
template <class T>
struct PanelProduct {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t b_row, b_panel;
  T* c;
  int64_t c_row, c_col;
  const T* start;
  int64_t start_row, start_col;
  T alpha, beta;
  T* left;  // room for left_room elements, 64-byte aligned
};

template <class T>
struct PanelTable {
  int64_t rows, columns;  // of a register tile
  int64_t least_columns;
  int64_t block_k;
  int64_t left_room;  // elements of a that multiply packs at a time, whole lines of the cache
  // `count` columns of b as panels; element (p, j) comes from from[p * step + j * apart].
  void (*pack)(const T* from, int64_t step, int64_t apart, int64_t k, int64_t count, T* to);
  void (*multiply)(const PanelProduct<T>&);
  // Adds to n elements the ones `apart` behind them, those twice as far and so on, `parts` in all.
  void (*add)(T* sums, int64_t parts, int64_t apart, int64_t n);
};

// Built per ISA from gemm_panels_float_isa.cpp and gemm_panels_double_isa.cpp; null where the
// products are left to OpenBLAS.
#define FACULA_PANEL_TABLES(isa)                           \
  namespace isa {                                          \
  extern const PanelTable<float>* const panels_of_float;   \
  extern const PanelTable<double>* const panels_of_double; \
  }
FACULA_PANEL_TABLES(baseline)
#ifdef FACULA_X86
FACULA_PANEL_TABLES(v3)
FACULA_PANEL_TABLES(v4)
#endif
#undef FACULA_PANEL_TABLES

}  // namespace facula
