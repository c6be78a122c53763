// Fuzz target: any bytes are either an InputError or a file that is read back the same after being written again.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cases/safetensors.h"
#include "oracle/error.h"

namespace {

std::span<const std::byte> bytes_of(const assay::SafetensorsEntry& entry, const assay::SafetensorsIndex& index,
                                    std::span<const std::byte> file) {
  return file.subspan(index.data + entry.begin, entry.end - entry.begin);
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "written again, the file differs: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  assay::SafetensorsIndex index;
  try {
    index = assay::index_safetensors(file, "input");
  } catch (const assay::InputError&) {
    return 0;
  }
  std::vector<assay::SafetensorsTensor> tensors;
  for (const assay::SafetensorsEntry& entry : index.entries)
    tensors.push_back({entry.name, entry.dtype, entry.shape, bytes_of(entry, index, file)});
  const std::vector<std::byte> written = assay::serialize_safetensors(tensors, index.metadata);
  const assay::SafetensorsIndex again = assay::index_safetensors(written, "written");
  require(again.metadata == index.metadata, "metadata");
  require(again.entries.size() == index.entries.size(), "number of tensors");
  for (const assay::SafetensorsTensor& tensor : tensors) {
    const assay::SafetensorsEntry* entry = again.find(tensor.name);
    require(entry != nullptr && entry->dtype == tensor.dtype && entry->shape == tensor.shape, "name, dtype or shape");
    require(std::ranges::equal(bytes_of(*entry, again, written), tensor.bytes), "bytes");
  }
  return 0;
}
