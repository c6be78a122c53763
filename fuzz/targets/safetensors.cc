// Fuzz target: any bytes are either an InputError or a file that is read back the same after being written again.
#include "cases/safetensors.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets/target.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::span<const std::byte> bytes_of(const SafetensorsEntry& entry, const SafetensorsIndex& index,
                                    std::span<const std::byte> file) {
  return file.subspan(index.data + entry.begin, entry.end - entry.begin);
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "written again, the file differs: %s\n", what);
  std::abort();
}

class Safetensors final : public Target {
 public:
  int run(std::span<const std::uint8_t> input) override {
    const std::span file(reinterpret_cast<const std::byte*>(input.data()), input.size());
    SafetensorsIndex index;
    try {
      index = index_safetensors(file, "input");
    } catch (const InputError&) {
      return 0;
    }
    std::vector<SafetensorsTensor> tensors;
    for (const SafetensorsEntry& entry : index.entries)
      tensors.push_back({entry.name, entry.dtype, entry.shape, bytes_of(entry, index, file)});
    const std::vector<std::byte> written = serialize_safetensors(tensors, index.metadata);
    const SafetensorsIndex again = index_safetensors(written, "written");
    require(again.metadata == index.metadata, "metadata");
    require(again.entries.size() == index.entries.size(), "number of tensors");
    for (const SafetensorsTensor& tensor : tensors) {
      const SafetensorsEntry* entry = again.find(tensor.name);
      require(entry != nullptr && entry->dtype == tensor.dtype && entry->shape == tensor.shape, "name, dtype or shape");
      require(std::ranges::equal(bytes_of(*entry, again, written), tensor.bytes), "bytes");
    }
    return 0;
  }
};

const RegisterTarget kRegister({"safetensors", "any bytes as a safetensors file",
                                [](const std::string&, const TargetOptions&) -> std::unique_ptr<Target> {
                                  return std::make_unique<Safetensors>();
                                }});

}  // namespace
}  // namespace assay
