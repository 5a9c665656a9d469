// Host memory that several processes map. It is a file without a name, which only descriptors refer
// to: it goes with the last process that has it, however that process ends.
#pragma once
#include <cstddef>

#include "core/storage.h"

namespace facula {

// The descriptor of a storage after share(), which stays the storage's; -1 for other storages.
int shared_descriptor(const Storage& s);
// Maps the first `nbytes` of a file. The storage owns the descriptor, also when this throws.
Storage* map_shared(int descriptor, size_t nbytes);
// A new file without a name. The caller owns the descriptor.
int make_shared_file(size_t nbytes);

}  // namespace facula
