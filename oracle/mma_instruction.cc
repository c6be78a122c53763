// The model of each instruction: the block-FMA chain of its format, or what mma.sync of 8-bit operands is compiled to.
#include "oracle/mma_instruction.h"

#include <bit>
#include <vector>

#include "oracle/mma.h"

namespace assay {
namespace {

constexpr std::uint32_t kNan = 0x7fffffff, kNanFp16 = 0x7fff;

/// fp16 blocks of 8-bit operands that mma.sync was compiled to.
std::vector<float> by_bit_1(const float* values) {
  std::vector<float> ordered;
  for (const int half : {0, 2})
    for (int k = 0; k < kMmaBytesOfK; ++k)
      if ((k & 2) == half) ordered.push_back(values[k]);
  return ordered;
}

}  // namespace

std::string MmaInstruction::name() const {
  const std::string format = input == Format::kFp16 ? "f16" : std::string(info(input).name);
  return (unit == TensorCore::kWgmma ? "wgmma.m64n8k" : "mma.sync.m16n8k") + std::to_string(k()) +
         (fp16_accumulator ? ".f16." : ".f32.") + format;
}

std::uint32_t modelled_mma(const MmaInstruction& instruction, const float* a, const float* b, std::uint32_t c) {
  const Format in = instruction.input;
  const int k = instruction.k();
  const bool emulated = instruction.unit == TensorCore::kMmaSync && bytes_per_element(in) == 1;
  const MmaModel& model = mma_model(MmaArch::kHopper, emulated ? Format::kFp16 : in);
  if (!emulated) {
    if (instruction.fp16_accumulator) return mma_dot_fp16(model, in, k, a, 1, b, 1, static_cast<std::uint16_t>(c));
    return std::bit_cast<std::uint32_t>(mma_dot(model, in, k, a, 1, b, 1, std::bit_cast<float>(c)));
  }
  const std::vector<float> by_a = by_bit_1(a), by_b = by_bit_1(b);
  if (instruction.fp16_accumulator) {
    const std::uint16_t sum = mma_dot_fp16(model, Format::kFp16, k, by_a.data(), 1, by_b.data(), 1, 0);
    const double d = decode(Format::kFp16, sum) + decode(Format::kFp16, c);
    return d != d ? kNanFp16 : static_cast<std::uint32_t>(encode(Format::kFp16, d));
  }
  const float d = mma_dot(model, Format::kFp16, k, by_a.data(), 1, by_b.data(), 1, 0.0F) + std::bit_cast<float>(c);
  return d != d ? kNan : std::bit_cast<std::uint32_t>(d);
}

}  // namespace assay
