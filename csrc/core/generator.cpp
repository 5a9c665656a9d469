#include "core/generator.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>

#include "core/error.h"

namespace facula {

namespace {

// The bytes of a state as PyTorch 2 writes them (little-endian, as every supported machine is).
struct StateLayout {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[624];
  double normal_x;  // unused: the transform keeps one value, in normal_y
  double normal_y;
  double normal_rho;  // unused
  int32_t normal_is_valid;
  int32_t padding;
  float float_normal;
  uint8_t float_normal_is_valid;
  uint8_t end_padding[3];
};
static_assert(sizeof(StateLayout) == Generator::kStateBytes);

uint64_t entropy() {
  std::random_device device;
  return uint64_t(device()) << 32 | device();
}

// One step of the recurrence, without branches so that runs of it vectorise.
inline uint32_t twist(uint32_t far, uint32_t here, uint32_t above) {
  const uint32_t mixed = (here & 0x80000000u) | (above & 0x7fffffffu);
  return far ^ (mixed >> 1) ^ (-(above & 1u) & 0x9908b0dfu);
}

}  // namespace

// A place in the sequence. The words are copied when they are about to change, which most batches
// of samples, say, do not come to.
struct Generator::Mark {
  uint64_t seed;
  int32_t left;
  uint32_t next;
  std::optional<double> normal;
  std::optional<float> float_normal;
  bool has_words, has_copy;
  uint32_t words[kWords];
};

Generator::~Generator() = default;

Generator::Generator(Device device, uint64_t seed) : device(device) {
  reset(seed);
}

Generator* Generator::clone() {
  auto* copy = new Generator(device);
  std::lock_guard lock(mutex);
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  copy->left_ = left_;
  copy->next_ = next_;
  copy->kept_normal = kept_normal;
  copy->kept_float_normal_ = kept_float_normal_;
  if (counts()) return copy;
  copy->has_words_ = has_words_;
  if (!has_words_) return copy;
  std::copy_n(state_, kWords, copy->state_);
  std::copy_n(tempered_, kWords, copy->tempered_);
  return copy;
}

void Generator::reset(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
  if (counts()) return;
  has_words_ = false;
  left_ = 1;
  next_ = 0;
  kept_normal.reset();
  kept_float_normal_.reset();
}

void Generator::mark() {
  std::lock_guard lock(mutex);
  if (!mark_) mark_ = std::make_unique_for_overwrite<Mark>();
  mark_->seed = seed_;
  mark_->left = left_;
  mark_->next = next_;
  mark_->normal = kept_normal;
  mark_->float_normal = kept_float_normal_;
  mark_->has_words = has_words_;
  mark_->has_copy = false;
}

void Generator::rewind() {
  std::lock_guard lock(mutex);
  if (!mark_) return;
  seed_ = mark_->seed;
  left_ = mark_->left;
  next_ = mark_->next;
  kept_normal = mark_->normal;
  kept_float_normal_ = mark_->float_normal;
  has_words_ = mark_->has_words;
  if (!mark_->has_copy) return;
  std::copy_n(mark_->words, kWords, state_);
  temper();
}

void Generator::keep_marked_words() {
  if (!mark_ || !mark_->has_words || mark_->has_copy) return;
  std::copy_n(state_, kWords, mark_->words);
  mark_->has_copy = true;
}

void Generator::make_words() {
  keep_marked_words();
  state_[0] = uint32_t(seed_);
  for (uint32_t i = 1; i < kWords; ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  has_words_ = true;
}

void Generator::manual_seed(uint64_t seed) {
  std::lock_guard lock(mutex);
  reset(seed);
}

uint64_t Generator::seed() {
  const uint64_t chosen = entropy();
  manual_seed(chosen);
  return chosen;
}

uint64_t Generator::initial_seed() {
  std::lock_guard lock(mutex);
  return seed_;
}

void Generator::next_block() {
  // Two kinds of run, because the word that lies kShift ahead is old at first and new later.
  // Reading and writing are at least kWords - kShift words apart, far more than a vector holds.
  constexpr int kOld = kWords - kShift, kWhole = kOld / 4 * 4;  // gcc -O2 wants whole vectors
  if (has_words_) keep_marked_words();
  else make_words();
  uint32_t* s = state_;
#pragma GCC ivdep
  for (int i = 0; i < kWhole; ++i) s[i] = twist(s[i + kShift], s[i], s[i + 1]);
  for (int i = kWhole; i < kOld; ++i) s[i] = twist(s[i + kShift], s[i], s[i + 1]);
#pragma GCC ivdep
  for (int i = kOld; i < kWords - 1; ++i) s[i] = twist(s[i - kOld], s[i], s[i + 1]);
  s[kWords - 1] = twist(s[kShift - 1], s[kWords - 1], s[0]);
  temper();
  left_ = kWords;
  next_ = 0;
}

void Generator::temper() {
  for (int i = 0; i < kWords; ++i) {
    uint32_t y = state_[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    tempered_[i] = y ^ (y >> 18);
  }
}

void Generator::fill(uint32_t* words, int64_t n) {
  while (n > 0) {
    if (left_ == 1) {
      next_block();
      ++left_;  // as if drawing had asked for the block: left_ - 1 words are there
    }
    const int64_t m = std::min<int64_t>(n, left_ - 1);
    std::memcpy(words, tempered_ + next_, size_t(m) * sizeof(uint32_t));
    left_ -= int32_t(m);
    next_ += uint32_t(m);
    words += m;
    n -= m;
  }
}

void Generator::write_state(uint8_t* bytes) {
  if (counts()) {
    std::memcpy(bytes, &seed_, 8);
    std::memcpy(bytes + 8, &offset_, 8);
    return;
  }
  if (!has_words_) make_words();
  auto write = [&](size_t at, auto value) { std::memcpy(bytes + at, &value, sizeof value); };
  constexpr size_t kBehindWords = offsetof(StateLayout, normal_x);
  std::memset(bytes + kBehindWords, 0, kStateBytes - kBehindWords);
  write(offsetof(StateLayout, seed), seed_);
  write(offsetof(StateLayout, left), left_);
  write(offsetof(StateLayout, seeded), int32_t(1));
  write(offsetof(StateLayout, next), uint64_t(next_));
  // Four at a time, which compilers do not find out by themselves: it is most of the time.
  using Words = uint32_t __attribute__((vector_size(16)));
  using WideWords = uint64_t __attribute__((vector_size(32)));
  for (size_t i = 0; i < kWords; i += 4) {
    Words narrow;
    std::memcpy(&narrow, state_ + i, sizeof narrow);
    write(offsetof(StateLayout, words) + 8 * i, __builtin_convertvector(narrow, WideWords));
  }
  write(offsetof(StateLayout, normal_is_valid), int32_t(kept_normal.has_value()));
  write(offsetof(StateLayout, normal_y), kept_normal.value_or(0));
  write(offsetof(StateLayout, float_normal_is_valid), uint8_t(kept_float_normal_.has_value()));
  write(offsetof(StateLayout, float_normal), kept_float_normal_.value_or(0));
}

void Generator::set_state(const uint8_t* bytes, size_t size) {
  if (counts()) return set_place(bytes, size);
  if (size != kStateBytes)
    runtime_error("Expected a CPUGeneratorImplState of size ", kStateBytes,
                  " but found the input RNG state size to be ", size,
                  ". Pass what get_state() or get_rng_state() returned");
  StateLayout s;
  std::memcpy(&s, bytes, sizeof s);
  const bool valid = s.seeded == 1 && s.left >= 1 && s.left <= kWords && s.next <= kWords &&
                     s.next + uint64_t(s.left) - 1 <= kWords;
  if (!valid)
    runtime_error(
        "Invalid mt19937 state: the bytes do not describe a generator. Pass what "
        "get_state() or get_rng_state() returned");
  std::lock_guard lock(mutex);
  keep_marked_words();
  seed_ = s.seed;
  has_words_ = true;
  left_ = s.left;
  next_ = uint32_t(s.next);
  for (int i = 0; i < kWords; ++i) state_[i] = uint32_t(s.words[i]);
  temper();
  kept_normal = s.normal_is_valid ? std::optional(s.normal_y) : std::nullopt;
  kept_float_normal_ = s.float_normal_is_valid ? std::optional(s.float_normal) : std::nullopt;
}

void Generator::set_place(const uint8_t* bytes, size_t size) {
  if (size != kPhiloxStateBytes && size != 8)  // PyTorch takes a seed alone, too
    runtime_error("RNG state is wrong size: a CUDA generator's has ", kPhiloxStateBytes,
                  " bytes, got ", size, ". Pass what its get_state() returned");
  uint64_t seed, offset = 0;
  std::memcpy(&seed, bytes, 8);
  if (size > 8) std::memcpy(&offset, bytes + 8, 8);
  if (offset % 4) runtime_error("offset must be a multiple of 4, got ", offset);
  std::lock_guard lock(mutex);
  seed_ = seed;
  offset_ = offset;
}

PhiloxPlace Generator::take(uint64_t words) {
  std::lock_guard lock(mutex);
  const PhiloxPlace place{seed_, offset_};
  offset_ += (words + 3) / 4 * 4;
  return place;
}

uint64_t Generator::offset() {
  std::lock_guard lock(mutex);
  return offset_;
}

void Generator::set_offset(uint64_t offset) {
  if (offset % 4) runtime_error("offset must be a multiple of 4, got ", offset);
  std::lock_guard lock(mutex);
  offset_ = offset;
}

namespace {

struct DeviceGenerators {
  static constexpr int kDevices = 64;
  std::mutex mutex;
  std::atomic<Generator*> made[kDevices] = {};
  std::optional<uint64_t> seed;  // of generators that are made from now on
};
DeviceGenerators& device_generators() {
  static DeviceGenerators& all = *new DeviceGenerators;  // outlives every static
  return all;
}

}  // namespace

Generator& default_generator(Device device) {
  if (!device.is_cuda()) return default_generator();
  DeviceGenerators& all = device_generators();
  const int index = device.index < 0 ? 0 : device.index;
  if (index >= DeviceGenerators::kDevices) runtime_error("there is no device ", device);
  if (Generator* known = all.made[index].load(std::memory_order_acquire)) return *known;
  std::lock_guard lock(all.mutex);
  if (Generator* known = all.made[index].load(std::memory_order_acquire)) return *known;
  auto* generator =
      new Generator(Device{DeviceType::CUDA, int8_t(index)}, all.seed ? *all.seed : entropy());
  all.made[index].store(generator, std::memory_order_release);
  return *generator;
}

void seed_device_generators(uint64_t seed) {
  DeviceGenerators& all = device_generators();
  std::lock_guard lock(all.mutex);
  all.seed = seed;
  for (auto& slot : all.made)
    if (Generator* known = slot.load(std::memory_order_acquire)) known->manual_seed(seed);
}

Generator& default_generator() {
  static Generator& generator = []() -> Generator& {
    // A process that is forked while another thread draws numbers could never draw any.
    pthread_atfork([] { default_generator().mutex.lock(); },
                   [] { default_generator().mutex.unlock(); },
                   [] { default_generator().mutex.unlock(); });
    return *new Generator({}, entropy());  // outlives every static
  }();
  return generator;
}

}  // namespace facula
