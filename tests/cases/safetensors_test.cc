// Safetensors: round trip, files of another writer, hostile headers, a full disk.
#include "cases/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "oracle/error.h"

namespace assay {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

/// A file with this header and `data` bytes behind it; the length field is right unless given.
std::vector<std::byte> file_of(std::string_view header, std::size_t data, std::uint64_t length) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i));
  return bytes_of(file + std::string(header) + std::string(data, 'd'));
}
std::vector<std::byte> file_of(std::string_view header, std::size_t data) {
  return file_of(header, data, header.size());
}

std::string error_of(std::span<const std::byte> file) {
  try {
    index_safetensors(file, "x.safetensors");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::vector<std::byte> kEight = bytes_of("12345678");
const std::vector<SafetensorsTensor> kTensors{{"z", "F16", {2, 2}, kEight},
                                              {"bytes", "U8", {8}, kEight},
                                              {"a", "F64", {}, kEight},
                                              {"none", "BF16", {3, 0, 7}, {}},
                                              {"deep \" \\ \u00e9", "F8_E4M3", {1, 2, 4}, kEight}};
const std::map<std::string, std::string> kMetadata{{"case", "attention q=\"x\""}, {"empty", ""}};

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const std::vector<std::byte> file = serialize_safetensors(kTensors, kMetadata);
  const SafetensorsIndex index = index_safetensors(file, "memory");
  EXPECT_EQ(index.metadata, kMetadata);
  EXPECT_EQ(index.data % 8, 0U);
  ASSERT_EQ(index.entries.size(), kTensors.size());
  for (const SafetensorsTensor& tensor : kTensors) {
    const SafetensorsEntry* entry = index.find(tensor.name);
    ASSERT_NE(entry, nullptr) << tensor.name;
    EXPECT_EQ(entry->dtype, tensor.dtype);
    EXPECT_EQ(entry->shape, tensor.shape);
    EXPECT_EQ(entry->begin % safetensors_element_bytes(tensor.dtype), 0U);
    const std::span<const std::byte> stored =
        std::span(file).subspan(index.data + entry->begin, entry->end - entry->begin);
    EXPECT_TRUE(std::equal(stored.begin(), stored.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
  EXPECT_EQ(index.find("absent"), nullptr);
  EXPECT_TRUE(index_safetensors(serialize_safetensors({}, {}), "memory").entries.empty());
}

TEST(Safetensors, AFileOfAnotherWriterIsRead) {
  const SafetensorsFile file(ASSAY_SOURCE_DIR "/cases/real/minilm_l6_fp16.safetensors");
  const SafetensorsEntry* entry = file.find("layer5.v");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->dtype, "F16");
  EXPECT_EQ(file.read(*entry).size(), 2U * 12 * static_cast<std::uint64_t>(entry->shape[2]) * 32);
  EXPECT_EQ(file.index().metadata.at("model"), "MiniLM-L6");
}

TEST(Safetensors, HostileHeadersAreOneClearError) {
  const std::string t = R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  struct Row {
    std::vector<std::byte> file;
    std::string says;
  };
  const std::vector<Row> rows{
      {{}, "only 0 bytes"},
      {bytes_of("1234567"), "only 7 bytes"},
      {file_of("{}", 0, 3), "passes the end of the file"},
      {file_of("{}", 0, 100'000'001), "above the limit"},
      {file_of("{}", 0, ~std::uint64_t{0}), "above the limit"},
      {file_of("", 0), "does not start with {"},
      {file_of(" {}", 0), "does not start with {"},
      {file_of("[]", 0), "does not start with {"},
      {file_of("{", 0), "malformed JSON"},
      {file_of("{} x", 0), "malformed JSON"},
      {file_of("{}{}", 0), "malformed JSON"},
      {file_of("{\"\xff\":" + t + "}", 4), "malformed JSON"},
      {file_of(R"({"a":1})", 0), "number 1 is not allowed"},
      {file_of(R"({"a":null})", 0), "null is not allowed"},
      {file_of(R"({"a":[]})", 0), "an array is not allowed"},
      {file_of(R"({"a":{}})", 0), "has no dtype"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4]}})", 4), "has no data_offsets"},
      {file_of(R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", 4), "has no shape"},
      {file_of(R"({"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}})", 4), "dtype 'F4'"},
      {file_of(R"({"a":{"dtype":7,"shape":[4],"data_offsets":[0,4]}})", 4), "number 7"},
      {file_of(R"({"a":{"dtype":"U8","shape":["4"],"data_offsets":[0,4]}})", 4), "string '4'"},
      {file_of(R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", 4), "number -4"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", 4), "number 4.0"},
      {file_of(R"({"a":{"dtype":"U8","shape":[[4]],"data_offsets":[0,4]}})", 4), "an array"},
      {file_of(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4),
       "extent 18446744073709551615"},
      {file_of(R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4),
       "99999999999999999999"},
      {file_of(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0), "passes 2^64"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0]}})", 4), "needs two numbers"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})", 4), "third offset"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4), "end before they begin"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,5]}})", 5), "need 4 bytes"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"more":1}})", 4), "key 'more'"},
      {file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4), "'dtype' given twice"},
      {file_of(R"({"a":)" + t + R"(,"a":)" + t + "}", 4), "tensor 'a': given twice"},
      {file_of(R"({"__metadata__":{"k":1}})", 0), "number 1"},
      {file_of(R"({"__metadata__":{"k":{}}})", 0), "an object"},
      {file_of(R"({"__metadata__":{"k":"","k":""}})", 0), "'k' given twice"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "given twice"},
      {file_of(R"({"__metadata__":"x"})", 0), "string 'x'"},
      {file_of(R"({"a":)" + t + "}", 3), "the file has 3 bytes"},
      {file_of(R"({"a":)" + t + "}", 5), "the file has 5 bytes"},
      {file_of(R"({"a":)" + t + R"(,"b":)" + t + "}", 4), "(overlap)"},
      {file_of(R"({"a":)" + t + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})", 7), "(hole)"},
      {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6), "(hole)"},
      {file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[18446744073709551615,18446744073709551615]}})", 0),
       "(hole)"},
      {file_of(std::string(500'000, '['), 0), "does not start"},
      {file_of("{\"a\":" + std::string(500'000, '['), 0), "an array"},
      {file_of("{\"a\":" + std::string(500'000, '{'), 0), "malformed"},
      {file_of(R"({"a":{"dtype":"U8","shape":[)" + std::string(65, '1') + "]}}", 0), "number 111"},
      {file_of(R"({"a":{"dtype":"U8","shape":[1)" +
                   [] {
                     std::string s;
                     for (int i = 0; i < 64; ++i) s += ",1";
                     return s;
                   }() +
                   R"(],"data_offsets":[0,1]}})",
               1),
       "more than 64 extents"},
  };
  for (const Row& row : rows) {
    const std::string error = error_of(row.file);
    EXPECT_NE(error.find(row.says), std::string::npos) << row.says << "\n" << error;
    EXPECT_TRUE(error.starts_with("x.safetensors: ")) << error;
    EXPECT_LT(error.size(), 500U);
  }
}

TEST(Safetensors, MutationsOfAValidFileAreAnErrorOrAnEqualIndex) {
  const std::vector<std::byte> valid = serialize_safetensors(kTensors, kMetadata);
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int i = 0; i < 50000; ++i) {
    std::vector<std::byte> file = valid;
    for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const auto at = static_cast<std::ptrdiff_t>(random() % (file.size() + 1));
      const auto value = random() % 2 == 0 ? static_cast<std::byte>(random())
                                           : static_cast<std::byte>("0123456789[]{},:\"\\ "[random() % 19]);
      if (at < static_cast<std::ptrdiff_t>(file.size()) && random() % 3 != 0)
        file[static_cast<std::size_t>(at)] = value;
      else if (random() % 2 == 0)
        file.insert(file.begin() + at, value);
      else
        file.resize(static_cast<std::size_t>(at));
    }
    try {
      const SafetensorsIndex index = index_safetensors(file, "mutant");
      ++accepted;
      for (const SafetensorsEntry& entry : index.entries) ASSERT_LE(index.data + entry.end, file.size());
    } catch (const InputError& error) {
      ASSERT_TRUE(std::string_view(error.what()).starts_with("mutant: "));
    }
  }
  EXPECT_GT(accepted, 1000);  // edits of the tensors' bytes
  EXPECT_LT(accepted, 40000);
}

TEST(Safetensors, TheWriterRefusesWhatItCouldNotReadBack) {
  const auto refuse = [](SafetensorsTensor tensor) {
    EXPECT_THROW(serialize_safetensors(std::vector{tensor}, {}), InputError) << tensor.name;
  };
  refuse({"dtype", "F4", {8}, kEight});
  refuse({"size", "U8", {7}, kEight});
  refuse({"negative", "U8", {-8}, kEight});
  refuse({"product", "U8", {std::int64_t{1} << 62, 4, 2}, kEight});
  refuse({"__metadata__", "U8", {8}, kEight});
  refuse({"not utf-8 \xff", "U8", {8}, kEight});
  EXPECT_THROW(serialize_safetensors(std::vector<SafetensorsTensor>(2, {"twice", "U8", {8}, kEight}), {}), InputError);
}

class OnDisk : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("assay_safetensors_" + std::to_string(::getpid()));
};

TEST_F(OnDisk, AWrittenFileReplacesTheOldOneWhole) {
  const std::filesystem::path path = folder_ / "a.safetensors";
  write_safetensors(path, std::span(kTensors).first(1), {});
  write_safetensors(path, kTensors, kMetadata);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.index(), index_safetensors(serialize_safetensors(kTensors, kMetadata), "memory"));
  EXPECT_EQ(file.read(*file.find("z")), kEight);
  EXPECT_EQ(files(), 1U);
}

TEST_F(OnDisk, AFullDiskIsAnEnvironmentErrorAndKeepsTheOldFile) {
  const std::filesystem::path path = folder_ / "a.safetensors";
  write_safetensors(path, kTensors, {});
  const std::vector<std::byte> large(1 << 20);
  const SafetensorsTensor tensors[] = {{"large", "U8", {1 << 20}, large}};
  // A limit on file sizes makes write() fail part of the way, as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 65536;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(write_safetensors(path, tensors, {}), EnvironmentError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(files(), 1U);
  EXPECT_NE(SafetensorsFile(path).find("z"), nullptr);
  EXPECT_THROW(write_safetensors(folder_ / "none" / "a.safetensors", kTensors, {}), EnvironmentError);
}

TEST_F(OnDisk, WhatIsNoFileOrChangesWhileReadIsAnInputError) {
  EXPECT_THROW(SafetensorsFile(folder_ / "none"), InputError);
  EXPECT_THROW(SafetensorsFile{folder_}, InputError);
  EXPECT_THROW(SafetensorsFile("/dev/zero"), InputError);
  const std::filesystem::path path = folder_ / "a.safetensors";
  write_safetensors(path, kTensors, {});
  const SafetensorsFile file(path);
  std::filesystem::resize_file(path, file.index().data + 4);
  EXPECT_THROW(file.read(*file.find("z")), InputError);
  EXPECT_THROW(SafetensorsFile{path}, InputError);
}

}  // namespace
}  // namespace assay
