// The recipe registry, and reading and printing of sources.
#include "cases/recipes.h"

#include <algorithm>

#include "cases/families.h"
#include "cases/text.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::vector<Recipe> sorted_recipes() {
  std::vector<Recipe> all;
  for (auto family :
       {plain_recipes, exponent_recipes, cancellation_recipes, logit_recipes, model_recipes, mask_recipes,
        convention_recipes, score_recipes, part_recipes, probe_recipes})
    for (Recipe& recipe : family()) all.push_back(std::move(recipe));
  std::sort(all.begin(), all.end(), [](const Recipe& a, const Recipe& b) { return a.name < b.name; });
  return all;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

void check_file(std::string_view field, std::string_view text, const Source& source) {
  if (source.args.size() != 3) bad_field(field, text, "file needs path, tensor and hash");
  for (const std::string& arg : source.args)
    if (arg.empty()) bad_field(field, text, "file needs path, tensor and hash; one is empty");
  const std::string& hash = source.args[2];
  if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    bad_field(field, text, "the hash " + in_quotes(hash) + " is not 16 lower-case hexadecimal digits");
}

/// Checks the arguments and writes them in canonical form.
void check_args(std::string_view field, std::string_view text, const Recipe& recipe, Source& source) {
  if (source.args.size() > recipe.args.size())
    bad_field(field, text,
              std::string(recipe.name) + " takes at most " + std::to_string(recipe.args.size()) + " arguments");
  std::vector<double> values;
  for (std::size_t i = 0; i < recipe.args.size(); ++i) {
    const RecipeArg& arg = recipe.args[i];
    if (i >= source.args.size()) {
      values.push_back(arg.default_value);
      continue;
    }
    const std::optional<double> value = read_number(source.args[i]);
    const std::string what = std::string(arg.name) + " " + in_quotes(source.args[i]) + " ";
    if (!value) bad_field(field, text, what + "is not a number");
    if (!(*value >= arg.low && *value <= arg.high))
      bad_field(field, text, what + "must lie in [" + shortest(arg.low) + ", " + shortest(arg.high) + "]");
    if (arg.integer && *value != static_cast<double>(static_cast<std::int64_t>(*value)))
      bad_field(field, text, what + "must be an integer");
    values.push_back(*value);
    source.args[i] = shortest(*value);
  }
  if (recipe.ordered && values[0] > values[1])
    bad_field(field, text, std::string(recipe.args[0].name) + " is above " + std::string(recipe.args[1].name));
  while (!source.args.empty() && source.args.back() == shortest(recipe.args[source.args.size() - 1].default_value))
    source.args.pop_back();
}

}  // namespace

const std::vector<Recipe>& all_recipes() {
  static const std::vector<Recipe> recipes = sorted_recipes();
  return recipes;
}

const Recipe* find_recipe(std::string_view name) {
  const std::vector<Recipe>& all = all_recipes();
  const auto at = std::lower_bound(all.begin(), all.end(), name,
                                   [](const Recipe& recipe, std::string_view wanted) { return recipe.name < wanted; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

bool leaves_range(const Case& c) {
  return std::any_of(c.sources.begin(), c.sources.end(), [](const auto& item) {
    const Recipe* recipe = find_recipe(item.second.recipe);
    return recipe != nullptr && recipe->range;
  });
}

Source parse_source(std::string_view field, std::string_view text) {
  Source source;
  std::string_view rest = text;
  const std::size_t name_end = std::min(rest.find_first_of("(@"), rest.size());
  source.recipe = rest.substr(0, name_end);
  rest.remove_prefix(name_end);
  if (rest.starts_with('(')) {
    const std::size_t close = rest.find(')');
    if (close == std::string_view::npos) bad_field(field, text, "no closing parenthesis");
    const std::string_view inside = rest.substr(1, close - 1);
    if (inside.find('(') != std::string_view::npos) bad_field(field, text, "nested parentheses");
    source.args = split(inside, ',');
    rest.remove_prefix(close + 1);
  }
  const bool is_file = source.recipe == "file";
  const Recipe* recipe = find_recipe(source.recipe);
  if (!is_file && recipe == nullptr) bad_field(field, text, "unknown recipe " + in_quotes(source.recipe));
  if (!rest.empty()) {
    if (!rest.starts_with('@')) bad_field(field, text, in_quotes(rest) + " follows the recipe; expected @seed");
    if (is_file) bad_field(field, text, "a file takes no seed");
    const std::optional<std::uint64_t> seed = read_unsigned(rest.substr(1));
    if (!seed) bad_field(field, text, "the seed " + in_quotes(rest.substr(1)) + " is not an integer in [0, 2^64)");
    source.seed = *seed;
  }
  if (is_file) {
    check_file(field, text, source);
    return source;
  }
  check_args(field, text, *recipe, source);
  if (!recipe->seeded) source.seed = 0;
  return source;
}

std::string print_source(const Source& source) {
  std::string text = source.recipe;
  if (!source.args.empty()) text.append(1, '(').append(joined(source.args)).append(1, ')');
  const Recipe* recipe = find_recipe(source.recipe);
  if (recipe != nullptr && recipe->seeded) text.append("@").append(std::to_string(source.seed));
  return text;
}

void check_fits(std::string_view field, const Source& source, const InputSpec& spec) {
  const Recipe* recipe = find_recipe(source.recipe);
  if (recipe == nullptr) return;  // a file's format and shape are checked when it is read
  const bool bool_mask = spec.layout.format == Format::kUint8;
  const auto refuse = [&](const std::string& why) { bad_field(field, print_source(source), why); };
  if (bool_mask != (recipe->fits == Fits::kBoolMask))
    refuse(bool_mask ? "a bool mask needs a recipe for bool masks: all, keep, block, empty_rows"
                     : "this recipe fills bool masks only");
  if (recipe->fits == Fits::kScoreMask && !spec.axes.ends_with('k')) refuse("this recipe fills additive masks only");
  if (recipe->fits == Fits::kVectors &&
      (spec.axes.find('c') == std::string::npos || spec.axes.find_first_of("sto") == std::string::npos))
    refuse("this recipe needs a tensor with positions and channels");
  const bool index = spec.layout.format == Format::kInt32;
  if (recipe->fits == Fits::kHeads && !spec.axes.ends_with('h')) refuse("this recipe needs one number per head");
  if (recipe->fits == Fits::kPositions && !(index && (spec.axes.ends_with('s') || spec.axes.ends_with('t'))))
    refuse("this recipe needs one integer per position");
  if (recipe->fits == Fits::kKeyList && !(index && spec.axes.ends_with('x'))) refuse("this recipe fills lists of keys only");
}

}  // namespace assay
