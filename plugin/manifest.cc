// Reading a plug-in's manifest.
#include "plugin/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "oracle/arithmetic_json.h"
#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

/// The document, or an InputError: no JSON, or a member that stands twice in its object.
nlohmann::json parse(const std::string& text, const std::string& file) {
  std::vector<std::set<std::string>> seen;
  const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::object_start) seen.emplace_back();
    if (event == nlohmann::json::parse_event_t::object_end) seen.pop_back();
    if (event == nlohmann::json::parse_event_t::key && !seen.back().insert(value.get<std::string>()).second)
      throw InputError(file + ": manifest: member '" + value.get<std::string>() + "' stands twice in one object");
    return true;
  };
  try {
    return nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(file + ": manifest: is not JSON: " + error.what());
  }
}

void only_members(const JsonField& object, const std::set<std::string_view>& known) {
  for (const auto& [name, value] : object.members())
    if (!known.contains(name)) value.fail(fmt::format("one of the members {}", fmt::join(known, ", ")));
}

std::string kernel_name(const JsonField& field) {
  constexpr std::size_t kLongest = 64;
  const std::string name = field.text();
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
  if (name.empty() || name.size() > kLongest || !plain || name[0] == '-')
    field.fail("1 to 64 letters, digits and _ . -, not - in front");
  if (name == "correct" || name == "mutants" || name == "plugins") field.fail("a name that means no group of kernels");
  return name;
}

std::vector<std::string> formats(const JsonField& field, const Op& op, const OpParameters& parameters) {
  std::vector<std::string> names;
  for (const JsonField& element : field.elements()) {
    const std::string name = element.text();
    if (!format_from_name(name)) element.fail("a format: fp32, fp16, bf16, e4m3, e5m2");
    Params params;
    params.set(parameters.format_key, name);
    try {
      op.canonical(params);
    } catch (const InputError&) {
      element.fail(fmt::format("a format that {} has", op.name));
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) element.fail("every format once");
    names.push_back(name);
  }
  if (names.empty()) field.fail("at least one format");
  return names;
}

/// The fields that are there; the others are unknown.
Arithmetic arithmetic_of(const JsonField& field, const std::string& file) {
  nlohmann::json whole = to_json(Arithmetic{});
  for (const auto& [name, value] : field.members()) {
    if (!whole.contains(name)) {
      std::vector<std::string> known;
      for (const auto& item : whole.items()) known.push_back(item.key());
      value.fail(fmt::format("one of the fields {}", fmt::join(known, ", ")));
    }
    if (value.json().is_number() && value.integer() < 0) value.fail("an integer from 0 on");
    whole[name] = value.json();
  }
  const Arithmetic arithmetic = arithmetic_from_json(JsonField(whole, field.path(), file));
  if (arithmetic.lazy_threshold > 0 && arithmetic.max_policy != MaxPolicy::kLazy)
    field["lazy_threshold"].fail("0 without \"max_policy\": \"lazy\"");
  return arithmetic;
}

PluginKernel read_kernel(const JsonField& field, const std::string& file) {
  only_members(field,
               {"name", "op", "summary", "device", "formats", "limits", "conventions", "alignment", "arithmetic"});
  PluginKernel kernel;
  kernel.identity.name = kernel_name(field["name"]);
  kernel.identity.op = field["op"].text();
  kernel.identity.summary = field.text_or_empty("summary");
  kernel.identity.plugin = file;
  const auto ops = all_ops();
  const auto op = std::find_if(ops.begin(), ops.end(), [&](const Op* o) { return o->name == kernel.identity.op; });
  if (op == ops.end()) {
    std::vector<std::string_view> names;
    for (const Op* o : ops) names.push_back(o->name);
    field["op"].fail(fmt::format("one of {}", fmt::join(names, ", ")));
  }
  const OpParameters& parameters = op_parameters(kernel.identity.op);
  kernel.identity.dtypes = formats(field["formats"], **op, parameters);
  if (field.has("device")) {
    const std::string device = field["device"].text();
    if (device != "cpu" && device != "cuda") field["device"].fail("cpu or cuda");
    kernel.identity.device = device == "cuda";
  }
  if (field.has("limits"))
    for (const auto& [key, value] : field["limits"].members())
      kernel.limits.push_back(number_limit(value, key, parameters));
  if (field.has("conventions"))
    for (const auto& [key, value] : field["conventions"].members())
      kernel.limits.push_back(name_limit(value, key, parameters));
  if (field.has("alignment")) {
    constexpr std::int64_t kLargest = 64;  // what every storage has
    kernel.alignment = field["alignment"].integer();
    if (kernel.alignment < 1 || kernel.alignment > kLargest || (kernel.alignment & (kernel.alignment - 1)) != 0)
      field["alignment"].fail("a power of two from 1 to 64");
  }
  if (field.has("arithmetic")) kernel.arithmetic = arithmetic_of(field["arithmetic"], file);
  kernel.unknown_fields = unknown_fields(kernel.arithmetic);
  return kernel;
}

}  // namespace

Params PluginKernel::complete(const Params& params) const { return op_parameters(identity.op).complete(params); }

std::optional<std::string> PluginKernel::refuses(const Params& params) const {
  const Params canonical = op_named(identity.op).canonical(params), all = complete(params);
  const OpParameters& op = op_parameters(identity.op);
  if (const std::string* format = all.find(op.format_key);
      format != nullptr && std::find(identity.dtypes.begin(), identity.dtypes.end(), *format) == identity.dtypes.end())
    return fmt::format("takes {} inputs only, not {}", fmt::join(identity.dtypes, " or "), *format);
  return outside(limits, op, canonical, all);
}

std::optional<std::string> PluginKernel::refuses(const std::vector<Tensor>& inputs,
                                                 const std::vector<TensorLayout>& outputs) const {
  for (const Tensor& input : inputs)
    if (auto reason = misaligned(input.layout, alignment)) return reason;
  for (const TensorLayout& output : outputs)
    if (auto reason = misaligned(output, alignment)) return reason;
  return std::nullopt;
}

std::vector<PluginKernel> read_manifest(const std::string& text, const std::string& file) {
  const nlohmann::json document = parse(text, file);
  const JsonField manifest(document, "manifest", file);
  only_members(manifest, {"kernels"});
  std::vector<PluginKernel> kernels;
  for (const JsonField& field : manifest["kernels"].elements()) {
    kernels.push_back(read_kernel(field, file));
    for (std::size_t i = 0; i + 1 < kernels.size(); ++i)
      if (kernels[i].identity.name == kernels.back().identity.name)
        field["name"].fail(fmt::format("another name than that of manifest.kernels[{}]", i));
  }
  if (kernels.empty()) manifest["kernels"].fail("at least one kernel");
  return kernels;
}

}  // namespace assay
