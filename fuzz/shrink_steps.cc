// Shrink steps, driven by what an op says of its parameters and by the registry of recipes.
#include "fuzz/shrink_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "cases/materialize.h"
#include "cases/recipes.h"
#include "cases/text.h"
#include "fuzz/case_size.h"
#include "fuzz/mutate.h"
#include "oracle/error.h"
#include "oracle/op_parameters.h"

namespace assay {
namespace {

constexpr std::int64_t kShortTensor = 16;  // elements up to which single values are replaced
constexpr MutationLimits kNoLimits{.elements = std::numeric_limits<std::int64_t>::max(),
                                   .overrides = std::numeric_limits<std::size_t>::max()};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

/// The integers of "70,37", or nothing if it is no list of two or more.
std::vector<std::int64_t> list_of(const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (const std::string& part : split(text, ',')) {
    const std::optional<std::int64_t> number = read_integer(part);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers.size() > 1 ? numbers : std::vector<std::int64_t>{};
}

/// Smaller numbers than v > 1: small ones, powers of two and one more, then closer and closer to v.
std::vector<std::int64_t> below(std::int64_t v) {
  std::set<std::int64_t> numbers;
  for (std::int64_t power = 1; power < v; power *= 2) {
    numbers.insert(power);
    if (power + 1 < v) numbers.insert(power + 1);
  }
  for (std::int64_t step = v / 2; step >= 1; step /= 2) numbers.insert(v - step);
  return {numbers.begin(), numbers.end()};
}

/// Collects the cases that turn out legal and smaller.
class Steps {
 public:
  explicit Steps(const Case& c) : c_(c), op_(op_named(c.op)), size_(case_size(c)) {
    all_ = op_parameters(c.op).complete(c.params);
  }

  const Case& c() const { return c_; }
  const Op& op() const { return op_; }
  /// The parameter's value, given or default.
  std::string value(std::string_view key) const {
    const std::string* text = all_.find(key);
    return text != nullptr ? *text : std::string();
  }

  void add(Case candidate) {
    try {
      std::optional<Case> legal = legal_case(std::move(candidate), kNoLimits);
      if (legal && seen_.insert(print_case(*legal)).second && is_smaller(*legal, size_)) found_.push_back(*legal);
    } catch (const InputError&) {  // of values that no file or recipe can give
    }
  }

  /// With other parameters, and with the sources of another case. Where they contradict each other, those that the op
  /// names go, but for those of `kept`.
  void add_params(Params params, const std::set<std::string, std::less<>>& kept = {}, const Case* sources = nullptr) {
    for (std::size_t most = params.items.size() + 1; most > 0; --most) {
      try {
        Case candidate = sources != nullptr ? *sources : c_;
        candidate.params = op_.canonical(params);
        add(std::move(candidate));
        return;
      } catch (const InputError& error) {
        const std::string what = error.what();
        const auto named = std::find_if(params.items.begin(), params.items.end(), [&](const auto& item) {
          return !kept.contains(item.first) &&
                 what.find(" " + item.first + "=" + item.second + ":") != std::string::npos;
        });
        if (named == params.items.end()) return;
        params.items.erase(named);
      }
    }
  }

  std::vector<Case> take() { return std::move(found_); }

 private:
  const Case& c_;
  const Op& op_;
  const CaseSize size_;
  Params all_;
  std::set<std::string> seen_;
  std::vector<Case> found_;
};

/// The op's parameters whose value is an integer above 1, and that value.
std::vector<std::pair<std::string, std::int64_t>> integers(const Steps& steps) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const ParamInfo& param : steps.op().params)
    if (const std::optional<std::int64_t> v = read_integer(steps.value(param.key)); v && *v > 1)
      found.emplace_back(param.key, *v);
  return found;
}

std::string clamped(const std::vector<std::int64_t>& list, std::int64_t most) {
  std::vector<std::int64_t> out = list;
  for (std::int64_t& number : out) number = std::min(number, most);
  return joined(out);
}

/// The case with w in place of v, and w - 1 of v - 1, among the integer arguments of its sources; nothing if there are
/// none.
std::optional<Case> with_arguments(const Case& c, std::int64_t v, std::int64_t w) {
  Case next = c;
  for (auto& [role, source] : next.sources) {
    const Recipe* recipe = find_recipe(source.recipe);
    for (std::size_t i = 0; recipe != nullptr && i < source.args.size(); ++i) {
      const std::optional<std::int64_t> number = read_integer(source.args[i]);
      if (recipe->args[i].integer && number && (*number == v || *number == v - 1))
        source.args[i] = std::to_string(*number - v + w);
    }
  }
  if (next == c) return std::nullopt;
  return next;
}

/// `key` from v to w; lists that follow it (numbers up to v, or v numbers) follow, and so do
/// arguments of recipes.
void add_number(Steps& steps, const std::string& key, std::int64_t v, std::int64_t w) {
  Params params = steps.c().params;
  params.set(key, std::to_string(w));
  Params followed = params;
  for (auto& [other, text] : followed.items) {
    const std::vector<std::int64_t> list = list_of(text);
    if (list.empty()) continue;
    if (static_cast<std::int64_t>(list.size()) == v)
      text = joined(std::span(list).first(static_cast<std::size_t>(w)));
    else if (*std::max_element(list.begin(), list.end()) <= v)
      text = clamped(list, w);
  }
  if (!(followed == params)) steps.add_params(followed, {key});
  if (const std::optional<Case> c = with_arguments(steps.c(), v, w)) steps.add_params(params, {key}, &*c);
  steps.add_params(params, {key});
}

void number_steps(Steps& steps) {
  for (const auto& [key, v] : integers(steps))
    for (const std::int64_t w : below(v)) add_number(steps, key, v, w);
}

void two_steps(Steps& steps) {
  const auto numbers = integers(steps);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    for (std::size_t j = 0; j < numbers.size(); ++j) {
      const auto& [larger, v] = numbers[i];
      const auto& [smaller, w] = numbers[j];
      if (i == j || v < w || (v == w && i > j)) continue;
      const auto add = [&, &one = larger, &two = smaller](std::int64_t first, std::int64_t second) {
        Params params = steps.c().params;
        params.set(one, std::to_string(first));
        params.set(two, std::to_string(second));
        steps.add_params(params, {one, two});
      };
      for (const std::int64_t to : below(w)) {
        if (v % w == 0) add(v / w * to, to);
        if (v != w) add(v - w + to, to);
      }
    }
}

void list_steps(Steps& steps) {
  for (const auto& [key, text] : steps.c().params.items) {
    const std::vector<std::int64_t> list = list_of(text);
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::vector<std::int64_t> values{0};
      if (list[i] > 1)
        for (const std::int64_t w : below(list[i])) values.push_back(w);
      for (const std::int64_t w : values) {
        if (list[i] <= w) continue;
        std::vector<std::int64_t> shorter = list;
        shorter[i] = w;
        Params params = steps.c().params;
        params.set(key, joined(shorter));
        steps.add_params(params, {key});
      }
    }
  }
  for (const auto& [key, v] : integers(steps))
    for (std::size_t gone = 0; gone < static_cast<std::size_t>(v); ++gone) {
      Params params = steps.c().params;
      bool any = false;
      for (auto& [other, text] : params.items) {
        std::vector<std::int64_t> list = list_of(text);
        if (static_cast<std::int64_t>(list.size()) != v) continue;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(gone));
        text = joined(list);
        any = true;
      }
      if (!any) break;
      params.set(key, std::to_string(v - 1));
      steps.add_params(params, {key});
    }
}

