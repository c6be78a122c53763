// Tensors taken from safetensors files: `file(path,tensor,hash)`.
#include "cases/file_source.h"

#include <xxhash.h>

#include <cstdlib>

#include "cases/recipes.h"
#include "cases/safetensors.h"
#include "cases/text.h"
#include "cases/walk.h"

namespace assay {
namespace {

std::string text_of(std::span<const std::int64_t> shape) { return std::string("[").append(joined(shape)).append("]"); }

}  // namespace

std::string content_hash(std::span<const std::byte> bytes) {
  std::uint64_t hash = XXH64(bytes.data(), bytes.size(), 0);
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) digits[i] = "0123456789abcdef"[hash & 15];
  return digits;
}

std::filesystem::path find_data_file(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::path(path).is_absolute()) return path;
  std::vector<fs::path> roots;
  if (const char* data = std::getenv("ASSAY_DATA"); data != nullptr && *data != '\0')
    roots = {data};
  else
    roots = {".", fs::path(__FILE__).parent_path().parent_path()};
  std::string tried;
  for (const fs::path& root : roots) {
    std::error_code ignored;
    if (fs::exists(root / path, ignored)) return root / path;
    tried += ' ';
    tried += (root / path).string();
  }
  bad_field("file", path, "no such file; tried" + tried);
}

void fill_from_file(const Source& source, const InputSpec& spec, std::byte* storage) {
  const TensorLayout& layout = spec.layout;
  const std::string text = print_source(source);
  const SafetensorsFile file(find_data_file(source.args.at(0)));
  const SafetensorsEntry* entry = file.find(source.args.at(1));
  if (entry == nullptr) bad_field(layout.role, text, "the file has no tensor " + in_quotes(source.args[1]));
  if (entry->dtype != info(layout.format).safetensors_name)
    bad_field(layout.role, text,
              "the file's tensor is " + entry->dtype + ", the case needs " +
                  std::string(info(layout.format).safetensors_name));
  if (entry->shape != layout.shape)
    bad_field(layout.role, text,
              "the file's tensor has shape " + text_of(entry->shape) + ", the case needs " + text_of(layout.shape));
  const std::vector<std::byte> bytes = file.read(*entry);
  const std::string hash = content_hash(bytes);
  if (hash != source.args.at(2)) bad_field(layout.role, text, "the tensor's bytes have hash " + hash);
  for_each_row(spec, [&](const Row& row, const RowValues& at) {
    if (!is_used(row)) return;
    at.each([&](std::int64_t, std::int64_t element, std::int64_t row_major) {
      store_code(storage, layout.format, element, load_code(bytes.data(), layout.format, row_major));
    });
  });
}

}  // namespace assay
