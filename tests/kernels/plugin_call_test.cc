// A call through the C interface: what the plug-in is given, in which order it is called, and what its codes become.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/plugin/call.h"
#include "kernels/run_error.h"

namespace assay {
namespace {

/// What the table's functions were asked for and answer.
struct Script {
  int prepare = ASSAY_OK, run = ASSAY_OK, release = ASSAY_OK;
  std::vector<std::string> calls = {};
  std::vector<std::string> phases = {};
};
Script script;

std::int32_t prepare(const assay_call*, void** state, assay_message* message) {
  script.calls.emplace_back("prepare");
  *state = &script;
  std::strcpy(message->text, "from prepare");
  return script.prepare;
}
std::int32_t run(const assay_call* call, void* state, assay_message* message) {
  script.calls.push_back(std::string("run ") + call->kernel + (state == &script ? " with its state" : ""));
  EXPECT_EQ(message->text[0], '\0') << "the message of prepare is gone";
  std::strcpy(message->text, "tile 7");
  return script.run;
}
std::int32_t release(void* state, assay_message*) {
  EXPECT_EQ(state, &script);
  script.calls.emplace_back("release");
  return script.release;
}
constexpr assay_plugin kWhole{sizeof kWhole, ASSAY_PLUGIN_ABI, nullptr, run, prepare, release};
constexpr assay_plugin kRunOnly{sizeof kRunOnly, ASSAY_PLUGIN_ABI, nullptr, run, nullptr, nullptr};

std::string call_with(const assay_plugin& table, Script next) {
  script = std::move(next);
  return call_plugin(table, "k", {}, {}, {}, {}, [](std::string_view phase) { script.phases.emplace_back(phase); });
}

using Strings = std::vector<std::string>;

TEST(PluginCall, PreparesRunsAndReleasesAndSaysWhichComesNext) {
  EXPECT_EQ(call_with(kWhole, {}), "tile 7");
  EXPECT_EQ(script.calls, (Strings{"prepare", "run k with its state", "release"}));
  EXPECT_EQ(script.phases, (Strings{"prepare", "run", "release", "the rest of the case"}));
  EXPECT_EQ(call_with(kRunOnly, {}), "tile 7");
  EXPECT_EQ(script.calls, (Strings{"run k"}));
}

TEST(PluginCall, ReleasesAfterARunThatFailsAndNotAfterAPrepareThatDid) {
  EXPECT_THROW(call_with(kWhole, {.run = 5}), RunFailed);
  EXPECT_EQ(script.calls.back(), "release");
  EXPECT_THROW(call_with(kWhole, {.prepare = 5}), RunFailed);
  EXPECT_EQ(script.calls, (Strings{"prepare"}));
}

TEST(PluginCall, CodesBecomeWhatTheyMean) {
  const auto error = [](const Script& next) -> std::string {
    try {
      call_with(kWhole, next);
    } catch (const CannotRun& reason) {
      return std::string("cannot run: ") + reason.what();
    } catch (const std::exception& reason) {
      return reason.what();
    }
    return "";
  };
  EXPECT_EQ(error({.prepare = ASSAY_UNSUPPORTED}), "cannot run: from prepare");
  EXPECT_EQ(error({.prepare = ASSAY_OUT_OF_MEMORY}), "cannot run: out of memory: from prepare");
  EXPECT_EQ(error({.prepare = ASSAY_FAILED}), "prepare fails with code 3: from prepare");
  EXPECT_EQ(error({.run = -1}), "run fails with code -1: tile 7");
  EXPECT_EQ(error({.release = 4}), "release fails with code 4");
  EXPECT_EQ(error({.run = -1, .release = 4}), "run fails with code -1: tile 7") << "the first of two";
}

TEST(PluginCall, GivesEveryParameterItsValue) {
  Params params;
  params.set("d", "64");
  params.set("scale", "0.125");
  params.set("window", "16,-1");
  params.set("mask", "causal");
  params.set("empty_lse", "-inf");
  params.set("kv_lens", "3");
  const PluginScalars scalars(params);
  assay_call call{};
  call.scalars = scalars.all().data();
  call.scalar_count = static_cast<std::int64_t>(scalars.all().size());
  const auto scalar = [&](const char* name) { return *assay_find_scalar(&call, name); };
  EXPECT_EQ(scalar("d").kind, ASSAY_INTEGER);
  EXPECT_EQ(scalar("d").integer, 64);
  EXPECT_EQ(scalar("d").real, 64.0);
  EXPECT_STREQ(scalar("d").text, "64");
  EXPECT_EQ(scalar("scale").kind, ASSAY_REAL);
  EXPECT_EQ(scalar("scale").real, 0.125);
  ASSERT_EQ(scalar("window").kind, ASSAY_INTEGERS);
  ASSERT_EQ(scalar("window").count, 2);
  EXPECT_EQ(scalar("window").integers[0], 16);
  EXPECT_EQ(scalar("window").integers[1], -1);
  EXPECT_EQ(scalar("mask").kind, ASSAY_TEXT);
  EXPECT_STREQ(scalar("mask").text, "causal");
  EXPECT_EQ(scalar("empty_lse").kind, ASSAY_TEXT) << "a name, no number";
  EXPECT_EQ(scalar("kv_lens").kind, ASSAY_INTEGER);
  ASSERT_EQ(scalar("kv_lens").count, 1) << "a list of one";
  EXPECT_EQ(scalar("kv_lens").integers[0], 3);
  EXPECT_EQ(assay_find_scalar(&call, "no_such"), nullptr);
}

TEST(PluginCall, DescribesATensorByItsFirstElement) {
  const TensorLayout layout{"k", Format::kBf16, {2, 3}, {3, 1}, 0, 6};
  std::byte storage[12]{};
  const assay_tensor tensor = plugin_tensor(layout, storage, ASSAY_CPU);
  EXPECT_STREQ(tensor.role, "k");
  EXPECT_EQ(tensor.format, ASSAY_BF16);
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.shape[1], 3);
  EXPECT_EQ(tensor.strides[0], 3);
  EXPECT_EQ(tensor.data, storage);
  EXPECT_EQ(tensor.device, ASSAY_CPU);
}

}  // namespace
}  // namespace assay
