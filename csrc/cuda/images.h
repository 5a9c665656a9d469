// Pooling, resampling, padding and patches of images on the device.
#pragma once

namespace facula::cuda {

void register_images();  // sets device_images (op/hooks/images.h)

}  // namespace facula::cuda
