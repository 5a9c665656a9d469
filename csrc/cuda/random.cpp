#include "cuda/random.h"

#include <algorithm>

#include "cuda/graph_random.h"
#include "cuda/kernel_types.h"
#include "cuda/translate.h"
#include "cuda/walk.h"
#include "op/hooks/random.h"

namespace facula::cuda {
namespace {

constexpr unsigned kThreads = 256;

// What the kernel draws, and what it makes of it; see random.cuh.
enum Draw { kFloat, kDouble, kNormalFloat, kNormalDouble, kWord, kTwoWords };
struct Recipe {
  Draw draw;
  const char* body;
};

Recipe recipe_of(Drawn kind, DType dtype) {
  const bool single = is_reduced_float(dtype) || dtype == DType::Float32;
  const Draw uniform = single ? kFloat : kDouble, normal = single ? kNormalFloat : kNormalDouble;
  switch (kind) {
    // From (0, 1] to [a, b): what rounds up to b becomes a.
    case Drawn::Uniform:
      return {uniform,
              "const Sample v = convert<Sample>(convert<FACULA_OUT>(x * (p1 - p0) + p0)); "
              "return v == convert<Sample>(convert<FACULA_OUT>(p1)) ? p0 : v;"};
    case Drawn::Normal: return {normal, "return x * p1 + p0;"};
    case Drawn::LogNormal: return {normal, "return exp(x * p1 + p0);"};
    // Never 0: the logarithm of numbers that round to 1 is that of the largest one below.
    case Drawn::Exponential:
      return {uniform,
              "const Sample e = sizeof(Sample) == 4 ? Sample(5.9604645e-08) "
              ": Sample(1.1102230246251565e-16); "
              "return Sample(-1) / p0 * (x >= Sample(1) - e ? -e : log(x));"};
    case Drawn::Cauchy:
      return {uniform, "return p0 + p1 * tan(Sample(3.14159265358979323846) * (x - Sample(0.5)));"};
    case Drawn::Geometric: return {uniform, "return ceil(log(x) / log1p(-p0));"};
    case Drawn::Coin: return {kFloat, "return x <= p0;"};
    case Drawn::Integer: return {kWord, "return int64(uint64(base) + x % uint32(range));"};
    default: return {kTwoWords, "return int64(uint64(base) + (range ? x % range : x));"};
  }
}

Generator& generator_of(Generator* given, Device device) {
  if (!given) return default_generator(device);
  if (given->device.type != device.type)
    runtime_error("Expected a '", device_type_name(device.type),
                  "' device type for generator but found '", device_type_name(given->device.type),
                  "'. Make one with facula.Generator(device='", device_type_name(device.type),
                  "')");
  if (given->device.index != device.index)
    runtime_error("Expected a generator on ", device, " but found one on ", given->device,
                  ". Make one with facula.Generator(device='", device, "')");
  return *given;
}

// Blocks that fit on the device, and no more than the work needs.
unsigned resident_blocks(int device, int64_t threads) {
  const DeviceProperties& properties = device_properties(device);
  const int64_t most =
      int64_t(properties.multiprocessors) * (properties.max_threads_per_multiprocessor / kThreads);
  return unsigned(std::min(most, (threads + kThreads - 1) / kThreads));
}

void draw(const Tensor& out, const DrawnNumbers& numbers, Generator* generator) {
  static auto* kernels = new KernelTable;
  const int device = out.device().index;
  const DType dtype = out.dtype();
  const Recipe recipe = recipe_of(numbers.kind, dtype);
  const bool dense = non_overlapping_and_dense(out.sizes(), out.strides());
  Walk walk(out.sizes());
  walk.add(out);
  walk.finish(true);
  use_device(device);
  KernelKey key;
  key.bits[0] = (dense ? 0 : walk.bits()) | uint64_t(dense) << 6 | uint64_t(dtype) << 7 |
                uint64_t(numbers.kind) << 12;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"random.cuh", "facula_random", {}};
    walk.define(text);
    text.define("FACULA_OUT", device_type(dtype));
    text.define("FACULA_DRAW", std::to_string(int(recipe.draw)));
    text.define("FACULA_BODY", recipe.body);
    text.define("FACULA_DENSE", dense ? "1" : "0");
    return text;
  });
  // As many blocks as fit on the device, and so many calls of Philox for each of their threads.
  const int64_t count = walk.count(), per_call = recipe.draw % 2 == 1 ? 2 : 4;
  const unsigned blocks = resident_blocks(device, count);
  const int64_t calls = (count - 1) / (int64_t(kThreads) * blocks * per_call) + 1;
  const RandomPlace place =
      take_place(generator_of(generator, out.device()), device, uint64_t(calls) * 4);
  ArgumentWriter arguments;
  arguments.put(place);
  arguments.put(count);
  arguments.put(out.data());
  arguments.put(numbers.a);
  arguments.put(numbers.b);
  arguments.put(numbers.base);
  arguments.put(numbers.range);
  if (!dense) walk.write(arguments);
  launch_kernel(function, {.grid_x = blocks, .block_x = kThreads}, current_stream(device),
                arguments.data());
}

