// The matrix tiles of Intel's AMX in software, for processors that do not have them: loaded into a
// process, it carries out the instructions that cpu/amx_tiles.h uses when they raise SIGILL. Each
// thread has tiles of its own. Misuse ends the process with a message.
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kRows = 16, kRowBytes = 64;

struct Tiles {
  bool configured = false;
  alignas(64) uint8_t data[8][kRows][kRowBytes] = {};
};
thread_local Tiles tiles;

[[noreturn]] void misuse(const char* what) {
  std::fprintf(stderr, "tile emulator: %s\n", what);
  _exit(70);
}

uint64_t& general_register(ucontext_t* context, int number) {
  static constexpr int kPlaces[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};
  return reinterpret_cast<uint64_t&>(context->uc_mcontext.gregs[kPlaces[number]]);
}

float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// Subnormal operands count as zero, and so do subnormal results.
float flushed(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits & 0x7f800000 ? value : from_bits(bits & 0x80000000);
}

float of_bfloat16(uint16_t bits) { return flushed(from_bits(uint32_t(bits) << 16)); }

float of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction ? from_bits(0x7fc00000) : sign * from_bits(0x7f800000);
  if (!exponent) return sign * float(fraction) * 0x1p-24f;
  return from_bits(uint32_t(bits & 0x8000) << 16 | uint32_t(exponent + 112) << 23 |
                   uint32_t(fraction) << 13);
}

template <class Read>
void multiply(int sums, int left, int right, Read read) {
  for (int m = 0; m < kRows; ++m) {
    float sum[2 * kRows] = {};
    uint16_t a[kRowBytes / 2], b[kRowBytes / 2];
    std::memcpy(a, tiles.data[left][m], kRowBytes);
    for (int k = 0; k < kRows; ++k) {
      std::memcpy(b, tiles.data[right][k], kRowBytes);
      for (int n = 0; n < 2 * kRows; ++n)
        sum[n] = flushed(__builtin_fmaf(read(a[2 * k + n % 2]), read(b[n]), sum[n]));
    }
    float c[kRows];
    std::memcpy(c, tiles.data[sums][m], kRowBytes);
    for (int n = 0; n < kRows; ++n)
      c[n] = flushed(flushed(c[n]) + flushed(sum[2 * n] + sum[2 * n + 1]));
    std::memcpy(tiles.data[sums][m], c, kRowBytes);
  }
}

void configure(const uint8_t* shape) {
  for (int t = 0; t < 8; ++t)
    if (shape[0] != 1 || shape[16 + 2 * t] != kRowBytes || shape[48 + t] != kRows)
      misuse("only palette 1 with tiles of full size is known");
  tiles.configured = true;
  std::memset(tiles.data, 0, sizeof tiles.data);
}

// Carries out one instruction; false if it is none of the tiles'.
bool carry_out(const uint8_t* code, ucontext_t* context) {
  if (code[0] != 0xc4 || (code[1] & 0x5f) != 0x42 || (code[2] & 0x84) != 0) return false;
  const int kind = code[2] & 3, third = ~code[2] >> 3 & 15, operation = code[3];
  const int mode = code[4] >> 6, first = code[4] >> 3 & 7, second = code[4] & 7;
  const bool high_base = !(code[1] & 0x20);
  int length = 5;
  if (operation == 0x49 && kind == 0 && mode == 0 && second != 4 && second != 5 && first == 0) {
    configure(reinterpret_cast<const uint8_t*>(
        general_register(context, second + (high_base ? 8 : 0))));
  } else if (operation == 0x49 && kind == 0 && code[4] == 0xc0) {
    tiles.configured = false;
  } else if (!tiles.configured) {
    misuse("tiles are used that were not configured");
  } else if (operation == 0x49 && kind == 3 && mode == 3 && second == 0) {
    std::memset(tiles.data[first], 0, kRows * kRowBytes);
  } else if (operation == 0x4b && (kind == 2 || kind == 3) && mode == 0 && second == 4) {
    const int scale = code[5] >> 6, index = code[5] >> 3 & 7, base = code[5] & 7;
    if (base == 5 || index == 4) misuse("an address of another form");
    const uint64_t from = general_register(context, base + (high_base ? 8 : 0));
    const uint64_t apart = general_register(context, index + (code[1] & 0x40 ? 0 : 8)) << scale;
    for (int row = 0; row < kRows; ++row) {
      void* const memory = reinterpret_cast<void*>(from + uint64_t(row) * apart);
      if (kind == 3) std::memcpy(tiles.data[first][row], memory, kRowBytes);
      else std::memcpy(memory, tiles.data[first][row], kRowBytes);
    }
    length = 6;
  } else if (operation == 0x5c && kind >= 2 && mode == 3 && third < 8) {
    if (first == second || first == third || second == third) misuse("operands are not distinct");
    if (kind == 2) multiply(first, second, third, of_bfloat16);
    else multiply(first, second, third, of_half);
  } else {
    return false;
  }
  context->uc_mcontext.gregs[REG_RIP] += length;
  return true;
}

struct sigaction earlier;

void on_illegal_instruction(int, siginfo_t*, void* context) {
  auto* const c = static_cast<ucontext_t*>(context);
  const auto* const code = reinterpret_cast<const uint8_t*>(c->uc_mcontext.gregs[REG_RIP]);
  if (!carry_out(code, c)) sigaction(SIGILL, &earlier, nullptr);  // raised once more, for good
}

[[gnu::constructor]] void install() {
  struct sigaction action = {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, &earlier);
}

}  // namespace
