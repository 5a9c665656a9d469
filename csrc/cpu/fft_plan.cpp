#include "cpu/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <map>

#include "cpu/cast.h"
#include "cpu/fft.h"

namespace facula {

namespace baseline {
extern const FftLoops<float> fft_loops_float;
extern const FftLoops<double> fft_loops_double;
}  // namespace baseline
#ifdef FACULA_X86
namespace v3 {
extern const FftLoops<float> fft_loops_float;
extern const FftLoops<double> fft_loops_double;
}  // namespace v3
namespace v4 {
extern const FftLoops<float> fft_loops_float;
extern const FftLoops<double> fft_loops_double;
}  // namespace v4
#endif

const FftLoops<float>& fft_loops(float) {
#ifdef FACULA_X86
  static const FftLoops<float>* const table[] = {&baseline::fft_loops_float, &v3::fft_loops_float,
                                                 &v4::fft_loops_float};
  return *table[isa_level()];
#else
  return baseline::fft_loops_float;
#endif
}
const FftLoops<double>& fft_loops(double) {
#ifdef FACULA_X86
  static const FftLoops<double>* const table[] = {&baseline::fft_loops_double,
                                                  &v3::fft_loops_double, &v4::fft_loops_double};
  return *table[isa_level()];
#else
  return baseline::fft_loops_double;
#endif
}

// ---- roots of unity

// Within the first eighth of the circle sine and cosine are at their most exact; the rest follows
// from symmetry.
static Root root_of_unity(int64_t k, int64_t n) {
  constexpr long double kTwoPi = 6.283185307179586476925286766559005768L;
  const int64_t eighth = int64_t(__int128(k) * 8 / n);
  const int64_t corner = (eighth + 1) / 2;  // the nearest quarter turn
  const long double turn = (long double)(__int128(k) * 4 - __int128(n) * corner) / (4.0L * n);
  const long double c = std::cos(kTwoPi * turn), s = std::sin(kTwoPi * turn);
  switch (corner & 3) {
    case 0: return {c, -s};
    case 1: return {-s, -c};
    case 2: return {-c, s};
    default: return {s, c};
  }
}

RootsOfUnity::RootsOfUnity(int64_t n) : n_(n), step_(1) {
  while (step_ * step_ < n) step_ *= 2;
  for (int64_t j = 0; j < std::min(step_, n); ++j) low_.push_back(root_of_unity(j, n));
  for (int64_t j = 0; j * step_ < n; ++j) high_.push_back(root_of_unity(j * step_, n));
}

Root RootsOfUnity::operator()(int64_t k) const {
  k %= n_;
  const Root a = low_[size_t(k % step_)], b = high_[size_t(k / step_)];
  if (k < step_) return a;
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// ---- factors

Radices::Radices(int64_t n) {
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  while (twos > 0) {
    const int power = twos == 1 ? 1 : twos == 2 || twos == 4 ? 2 : 3;
    list.push_back(1 << power);
    twos -= power;
  }
  std::vector<int64_t> odd;
  for (int64_t p = 3; p <= kLargestFftRadix; p += 2)
    for (; n % p == 0; n /= p) odd.push_back(p);
  list.insert(list.end(), odd.rbegin(), odd.rend());
  smooth = n == 1;
  for (int64_t p = kLargestFftRadix; n > 1; p += 2) {
    if (p > n / p) p = n;
    for (; n % p == 0; n /= p) list.push_back(p);
  }
}

// ---- costs, in rows that pass through the registers

// Rows beyond the second-level cache come and go more slowly.
template <class T>
static double cost_of_memory(int64_t rows) {
  const double bytes = double(rows) * 2 * fft_loops(T()).lanes * sizeof(T);
  return bytes <= 400e3 ? 1.0 : bytes <= 1e6 ? 1.4 : 2.2;
}

namespace {

struct Convolution {
  int64_t length;
  double cost;
  bool chirped;
};

template <class T>
Convolution cheapest_convolution(int64_t prime);

}  // namespace

// The passes of a length and some `steps` more over all rows.
template <class T>
static double rows_cost(int64_t n, int steps) {
  double cost = double(n) * steps;
  for (int64_t radix : Radices(n).list)
    cost += radix <= 8                  ? double(n)
            : radix <= kLargestFftRadix ? double(n) * double(radix) / 8
                                        : double(n / radix) * cheapest_convolution<T>(radix).cost;
  return cost * cost_of_memory<T>(n);
}

namespace {

template <class T>
Convolution cheapest_convolution(int64_t prime) {
  Convolution best{0, std::numeric_limits<double>::infinity(), false};
  const auto consider = [&](int64_t length, bool chirped) {
    const double cost = (2 * rows_cost<T>(length, 1) + 2 * double(prime)) *
                        cost_of_memory<T>(2 * length + prime) / cost_of_memory<T>(length);
    if (cost < best.cost) best = {length, cost, chirped};
  };
  if (Radices(prime - 1).smooth) consider(prime - 1, false);
  // Bluestein's convolution may have any length from 2 prime - 1 on.
  const int64_t least = 2 * prime - 1;
  for (int64_t odd : {1, 3, 5, 7, 9, 15, 21, 25, 27, 35, 45, 49, 63}) {
    int64_t length = odd;
    while (length < least) length *= 2;
    if (length < 3 * prime) consider(length, true);
  }
  return best;
}

}  // namespace

// ---- plans

template <class T>
LanePlan<T>::LanePlan(int64_t n) {
  const Radices radices(n);
  const RootsOfUnity roots(n);
  schedule.length = n;
  int64_t span = n;
  for (int64_t radix : radices.list) {
    const int64_t size = span;
    span /= radix;
    FftPass<T>& pass = schedule.pass[schedule.passes++];
    pass.radix = int(radix);
    pass.span = span;
    if (span > 1) {
      std::vector<T>& table = tables_.emplace_back();
      table.reserve(size_t(span * (radix - 1) * 2));
      for (int64_t p = 0; p < span; ++p)
        for (int64_t k = 1; k < radix; ++k) {
          const Root w = roots(p * k * (n / size));
          table.push_back(T(w.re));
          table.push_back(T(w.im));
        }
      pass.twiddles = table.data();
    }
    if (radix > kLargestFftRadix) {
      const auto& plan = convolutions_.emplace_back(fft_plan<ConvolutionPlan<T>>(radix));
      pass.convolution = &plan->tables;
      schedule.spare = std::max(schedule.spare, 2 * plan->tables.schedule->length);
    } else if (radix > 8) {
      std::vector<T>& table = tables_.emplace_back();
      for (int64_t j = 0; j < radix; ++j) {
        const Root w = roots(j * (n / radix));
        table.push_back(T(w.re));
        table.push_back(T(w.im));
      }
      pass.roots = table.data();
    }
  }
  order_.resize(size_t(n) + 1);
  for (int64_t k = 0; k < n; ++k) {
    int64_t row = 0, rest = k;
    for (int i = 0; i < schedule.passes; ++i) {
      row += rest % schedule.pass[i].radix * schedule.pass[i].span;
      rest /= schedule.pass[i].radix;
    }
    order_[size_t(k)] = int32_t(row);
  }
  order_[size_t(n)] = int32_t(n);
  schedule.order = order_.data();
}

template <class T>
size_t LanePlan<T>::bytes() const {
  size_t total = sizeof *this + order_.size() * sizeof(int32_t);
  for (const auto& t : tables_) total += t.size() * sizeof(T);
  return total;
}

// The least generator of the numbers modulo a prime.
static int64_t generator_of(int64_t prime) {
  const auto power = [&](int64_t base, int64_t exponent) {
    int64_t result = 1;
    for (; exponent; exponent /= 2, base = base * base % prime)
      if (exponent % 2) result = result * base % prime;
    return result;
  };
  const std::vector<int64_t> factors = Radices(prime - 1).list;
  for (int64_t g = 2;; ++g)
    if (std::all_of(factors.begin(), factors.end(), [&](int64_t radix) {
          return power(g, (prime - 1) / (radix % 2 ? radix : 2)) != 1;
        }))
      return g;
}

template <class T>
ConvolutionPlan<T>::ConvolutionPlan(int64_t prime)
    : lanes_(cheapest_convolution<T>(prime).length), result_(size_t(prime)) {
  const int64_t length = lanes_.schedule.length;
  const int32_t* order = lanes_.schedule.order;
  std::vector<double> kernel(size_t(2 * length), 0.0);
  const auto set_kernel = [&](int64_t at, Root w) {
    kernel[size_t(2 * at)] = double(w.re);
    kernel[size_t(2 * at + 1)] = double(w.im);
  };
  // A second transform in place of the inverse one gives the results backwards.
  if (cheapest_convolution<T>(prime).chirped) {
    const RootsOfUnity roots(2 * prime);
    for (int64_t j = 0; j < prime; ++j) {
      const Root w = roots(j * j);
      chirp_.push_back(T(w.re));
      chirp_.push_back(T(w.im));
      set_kernel(j, {w.re, -w.im});
      set_kernel((length - j) % length, {w.re, -w.im});
      result_[size_t(j)] = order[(length - j) % length];
    }
  } else {
    const RootsOfUnity roots(prime);
    const int64_t generator = generator_of(prime);
    source_.resize(size_t(length));
    for (int64_t m = 0, power = 1; m < length; ++m, power = power * generator % prime) {
      source_[size_t(m)] = int32_t(power);
      set_kernel((length - m) % length, roots(power));
      result_[size_t(power)] = order[m];
    }
  }
  fft_line(kernel.data(), kernel.data(), length, false, 1.0 / double(length));
  kernel_.assign(kernel.begin(), kernel.end());
  tables = {&lanes_.schedule, source_.empty() ? nullptr : source_.data(),
            chirp_.empty() ? nullptr : chirp_.data(), kernel_.data(), result_.data()};
}

template <class T>
size_t ConvolutionPlan<T>::bytes() const {
  return sizeof *this + lanes_.bytes() + (source_.size() + result_.size()) * sizeof(int32_t) +
         (chirp_.size() + kernel_.size()) * sizeof(T);
}

// The cheapest length from `least` on among those that split well.
template <class T>
static int64_t smooth_length(int64_t least) {
  int64_t best = 1;
  while (best < least) best *= 2;
  const int64_t power = best;
  for (int64_t odd : {3, 5, 9, 15}) {
    int64_t n = odd;
    while (n < least) n *= 2;
    if (n < best && n % 16 == 0) best = n;
  }
  return best < power * 9 / 10 ? best : power;
}

template <class T>
LengthPlan<T>::LengthPlan(int64_t n)
    : smooth(Radices(n).smooth),
      block_cost(rows_cost<T>(n, 2)),
      line_cost(std::numeric_limits<double>::infinity()),
      n1(0),
      n2(0) {
  const int64_t lanes = fft_loops(T()).lanes;
  if (!smooth) {
    constexpr double kOverhead = 200;
    const int64_t padded = smooth_length<T>(2 * n - 1);
    const auto plan = fft_plan<LengthPlan<T>>(padded);
    line_cost =
        2 * std::min(plan->block_cost, plan->line_cost) + double(3 * padded / lanes) + kOverhead;
    return;
  }
  for (int64_t a = 2; a <= n / a; ++a) {
    if (n % a) continue;
    for (int64_t first : {a, n / a}) {
      const int64_t second = n / first;
      const double cost = double((second + lanes - 1) / lanes) * rows_cost<T>(first, 3) +
                          double((first + lanes - 1) / lanes) * rows_cost<T>(second, 2);
      if (cost < line_cost) {
        line_cost = cost;
        n1 = first;
        n2 = second;
      }
    }
  }
}

template <class T>
LongPlan<T>::LongPlan(int64_t n) : LongPlan(*fft_plan<LengthPlan<T>>(n)) {}

template <class T>
LongPlan<T>::LongPlan(const LengthPlan<T>& split) : first_(split.n1), second_(split.n2) {
  const int64_t n1 = split.n1, n2 = split.n2, lanes = fft_loops(T()).lanes;
  const RootsOfUnity roots(n1 * n2);
  lane_roots_.resize(size_t(n1 * lanes * 2));
  for (int64_t k = 0; k < n1; ++k)
    for (int64_t l = 0; l < lanes; ++l) {
      const Root w = roots(k * l);
      lane_roots_[size_t(k * 2 * lanes + l)] = T(w.re);
      lane_roots_[size_t(k * 2 * lanes + lanes + l)] = T(w.im);
    }
  const int64_t blocks = (n2 + lanes - 1) / lanes;
  block_roots_.reserve(size_t(blocks * n1 * 2));
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t k = 0; k < n1; ++k) {
      const Root w = roots(k * b * lanes);
      block_roots_.push_back(T(w.re));
      block_roots_.push_back(T(w.im));
    }
  tables = {first_.schedule, second_.schedule, lane_roots_.data(), block_roots_.data()};
}

template <class T>
size_t LongPlan<T>::bytes() const {
  return sizeof *this + first_.bytes() + second_.bytes() +
         (lane_roots_.size() + block_roots_.size()) * sizeof(T);
}

template <class T>
RealBlockPlan<T>::RealBlockPlan(int64_t n) {
  const RootsOfUnity root(n);
  for (int64_t k = 0; k <= n / 4; ++k) {
    const Root w = root(k);
    roots.push_back(T(w.re));
    roots.push_back(T(w.im));
  }
}

template <class T>
RealLinePlan<T>::RealLinePlan(int64_t n) {
  const RootsOfUnity root(n);
  const int64_t lanes = fft_loops(T()).lanes;
  lane_roots.resize(size_t(2 * lanes));
  for (int64_t l = 0; l < lanes; ++l) {
    const Root w = root(l);
    lane_roots[size_t(l)] = T(w.re);
    lane_roots[size_t(lanes + l)] = T(w.im);
  }
  for (int64_t k = 0; k <= n / 4; k += lanes) {
    const Root w = root(k);
    block_roots.push_back(T(w.re));
    block_roots.push_back(T(w.im));
  }
}

template <class T>
ChirpPlan<T>::ChirpPlan(int64_t n) : padded(smooth_length<T>(2 * n - 1)) {
  const RootsOfUnity roots(2 * n);
  chirp.resize(size_t(2 * n));
  kernel.assign(size_t(2 * padded), T(0));
  int64_t square = 0;  // j**2 modulo 2 n
  for (int64_t j = 0; j < n; ++j) {
    const Root w = roots(square);
    chirp[size_t(2 * j)] = T(w.re);
    chirp[size_t(2 * j + 1)] = T(w.im);
    for (int64_t at : {j, j ? padded - j : 0}) {
      kernel[size_t(2 * at)] = T(w.re);
      kernel[size_t(2 * at + 1)] = T(-w.im);
    }
    square = (square + 2 * j + 1) % (2 * n);
  }
  fft_line(kernel.data(), kernel.data(), padded, false, T(1) / T(padded));
}

// ---- the cache

namespace {

class Cache {
 public:
  using Key = std::pair<const void*, int64_t>;  // the kind of plan and the length
  static constexpr size_t kMostBytes = 64 << 20;

