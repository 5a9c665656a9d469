// Connectionist temporal classification (Graves and others 2006): the probability of a sequence of
// labels is the sum over all ways to spread it, with blanks between, over the steps of the input.
#include <cmath>
#include <limits>
#include <vector>

#include "core/thread_pool.h"
#include "cpu/ctc.h"
#include "kernels/destination.h"
#include "kernels/host_only.h"
#include "kernels/loss_reduction.h"
#include "op/hooks/sampling.h"
#include "op/kernels/losses.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/losses.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
  const T larger = std::max(a, b);
  return larger == kNever<T> ? larger : larger + std::log1p(std::exp(-std::abs(a - b)));
}

// The sequences of a batch, checked.
struct Sequences {
  int64_t steps, batch, classes, blank, longest = 0;
  std::vector<int64_t> input_lengths, target_lengths, offsets;
  Tensor labels;

  Sequences(const Tensor& log_probs, const Tensor& targets, const Tensor& inputs,
            const Tensor& lengths, int64_t blank_label)
      : steps(log_probs.size(0)),
        batch(log_probs.size(1)),
        classes(log_probs.size(2)),
        blank(blank_label),
        labels(dense_int64(targets)) {
    if (blank < 0 || blank >= classes)
      runtime_error("blank must be in label range, 0 to ", classes - 1, ", got ", blank);
    input_lengths = numbers(inputs, "input_lengths");
    target_lengths = numbers(lengths, "target_lengths");
    int64_t total = 0;
    for (int64_t n = 0; n < batch; ++n) {
      const int64_t own = target_lengths[size_t(n)], given = input_lengths[size_t(n)];
      if (given < 0 || given > steps)
        runtime_error("Expected input_lengths to have value at most ", steps, ", but got value ",
                      given, " at position ", n);
      if (own < 0)
        runtime_error("Expected target_lengths to have value at least 0, but got value ", own,
                      " at position ", n);
      offsets.push_back(targets.dim() == 1 ? total : n * targets.size(1));
      total += own;
      longest = std::max(longest, own);
    }
    if (targets.dim() == 1) {
      if (targets.size(0) != total)
        runtime_error("Expected tensor to have size ", total, " at dimension 0, but got size ",
                      targets.size(0), " for argument #2 'targets': the sum of target_lengths");
    } else if (targets.dim() != 2 || targets.size(0) != batch || targets.size(1) < longest) {
      runtime_error("Expected targets of shape (", batch, ", at least ", longest,
                    ") or of one dimension, but got shape ", targets.sizes());
    }
    if (labels.is_cuda()) return;  // devices check labels themselves
    const int64_t* p = labels.data_as<int64_t>();
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t k = 0; k < target_lengths[size_t(n)]; ++k) {
        const int64_t label = p[offsets[size_t(n)] + k];
        if (label < 0 || label >= classes)
          index_error("Target ", label, " is out of bounds: label ", k, " of sequence ", n, " is ",
                      label, ", but log_probs has ", classes, " classes");
      }
  }

  std::vector<int64_t> numbers(const Tensor& t, const char* name) const {
    if (!is_integral(t.dtype())) runtime_error(name, " must be integral, got ", t.dtype());
    if (t.numel() != batch)
      runtime_error(name, " must be of size batch_size, ", batch, ", but has shape ", t.sizes());
    // What follows depends on them, so that lengths on a device are waited for.
    const Tensor dense = dense_int64(t.is_cpu() ? t : op::_to_copy(t, t.dtype(), Device{}));
    return {dense.data_as<int64_t>(), dense.data_as<int64_t>() + batch};
  }
  int64_t states(int64_t n) const { return 2 * target_lengths[size_t(n)] + 1; }
  int64_t most_states() const { return 2 * longest + 1; }
  // The label of a state: blanks are the even ones.
  int64_t label(int64_t n, int64_t state) const {
    return state % 2 == 0 ? blank : labels.data_as<int64_t>()[offsets[size_t(n)] + state / 2];
  }
  // Whether the blank between two labels may be left out.
  bool skips(int64_t n, int64_t state) const {
    return state % 2 == 1 && state >= 2 && label(n, state) != label(n, state - 2);
  }
};

// What the recursions of one sequence read, state by state.
template <class T>
struct States {
  const Sequences& q;
  int64_t n, count;
  std::vector<int64_t> label;
  // 0 where the blank between two labels may be left out, -inf elsewhere. Two states that nobody
  // reaches follow the last one.
  std::vector<T> bar;
  std::vector<T> emit;  // log probabilities of the labels at one step

  States(const Sequences& sequences, int64_t sequence)
      : q(sequences),
        n(sequence),
        count(q.states(n)),
        label(size_t(count)),
        bar(size_t(count + 2), kNever<T>),
        emit(size_t(count)) {
    for (int64_t s = 0; s < count; ++s) {
      label[size_t(s)] = q.label(n, s);
      if (q.skips(n, s)) bar[size_t(s)] = 0;
    }
  }
  const T* read(const T* log_probs, int64_t t) {
    const T* row = log_probs + (t * q.batch + n) * q.classes;
    for (size_t s = 0; s < emit.size(); ++s) emit[s] = row[label[s]];
    return emit.data();
  }
};

