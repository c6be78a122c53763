// Gathers strided tensors into C order and writes them.
#include "cli/dump.h"

#include <deque>
#include <nlohmann/json.hpp>

#include "cases/safetensors.h"
#include "oracle/arithmetic_json.h"

namespace assay {
namespace {

/// The tensor's elements in C order of its shape, without strides and unused storage.
std::vector<std::byte> c_order(const Tensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.count() * bytes_per_element(layout.format)));
  std::vector<std::int64_t> index(layout.shape.size(), 0);
  for (std::int64_t n = 0; n < layout.count(); ++n) {
    std::int64_t element = layout.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) element += index[axis] * layout.strides[axis];
    store_code(bytes.data(), layout.format, n, load_code(tensor.bytes.data(), layout.format, element));
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < layout.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return bytes;
}

}  // namespace

void write_dump(const std::filesystem::path& path, const Case& c, const Problem& problem,
                const std::vector<Tensor>& outputs, const Arithmetic& declared) {
  std::deque<std::vector<std::byte>> kept;  // the spans below point into it
  std::vector<SafetensorsTensor> tensors;
  const auto add = [&](const Tensor& tensor) {
    kept.push_back(c_order(tensor));
    tensors.push_back({tensor.layout.role, std::string(info(tensor.layout.format).safetensors_name), tensor.layout.shape,
                       kept.back()});
  };
  for (const Tensor& input : problem.inputs)
    for (const auto& [role, source] : c.sources)
      if (role == input.layout.role) add(input);
  for (const Tensor& output : outputs) add(output);
  write_safetensors(path, tensors, {{"case", print_case(c)}, {"arithmetic", to_json(declared).dump()}, {"writer", "assay repro"}});
}

}  // namespace assay
