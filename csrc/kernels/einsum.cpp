// einsum: the equation is parsed into labels, and pairs of operands are contracted by matrix
// products until one is left.
#include <algorithm>
#include <array>
#include <limits>

#include "op/kernels/linalg_products.h"
#include "op/ops/products.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

// A label is the number of a letter (A-Z, then a-z) or, from kEllipsis on, a dimension that "..."
// stands for; those are counted from the right, as in broadcasting.
constexpr int kEllipsis = 52;
constexpr int kLabels = kEllipsis + kMaxDims;
using Labels = std::vector<int>;

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int letter_label(char c) {
  return c >= 'a' ? c - 'a' + 26 : c - 'A';
}

std::string label_text(int label) {
  if (label >= kEllipsis) return "of the ellipsis";
  return std::string(1, char(label < 26 ? 'A' + label : 'a' + label - 26));
}

// The subscripts of one operand or of the output, before it is known what "..." stands for.
struct Subscripts {
  Labels before, after;  // of the ellipsis; all are in `before` when there is none
  bool ellipsis = false;
  size_t letters() const { return before.size() + after.size(); }
};

// Where a subscript stands, for messages: "operand 1" or "output".
std::string place(int operand) {
  return operand < 0 ? std::string("output") : text("operand ", operand);
}

struct Equation {
  std::vector<Subscripts> inputs;
  Subscripts output;
  bool explicit_output = false;
};

Equation parse_equation(std::string_view equation) {
  Equation parsed;
  Subscripts current;
  auto where = [&] { return parsed.explicit_output ? -1 : int(parsed.inputs.size()); };
  for (size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (is_letter(c)) {
      (current.ellipsis ? current.after : current.before).push_back(letter_label(c));
    } else if (c == '.') {
      if (equation.substr(i, 3) != "...")
        runtime_error("found '.' for ", place(where()), " that is not part of any ellipsis",
                      parsed.explicit_output ? " (...)" : "", ", in the equation \"", equation,
                      "\"");
      if (current.ellipsis)
        runtime_error("found '.' for ", place(where()),
                      parsed.explicit_output ? " but an ellipsis (...) was already found"
                                             : " for which an ellipsis was already found",
                      ", in the equation \"", equation, "\"");
      current.ellipsis = true;
      i += 2;
    } else if (c == ',' && !parsed.explicit_output) {
      parsed.inputs.push_back(std::move(current));
      current = {};
    } else if (equation.substr(i, 2) == "->" && !parsed.explicit_output) {
      parsed.inputs.push_back(std::move(current));
      current = {};
      parsed.explicit_output = true;
      ++i;
    } else {
      runtime_error("invalid subscript given at index ", i,
                    " in the equation string, subscripts must be in [a-zA-Z], with ',' between "
                    "operands and at most one '->', but \"",
                    equation, "\" has '", c, "' there");
    }
  }
  if (parsed.explicit_output) parsed.output = std::move(current);
  else parsed.inputs.push_back(std::move(current));
  return parsed;
}

struct Operand {
  Tensor tensor;
  Labels labels;  // of the dimensions, all different
};

Labels with_ellipsis(const Subscripts& s, int64_t dims) {
  Labels labels = s.before;
  for (int64_t k = dims; k-- > 0;) labels.push_back(kEllipsis + int(k));
  labels.insert(labels.end(), s.after.begin(), s.after.end());
  return labels;
}

// One dimension for each label: a label that is repeated takes the diagonal.
Operand take_diagonals(const Tensor& tensor, const Labels& given, int operand) {
  Operand result{tensor, {}};
  for (int label : given) {
    const auto found = std::find(result.labels.begin(), result.labels.end(), label);
    const int64_t at = int64_t(result.labels.size());
    if (found == result.labels.end()) {
      result.labels.push_back(label);
      continue;
    }
    const int64_t first = found - result.labels.begin();
    Tensor& t = result.tensor;
    if (t.size(first) != t.size(at))
      runtime_error("subscript ", label_text(label), " is repeated for operand ", operand,
                    " but the sizes don't match, ", t.size(at), " != ", t.size(first), " (shape ",
                    tensor.sizes(), ")");
    t = op::diagonal(t, 0, first, at);  // the diagonal comes last
    t = op::movedim(t, Dims{-1}, Dims{first});
  }
  return result;
}

class Contraction {
 public:
  Contraction(std::string_view equation, TensorSpan tensors);
  Tensor run();

 private:
  int position(int label) const { return rank_[size_t(label)]; }
  void read_sizes(TensorSpan tensors);
  void find_output(const Equation& equation, std::string_view text, int64_t ellipsis_dims);
  std::pair<size_t, size_t> cheapest_pair() const;
  bool is_kept(int label, size_t a, size_t b) const;
  double size_of(const Labels& labels) const;
  Operand contract(size_t i, size_t j) const;
  Tensor sum_out(const Operand& a, const Labels& left, bool keep_dtype = false) const;

  std::vector<Operand> operands_;
  Labels output_;
  std::array<int64_t, kLabels> sizes_;
  std::array<int, kLabels> rank_;  // labels of the output in their order, then the rest
};

