#include "core/thread_pool.h"

#include "core/float_mode.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace facula {

namespace {

constexpr int kMaxThreads = 512;
// What a late thread has not begun, the others take over; the last piece is waited for, so that
// pieces of a large share cost what one of them takes.
constexpr int kPiecesPerThread = 32;
constexpr int kFewThreads = 8;  // of which each can be told where to run
// How long a thread looks for more work before it sleeps: between two pieces of shared work there
// is often one that is too small to share, and to be woken takes some 10 us of the caller's time.
constexpr int64_t kSpinNanoseconds = 100'000;

thread_local bool inside_region = false;

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t nanoseconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Looks again and again for so long; whether it was found to be done.
template <class F>
bool spin_until(F done, int64_t nanoseconds) {
  constexpr int kLooks = 16;  // between two looks at the clock
  if (done()) return true;
  if (nanoseconds == 0) return false;
  const int64_t end = nanoseconds_now() + nanoseconds;
  do {
    for (int i = 0; i < kLooks; ++i) {
      cpu_relax();
      if (done()) return true;
    }
  } while (nanoseconds_now() < end);
  return false;
}

int available_cpus() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, int(sysconf(_SC_NPROCESSORS_ONLN)));
}

// The processor that the thread runs on, or -1.
int current_cpu() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

int default_threads() {
  for (const char* name : {"FACULA_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* value = std::getenv(name);
    const long n = value ? std::strtol(value, nullptr, 10) : 0;
    if (n >= 1) return int(std::min<long>(n, kMaxThreads));
  }
  return std::min(available_cpus(), kMaxThreads);
}

std::atomic<int> thread_count{0};  // 0: not decided yet

// Puts a thread to sleep until a word changes. The flag spares the waker a system call when the
// thread still spins or runs; both sides use sequential consistency, so one of them sees the other.
struct Doorbell {
  std::atomic<uint32_t> rings{0};
  std::atomic<bool> asleep{false};

  void ring() {
    rings.fetch_add(1);
    if (asleep.load()) rings.notify_one();
  }
  uint32_t wait_for_change(uint32_t seen, int64_t spin_nanoseconds) {
    uint32_t now = seen;
    if (spin_until([&] { return (now = rings.load(std::memory_order_acquire)) != seen; },
                   spin_nanoseconds))
      return now;
    asleep.store(true);
    rings.wait(seen);
    asleep.store(false);
    return rings.load();
  }
};

class Pool {
 public:
  void run(int64_t begin, int64_t end, int64_t grain, int threads, detail::RangeFunction f,
           void* context);
  void shut_down();

 private:
  // The pieces next..last that one participant starts with; others take from it when idle.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t last = 0;
  };
  struct alignas(64) Worker {
    Doorbell doorbell;
    pthread_t thread;
    int index;
    std::atomic<int> cpu{-1};  // where it began to wait
#ifdef __linux__
    // Set while the worker is kept off a processor: all those that it may run on otherwise.
    std::atomic<bool> kept_off{false};
    cpu_set_t allowed;
#endif

    void keep_off(int cpu_of_caller);
    void run_anywhere();
  };

  static constexpr uint32_t kClosed = 1u << 31;

  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }
  void resize(int workers);
  void stop_workers();
  void work(int share) noexcept;
  void run_piece(int64_t piece) noexcept;
  void close_and_wait();
  static void* worker_main(void* worker);
  void serve(Worker& self);

  std::atomic<bool> busy_{false};  // held by the thread whose loop runs, and for starts and stops
  std::atomic<bool> stopping_{false};
  bool shut_down_ = false;
  int requested_ = 0;  // workers asked for; fewer may run when the system refuses threads
  int running_ = 0;
  int64_t spin_nanoseconds_ = kSpinNanoseconds;

  // The loop at hand. A worker may touch it only between joining and leaving; `state_` counts those
  // inside, and its top bit closes the loop to further ones.
  alignas(64) std::atomic<uint32_t> state_{kClosed};
  Doorbell all_left_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  detail::RangeFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t begin_ = 0, end_ = 0, step_ = 0;
  int shares_ = 0;
  uint64_t float_mode_ = 0;  // the caller's: results must not depend on who computes a piece
  Share share_[kMaxThreads];
  Worker worker_[kMaxThreads];
};

