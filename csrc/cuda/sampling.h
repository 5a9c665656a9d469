// Sampling at points, distances of rows and alignments of sequences on the device.
#pragma once

namespace facula::cuda {

void register_sampling();  // sets device_sampling (op/hooks/sampling.h)

}  // namespace facula::cuda
