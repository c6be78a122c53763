// Operands that reach every branch of the block-FMA model, and the comparison.
#include "oracle/device/mma_probe.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <random>

#include "oracle/error.h"

namespace assay {
namespace {

using Random = std::mt19937_64;

/// A uniform integer in [low, high].
int between(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
}

/// +-(1 + f) 2^exponent, rounded toward zero to the format.
std::uint64_t number(Random& random, Format format, int low, int high) {
  const double fraction = 1.0 + static_cast<double>(random() >> 12) * 0x1p-52;
  const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + between(random, low, high)) << 52);
  return encode(format, (random() & 1) != 0 ? fraction * scale : -fraction * scale, Rounding::kTowardZero,
                Overflow::kSaturate);
}

std::uint64_t any_code(Random& random, Format format, bool finite) {
  for (;;) {
    const std::uint64_t code = random() >> (64 - info(format).storage_bits);
    if (!finite) return code;
    const double value = decode(format, code);
    if (value - value == 0) return code;
  }
}

std::uint64_t tiny(Random& random, Format format) {
  const std::uint64_t sign = (random() & 1) << (info(format).storage_bits - 1);
  return sign | encode(format, info(format).min_subnormal *
                                   between(random, 0, (2 << std::min(info(format).fraction_bits, 20)) - 1));
}

/// The operands of one tile, element by element as fp32 values and codes.
struct Tiles {
  std::vector<std::byte> a, b;
  std::vector<std::uint32_t> c;
};

void append(std::vector<std::byte>& bytes, Format format, std::uint64_t code) {
  const auto size = static_cast<std::size_t>(bytes_per_element(format));
  bytes.resize(bytes.size() + size);
  std::memcpy(bytes.data() + bytes.size() - size, &code, size);
}

class Generator {
 public:
  Generator(const MmaInstruction& instruction, MmaOperands operands, std::uint64_t seed)
      : in_(instruction.input),
        acc_(instruction.fp16_accumulator ? Format::kFp16 : Format::kFp32),
        operands_(operands),
        random_(seed) {}

  std::uint64_t a(int k) {
    switch (operands_) {
      case MmaOperands::kWide: return any_code(random_, in_, true);
      case MmaOperands::kSubnormal: return tiny(random_, in_);
      case MmaOperands::kVanishing: return number(random_, in_, vanishing(), vanishing() + 2);
      case MmaOperands::kSpecial:
        return between(random_, 0, 15) == 0 ? any_code(random_, in_, false) : number(random_, in_, -3, 3);
      case MmaOperands::kCancelling:
        if (k % 2 == 0 || between(random_, 0, 7) == 0) last_ = number(random_, in_, -2, 2);
        return last_;
      default: return number(random_, in_, -3, 3);
    }
  }
  std::uint64_t b(int k) {
    if (operands_ == MmaOperands::kWide) return any_code(random_, in_, true);
    if (operands_ == MmaOperands::kSubnormal) return number(random_, in_, 0, 4);
    if (operands_ == MmaOperands::kVanishing) return number(random_, in_, vanishing(), vanishing() + 2);
    if (operands_ != MmaOperands::kCancelling) return number(random_, in_, -3, 3);
    if (k % 2 == 0)
      last_ = number(random_, in_, 0, 0);
    else
      last_ ^= std::uint64_t{1} << (info(in_).storage_bits - 1);
    return last_;
  }
  std::uint32_t c() {
    const int top = acc_ == Format::kFp16 ? 15 : 42;
    switch (operands_) {
      case MmaOperands::kWide: return code(any_code(random_, acc_, true));
      case MmaOperands::kFarAbove: return code(number(random_, acc_, 8, top));
      case MmaOperands::kFarBelow: return code(number(random_, acc_, acc_ == Format::kFp16 ? -24 : -66, -7));
      case MmaOperands::kSubnormal: return code(tiny(random_, acc_));
      case MmaOperands::kSpecial:
        return code(between(random_, 0, 7) == 0 ? any_code(random_, acc_, false) : number(random_, acc_, -6, 6));
      case MmaOperands::kVanishing: return code((random_() & 1) << (info(acc_).storage_bits - 1) | (random_() & 1));
      case MmaOperands::kCancelling: return code(number(random_, acc_, -12, 2));
      case MmaOperands::kNear: break;
    }
    return code(number(random_, acc_, -6, 6));
  }

