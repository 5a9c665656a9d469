// Checks of devices, streams, the allocator, copies and casts.
#include <limits>
#include <thread>

#include "check_cuda.h"
#include "cuda/libraries.h"
#include "cuda/nvrtc.h"

namespace facula::cuda {
namespace {

void check_device_queries() {
  const DeviceProperties& p = device_properties(0);
  std::printf(
      "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB, driver %d, NVRTC %d.%d\n",
      p.name.c_str(), p.major, p.minor, p.multiprocessors, double(p.total_memory) / (1 << 30),
      driver_version(), nvrtc_version().major, nvrtc_version().minor);
  std::printf("NVRTC: %s\n", library_path(Library::Nvrtc).c_str());
  expect(p.multiprocessors > 0 && p.warp_size == 32 && !p.name.empty(), "properties");
  const MemoryInfo info = memory_info(0);
  expect(info.free > 0 && info.free <= info.total, "memory info");
  expect(contains(message_of<NoDevice>([] { set_current_device(99); }), "99"),
         "a device number out of range is named");
  expect(current_device() == 0, "and the current device stays");
}

void check_allocator() {
  empty_cache(0);
  const AllocatorStats start = allocator_stats(0);
  void* first = allocate(1000, 0);
  expect(reinterpret_cast<uintptr_t>(first) % 512 == 0, "blocks are aligned to 512");
  expect(allocator_stats(0).allocated_bytes.all.current - start.allocated_bytes.all.current == 1024,
         "sizes round up to 512");
  void* second = allocate(600, 0);
  expect(static_cast<char*>(second) - static_cast<char*>(first) == 1024,
         "small blocks share a segment");
  deallocate(first, 0);
  expect(allocate(900, 0) == first, "a freed block is used again");
  deallocate(first, 0);
  deallocate(second, 0);
  void* joined = allocate(1024 + 1024, 0);
  expect(joined == first, "free neighbours are joined");
  deallocate(joined, 0);

  CuStream stream = create_stream(0);
  void* elsewhere = allocate(900, 0, stream);
  expect(elsewhere != first, "streams do not share blocks");
  record_stream(elsewhere, 0, nullptr);
  deallocate(elsewhere, 0);
  synchronize(0);
  expect(allocate(900, 0, stream) == elsewhere,
         "recorded blocks come back when their work is done");
  deallocate(elsewhere, 0);

  void* large = allocate(size_t(64) << 20, 0);
  void* medium = allocate(size_t(3) << 20, 0);
  expect(allocator_stats(0).allocated_bytes.all.peak >= (int64_t(67) << 20), "the peak is kept");
  deallocate(large, 0);
  void* part = allocate(size_t(40) << 20, 0);
  expect(part == large, "large blocks are split");
  deallocate(part, 0);
  deallocate(medium, 0);
  reset_peak_stats(0);
  expect(
      allocator_stats(0).allocated_bytes.all.peak == allocator_stats(0).allocated_bytes.all.current,
      "peaks can be reset");

  const std::string text = message_of<OutOfMemory>([] { allocate(size_t(1) << 50, 0); });
  expect(contains(text, "CUDA out of memory. Tried to allocate 1048576.00 GiB") &&
             contains(text, "free") && contains(text, "live tensors"),
         "out of memory: " + text);
  expect(!message_of<OutOfMemory>([] { allocate(~size_t(0), 0); }).empty(), "absurd sizes");
  void* after = allocate(4096, 0);
  expect(after != nullptr, "the allocator goes on");
  deallocate(after, 0);
  expect(allocate(0, 0) == nullptr, "nothing needs no memory");
  empty_cache(0);
  expect(allocator_stats(0).allocated_bytes.all.current == start.allocated_bytes.all.current,
         "all is given back");
  expect(allocator_stats(0).reserved_bytes.all.current == start.reserved_bytes.all.current,
         "and the cache is empty");
  destroy_stream(0, stream);
}

void check_host_copies() {
  const auto values = random_values<float>(100003);
  Buffer<float> buffer(values);
  expect(std::memcmp(buffer.host().data(), values.data(), values.size() * 4) == 0, "round trip");
  auto* pinned = static_cast<float*>(allocate_pinned(values.size() * 4));
  CuStream stream = create_stream(0);
  copy_to_host(pinned, buffer.get(), values.size() * 4, 0, stream, false);
  synchronize_stream(0, stream);
  expect(std::memcmp(pinned, values.data(), values.size() * 4) == 0, "pinned and asynchronous");
  deallocate_pinned(pinned);
  destroy_stream(0, stream);
  Buffer<float> twin(values.size());
  copy_on_device(twin.get(), buffer.get(), values.size() * 4, 0, nullptr);
  expect(twin.host() == values, "on the device");
  set_bytes(twin.get(), 0, values.size() * 4, 0, nullptr);
  expect(twin.host() == std::vector<float>(values.size()), "cleared");
}

template <class T>
void check_moves() {
  const int64_t rows = 37, cols = 53;
  const auto values = random_values<T>(size_t(rows * cols));
  Buffer<T> in(values), out(values.size());
  StridedCopy copy;
  copy.to = out.get();
  copy.from = in.get();
  copy.to_dtype = copy.from_dtype = DTypeOf<T>::value;
  copy.ndim = 2;
  const int64_t item = sizeof(T);
  copy.sizes[0] = cols, copy.sizes[1] = rows;
  copy.to_strides[0] = rows * item, copy.to_strides[1] = item;
  copy.from_strides[0] = item, copy.from_strides[1] = cols * item;
  copy_strided(copy, 0, nullptr);
  const auto got = out.host();
  bool good = true;
  for (int64_t i = 0; i < rows * cols; ++i) {
    good = good && std::memcmp(&got[size_t(i)], &values[size_t(i % rows * cols + i / rows)],
                               sizeof(T)) == 0;
  }
  expect(good, std::string("transposed copy of ") + dtype_name(DTypeOf<T>::value));

  const T value = convert<T>(2.5);
  const int64_t sizes[] = {rows, cols / 2}, strides[] = {cols * item, 2 * item};
  fill_strided(out.get(), DTypeOf<T>::value, &value, 2, sizes, strides, 0, nullptr);
  auto filled = out.host();
  good = true;
  for (int64_t i = 0; i < rows * cols; ++i) {
    const bool touched = i % cols % 2 == 0 && i % cols / 2 < cols / 2;
    good =
        good && std::memcmp(&filled[size_t(i)], touched ? &value : &got[size_t(i)], sizeof(T)) == 0;
  }
  expect(good, std::string("strided fill of ") + dtype_name(DTypeOf<T>::value));
}

// Every dtype to every other, bit for bit what the CPU's convert gives. Compiles from several
// threads at once.
void check_casts() {
  std::vector<double> source = {
      0,      1,      -1,    0.5,      1.5,   2.5,   -2.5,  3.7,   100,        127,
      128,    200,    255,   256,      300,   -128,  -129,  448,   464,        500,
      32767,  40000,  57344, 65504,    65519, 65520, 70000, 1e-3,  1e-6,       6e-8,
      3e-8,   1e-10,  1e10,  3e9,      -3e9,  5e9,   1e20,  1e300, 2147483647, -2147483648.0,
      9.3e18, 1.7e19, 2e19,  16777217, 1e38,  4e38};
  for (double x :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()})
    source.push_back(x);
  for (int i = 0; i < 2000; ++i) {
    std::uniform_real_distribution<double> exponent(-30, 30), sign(-1, 1);
    const double e = exponent(generator);
    source.push_back((sign(generator) < 0 ? -1 : 1) * std::exp2(e));
  }
  const size_t count = source.size();
  std::vector<std::string> failures(kDTypes * kDTypes);
  auto cast = [&](DType from, DType to) {
    dispatch_dtype(from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      std::vector<unsigned char> bytes(count * sizeof(From));
      auto* values = reinterpret_cast<From*>(bytes.data());
      for (size_t i = 0; i < count; ++i) {
        if constexpr (is_complex_v<From>) {
          values[i] = convert<From>(Complex<double>(source[i], source[(i * 7) % count]));
        } else {
          values[i] = convert<From>(source[i]);
        }
      }
      dispatch_dtype(to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        Buffer<unsigned char> in(bytes), out(count * sizeof(To));
        StridedCopy copy;
        copy.to = out.get();
        copy.from = in.get();
        copy.to_dtype = to;
        copy.from_dtype = from;
        copy.ndim = 1;
        copy.sizes[0] = int64_t(count);
        copy.to_strides[0] = sizeof(To);
        copy.from_strides[0] = sizeof(From);
        copy_strided(copy, 0, nullptr);
        const auto got = out.host();
        const auto* results = reinterpret_cast<const To*>(got.data());
        for (size_t i = 0; i < count; ++i) {
          const To wanted = convert<To>(values[i]);
          auto same = [](auto x, auto y) {
            if constexpr (std::is_integral_v<decltype(x)>) return x == y;
            else {
              const double g = convert<double>(x), w = convert<double>(y);
              return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(g) && std::isnan(w));
            }
          };
          bool good;
          if constexpr (is_complex_v<To>) {
            good = same(results[i].re, wanted.re) && same(results[i].im, wanted.im);
          } else {
            good = same(results[i], wanted);
          }
          if (!good) {
            failures[size_t(from) * kDTypes + size_t(to)] = std::string(dtype_name(from)) + " to " +
                                                            dtype_name(to) + " of " +
                                                            std::to_string(source[i]);
            return;
          }
        }
      });
    });
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int pair = t; pair < kDTypes * kDTypes; pair += 4) {
        try {
          cast(DType(pair / kDTypes), DType(pair % kDTypes));
        } catch (const std::exception& error) {
          failures[size_t(pair)] = error.what();
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& failure : failures) expect(failure.empty(), "cast " + failure);
}

