#include "core/per_thread.h"

namespace facula {

namespace {

struct Ending {
  void (*run)();
  Ending* before;
};
thread_local constinit Ending* last_ending = nullptr;

struct Endings {
  ~Endings() {
    while (last_ending) {
      const std::unique_ptr<Ending> ending(last_ending);
      last_ending = ending->before;
      ending->run();
    }
  }
};

}  // namespace

void at_thread_end(void (*run)()) {
  static thread_local Endings all;
  last_ending = new Ending{run, last_ending};
}

}  // namespace facula