Contraction::Contraction(std::string_view equation, TensorSpan tensors) {
  if (tensors.empty()) runtime_error("must provide at least one operand");
  const Equation parsed = parse_equation(equation);
  if (parsed.inputs.size() != tensors.size())
    runtime_error(parsed.inputs.size() > tensors.size() ? "fewer" : "more",
                  " operands were provided than specified in the equation \"", equation,
                  "\": ", tensors.size(), " instead of ", parsed.inputs.size());
  int64_t ellipsis_dims = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Subscripts& s = parsed.inputs[i];
    const int64_t letters = int64_t(s.letters()), dims = tensors[i].dim();
    if (s.ellipsis ? letters > dims : letters != dims)
      runtime_error("the number of subscripts in the equation (", letters,
                    s.ellipsis ? ") is more than the number of dimensions ("
                               : ") does not match the number of dimensions (",
                    dims, ") for operand ", i, s.ellipsis ? "" : " and no ellipsis was given",
                    "; its shape is ", tensors[i].sizes());
    const int64_t covered = s.ellipsis ? dims - letters : 0;
    ellipsis_dims = std::max(ellipsis_dims, covered);
    operands_.push_back(take_diagonals(tensors[i], with_ellipsis(s, covered), int(i)));
  }
  find_output(parsed, equation, ellipsis_dims);
  read_sizes(tensors);
}

void Contraction::find_output(const Equation& equation, std::string_view text,
                              int64_t ellipsis_dims) {
  std::array<int, kLabels> count{};
  for (const Subscripts& s : equation.inputs)
    for (const Labels* labels : {&s.before, &s.after})
      for (int label : *labels) ++count[size_t(label)];
  if (equation.explicit_output) {
    output_ = with_ellipsis(equation.output, equation.output.ellipsis ? ellipsis_dims : 0);
    for (size_t k = 0; k < output_.size(); ++k) {
      const int label = output_[k];
      if (std::find(output_.begin(), output_.begin() + int64_t(k), label) !=
          output_.begin() + int64_t(k))
        runtime_error("output subscript ", label_text(label),
                      " appears more than once in the output of \"", text, "\"");
      if (label < kEllipsis && !count[size_t(label)])
        runtime_error("output subscript ", label_text(label),
                      " does not appear in the equation for any input operand: \"", text, "\"");
    }
  } else {  // what the ellipsis stands for, then every letter that appears once, sorted
    output_ = with_ellipsis({}, ellipsis_dims);
    for (int label = 0; label < kEllipsis; ++label)
      if (count[size_t(label)] == 1) output_.push_back(label);
  }
  rank_.fill(-1);
  int next = 0;
  for (int label : output_) rank_[size_t(label)] = next++;
  for (int& r : rank_)
    if (r < 0) r = next++;
}

// Broadcast sizes. Dimensions of size 1 are taken away: they come back in the output.
void Contraction::read_sizes(TensorSpan tensors) {
  sizes_.fill(1);
  for (size_t i = 0; i < operands_.size(); ++i) {
    Operand& a = operands_[i];
    Labels labels;
    Dims ones;
    for (size_t d = 0; d < a.labels.size(); ++d) {
      const int label = a.labels[d];
      const int64_t size = a.tensor.sizes()[d];
      if (size == 1) {
        ones.push_back(int64_t(d));
        continue;
      }
      int64_t& known = sizes_[size_t(label)];
      if (known != 1 && known != size)
        runtime_error("subscript ", label_text(label), " has size ", size, " for operand ", i,
                      " which does not broadcast with previously seen size ", known,
                      ". The operand has shape ", tensors[i].sizes());
      known = size;
      labels.push_back(label);
    }
    if (!ones.empty()) a.tensor = op::squeeze_dim(a.tensor, ones);
    a.labels = std::move(labels);
  }
}

double Contraction::size_of(const Labels& labels) const {
  double size = 1;
  for (int label : labels) size *= double(sizes_[size_t(label)]);
  return size;
}

// Whether the label is still needed when operands a and b have been contracted.
bool Contraction::is_kept(int label, size_t a, size_t b) const {
  if (contains(output_, label)) return true;
  for (size_t k = 0; k < operands_.size(); ++k)
    if (k != a && k != b && contains(operands_[k].labels, label)) return true;
  return false;
}

// The pair with the fewest multiplications, of equals the one whose product needs the least memory
// beyond its operands, then the first.
std::pair<size_t, size_t> Contraction::cheapest_pair() const {
  std::pair<size_t, size_t> best{0, 1};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::pair<double, double> least{kInfinity, kInfinity};
  for (size_t i = 0; operands_.size() > 2 && i < operands_.size(); ++i)
    for (size_t j = i + 1; j < operands_.size(); ++j) {
      const Labels &a = operands_[i].labels, &b = operands_[j].labels;
      Labels all = a, result;
      for (int label : b)
        if (!contains(a, label)) all.push_back(label);
      for (int label : all)
        if (is_kept(label, i, j)) result.push_back(label);
      const std::pair cost{size_of(all), size_of(result) - size_of(a) - size_of(b)};
      if (cost < least) least = cost, best = {i, j};
    }
  return best;
}

