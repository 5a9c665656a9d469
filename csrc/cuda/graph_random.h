// Random numbers in graphs: those of every replay differ. A captured kernel reads where its numbers
// begin from memory, which is written before each replay; the generator goes on by what all kernels
// of the graph take.
#pragma once
#include <cstdint>

#include "core/generator.h"

namespace facula::cuda {

// Part of a kernel's arguments. Mirrored by RandomPlace in _kernels/philox.cuh.
struct RandomPlace {
  uint64_t seed, block;   // four words each
  const uint64_t* given;  // in a graph, seed and block to count on from
};

// The place of an operation on the current stream whose threads take `words` words each. A
// generator that is used in a capture becomes part of the graph.
RandomPlace take_place(Generator& generator, int device, uint64_t words);

void register_graph_random();  // sets graph_random (graph.h)

}  // namespace facula::cuda
