// What a program sets once for all threads.
#pragma once
#include <atomic>

namespace facula {

struct Settings {
  std::atomic<bool> deterministic{false};
  std::atomic<bool> deterministic_warn_only{false};
  // While deterministic: memory that nobody has written yet holds NaN (integers: their maximum).
  std::atomic<bool> fill_uninitialized_memory{true};
  // Losses of an input and a target with different shapes are reported.
  std::atomic<bool> loss_broadcast_warning{true};
};
extern Settings settings;

// For work on devices that has no order of sums: raises while only deterministic algorithms are
// wanted, or warns.
void check_fixed_order(const char* what);

}  // namespace facula