  std::shared_ptr<const void> find(Key key) {
    std::lock_guard lock(mutex_);
    auto at = index_.find(key);
    if (at == index_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, at->second);
    return at->second->plan;
  }

  // The plan that is kept: another thread may have been faster.
  std::shared_ptr<const void> insert(Key key, std::shared_ptr<const void> plan, size_t bytes) {
    std::vector<std::shared_ptr<const void>> dropped;  // freed after the lock
    std::lock_guard lock(mutex_);
    auto [at, inserted] = index_.try_emplace(key);
    if (!inserted) return at->second->plan;
    recent_.push_front({key, plan, bytes});
    at->second = recent_.begin();
    bytes_ += bytes;
    while (bytes_ > kMostBytes && recent_.size() > 1) {
      Entry& oldest = recent_.back();
      bytes_ -= oldest.bytes;
      index_.erase(oldest.key);
      dropped.push_back(std::move(oldest.plan));
      recent_.pop_back();
    }
    return plan;
  }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const void> plan;
    size_t bytes;
  };
  std::mutex mutex_;
  std::list<Entry> recent_;  // the latest first
  std::map<Key, std::list<Entry>::iterator> index_;
  size_t bytes_ = 0;
};

Cache& cache() {
  static Cache* const instance = new Cache;  // transforms may run while the process ends
  return *instance;
}

template <class Plan>
constexpr char kKind = 0;  // its address tells plans apart

}  // namespace

