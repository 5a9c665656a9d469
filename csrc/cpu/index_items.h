// Moves go by item size: five types stand for all dtypes.
#pragma once
#include <type_traits>

#include "core/dtype.h"

namespace facula {

// They may alias, because the same memory is read as its real type elsewhere.
struct __attribute__((may_alias)) Item1 {
  uint8_t bits;
};
struct __attribute__((may_alias)) Item2 {
  uint16_t bits;
};
struct __attribute__((may_alias)) Item4 {
  uint32_t bits;
};
struct __attribute__((may_alias)) Item8 {
  uint64_t bits;
};
struct __attribute__((may_alias)) Item16 {
  uint64_t low, high;
};

// The item type of a dtype's C++ type.
template <class T>
using ItemOf = std::conditional_t<
    sizeof(T) == 1, Item1,
    std::conditional_t<sizeof(T) == 2, Item2,
                       std::conditional_t<sizeof(T) == 4, Item4,
                                          std::conditional_t<sizeof(T) == 8, Item8, Item16>>>>;

// Calls f(TypeTag<T>{}) with the item type of this many bytes.
template <class F>
void with_item_type(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(TypeTag<Item1>{});
    case 2: return f(TypeTag<Item2>{});
    case 4: return f(TypeTag<Item4>{});
    case 8: return f(TypeTag<Item8>{});
    default: return f(TypeTag<Item16>{});
  }
}

}  // namespace facula
