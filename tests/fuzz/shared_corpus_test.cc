// Torn files, and merges that lose nothing.
#include "fuzz/shared_corpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "fuzz/sha1.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class SharedCorpus : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("assay_corpus_test_" + std::to_string(getpid()));
    fs::create_directories(corpus());
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path corpus() const { return root_ / "corpus"; }
  void put(const std::string& name, const std::string& text) const { std::ofstream(corpus() / name) << text; }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& file : fs::directory_iterator(corpus())) all.insert(file.path().filename().string());
    return all;
  }
  fs::path root_;
};

TEST(Sha1, GivesTheSumsOfItsStandard) {
  EXPECT_EQ(sha1(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_F(SharedCorpus, LosesTheFilesWhoseContentIsNotWhatTheirNameSays) {
  put(sha1("attention sq=12"), "attention sq=12");
  put(sha1("attention sq=123"), "attention sq=12");  // parses, and is torn all the same
  put(sha1("attention sq=7"), "");
  put("a_seed_of_mine", "attention");
  EXPECT_EQ(remove_torn(corpus(), false), 2);
  EXPECT_EQ(names(), (std::set<std::string>{"a_seed_of_mine", sha1("attention sq=12")}));
}

TEST_F(SharedCorpus, IsTheChosenSetAfterAMerge) {
  for (const char* text : {"a", "b", "c"}) put(sha1(text), text);
  put("seed", "c");
  EXPECT_TRUE(merge_corpus(corpus(), root_ / "work", [&](const fs::path& out) {
    for (const char* text : {"a", "c"}) std::ofstream(out / sha1(text)) << text;
    return true;
  }));
  EXPECT_EQ(names(), (std::set<std::string>{sha1("a"), sha1("c")}));
  EXPECT_FALSE(fs::exists(root_ / "work"));
}

TEST_F(SharedCorpus, KeepsWhatOthersWriteDuringAMerge) {
  for (const char* text : {"a", "b"}) put(sha1(text), text);
  EXPECT_TRUE(merge_corpus(corpus(), root_ / "work", [&](const fs::path& out) {
    put(sha1("late"), "late");
    std::ofstream(out / sha1("a")) << "a";
    return true;
  }));
  EXPECT_EQ(names(), (std::set<std::string>{sha1("a"), sha1("late")}));
}

TEST_F(SharedCorpus, StaysAsItIsIfTheMergeFailsOrIsTornOrEmpty) {
  for (const char* text : {"a", "b"}) put(sha1(text), text);
  const std::set<std::string> before = names();
  EXPECT_FALSE(merge_corpus(corpus(), root_ / "work", [&](const fs::path& out) {
    std::ofstream(out / sha1("a")) << "a";
    return false;
  }));
  EXPECT_FALSE(merge_corpus(corpus(), root_ / "work", [&](const fs::path& out) {
    std::ofstream(out / sha1("a")) << "a";
    std::ofstream(out / sha1("b")) << "";
    return true;
  }));
  EXPECT_FALSE(merge_corpus(corpus(), root_ / "work", [&](const fs::path&) { return true; }));
  EXPECT_EQ(names(), before);
}

}  // namespace
}  // namespace assay