 private:
  /// Products of two numbers with this exponent lie near the smallest subnormal, or as near as the input format lets
  /// them.
  int vanishing() const {
    const int smallest = info(acc_).min_exponent - info(acc_).fraction_bits;
    return std::max(smallest / 2 - 3, info(in_).min_exponent - info(in_).fraction_bits);
  }
  static std::uint32_t code(std::uint64_t code) { return static_cast<std::uint32_t>(code); }

  Format in_, acc_;
  MmaOperands operands_;
  Random random_;
  std::uint64_t last_ = 0;
};

Tiles make_tiles(const MmaInstruction& instruction, MmaOperands operands, std::int64_t tiles, std::uint64_t seed) {
  Generator generator(instruction, operands, seed);
  Tiles made;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    for (int row = 0; row < instruction.rows(); ++row)
      for (int k = 0; k < instruction.k(); ++k) append(made.a, instruction.input, generator.a(k));
    for (int column = 0; column < kMmaColumns; ++column)
      for (int k = 0; k < instruction.k(); ++k) append(made.b, instruction.input, generator.b(k));
    for (int i = 0; i < instruction.rows() * kMmaColumns; ++i) made.c.push_back(generator.c());
  }
  return made;
}

/// 32 bytes of k, widened to fp32.
std::vector<float> widened(Format format, const std::byte* row) {
  const int size = bytes_per_element(format);
  std::vector<float> values;
  for (int at = 0; at < kMmaBytesOfK; at += size) {
    std::uint64_t code = 0;
    std::memcpy(&code, row + at, static_cast<std::size_t>(size));
    if (format == Format::kTf32) code &= ~std::uint64_t{0x1fff};
    values.push_back(static_cast<float>(decode(format, code)));
  }
  return values;
}

std::string hex(const std::byte* row) {
  std::string text;
  for (int i = 0; i < kMmaBytesOfK; ++i) text += fmt::format("{:02x}", static_cast<unsigned>(row[i]));
  return text;
}

MmaProbe compare(const MmaInstruction& instruction, MmaOperands operands, std::int64_t tiles, std::uint64_t seed) {
  const Tiles made = make_tiles(instruction, operands, tiles, seed);
  const std::vector<std::uint32_t> d = run_mma(instruction, made.a, made.b, made.c);
  MmaProbe probe{.instruction = instruction, .operands = operands, .elements = 0, .different = 0, .first = {}};
  const auto rows = static_cast<std::size_t>(instruction.rows());
  for (std::size_t i = 0; i < d.size(); ++i) {
    const std::size_t row = i / kMmaColumns, column = row / rows * kMmaColumns + i % kMmaColumns;
    const std::byte *a = made.a.data() + row * kMmaBytesOfK, *b = made.b.data() + column * kMmaBytesOfK;
    const std::uint32_t expected = modelled_mma(instruction, widened(instruction.input, a).data(),
                                                widened(instruction.input, b).data(), made.c[i]);
    ++probe.elements;
    if (d[i] == expected) continue;
    if (probe.different++ == 0)
      probe.first =
          fmt::format("a {} b {} c {:08x}: device {:08x}, model {:08x}", hex(a), hex(b), made.c[i], d[i], expected);
  }
  return probe;
}

}  // namespace

std::string_view name_of(MmaOperands operands) {
  switch (operands) {
    case MmaOperands::kNear: return "near";
    case MmaOperands::kWide: return "wide";
    case MmaOperands::kFarAbove: return "c_far_above";
    case MmaOperands::kFarBelow: return "c_far_below";
    case MmaOperands::kSubnormal: return "subnormal";
    case MmaOperands::kVanishing: return "vanishing";
    case MmaOperands::kCancelling: return "cancelling";
    case MmaOperands::kSpecial: return "special";
  }
  return {};
}

std::vector<MmaProbe> probe_mma(std::int64_t elements, std::uint64_t seed) {
  const DeviceFacts device = device_facts();
  if (device.major != 9) throw EnvironmentError(device.name + ": the tensor-core model's probes are those of Hopper");
  std::vector<MmaProbe> probes;
  for (const MmaInstruction& instruction : mma_instructions())
    for (const MmaOperands operands : kMmaOperands) {
      const std::int64_t in_tile = instruction.rows() * kMmaColumns;
      probes.push_back(compare(instruction, operands, (elements + in_tile - 1) / in_tile, seed));
    }
  return probes;
}

}  // namespace assay
