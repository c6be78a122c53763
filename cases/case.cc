// Parses and prints case lines.
#include "cases/case.h"

#include <algorithm>
#include <array>

#include "cases/override.h"
#include "cases/recipes.h"
#include "cases/text.h"
#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 5> kPoisonNames{"zero", "nan", "inf", "max", "tag"};

std::vector<std::string_view> words(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> out;
  for (std::size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    out.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kSpace, end);
  }
  return out;
}

bool is_param(const Op& op, std::string_view key) {
  return std::any_of(op.params.begin(), op.params.end(), [&](const ParamInfo& info) { return info.key == key; });
}

/// The key of a role's source: the role, or role.data where the op has a parameter of that name (attention's mask).
std::string source_key(const Op& op, const std::string& role) { return is_param(op, role) ? role + ".data" : role; }

/// The spec's default, which may be the source of an input before it.
Source default_source(const Case& c, std::string_view key, const InputSpec& spec) {
  for (const auto& [role, source] : c.sources)
    if (role == spec.default_source) return source;
  return parse_source(key, spec.default_source);
}

Poison parse_poison(std::string_view text) {
  const auto at = std::find(kPoisonNames.begin(), kPoisonNames.end(), text);
  if (at == kPoisonNames.end()) bad_field("poison", text, "must be zero, nan, inf, max or tag");
  return static_cast<Poison>(at - kPoisonNames.begin());
}

/// The fields of a line before they have a meaning; all but `set` at most once.
struct Fields {
  Params params;
  Params sources;
  Params rest;  ///< poison
  std::vector<std::string_view> overrides;
};

Fields read_fields(const Op& op, std::span<const std::string_view> words) {
  Fields fields;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) throw InputError("case: " + in_quotes(word) + " is not key=value");
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "set") {
      fields.overrides.push_back(value);
      continue;
    }
    Params& group = key == "poison" ? fields.rest : is_param(op, key) ? fields.params : fields.sources;
    if (group.find(key) != nullptr) bad_field(key, value, "given twice");
    group.set(key, std::string(value));
  }
  return fields;
}

}  // namespace

Case parse_case(std::string_view line) {
  const std::vector<std::string_view> parts = words(line);
  if (parts.empty()) throw InputError("case: empty line");
  const Op& op = op_named(printable(parts.front()));
  Fields fields = read_fields(op, std::span(parts).subspan(1));
  Case c;
  c.op = op.name;
  c.params = op.canonical(fields.params);
  const std::vector<InputSpec> specs = op.inputs(c.params);
  std::string keys;
  for (const InputSpec& spec : specs) {
    if (!spec.values.empty()) continue;
    const std::string key = source_key(op, spec.layout.role);
    const std::string* text = fields.sources.find(key);
    Source source = text != nullptr ? parse_source(key, *text) : default_source(c, key, spec);
    check_fits(key, source, spec);
    c.sources.emplace_back(spec.layout.role, std::move(source));
    fields.sources.erase(key);
    keys += " " + key;
  }
  for (const auto& [key, value] : fields.sources.items)
    bad_field(key, value,
              "unknown key; this case has the parameters of " + c.op + ", the tensors" + keys + ", set and poison");
  for (const std::string_view text : fields.overrides) c.overrides.push_back(parse_override(text, specs));
  if (const std::string* text = fields.rest.find("poison")) c.poison = parse_poison(*text);
  return c;
}

std::string print_case(const Case& c) {
  const Op& op = op_named(c.op);
  std::string line = c.op;
  const auto add = [&](std::string_view key, std::string_view value) {
    line += ' ';
    line += key;
    line += '=';
    line += value;
  };
  for (const auto& [key, value] : c.params.items) add(key, value);
  for (const auto& [role, source] : c.sources) add(source_key(op, role), print_source(source));
  for (const Override& item : c.overrides) add("set", print_override(item));
  if (c.poison != Poison::kNan) add("poison", kPoisonNames[static_cast<std::size_t>(c.poison)]);
  return line;
}

}  // namespace assay