void option_steps(Steps& steps) {
  for (const auto& [key, text] : steps.c().params.items) {
    Params params = steps.c().params;
    params.erase(key);
    steps.add_params(params);
    const std::vector<std::string> parts = split(text, '+');
    for (std::size_t gone = 0; parts.size() > 1 && gone < parts.size(); ++gone) {
      std::vector<std::string> rest = parts;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(gone));
      params = steps.c().params;
      params.set(key, fmt::format("{}", fmt::join(rest, "+")));
      steps.add_params(params, {key});
    }
  }
  Case clean = steps.c();
  clean.poison = Poison::kNan;
  steps.add(clean);
}

/// Plainer numbers in place of `value`: 0, 1, 2, -1, the powers of two around it, integers, one and two digits.
std::vector<double> plainer(double value) {
  std::vector<double> numbers{0, 1, 2, -1};
  if (std::isfinite(value) && value != 0) {
    const double power = std::copysign(std::exp2(std::floor(std::log2(std::abs(value)))), value);
    for (const double number : {power, 2 * power, std::trunc(value)}) numbers.push_back(number);
    for (const int digits : {1, 2})
      numbers.push_back(read_number(fmt::format("{:.{}g}", value, digits)).value_or(value));
  }
  return numbers;
}

void real_steps(Steps& steps) {
  for (const auto& [key, text] : steps.c().params.items) {
    const std::optional<double> value = read_number(text);
    if (!value || read_integer(text)) continue;
    for (const double number : plainer(*value)) {
      Params params = steps.c().params;
      params.set(key, shortest(number));
      steps.add_params(params, {key});
    }
  }
}