// alpha[t][s]: the log probability of all ways to be in state s after step t.
template <class T>
T forward(const Sequences& q, int64_t n, const T* log_probs, T* alpha) {
  const int64_t steps = q.input_lengths[size_t(n)], width = q.most_states();
  States<T> states(q, n);
  const int64_t count = states.count;
  if (steps == 0) {
    std::fill(alpha, alpha + q.steps * width, kNever<T>);
    return count == 1 ? T(0) : -kNever<T>;
  }
  // One step, with two states that nobody reaches in front.
  std::vector<T> row(size_t(count + 2), kNever<T>);
  T* now = row.data() + 2;
  for (int64_t t = 0; t < steps; ++t, alpha += width) {
    const T* emit = states.read(log_probs, t);
    if (t == 0)
      for (int64_t s = 0; s < count; ++s) alpha[s] = s < 2 ? emit[s] : kNever<T>;
    else ctc_loops<T>().advance(now, now - 1, now - 2, states.bar.data(), emit, count, alpha);
    std::fill(alpha + count, alpha + width, kNever<T>);
    std::copy(alpha, alpha + count, now);
  }
  std::fill(alpha, alpha + (q.steps - steps) * width, kNever<T>);
  return -(count > 1 ? log_add(now[count - 1], now[count - 2]) : now[0]);
}

// The gradient of what a softmax before the loss receives: the probabilities minus their part in
// the paths. Another gradient by log_probs differs from it by what the softmax takes out.
template <class T>
void backward(const Sequences& q, int64_t n, const T* log_probs, const T* alpha, T loss, T grad,
              T* out) {
  const int64_t steps = q.input_lengths[size_t(n)], width = q.most_states();
  const CtcLoops<T>& loops = ctc_loops<T>();
  States<T> states(q, n);
  const int64_t count = states.count;
  // beta and the step after it, with two states that nobody reaches at the end.
  std::vector<T> beta(size_t(count + 2), kNever<T>), next(beta), shares(size_t(count), T(0));
  std::vector<T> part(size_t(q.classes));
  for (int64_t t = steps - 1; t >= 0; --t) {
    next.swap(beta);
    const T* emit = states.read(log_probs, t);
    if (t == steps - 1)
      for (int64_t s = 0; s < count; ++s) beta[size_t(s)] = s >= count - 2 ? emit[s] : kNever<T>;
    else
      loops.advance(next.data(), next.data() + 1, next.data() + 2, states.bar.data() + 2, emit,
                    count, beta.data());
    loops.posterior(alpha + t * width, beta.data(), emit, loss, count, shares.data());
    std::fill(part.begin(), part.end(), loss - loss);  // NaN where no path leads to the end
    for (int64_t s = 0; s < count; ++s) part[size_t(states.label[size_t(s)])] += shares[size_t(s)];
    const int64_t row = (t * q.batch + n) * q.classes;
    loops.gradient(log_probs + row, part.data(), grad, q.classes, out + row);
  }
}

LabelSequences on_device(const Sequences& q, const Tensor& log_probs) {
  return {log_probs, q.labels, q.input_lengths.data(), q.target_lengths.data(), q.offsets.data(),
          q.blank,   q.longest};
}

template <class F>
void with_type(DType dtype, F&& f) {
  if (dtype == DType::Float64) f(double{});
  else f(float{});
}

Tensor as_computed(const Tensor& t, DType compute) {
  return t.dtype() == compute ? dense(t)
                              : op::_to_copy(t, compute, kNoDevice, MemoryFormat::Contiguous);
}

void check_log_probs(const Tensor& log_probs) {
  if (log_probs.dtype() != DType::Float32 && log_probs.dtype() != DType::Float64)
    dtype_error(log_probs.dtype(), "float32, float64");
  if (log_probs.dim() != 3)
    runtime_error("log_probs must have shape (T, N, C), or (T, C) for one sequence, got ",
                  log_probs.sizes());
}

}  // namespace

