// Changes of a case: seeds, recipes, parameters, and single values near where rounding decides.
#include "fuzz/mutate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "cases/legal.h"
#include "cases/materialize.h"
#include "cases/override.h"
#include "cases/recipes.h"
#include "cases/text.h"
#include "oracle/error.h"
#include "oracle/op_parameters.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 2> kUntouched{"rows", "rows_seed"};  // every row is judged, so that none hides
constexpr std::array<std::int64_t, 25> kSizes{0,  1,  2,  3,  4,   5,   7,   8,   9,   12,  15,  16, 17,
                                              31, 32, 33, 63, 64,  65,  127, 128, 129, 256, 257, 513};
constexpr std::int64_t kSeeds = 1000000;
/// Numbers at which formats, exponentials and sentinels change.
constexpr std::array<double, 16> kNumbers{0,     1,    0.5,      2,        0x1p-14, 0x1p-24,  0x1p-126, 0x1p-149,
                                          88.7,  103,  16,       448,      57344,   65504,    -5e4,     1e30};
constexpr std::size_t kWholeRow = 32;  // rows up to this length change as a whole now and then

/// A number near `value`, or far from it.
double moved(double value, const Choose& choose) {
  switch (choose(8)) {
    case 0: return value * 2;
    case 6: return kNumbers[choose(kNumbers.size())] * (choose(4) == 0 ? -1 : 1);
    case 1: return value / 2;
    case 2: return value * (0.75 + 0.0625 * static_cast<double>(choose(9)));
    case 3: return value + 1;
    case 4: return value - 1;
    case 5: return -value;
    default: return 0.125 * (static_cast<double>(choose(161)) - 80);
  }
}

void change_argument(Source& source, const Choose& choose) {
  const Recipe* recipe = find_recipe(source.recipe);
  if (recipe == nullptr || recipe->args.empty()) return;
  for (std::size_t i = source.args.size(); i < recipe->args.size(); ++i)
    source.args.push_back(shortest(recipe->args[i].default_value));
  const std::size_t which = choose(recipe->args.size());
  const RecipeArg& arg = recipe->args[which];
  double value =
      std::clamp(moved(read_number(source.args[which]).value_or(arg.default_value), choose), arg.low, arg.high);
  if (arg.integer) value = static_cast<double>(static_cast<std::int64_t>(value));
  source.args[which] = shortest(value);
}

void change_source(Case& c, const Choose& choose) {
  if (c.sources.empty()) return;
  Source& source = c.sources[choose(c.sources.size())].second;
  if (source.recipe == "file") return;
  switch (choose(4)) {
    case 0: {
      const std::vector<Recipe>& recipes = all_recipes();
      source = {.recipe = std::string(recipes[choose(recipes.size())].name), .args = {}, .seed = choose(kSeeds)};
      break;
    }
    case 1: change_argument(source, choose); break;
    default: source.seed = choose(kSeeds);
  }
}

/// The words that a parameter takes; null for one of numbers.
const std::vector<std::string_view>* names_of(std::string_view op, std::string_view key) {
  for (const ParamNames& named : op_parameters(op).named)
    if (named.key == key) return &named.names;
  return nullptr;
}

void change_param(Case& c, const Case& other, const Choose& choose) {
  const Op& op = op_named(c.op);
  const ParamInfo& param = op.params[choose(op.params.size())];
  if (std::find(kUntouched.begin(), kUntouched.end(), param.key) != kUntouched.end()) return;
  const std::string* now = c.params.find(param.key);
  const std::string text = now != nullptr ? *now : std::string(param.default_value);
  if (const std::optional<std::int64_t> integer = read_integer(text); integer && choose(3) != 0) {
    const std::int64_t step = static_cast<std::int64_t>(choose(2)) * 2 - 1;
    c.params.set(param.key, std::to_string(choose(2) == 0 ? *integer + step : kSizes[choose(kSizes.size())]));
  } else if (const std::optional<double> real = read_number(text); real && !integer && choose(3) != 0) {
    c.params.set(param.key, shortest(static_cast<double>(static_cast<float>(moved(*real, choose)))));
  } else if (const std::vector<std::string_view>* names = names_of(c.op, param.key); names != nullptr && choose(2) == 0) {
    c.params.set(param.key, std::string((*names)[choose(names->size())]));
  } else if (const std::string* theirs = other.params.find(param.key)) {
    c.params.set(param.key, *theirs);
  } else {
    c.params.erase(param.key);
  }
}

/// A code of the value dictionary: zeros, the ends of the subnormal and normal range, NaN and infinity where the format
/// has them, and numbers at which kernels change.
std::uint64_t dictionary_code(Format format, const Choose& choose) {
  const FormatInfo& f = info(format);
  const double sign = choose(2) == 0 ? 1 : -1;
  switch (choose(7)) {
    case 0: return encode(format, sign * 0.0);
    case 1: return encode(format, sign * f.max_finite);
    case 2: return next_up(format, encode(format, 0.0));
    case 3: return encode(format, sign * std::numeric_limits<double>::infinity());
    case 4: return encode(format, std::numeric_limits<double>::quiet_NaN());
    default: return encode(format, sign * kNumbers[choose(kNumbers.size())], Rounding::kNearestEven, Overflow::kSaturate);
  }
}

