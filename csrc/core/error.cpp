#include "core/error.h"

#include <charconv>

#include "core/type_names.h"

namespace facula {

Error::~Error() = default;

// Some texts begin with the operator, as PyTorch has them; they need no other name.
void Error::name_operator(const char* op) {
  const std::string_view given = op;
  // "torch.linalg.inv: " holds both of PyTorch's spellings, with and without the package.
  constexpr std::string_view linalg = "linalg_";
  const std::string name = given.starts_with(linalg)
                               ? "torch.linalg." + std::string(given.substr(linalg.size())) + ": "
                               : std::string(given) + "(): ";
  const std::string_view text = std::string_view(message_).substr(prefix_);
  if (text.starts_with(std::string(given) + "() ") ||
      text.starts_with("torch." + std::string(given) + " ")) {
    message_.erase(0, prefix_);
    prefix_ = 0;
    return;
  }
  if (!message_.starts_with(name)) message_.replace(0, prefix_, name);
  prefix_ = name.size();
}

template <class... Args>
static void put_number(std::string& s, Args... args) {
  char digits[64];
  s.append(digits, std::to_chars(digits, digits + sizeof digits, args...).ptr);
}

void TextPart::append_to(std::string& s) const {
  switch (kind_) {
    case Kind::Text: s.append(text_, size_); break;
    case Kind::Char: s += char(int_); break;
    case Kind::Int: put_number(s, int_); break;
    case Kind::UInt: put_number(s, uint64_t(int_)); break;
    case Kind::Float: put_number(s, float_, std::chars_format::general, 6); break;
    case Kind::DType: (s += "facula.") += dtype_name(facula::DType(int_)); break;
    case Kind::Device: s += to_string(device_); break;
    case Kind::Shape:
      s += '[';
      for (uint32_t i = 0; i < size_; ++i) {
        if (i) s += ", ";
        put_number(s, ints_[i]);
      }
      s += ']';
  }
}

std::string join_text(std::initializer_list<TextPart> parts) {
  std::string s;
  for (const TextPart& p : parts) p.append_to(s);
  return s;
}

void throw_error(ErrorKind kind, std::initializer_list<TextPart> parts) {
  throw Error(kind, join_text(parts));
}

void broadcast_error(IntSpan a, IntSpan b, int64_t dim, int64_t size_a, int64_t size_b) {
  runtime_error("The size of tensor a (", size_a, ") must match the size of tensor b (", size_b,
                ") at non-singleton dimension ", dim, ". The shapes ", a, " and ", b,
                " cannot be broadcast together: aligned from the right, each pair of sizes must be "
                "equal or one of them 1");
}

void expand_error(IntSpan from, IntSpan to) {
  if (from.size() > to.size())
    runtime_error("expand: the number of sizes provided (", to.size(),
                  ") must be greater or equal to the number of dimensions in the tensor (",
                  from.size(), ").  Target sizes: ", to, ".  Tensor sizes: ", from);
  const size_t lead = to.size() - from.size();
  for (size_t d = to.size(); d-- > lead;)
    if (from[d - lead] != 1 && to[d] != -1 && from[d - lead] != to[d])
      runtime_error("The expanded size of the tensor (", to[d], ") must match the existing size (",
                    from[d - lead], ") at non-singleton dimension ", d, ".  Target sizes: ", to,
                    ".  Tensor sizes: ", from);
  runtime_error("a tensor of shape ", from, " cannot be expanded to ", to);
}

void dim_error(int64_t dim, int64_t ndim) {
  int64_t n = ndim ? ndim : 1;
  index_error("Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
              "], but got ", dim, ") for a tensor of ", ndim, " dimensions");
}

void dtype_error(DType given, const std::string& accepted) {
  fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(given), "' (", given,
       "); accepted are ", accepted,
       ". Convert the input first, for example with .to(facula.float32)");
}

void device_error(Device a, Device b) {
  runtime_error("Expected all tensors to be on the same device, but found at least two devices, ",
                a, " and ", b, "! Move one of them, for example with .to('", a, "')");
}

void cast_error(DType result, DType wanted) {
  runtime_error("result type ", legacy_dtype_name(result),
                " can't be cast to the desired output type ", legacy_dtype_name(wanted),
                ": the operation computes in ", result, " and the destination holds ", wanted,
                ". Use the out-of-place form, or convert the destination with .to(", result, ")");
}

void index_range_error(int64_t index, int64_t dim, int64_t size) {
  index_error("index ", index, " is out of bounds for dimension ", dim, " with size ", size,
              "; valid are ", -size, " to ", size - 1);
}

void overlap_error() {
  runtime_error(
      "unsupported operation: more than one element of the written-to tensor refers to a "
      "single memory location. Please clone() the tensor before performing the operation.");
}

void aliasing_error() {
  runtime_error(
      "unsupported operation: some elements of the input tensor and the written-to tensor "
      "refer to a single memory location. Please clone() the tensor before performing the "
      "operation.");
}

// The names of C++ types, as PyTorch's message has them.
static std::string scalar_type_name(DType d) {
  switch (d) {
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    default: return std::string(dtype_name(d)) + (is_integral(d) ? "_t" : "");
  }
}

const char* cpp_type_name(DType d) {
  switch (d) {
    case DType::Bool: return "bool";
    case DType::UInt8: return "unsigned char";
    case DType::Int8: return "signed char";
    case DType::Int16: return "short int";
    case DType::Int32: return "int";
    case DType::Int64: return "long int";
    case DType::UInt16: return "short unsigned int";
    case DType::UInt32: return "unsigned int";
    case DType::UInt64: return "long unsigned int";
    case DType::Float16: return "c10::Half";
    case DType::BFloat16: return "c10::BFloat16";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Complex64: return "c10::complex<float>";
    case DType::Complex128: return "c10::complex<double>";
    case DType::Float8E4M3: return "c10::Float8_e4m3fn";
    case DType::Float8E5M2: return "c10::Float8_e5m2";
    default: return "undefined";
  }
}

void overflow_error(const std::string& value, DType d) {
  runtime_error("value cannot be converted to type ", scalar_type_name(d),
                " without overflow: ", value, " does not fit into ", d);
}

const char* legacy_dtype_name(DType d) {
  switch (d) {
    case DType::Bool: return "Bool";
    case DType::UInt8: return "Byte";
    case DType::Int8: return "Char";
    case DType::Int16: return "Short";
    case DType::Int32: return "Int";
    case DType::Int64: return "Long";
    case DType::UInt16: return "UInt16";
    case DType::UInt32: return "UInt32";
    case DType::UInt64: return "UInt64";
    case DType::Float16: return "Half";
    case DType::BFloat16: return "BFloat16";
    case DType::Float32: return "Float";
    case DType::Float64: return "Double";
    case DType::Complex64: return "ComplexFloat";
    case DType::Complex128: return "ComplexDouble";
    case DType::Float8E4M3: return "Float8_e4m3fn";
    case DType::Float8E5M2: return "Float8_e5m2";
    default: return "Undefined";
  }
}

}  // namespace facula