std::tuple<Tensor, Tensor> _ctc_loss(const Tensor& log_probs, const Tensor& targets,
                                     const Tensor& input_lengths, const Tensor& target_lengths,
                                     int64_t blank, bool) {
  require_one_device({&log_probs, &targets});
  check_log_probs(log_probs);
  if (log_probs.is_meta())  // how many states there are is in the lengths
    return {empty_tensor(Dims{log_probs.size(1)}, log_probs.dtype(), log_probs.device()),
            empty_tensor(Dims{log_probs.size(1), log_probs.size(0), 1}, log_probs.dtype(),
                         log_probs.device())};
  const Sequences q(log_probs, targets, input_lengths, target_lengths, blank);
  Tensor loss = empty_tensor(Dims{q.batch}, log_probs.dtype(), log_probs.device());
  Tensor alpha =
      empty_tensor(Dims{q.batch, q.steps, q.most_states()}, log_probs.dtype(), log_probs.device());
  const Tensor x = as_computed(log_probs, log_probs.dtype());
  if (x.is_cuda()) {
    device_sampling.ctc(on_device(q, x), loss, alpha);
    return {loss, alpha};
  }
  with_type(log_probs.dtype(), [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, q.batch, 1, [&](int64_t b, int64_t e) {
      for (int64_t n = b; n < e; ++n)
        loss.data_as<T>()[n] =
            forward(q, n, x.data_as<T>(), alpha.data_as<T>() + n * q.steps * q.most_states());
    });
  });
  return {loss, alpha};
}

Tensor _ctc_loss_grad(const Tensor& grad_out, const Tensor& log_probs, const Tensor& targets,
                      const Tensor& input_lengths, const Tensor& target_lengths,
                      const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank,
                      bool zero_infinity) {
  require_one_device({&grad_out, &log_probs, &targets});
  Tensor out = empty_tensor(log_probs.sizes(), log_probs.dtype(), log_probs.device());
  if (log_probs.is_meta()) return out;
  const Sequences q(log_probs, targets, input_lengths, target_lengths, blank);
  op::zero_(out);
  const DType dtype = log_probs.dtype();
  const Tensor x = as_computed(log_probs, dtype), g = as_computed(grad_out, dtype),
               losses = as_computed(neg_log_likelihood, dtype),
               alpha = as_computed(log_alpha, dtype);
  if (x.is_cuda()) {
    device_sampling.ctc_grad(on_device(q, x), losses, alpha, g, zero_infinity, out);
    return out;
  }
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, q.batch, 1, [&](int64_t b, int64_t e) {
      for (int64_t n = b; n < e; ++n) {
        const T loss = losses.data_as<T>()[n];
        if (zero_infinity && loss == -kNever<T>) continue;
        backward(q, n, x.data_as<T>(), alpha.data_as<T>() + n * q.steps * q.most_states(), loss,
                 g.data_as<T>()[n], out.data_as<T>());
      }
    });
  });
  return out;
}

static Tensor ctc(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                  const Tensor& target_lengths, int64_t blank, Reduction reduction,
                  bool zero_infinity) {
  const bool one = log_probs.dim() == 2;
  Tensor loss = std::get<0>(op::_ctc_loss(
      one ? op::unsqueeze(log_probs, 1) : log_probs,
      one && targets.dim() == 1 ? op::unsqueeze(targets, 0) : targets,
      one ? op::reshape(input_lengths, Dims{-1}) : input_lengths,
      one ? op::reshape(target_lengths, Dims{-1}) : target_lengths, blank, zero_infinity));
  if (zero_infinity)
    loss = op::where(op::eq(loss, std::numeric_limits<double>::infinity()), 0.0, loss);
  if (reduction == Reduction::Mean) {
    const Tensor lengths =
        op::_to_copy(op::clamp_min(target_lengths, 1), loss.dtype(), loss.device());
    return op::mean(loss / (one ? op::reshape(lengths, Dims{-1}) : lengths));
  }
  if (one && reduction == Reduction::None) loss = op::squeeze_dim(loss, Dims{0});
  return reduced(loss, reduction);
}

static Tensor as_tensor(IntSpan numbers) {
  Tensor t = empty_tensor(Dims{int64_t(numbers.size())}, DType::Int64, Device{});
  std::copy(numbers.begin(), numbers.end(), t.data_as<int64_t>());
  return t;
}

Tensor ctc_loss_Tensor(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank, int64_t reduction,
                       bool zero_infinity) {
  return ctc(log_probs, targets, input_lengths, target_lengths, blank,
             reduction_numbered(reduction), zero_infinity);
}
Tensor ctc_loss_IntList(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths,
                        IntSpan target_lengths, int64_t blank, int64_t reduction,
                        bool zero_infinity) {
  return ctc(log_probs, targets, as_tensor(input_lengths), as_tensor(target_lengths), blank,
             reduction_numbered(reduction), zero_infinity);
}
Tensor ctc_loss_functional(const Tensor& log_probs, const Tensor& targets,
                           const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                           std::string_view reduction, bool zero_infinity) {
  return ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction_named(reduction),
             zero_infinity);
}
Tensor ctc_loss_functional_ints(const Tensor& log_probs, const Tensor& targets,
                                IntSpan input_lengths, IntSpan target_lengths, int64_t blank,
                                std::string_view reduction, bool zero_infinity) {
  return ctc(log_probs, targets, as_tensor(input_lengths), as_tensor(target_lengths), blank,
             reduction_named(reduction), zero_infinity);
}

}  // namespace facula::kernels