// Never destroyed: a loop that runs during static destruction finds a pool without workers.
alignas(Pool) unsigned char pool_storage[sizeof(Pool)];

void reset_in_child() {
  // The workers were not copied into the child, and one may have been inside a loop.
  new (pool_storage) Pool;
}

struct ShutDownAtExit {
  Pool* pool;
  ~ShutDownAtExit() { pool->shut_down(); }
};

Pool& pool() {
  static Pool* const instance = [] {
    Pool* p = new (pool_storage) Pool;
    pthread_atfork(nullptr, nullptr, reset_in_child);
    return p;
  }();
  static ShutDownAtExit at_exit{instance};
  return *instance;
}

void Pool::run_piece(int64_t piece) noexcept {
  if (failed_.load(std::memory_order_relaxed)) return;
  const int64_t b = begin_ + piece * step_;
  const int64_t e = end_ - b > step_ ? b + step_ : end_;
  try {
    function_(context_, b, e);
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
}

void Pool::work(int first) noexcept {
  for (int i = 0; i < shares_; ++i) {
    Share& share = share_[(first + i) % shares_];
    while (share.next.load(std::memory_order_relaxed) < share.last) {
      const int64_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
      if (piece < share.last) run_piece(piece);
    }
  }
}

// The system may wake a thread on the processor of its waker, where it would have to wait for the
// end of the loop that it should take part in; a processor beside it stays idle for milliseconds.
void Pool::Worker::keep_off([[maybe_unused]] int cpu_of_caller) {
#ifdef __linux__
  if (kept_off.load() || pthread_getaffinity_np(thread, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(cpu_of_caller, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (pthread_setaffinity_np(thread, sizeof others, &others) == 0) kept_off.store(true);
#endif
}

// Called by the worker, which stays where it is now.
void Pool::Worker::run_anywhere() {
#ifdef __linux__
  if (!kept_off.load()) return;
  pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
  kept_off.store(false);
#endif
}

// Whole grains, where an index stands for a row or a tile, of which some belong together. Elements
// are cut evenly, at lines of the cache: of four grains, the last one short, two threads would do
// two each, and one of them would wait.
int64_t length_of_pieces(int64_t n, int64_t grain, int64_t shares) {
  constexpr int64_t kElements = 4096, kLine = 64;
  const int64_t grains = (n - 1) / grain + 1,
                grains_per_piece = grains / (shares * kPiecesPerThread);
  if (grains_per_piece > 0 || grain < kElements)
    return std::max<int64_t>(1, grains_per_piece) * grain;
  const int64_t pieces = (grains + shares - 1) / shares * shares;
  return (n / pieces / kLine + 1) * kLine;
}

void Pool::run(int64_t begin, int64_t end, int64_t grain, int threads, detail::RangeFunction f,
               void* context) {
  if (!try_acquire()) {
    f(context, begin, end);
    return;
  }
  if (shut_down_) threads = 1;
  if (requested_ != threads - 1) resize(threads - 1);
  const int64_t grains = (end - begin - 1) / grain + 1;
  const int shares = int(std::min<int64_t>(running_ + 1, grains));
  if (shares == 1) {
    release();
    f(context, begin, end);
    return;
  }
  const int64_t step = length_of_pieces(end - begin, grain, shares);
  const int64_t pieces = (end - begin - 1) / step + 1;
  function_ = f;
  context_ = context;
  begin_ = begin;
  end_ = end;
  step_ = step;
  shares_ = shares;
  float_mode_ = float_mode();
  for (int i = 0; i < shares; ++i) {
    share_[i].next.store(pieces * i / shares, std::memory_order_relaxed);
    share_[i].last = pieces * (i + 1) / shares;
  }
  state_.store(0, std::memory_order_release);
  const int cpu = shares <= kFewThreads ? current_cpu() : -1;
  for (int i = 0; i < shares - 1; ++i) {
    Worker& worker = worker_[i];
    const bool is_here = worker.cpu.load(std::memory_order_relaxed) == cpu;
    if (cpu >= 0 && (is_here || worker.doorbell.asleep.load())) worker.keep_off(cpu);
    worker.doorbell.ring();
  }

  inside_region = true;
  work(0);
  inside_region = false;
  close_and_wait();

  std::exception_ptr error;
  if (failed_.load(std::memory_order_relaxed)) {
    error = std::exchange(error_, nullptr);
    failed_.store(false, std::memory_order_relaxed);
  }
  release();
  if (error) std::rethrow_exception(error);
}

// Workers that wake up too late find the loop closed and go back to sleep.
void Pool::close_and_wait() {
  const uint32_t seen = all_left_.rings.load();
  if (state_.fetch_or(kClosed) == 0) return;
  spin_until([&] { return state_.load(std::memory_order_acquire) == kClosed; }, spin_nanoseconds_);
  // The last one to leave a closed loop rings exactly once, also when it left during the spin.
  all_left_.wait_for_change(seen, 0);
}

void Pool::serve(Worker& self) {
  uint32_t seen = 0;
  for (;;) {
    self.cpu.store(current_cpu(), std::memory_order_relaxed);
    seen = self.doorbell.wait_for_change(seen, spin_nanoseconds_);
    self.run_anywhere();
    if (stopping_.load()) return;
    uint32_t state = state_.load(std::memory_order_relaxed);
    bool joined = false;
    while (!(state & kClosed) && !joined) {
      joined = state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire);
    }
    if (!joined) continue;
    if (float_mode() != float_mode_) set_float_mode(float_mode_);
    work((self.index + 1) % shares_);
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1)) all_left_.ring();
  }
}

void* Pool::worker_main(void* worker) {
  inside_region = true;
  Worker& self = *static_cast<Worker*>(worker);
  reinterpret_cast<Pool*>(pool_storage)->serve(self);
  return nullptr;
}

void Pool::resize(int workers) {
  stop_workers();
  requested_ = workers;
  // With fewer cores than threads, one that spins delays the others.
  spin_nanoseconds_ = workers < available_cpus() ? kSpinNanoseconds : 0;
  // Signals belong to the threads of the program, which may not expect handlers to run here.
  sigset_t all, previous;
  sigfillset(&all);
  // Those of a thread's own faults end the process where they are blocked, whatever handles them.
  for (int fault : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  for (int i = 0; i < workers; ++i) {
    Worker& worker = worker_[i];
    worker.index = i;
    worker.doorbell.rings.store(0);
    worker.cpu.store(-1);
    if (pthread_create(&worker.thread, nullptr, worker_main, &worker) != 0) break;
#ifdef __linux__
    pthread_setname_np(worker.thread, "facula");
#endif
    ++running_;
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

void Pool::stop_workers() {
  stopping_.store(true);
  for (int i = 0; i < running_; ++i) worker_[i].doorbell.ring();
  for (int i = 0; i < running_; ++i) pthread_join(worker_[i].thread, nullptr);
  stopping_.store(false);
  running_ = 0;
}

void Pool::shut_down() {
  if (inside_region) return;  // exit() was called by a piece: its own thread cannot be joined
  // Another thread may still be in a loop; should it be stuck, the process ends without the join.
  const timespec pause{0, 1'000'000};
  for (int i = 0; i < 2000 && !try_acquire(); ++i) {
    if (i == 1999) return;
    nanosleep(&pause, nullptr);
  }
  stop_workers();
  requested_ = 0;
  shut_down_ = true;
  release();
}

}  // namespace

int num_threads() {
  int n = thread_count.load(std::memory_order_relaxed);
  if (n == 0) {
    int expected = 0;
    n = default_threads();
    if (!thread_count.compare_exchange_strong(expected, n)) n = expected;
  }
  return n;
}

void set_num_threads(int n) {
  if (n < 1) {
    throw std::invalid_argument("set_num_threads: expected a positive number of threads, got " +
                                std::to_string(n));
  }
  thread_count.store(std::min(n, kMaxThreads));  // the next loop starts or stops workers
}

bool in_parallel_region() {
  return inside_region;
}

namespace detail {

void run_parallel(int64_t begin, int64_t end, int64_t grain, RangeFunction f, void* context) {
  const int threads = num_threads();
  if (threads == 1 || inside_region) {
    f(context, begin, end);
  } else {
    pool().run(begin, end, std::max<int64_t>(1, grain), threads, f, context);
  }
}

}  // namespace detail

}  // namespace facula