/// A code to put in place of `code`; `another` is one from the same tensor.
std::uint64_t changed_code(Format format, std::uint64_t code, std::uint64_t another, const Choose& choose,
                           const MutationLimits& limits) {
  const double value = decode(format, code);
  switch (choose(limits.dictionary ? 7 : 6)) {
    case 0: return another;
    case 6: return dictionary_code(format, choose);
    case 1: return encode(format, -value);
    case 2: return encode(format, choose(2) == 0 ? value * 2 : value / 2, Rounding::kNearestEven, Overflow::kSaturate);
    default: break;
  }
  const bool up = choose(2) == 0;
  for (std::size_t steps = 1 + choose(4); steps > 0; --steps) {
    const std::uint64_t next = up ? next_up(format, code) : next_down(format, code);
    if (!is_finite(format, next)) break;
    code = next;
  }
  return code;
}

/// Replaces an element, or a whole short row along the last axis, of a tensor of numbers; `special`: an element, by a
/// value of the dictionary.
void change_values(Case& c, const Choose& choose, const MutationLimits& limits, bool special) {
  const std::string role = c.sources[choose(c.sources.size())].first;
  const std::vector<InputSpec> specs = op_named(c.op).inputs(c.params);
  const auto spec =
      std::find_if(specs.begin(), specs.end(), [&](const InputSpec& s) { return s.layout.role == role; });
  const TensorLayout& layout = spec->layout;
  if (info(layout.format).specials == Specials::kInteger || layout.count() == 0) return;
  const auto random_index = [&] {
    std::vector<std::int64_t> index;
    for (const std::int64_t extent : layout.shape)
      index.push_back(static_cast<std::int64_t>(choose(static_cast<std::size_t>(extent))));
    return index;
  };
  const Tensor tensor = special ? Tensor{} : materialize_input(c, *spec);
  const auto code_at = [&](const std::vector<std::int64_t>& index) {
    std::int64_t element = layout.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) element += index[axis] * layout.strides[axis];
    return load_code(tensor.bytes.data(), layout.format, element);
  };
  std::vector<std::int64_t> index = random_index(), from = random_index();
  const auto length = static_cast<std::size_t>(layout.shape.back());
  const bool whole = !special && length <= kWholeRow && c.overrides.size() + length <= limits.overrides && choose(4) == 0;
  for (std::size_t n = 0; n < (whole ? length : 1); ++n) {
    if (whole) index.back() = from.back() = static_cast<std::int64_t>(n);
    const std::uint64_t code =
        whole     ? code_at(from)
        : special ? dictionary_code(layout.format, choose)
                  : changed_code(layout.format, code_at(index), code_at(from), choose, limits);
    std::erase_if(c.overrides, [&](const Override& o) { return o.role == role && o.index == index; });
    c.overrides.push_back({.role = role, .index = index, .value = fmt::format("0x{:x}", code)});
  }
}

void drop_overrides(Case& c, const Choose& choose) {
  const std::size_t kept = choose(3);  // of 4 quarters, roughly
  std::erase_if(c.overrides, [&](const Override&) { return choose(4) > kept; });
}

}  // namespace

std::optional<Case> legal_case(Case c, const MutationLimits& limits) {
  if (c.overrides.size() > limits.overrides) return std::nullopt;
  std::optional<Case> legal = legal_case(std::move(c));
  if (!legal) return std::nullopt;
  const Op& op = op_named(legal->op);
  std::int64_t elements = 0;
  for (const InputSpec& spec : op.inputs(legal->params)) elements += spec.layout.storage;
  for (const TensorLayout& output : op.outputs(legal->params)) elements += output.storage;
  return elements > limits.elements ? std::nullopt : legal;
}

std::optional<Case> mutated(const Case& c, const Case& other, const Choose& choose, const MutationLimits& limits) {
  Case next = c;
  switch (choose(9)) {  // values most often: they are what a search climbs on
    case 0:
    case 1: change_source(next, choose); break;
    case 2:
    case 3: change_param(next, other, choose); break;
    case 4:
      if (other.op == c.op && !other.sources.empty()) {
        const auto& [role, source] = other.sources[choose(other.sources.size())];
        for (auto& [mine, value] : next.sources)
          if (mine == role && source.recipe != "file") value = source;
      }
      break;
    case 5:
      if (!next.overrides.empty()) {
        drop_overrides(next, choose);
        break;
      }
      [[fallthrough]];
    default: change_values(next, choose, limits, limits.dictionary && choose(3) == 0);
  }
  std::optional<Case> legal = legal_case(std::move(next), limits);
  return legal && *legal == c ? std::nullopt : legal;
}

}  // namespace assay