template <class Plan>
std::shared_ptr<const Plan> fft_plan(int64_t n) {
  const Cache::Key key{&kKind<Plan>, n};
  std::shared_ptr<const void> found = cache().find(key);
  if (!found) {
    auto made = std::make_shared<const Plan>(n);
    found = cache().insert(key, made, made->bytes() + 256);
  }
  return std::static_pointer_cast<const Plan>(found);
}

#define FACULA_FFT_PLANS(T)                                                                 \
  template std::shared_ptr<const LanePlan<T>> fft_plan<LanePlan<T>>(int64_t);               \
  template std::shared_ptr<const ConvolutionPlan<T>> fft_plan<ConvolutionPlan<T>>(int64_t); \
  template std::shared_ptr<const LengthPlan<T>> fft_plan<LengthPlan<T>>(int64_t);           \
  template std::shared_ptr<const LongPlan<T>> fft_plan<LongPlan<T>>(int64_t);               \
  template std::shared_ptr<const RealBlockPlan<T>> fft_plan<RealBlockPlan<T>>(int64_t);     \
  template std::shared_ptr<const RealLinePlan<T>> fft_plan<RealLinePlan<T>>(int64_t);       \
  template std::shared_ptr<const ChirpPlan<T>> fft_plan<ChirpPlan<T>>(int64_t);
FACULA_FFT_PLANS(float)
FACULA_FFT_PLANS(double)
#undef FACULA_FFT_PLANS

}  // namespace facula