void override_steps(Steps& steps) {
  const std::size_t all = steps.c().overrides.size();
  for (std::size_t count = all; count >= 1; count = count == 1 ? 0 : (count + 1) / 2)
    for (std::size_t first = 0; first < all; first += count) {
      Case next = steps.c();
      const auto begin = next.overrides.begin() + static_cast<std::ptrdiff_t>(first);
      next.overrides.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(count, all - first)));
      steps.add(next);
    }
}

/// Recipes that are plain whatever the tensor: all that need no seed, and small integers.
std::vector<Source> plain_sources() {
  std::vector<Source> sources;
  for (const Recipe& recipe : all_recipes())
    if (!recipe.seeded) sources.push_back({.recipe = std::string(recipe.name), .args = {}, .seed = 0});
  for (const char* number : {"2", "-1"}) sources.push_back({.recipe = "constant", .args = {number}, .seed = 0});
  for (const std::uint64_t seed : {1, 2}) sources.push_back({.recipe = "integers", .args = {}, .seed = seed});
  return sources;
}

void argument_steps(const Source& source, const std::function<void(const Source&)>& add) {
  const Recipe* recipe = find_recipe(source.recipe);
  if (recipe == nullptr) return;
  Source next = source;
  next.args.clear();
  add(next);
  next = source;
  for (const std::uint64_t seed : {1, 2, 3}) {
    next.seed = seed;
    add(next);
  }
  for (std::size_t i = 0; i < source.args.size(); ++i) {
    const double value = read_number(source.args[i]).value_or(0);
    std::vector<double> numbers = plainer(value);
    numbers.push_back(recipe->args[i].default_value);
    if (recipe->args[i].integer && value > 1)
      for (const std::int64_t w : below(static_cast<std::int64_t>(value))) numbers.push_back(static_cast<double>(w));
    for (const double number : numbers) {
      next = source;
      next.args[i] = shortest(number);
      add(next);
    }
  }
}

void source_steps(Steps& steps) {
  for (std::size_t i = 0; i < steps.c().sources.size(); ++i) {
    const auto add = [&](const Source& source) {
      Case next = steps.c();
      next.sources[i].second = source;
      steps.add(next);
      std::erase_if(next.overrides, [&](const Override& o) { return o.role == next.sources[i].first; });
      if (next.overrides.size() != steps.c().overrides.size()) steps.add(next);
    };
    for (const Source& source : plain_sources()) add(source);
    argument_steps(steps.c().sources[i].second, add);
  }
}

void set_value(Case& c, const std::string& role, const std::vector<std::int64_t>& index, double value) {
  std::erase_if(c.overrides, [&](const Override& o) { return o.role == role && o.index == index; });
  c.overrides.push_back({.role = role, .index = index, .value = shortest(value)});
}

void value_steps(Steps& steps) {
  const Problem problem = materialize(steps.c());
  for (const auto& [role, source] : steps.c().sources) {
    const auto at = std::find_if(problem.inputs.begin(), problem.inputs.end(),
                                 [&, &name = role](const Tensor& t) { return t.layout.role == name; });
    if (at == problem.inputs.end()) continue;
    const TensorLayout& layout = at->layout;
    const bool is_short = layout.count() <= kShortTensor;
    std::vector<std::int64_t> index(layout.shape.size(), 0);
    for (std::int64_t n = 0; n < layout.count() && (is_short || !steps.c().overrides.empty()); ++n) {
      const bool overridden =
          std::any_of(steps.c().overrides.begin(), steps.c().overrides.end(),
                      [&, &name = role](const Override& o) { return o.role == name && o.index == index; });
      std::int64_t element = layout.offset;
      for (std::size_t axis = 0; axis < index.size(); ++axis) element += index[axis] * layout.strides[axis];
      const double value = at->view().value(element);
      if (is_short || overridden)
        for (const double number : plainer(value)) {
          if (value_size(number) >= value_size(value)) continue;
          Case next = steps.c();
          set_value(next, role, index, number);
          steps.add(next);
        }
      for (std::size_t axis = index.size(); axis-- > 0;) {
        if (++index[axis] < layout.shape[axis]) break;
        index[axis] = 0;
      }
    }
  }
}

}  // namespace

std::vector<Case> shrink_steps(const Case& c, ShrinkKind kind) {
  Steps steps(c);
  switch (kind) {
    case ShrinkKind::kNumber: number_steps(steps); break;
    case ShrinkKind::kTwo: two_steps(steps); break;
    case ShrinkKind::kList: list_steps(steps); break;
    case ShrinkKind::kOption: option_steps(steps); break;
    case ShrinkKind::kReal: real_steps(steps); break;
    case ShrinkKind::kOverrides: override_steps(steps); break;
    case ShrinkKind::kSource: source_steps(steps); break;
    case ShrinkKind::kValue: value_steps(steps); break;
  }
  return steps.take();
}

}  // namespace assay