void check_streams() {
  CuStream stream = create_stream(0);
  CuEvent start = create_event(0, true), end = create_event(0, true);
  const size_t n = 1 << 22;
  Buffer<float> x(std::vector<float>(n, 1.0f));
  record_event(0, start, stream);
  const DType f = DType::Float32;
  for (int i = 0; i < 10; ++i) {
    launch_elementwise(
        make_launch("a + 1", f, {int64_t(n)}, {{x.get(), f, {1}}, {x.get(), f, {1}}}), 0, stream);
  }
  record_event(0, end, stream);
  wait_event(0, nullptr, end);
  std::vector<float> last(1);
  copy_to_host(last.data(), x.get() + n - 1, 4, 0, nullptr);
  expect(last[0] == 11.0f, "the default stream waits for the event");
  expect(elapsed_milliseconds(0, start, end) > 0, "events measure time");
  expect(event_is_done(0, end) && stream_is_idle(0, stream), "and are done");
  set_current_stream(0, stream);
  expect(current_stream(0) == stream, "the current stream is the thread's");
  std::thread([] { expect(current_stream(0) == nullptr, "and not another thread's"); }).join();
  set_current_stream(0, nullptr);
  destroy_event(0, start);
  destroy_event(0, end);
  destroy_stream(0, stream);
}

}  // namespace

void check_memory() {
  run("device", check_device_queries);
  run("allocator", check_allocator);
  run("host copies", check_host_copies);
  run("streams and events", check_streams);
  run("moves", [] {
    check_moves<uint8_t>();
    check_moves<Half>();
    check_moves<float>();
    check_moves<int64_t>();
    check_moves<Complex<double>>();
  });
  run("casts", check_casts);
}

}  // namespace facula::cuda
