#include "op/settings.h"

namespace facula {

Settings settings;

}  // namespace facula
