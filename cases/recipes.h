// Recipes: named ways to fill a tensor, each one function and one table row; the registry that `assay list recipes`
// shows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "cases/random.h"
#include "oracle/op.h"

namespace assay {

/// The tensor a recipe fills. Values are rounded once to `format` afterwards.
struct Field {
  std::string_view role;
  Format format = Format::kFp32;
  std::int64_t extent = 1;  ///< values of a row
  double logit_scale = 1;   ///< factor of q.k in a logit (the op's `scale`, else fl32(1 / sqrt(extent)))
  std::uint64_t key = 0;    ///< tensor_key(seed, role)
  std::span<const double> args;
};

/// One run of values (the channels of a vector, else the last axis; one value where that is a position), by its coordinates.
/// `position` counts inside the sequence, so a paged, a packed, a padded and a dense batch with equal coordinates get equal
/// values, and a shorter case keeps the values it shares.
struct Row {
  std::int64_t batch = 0, head = 0, position = 0;
  std::int64_t other = 0;   ///< axes that are none of these
  std::int64_t length = 1;  ///< positions of the sequence
  std::int64_t first = 0;   ///< row-major index of the run's first value, in a paged tensor as if it were not paged
};

/// The numbers of a row. `draw` tells apart several uses in one recipe.
inline Stream stream_of(const Field& field, const Row& row, std::uint64_t draw = 0) {
  std::uint64_t hash = field.key;
  for (const std::int64_t word : {row.batch, row.head, row.position, row.other})
    hash = absorb(hash, static_cast<std::uint64_t>(word));
  return {draw == 0 ? hash : absorb(hash, draw)};
}

/// Which tensors a recipe can fill. Recipes for numbers fill any tensor that is not a boolean mask.
enum class Fits : std::uint8_t {
  kNumbers,    ///< any number format
  kVectors,    ///< positions and channels: rows are vectors of a sequence
  kBoolMask,   ///< u8, non-zero = attend
  kScoreMask,  ///< numbers added to scores: the last axis is the key position
  kHeads,      ///< one number per head
  kPositions,  ///< i32, one number per position
  kKeyList,    ///< i32, lists of keys
};

struct RecipeArg {
  std::string_view name;
  double default_value;
  double low, high;  ///< inclusive; argument values are finite
  bool integer = false;
};

struct Recipe {
  std::string_view name;
  std::vector<RecipeArg> args;
  std::string_view summary;
  void (*fill)(const Field&, const Row&, std::span<double> out);
  Fits fits = Fits::kNumbers;
  bool seeded = true;     ///< false: the seed does not matter and is not printed
  bool ordered = false;   ///< the first two arguments are a range: first <= second
  bool range = false;     ///< its purpose is to leave the range of some intermediate; its name says so
  bool infinite = false;  ///< may give infinities; every other recipe saturates
};

/// Sorted by name.
const std::vector<Recipe>& all_recipes();
const Recipe* find_recipe(std::string_view name);
/// True if some tensor of the case comes from a recipe with `range`.
bool leaves_range(const Case& c);

/// Reads `recipe(arg,...)@seed` or `file(path,tensor,hash)`. Throws InputError naming `field` and the text.
/// The result is canonical: shortest numbers, trailing default arguments left out, seed 0 where it does not matter.
Source parse_source(std::string_view field, std::string_view text);
std::string print_source(const Source& source);
/// Throws InputError if the recipe cannot fill the tensor.
void check_fits(std::string_view field, const Source& source, const InputSpec& spec);

/// Writes every element that `spec` uses into `storage` (spec.layout.storage_bytes() bytes), rounded once to nearest
/// even; values beyond the largest finite number saturate. Other bytes stay. `source` is canonical and not a file.
void fill_from_recipe(const Source& source, const InputSpec& spec, double logit_scale, std::byte* storage);

/// The value that recipe `tags` gives to the element with row-major index `id`, exact in the format; ids below the
/// capacity have distinct values. Magnitudes lie in [2^-8, 2^8) (floating-point formats).
double tag_value(Format format, std::int64_t id);
std::int64_t tag_capacity(Format format);

/// The value of the first two channels of q under recipe `probe`; recipes that place logits divide by it.
inline constexpr double kProbe = 64;

}  // namespace assay