void dropout(const Tensor& self, double keep, double scale, const Tensor& out, const Tensor& mask,
             Generator* generator) {
  static auto* kernels = new KernelTable;
  const int device = self.device().index;
  const int64_t count = self.numel(), fours = (count + 3) / 4;
  use_device(device);
  KernelKey key;
  key.bits[0] = uint64_t(self.dtype());
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"dropout.cuh", "facula_dropout", {}};
    text.define("FACULA_TYPE", device_type(self.dtype()));
    return text;
  });
  const unsigned blocks = resident_blocks(device, fours);
  const int64_t calls = (fours - 1) / (int64_t(kThreads) * blocks) + 1;
  const RandomPlace place =
      take_place(generator_of(generator, self.device()), device, uint64_t(calls) * 4);
  ArgumentWriter arguments;
  arguments.put(place);
  arguments.put(count);
  arguments.put<const void*>(self.data());
  arguments.put(out.data());
  arguments.put(mask.data());
  arguments.put(keep);
  arguments.put(scale);
  launch_kernel(function, {.grid_x = blocks, .block_x = kThreads}, current_stream(device),
                arguments.data());
}

double smallest_normal(DType d) {
  return d == DType::Float64 ? 0x1p-1022 : d == DType::Float16 ? 0x1p-14 : 0x1p-126;
}

void sample(const Tensor& out, Sampled kind, const Tensor& first, const Tensor& second,
            Generator* generator) {
  static constexpr const char* kNames[] = {"bernoulli", "poisson", "gamma", "binomial"};
  // Words that one sample may take: samples that take more, which are next to impossible, go on
  // with those of the next operation.
  constexpr uint64_t kWords = 1 << 12;
  static auto* kernels = new KernelTable;
  const int device = out.device().index;
  const Tensor& other = second.defined() ? second : first;
  Walk walk(out.sizes());
  walk.add(out);
  walk.add(first);
  walk.add(other);
  walk.finish();
  use_device(device);
  KernelKey key;
  key.bits[0] = walk.bits() | uint64_t(out.dtype()) << 6 | uint64_t(first.dtype()) << 11 |
                uint64_t(other.dtype()) << 16 | uint64_t(kind) << 21;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"sample.cuh", kernel_name(kNames[int(kind)]), {}};
    walk.define(text);
    text.define("FACULA_OUT", device_type(out.dtype()));
    text.define("FACULA_FIRST", device_type(first.dtype()));
    text.define("FACULA_SECOND", device_type(other.dtype()));
    text.define("FACULA_SAMPLED", std::to_string(int(kind)));
    return text;
  });
  const RandomPlace place = take_place(generator_of(generator, out.device()), device,
                                       kind == Sampled::Coins ? 4 : kWords);
  ArgumentWriter arguments;
  arguments.put(fault_site(device, kNames[int(kind)], 0, kParameters));
  arguments.put(place);
  arguments.put(walk.count());
  arguments.put(smallest_normal(out.dtype()));
  arguments.put(out.data());
  arguments.put<const void*>(first.data());
  arguments.put<const void*>(other.data());
  walk.write(arguments);
  launch_kernel(function,
                {.grid_x = unsigned((walk.count() + kThreads - 1) / kThreads), .block_x = kThreads},
                current_stream(device), arguments.data());
}

void sample_gradient(const Tensor& out, const Tensor& first, const Tensor& second,
                     const Tensor& third) {
  static auto* kernels = new KernelTable;
  const int device = out.device().index;
  const bool beta = third.defined();
  const Tensor* operands[] = {&first, &second, beta ? &third : &second};
  Walk walk(out.sizes());
  walk.add(out);
  for (const Tensor* t : operands) walk.add(*t);
  walk.finish();
  use_device(device);
  KernelKey key;
  key.bits[0] = walk.bits() | uint64_t(beta) << 6 | uint64_t(out.dtype()) << 7;
  key.bits[1] = uint64_t(operands[0]->dtype()) | uint64_t(operands[1]->dtype()) << 5 |
                uint64_t(operands[2]->dtype()) << 10;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"sample_gradient.cuh", "facula_sample_gradient", {}};
    walk.define(text);
    text.define("FACULA_BETA", beta ? "1" : "0");
    text.define("FACULA_OUT", device_type(out.dtype()));
    text.define("FACULA_FIRST", device_type(operands[0]->dtype()));
    text.define("FACULA_SECOND", device_type(operands[1]->dtype()));
    text.define("FACULA_THIRD", device_type(operands[2]->dtype()));
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(walk.count());
  arguments.put(out.data());
  for (const Tensor* t : operands) arguments.put<const void*>(t->data());
  walk.write(arguments);
  launch_kernel(function,
                {.grid_x = unsigned((walk.count() + kThreads - 1) / kThreads), .block_x = kThreads},
                current_stream(device), arguments.data());
}

}  // namespace

void register_random() {
  device_random.draw.set(translate<draw>);
  device_random.sample.set(translate<sample>);
  device_random.dropout.set(translate<dropout>);
  device_random.sample_gradient.set(translate<sample_gradient>);
}

}  // namespace facula::cuda