// Sums over all dimensions but those of `left`, and brings these into their order.
Tensor Contraction::sum_out(const Operand& a, const Labels& left, bool keep_dtype) const {
  Labels labels;
  Dims gone;
  for (size_t d = 0; d < a.labels.size(); ++d)
    if (contains(left, a.labels[d])) labels.push_back(a.labels[d]);
    else gone.push_back(int64_t(d));
  Tensor t = gone.empty() ? a.tensor
                          : op::sum_dim(a.tensor, IntSpan(gone), false,
                                        keep_dtype ? a.tensor.dtype() : DType::None);
  Dims order;
  bool moved = false;
  for (int label : left) {
    const auto at = std::find(labels.begin(), labels.end(), label) - labels.begin();
    moved |= at != int64_t(order.size());
    order.push_back(at);
  }
  return moved ? op::permute(t, order) : t;
}

Operand Contraction::contract(size_t i, size_t j) const {
  const Operand &a = operands_[i], &b = operands_[j];
  Labels batch, left, right, summed;
  for (int label : a.labels) {
    const bool shared = contains(b.labels, label), kept = is_kept(label, i, j);
    if (shared) (kept ? batch : summed).push_back(label);
    else if (kept) left.push_back(label);
  }
  for (int label : b.labels)
    if (!contains(a.labels, label) && is_kept(label, i, j)) right.push_back(label);
  auto in_order = [&](Labels& labels) {
    std::sort(labels.begin(), labels.end(),
              [&](int x, int y) { return position(x) < position(y); });
  };
  in_order(batch), in_order(left), in_order(right);
  auto joined = [](std::initializer_list<const Labels*> lists) {
    Labels all;
    for (const Labels* l : lists) all.insert(all.end(), l->begin(), l->end());
    return all;
  };
  Operand result;
  result.labels = joined({&batch, &left, &right});
  // Operands change places where that brings the product into the order of the output.
  const Labels swapped = joined({&batch, &right, &left});
  auto sorted = [&](const Labels& labels) {
    return std::is_sorted(labels.begin(), labels.end(),
                          [&](int x, int y) { return position(x) < position(y); });
  };
  if (!summed.empty() && !sorted(result.labels) && sorted(swapped)) return contract(j, i);
  if (summed.empty()) {  // nothing to sum over: an elementwise product
    in_order(result.labels);
    auto aligned = [&](const Operand& o) {
      Labels present;
      for (int label : result.labels)
        if (contains(o.labels, label)) present.push_back(label);
      Tensor t = sum_out(o, present);
      for (size_t d = 0; d < result.labels.size(); ++d)
        if (!contains(o.labels, result.labels[d])) t = op::unsqueeze(t, int64_t(d));
      return t;
    };
    result.tensor = aligned(a) * aligned(b);
    return result;
  }
  // The order of the summed dimensions is free: that of the larger operand's memory, which then
  // need not be copied to make one dimension of them.
  const Operand& larger = a.tensor.numel() >= b.tensor.numel() ? a : b;
  auto stride = [&](int label) {
    return larger.tensor.strides()[size_t(
        std::find(larger.labels.begin(), larger.labels.end(), label) - larger.labels.begin())];
  };
  std::stable_sort(summed.begin(), summed.end(),
                   [&](int x, int y) { return stride(x) > stride(y); });
  auto count = [&](const Labels& labels) {
    int64_t n = 1;
    for (int label : labels) n *= sizes_[size_t(label)];
    return n;
  };
  Labels a_order = joined({&batch, &left, &summed}), b_order = joined({&batch, &summed, &right});
  Dims a_shape, b_shape, shape;
  if (!batch.empty()) a_shape.push_back(count(batch)), b_shape.push_back(count(batch));
  a_shape.push_back(count(left)), a_shape.push_back(count(summed));
  b_shape.push_back(count(summed)), b_shape.push_back(count(right));
  const Tensor x = op::reshape(sum_out(a, a_order, true), a_shape),
               y = op::reshape(sum_out(b, b_order, true), b_shape);
  for (int label : result.labels) shape.push_back(sizes_[size_t(label)]);
  result.tensor = op::view(batch.empty() ? op::mm(x, y) : op::bmm(x, y), shape);
  return result;
}

Tensor Contraction::run() {
  while (operands_.size() > 1) {
    const auto [i, j] = cheapest_pair();
    operands_[i] = contract(i, j);
    operands_.erase(operands_.begin() + int64_t(j));
  }
  Labels present;
  for (int label : output_)
    if (contains(operands_[0].labels, label)) present.push_back(label);
  Tensor result = sum_out(operands_[0], present);
  for (size_t d = 0; d < output_.size(); ++d)
    if (!contains(present, output_[d])) result = op::unsqueeze(result, int64_t(d));
  return result;
}

}  // namespace

Tensor einsum(std::string_view equation, TensorSpan tensors) {
  const Tensor result = Contraction(equation, tensors).run();
  // An equation that asks for nothing gives a view, as one that asks for a transpose does.
  return result.is(tensors[0]) ? op::alias(result) : result;
}

}  // namespace facula::kernels
