// Marshalling of a call into C structs, and the codes that come back.
#include "kernels/plugin/call.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "kernels/run_error.h"

namespace assay {
namespace {

// The tags of the interface are its own: the order of Format may change.
constexpr std::array<std::int32_t, kFormatCount> kTags{ASSAY_FP64, ASSAY_FP32, ASSAY_TF32, ASSAY_FP16,  ASSAY_BF16,
                                                       ASSAY_E4M3, ASSAY_E5M2, ASSAY_E8M0, ASSAY_INT32, ASSAY_UINT8};
static_assert(static_cast<int>(Format::kFp64) == 0 && static_cast<int>(Format::kFp32) == 1 &&
              static_cast<int>(Format::kTf32) == 2 && static_cast<int>(Format::kFp16) == 3 &&
              static_cast<int>(Format::kBf16) == 4 && static_cast<int>(Format::kE4m3) == 5 &&
              static_cast<int>(Format::kE5m2) == 6 && static_cast<int>(Format::kE8m0) == 7 &&
              static_cast<int>(Format::kInt32) == 8 && static_cast<int>(Format::kUint8) == 9);

template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "16,-1" as integers; empty if that is not what the text is.
std::vector<std::int64_t> integers_from(std::string_view text) {
  std::vector<std::int64_t> values;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::optional<std::int64_t> value = number_from<std::int64_t>(text.substr(0, comma));
    if (!value) return {};
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text = text.substr(comma + 1);
  }
}

void check(const char* function, int code, const assay_message& message) {
  if (code == ASSAY_OK) return;
  const std::string text = message_text(message);
  if (code == ASSAY_UNSUPPORTED) throw CannotRun(text.empty() ? "the plug-in does not support the case" : text);
  if (code == ASSAY_OUT_OF_MEMORY) throw CannotRun("out of memory" + (text.empty() ? "" : ": " + text));
  throw RunFailed(std::string(function) + " fails with " + error_text(code, message));
}

}  // namespace

PluginScalars::PluginScalars(const Params& params) {
  lists_.reserve(params.items.size());  // scalars point into them
  for (const auto& [name, text] : params.items) {
    assay_scalar scalar{};
    scalar.name = name.c_str();
    scalar.text = text.c_str();
    if (std::vector<std::int64_t> values = integers_from(text); !values.empty()) {
      scalar.kind = values.size() == 1 ? ASSAY_INTEGER : ASSAY_INTEGERS;
      scalar.integer = values.front();
      scalar.real = static_cast<double>(values.front());
      lists_.push_back(std::move(values));
      scalar.integers = lists_.back().data();
      scalar.count = static_cast<std::int64_t>(lists_.back().size());
    } else if (const auto real = number_from<double>(text); real && text.find_first_of("0123456789") != text.npos) {
      scalar.kind = ASSAY_REAL;
      scalar.real = *real;
    }
    scalars_.push_back(scalar);
  }
}

assay_tensor plugin_tensor(const TensorLayout& layout, void* data, std::int32_t device) {
  return {layout.role.c_str(),
          data,
          kTags.at(static_cast<std::size_t>(layout.format)),
          static_cast<std::int32_t>(layout.shape.size()),
          layout.shape.data(),
          layout.strides.data(),
          device};
}

std::string call_plugin(const assay_plugin& table, const std::string& kernel, const Params& params,
                        const std::vector<assay_tensor>& inputs, const std::vector<assay_tensor>& outputs,
                        const PluginPlace& place, const PhaseNote& note) {
  const PluginScalars scalars(params);
  assay_call call{};
  call.struct_size = sizeof call;
  call.device = place.device;
  call.kernel = kernel.c_str();
  call.inputs = inputs.data();
  call.input_count = static_cast<std::int64_t>(inputs.size());
  call.outputs = outputs.data();
  call.output_count = static_cast<std::int64_t>(outputs.size());
  call.scalars = scalars.all().data();
  call.scalar_count = static_cast<std::int64_t>(scalars.all().size());
  call.stream = place.stream;

  void* state = nullptr;
  assay_message message{};
  if (table.prepare != nullptr) {
    note("prepare");
    check("prepare", table.prepare(&call, &state, &message), message);
  }
  message = {};
  note("run");
  const int ran = table.run(&call, state, &message);
  if (table.prepare != nullptr && table.release != nullptr) {
    assay_message last{};
    note("release");
    const int released = table.release(state, &last);
    check("run", ran, message);
    check("release", released, last);
  }
  check("run", ran, message);
  note("the rest of the case");
  return message_text(message);
}

}  // namespace assay
