// Index tensors of attention: an entry that points outside is one error with its name, and entries that nobody reads do
// not matter.
#include <gtest/gtest.h>

#include <string>

#include "oracle/error.h"
#include "oracle/ops/attention/problem.h"
#include "tests/oracle/problems.h"

namespace assay {
namespace {

/// The error of solving the problem with `role[element]` replaced.
std::string error_with(const Problem& good, const std::string& role, std::int64_t element, std::int32_t value) {
  Problem problem = good;
  input(problem, role).output().set_code(element, static_cast<std::uint32_t>(value));
  try {
    (void)AttentionProblem(problem);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

struct Tampering {
  const char* role;
  std::int64_t element;
  std::int32_t value;
  const char* says;  ///< empty: no error
};

void expect_refusals(const Params& params, std::initializer_list<Tampering> tamperings) {
  const Problem good = make_problem(params, [](const TensorLayout&) { return std::uint64_t{0}; });
  for (const Tampering& t : tamperings) {
    const std::string error = error_with(good, t.role, t.element, t.value);
    if (t.says[0] == '\0') {
      EXPECT_EQ(error, "") << t.role << " " << t.element;
      continue;
    }
    EXPECT_NE(error.find(t.says), std::string::npos) << t.role << " " << t.element << ": " << error;
  }
}

Params ragged(std::initializer_list<std::pair<std::string, std::string>> more) {
  Params params = make_params({{"b", "3"}, {"sq", "3"}, {"skv", "9"}, {"d", "8"}, {"kv_lens", "9,0,5"}});
  for (const auto& [key, value] : more) params.set(key, value);
  return params;
}

TEST(IndexTensors, ABlockTableEntryThatPointsOutsideIsNamedAndOneBehindTheLastPageIsNeverRead) {
  const Params params = ragged({{"kv", "vllm"}, {"page", "4"}});  // pages 3, 0, 2; the table is [3, 4]
  expect_refusals(params, {{"block_table", 0, -1, "block_table[0,0]=-1"},
                           {"block_table", 2, 5, "block_table[0,2]=5"},
                           {"block_table", 2, 0x7fffffff, "block_table[0,2]=2147483647"},
                           {"block_table", 9, 5, "block_table[2,1]=5"},
                           {"block_table", 9, 0, ""},
                           {"block_table", 3, -1, ""},
                           {"block_table", 4, 77, ""},
                           {"block_table", 10, -2147483647, ""},
                           {"seqlens_kv", 0, 10, "seqlens_kv[0]=10"},
                           {"seqlens_kv", 2, -1, "seqlens_kv[2]=-1"},
                           {"seqlens_kv", 1, 1, ""}});
}

TEST(IndexTensors, APageListThatPointsOutsideIsNamed) {
  const Params params = ragged({{"kv", "hnd"}, {"page", "4"}});  // indptr 0 3 3 5, last_page_len 1 0 1
  expect_refusals(params, {{"kv_indptr", 0, -1, "kv_indptr[0]=-1"},
                           {"kv_indptr", 1, 99, "kv_indptr[1]=99"},
                           {"kv_indptr", 2, 2, "kv_indptr[2]=2"},
                           {"kv_indptr", 3, 7, "kv_indptr[3]=7"},
                           {"kv_indptr", 0, 1, ""},
                           {"kv_indices", 4, 5, "kv_indices[4]=5"},
                           {"kv_indices", 0, -3, "kv_indices[0]=-3"},
                           {"kv_indices", 5, 99, ""},
                           {"kv_last_page_len", 0, 0, "kv_last_page_len[0]=0"},
                           {"kv_last_page_len", 0, 5, "kv_last_page_len[0]=5"},
                           {"kv_last_page_len", 0, 2, "10 keys"},
                           {"kv_last_page_len", 1, -9, ""}});
}

TEST(IndexTensors, StartsAndLengthsOutsideTheirTensorsAreNamed) {
  Params params = ragged({{"q_lens", "3,1,2"}, {"batch", "packed"}});
  expect_refusals(params, {{"cu_seqlens_q", 0, -1, "cu_seqlens_q[0]=-1"},
                           {"cu_seqlens_q", 1, 7, "cu_seqlens_q[1]=7"},
                           {"cu_seqlens_q", 2, 2, "cu_seqlens_q[2]=2"},
                           {"cu_seqlens_kv", 3, 15, "cu_seqlens_kv[3]=15"},
                           {"cu_seqlens_q", 1, 0, "4 tokens"},
                           {"cu_seqlens_q", 3, 5, ""}});
  params.set("batch", "padded");
  expect_refusals(
      params,
      {{"seqlens_q", 1, 4, "seqlens_q[1]=4"}, {"seqlens_kv", 0, -2, "seqlens_kv[0]=-2"}, {"seqlens_kv", 1, 9, ""}});
}

TEST(IndexTensors, JudgedRowsThatDoNotExistAreNamed) {
  const Params params = make_params({{"b", "2"}, {"hq", "2"}, {"sq", "3"}, {"rows", "2"}, {"d", "8"}});
  expect_refusals(params, {{"rows", 0, 2, "rows[0,0]=2"},
                           {"rows", 1, -1, "rows[0,1]=-1"},
                           {"rows", 5, 3, "rows[1,2]=3"},
                           {"rows", 5, 1, ""}});
}

TEST(IndexTensors, AKeyThatAListNamesTwiceIsRefusedAndEntriesOutOfRangeAreNot) {
  const Params params = make_params({{"sq", "2"}, {"skv", "5"}, {"d", "8"}, {"mask", "list"}, {"list", "4"}});
  std::int64_t next = 0;
  const Problem good = make_problem(params, [&](const TensorLayout& t) {
    return t.role == "mask" ? static_cast<std::uint64_t>(next++ % 4) : std::uint64_t{0};
  });
  EXPECT_EQ(error_with(good, "mask", 6, 4), "");
  EXPECT_NE(error_with(good, "mask", 6, 3).find("mask[0,0,1,3]=3"), std::string::npos);
  for (const std::int32_t outside : {-1, 5, 0x7fffffff, -0x7fffffff}) {
    Problem two = good;
    for (const std::int64_t element : {4, 6})
      input(two, "mask").output().set_code(element, static_cast<std::uint32_t>(outside));
    EXPECT_EQ(error_with(two, "mask", 7, 3), "");
  }
}

}  // namespace
}  // namespace assay
