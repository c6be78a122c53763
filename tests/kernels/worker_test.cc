// The worker: the same results as in process; crashes, hangs and lies become outcomes and the next case runs.
#include "kernels/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "kernels/protocol.h"
#include "kernels/run_error.h"
#include "oracle/error.h"

namespace assay {
namespace {

using std::chrono::milliseconds;

std::optional<std::string> supported(const Params& params) {
  if (params.find("refuse")) return "refuses";
  return std::nullopt;
}
Arithmetic declared(const Params&) {
  return {.qk = Accumulate::kBlockHopper, .p_format = Format::kBf16, .p_known = true, .tile_n = 64, .splits = 9};
}

/// y = x + 1 on the codes, then what `do` asks for.
RunFacts run(const Call& call) {
  const TensorView x = find_view(call.inputs, "x");
  const OutputView y = find_view(call.outputs, "y");
  const std::string what = call.params.find("do") ? *call.params.find("do") : "";
  if (what == "throw") throw std::runtime_error("bytes that are no text: \xff\xfe");
  if (what == "segv" || what == "abort") {
    const int number = what == "segv" ? SIGSEGV : SIGABRT;
    std::signal(number, SIG_DFL);  // a sanitizer would turn it into an exit
    std::raise(number);
  }
  if (what == "exit") std::_Exit(3);
  if (what == "hang")
    for (;;) std::this_thread::sleep_for(milliseconds(50));
  if (what == "print") std::cout << "a kernel that prints\n" << std::flush;
  if (what == "lack") throw CannotRun("no memory today");
  if (what == "stray") throw InvariantsBroken({"wrote outside workspace w", "changed input x on the device"});
  if (what == "spoil") throw ProcessSpoiled("the context is lost");
  if (what == "pid") return {std::to_string(getpid()), "a device"};
  if (what == "options") return {std::to_string(call.fill) + (call.bare ? " bare" : " guarded")};
  if (what == "close") close(STDIN_FILENO), close(STDOUT_FILENO), close(STDERR_FILENO);
  if (what == "shrink" && ftruncate(3, 0) == 0) throw std::runtime_error("the memory could be shrunk");
  for (std::int64_t i = 0; i < y.extent(0); ++i) y.set_code(y.element(i), x.code(x.element(i)) + 1);
  if (what == "input") const_cast<std::byte*>(x.storage)[1] ^= std::byte{1};
  if (what == "guard") y.set_code(y.layout->storage, 0);
  if (what == "padding") y.set_code(1, 0);
  return {"adds one"};
}

const RegisterKernel kAdd{{.name = "test_add",
                           .op = "add",
                           .summary = "adds one",
                           .formats = {Format::kBf16},
                           .expects = "a mode",
                           .unsupported = supported,
                           .declared = declared,
                           .run = run}};

constexpr milliseconds kAmple{60'000};

std::unique_ptr<Runner> worker(std::vector<std::string> arguments, milliseconds deadline = kAmple) {
  WorkerOptions options;
  options.command = {"/proc/self/exe"};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  options.deadline = deadline;
  return worker_runner(options);
}
std::unique_ptr<Runner> good_worker(milliseconds deadline = kAmple) { return worker({"serve"}, deadline); }

std::unique_ptr<Runner> shell(const std::string& script, milliseconds deadline = kAmple) {
  return worker_runner({{"sh", "-c", script}, deadline});
}

TensorLayout spread(std::string role, std::int64_t count) {
  return {std::move(role), Format::kBf16, {count}, {2}, 0, count * 2};
}

RunOutcome run_with(Runner& runner, const std::string& what, std::int64_t count = 5) {
  Tensor x{spread("x", count), {}};
  fill_canary(x);
  for (std::int64_t e = 0; e < count; ++e) x.output().set_code(2 * e, static_cast<std::uint64_t>(e % 1000));
  Params params;
  params.set(what == "refuse" ? "refuse" : "do", what);
  return runner.run("test_add", params, {x}, {spread("y", count)});
}

using Findings = std::vector<std::string>;

void expect_good(const RunOutcome& outcome, std::int64_t count = 5) {
  ASSERT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
  ASSERT_EQ(outcome.outputs.size(), 1U);
  EXPECT_EQ(outcome.outputs[0].layout, spread("y", count));
  EXPECT_EQ(outcome.broken, Findings{});
  EXPECT_EQ(outcome.declared, declared({}));
  EXPECT_EQ(outcome.facts.variant, "adds one");
  for (std::int64_t e = 0; e < count; ++e) {
    ASSERT_EQ(outcome.outputs[0].view().code(2 * e), static_cast<std::uint64_t>(e % 1000 + 1));
    ASSERT_EQ(outcome.outputs[0].view().code(2 * e + 1), canary_code(Format::kBf16));
  }
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(Worker, RunsManyCasesOfGrowingAndShrinkingSize) {
  const auto runner = good_worker();
  for (const std::int64_t count : {5, 0, 100'000, 7, 300'000, 1}) expect_good(run_with(*runner, "add", count), count);
}

TEST(Worker, ListsItsKernels) {
  const auto runner = good_worker();
  bool found = false;
  for (const KernelIdentity& kernel : runner->kernels())
    if (kernel.name == "test_add") {
      found = true;
      EXPECT_EQ(kernel.op, "add");
      EXPECT_EQ(kernel.summary, "adds one");
      EXPECT_EQ(kernel.expects, "a mode");
      EXPECT_EQ(kernel.dtypes, std::vector<std::string>{"bf16"});
      EXPECT_FALSE(kernel.mutant);
    }
  EXPECT_TRUE(found);
  EXPECT_THROW(runner->run("no_such", {}, {}, {}), InputError);
}

TEST(Worker, TurnsACrashIntoAnOutcomeAndGoesOn) {
  const auto runner = good_worker();
  const std::pair<const char*, const char*> endings[] = {
      {"segv", "signal 11 (SIGSEGV)"}, {"abort", "signal 6 (SIGABRT)"}, {"exit", "exit 3"}};
  for (const auto& [what, reason] : endings) {
    const RunOutcome outcome = run_with(*runner, what);
    EXPECT_EQ(outcome.status, RunStatus::kCrashed);
    EXPECT_EQ(outcome.reason, reason);
    EXPECT_TRUE(outcome.outputs.empty());
    expect_good(run_with(*runner, "add"));
  }
}

TEST(Worker, TurnsAHangIntoAnOutcomeAndGoesOn) {
  const auto runner = good_worker(milliseconds(1000));
  const RunOutcome outcome = run_with(*runner, "hang");
  EXPECT_EQ(outcome.status, RunStatus::kHung);
  EXPECT_EQ(outcome.reason, "no reply within 1000 ms");
  expect_good(run_with(*runner, "add"));
}

TEST(Worker, ReportsWhatAKernelThrows) {
  const auto runner = good_worker();
  const RunOutcome outcome = run_with(*runner, "throw");
  EXPECT_EQ(outcome.status, RunStatus::kCrashed);
  EXPECT_EQ(outcome.reason.find("exception: bytes that are no text: "), 0U) << outcome.reason;
}

TEST(Worker, SkipsWhatTheKernelRefuses) {
  const auto runner = good_worker();
  const RunOutcome outcome = run_with(*runner, "refuse");
  EXPECT_EQ(outcome.status, RunStatus::kSkipped);
  EXPECT_EQ(outcome.reason, "refuses");
}

TEST(Worker, SeesStrayWrites) {
  const auto runner = good_worker();
  EXPECT_EQ(run_with(*runner, "guard").broken, Findings{"wrote outside output y"});
  EXPECT_EQ(run_with(*runner, "padding").broken, Findings{"wrote outside output y"});
  EXPECT_EQ(run_with(*runner, "input").broken, Findings{"changed input x"});
  expect_good(run_with(*runner, "add"));
}

TEST(Worker, TellsASkipAndAFindingOfTheKernelItselfFromACrash) {
  const auto runner = good_worker();
  const RunOutcome lack = run_with(*runner, "lack");
  EXPECT_EQ(lack.status, RunStatus::kSkipped);
  EXPECT_EQ(lack.reason, "no memory today");
  const RunOutcome stray = run_with(*runner, "stray");
  EXPECT_EQ(stray.status, RunStatus::kOk);
  EXPECT_EQ(stray.broken, (Findings{"wrote outside workspace w", "changed input x on the device"}));
}

TEST(Worker, StartsAFreshProcessAfterOneWasSpoiledOrWhenAsked) {
  const auto runner = good_worker();
  const std::string first = run_with(*runner, "pid").facts.variant;
  EXPECT_EQ(run_with(*runner, "pid").facts.variant, first);
  EXPECT_EQ(run_with(*runner, "pid").facts.device, "a device");
  const RunOutcome spoiled = run_with(*runner, "spoil");
  EXPECT_EQ(spoiled.status, RunStatus::kCrashed);
  EXPECT_EQ(spoiled.reason, "the context is lost");
  EXPECT_TRUE(spoiled.spoiled);
  const std::string second = run_with(*runner, "pid").facts.variant;
  EXPECT_NE(second, first);
  runner->restart();
  EXPECT_NE(run_with(*runner, "pid").facts.variant, second);
}

TEST(Worker, PassesTheFillAndBareMemoryOn) {
  const auto runner = good_worker();
  EXPECT_EQ(run_with(*runner, "options").facts.variant, "0 guarded");
  runner->set_fill(1);
  EXPECT_EQ(run_with(*runner, "options").facts.variant, "1 guarded");
  WorkerOptions options{{"/proc/self/exe", "serve"}};
  options.bare = true;
  EXPECT_EQ(run_with(*worker_runner(options), "options").facts.variant, "0 bare");
}

TEST(Worker, SaysWhyThereIsNoDevice) {
  const DeviceInfo here = device_info();
  const DeviceInfo there = good_worker()->device();
  EXPECT_EQ(there.text(), here.text());
  EXPECT_NE(there.text(), "");
  EXPECT_NE(shell("exit 5")->device().absent.find("exit 5"), std::string::npos);
}

TEST(Worker, SurvivesAKernelThatPrintsOrClosesTheStandardStreams) {
  const auto runner = good_worker();
  expect_good(run_with(*runner, "print"));
  expect_good(run_with(*runner, "close"));
  expect_good(run_with(*runner, "add"));
}

TEST(Worker, CannotTakeTheSharedMemoryAway) { expect_good(run_with(*good_worker(), "shrink")); }

TEST(Worker, ThatCannotBeStartedIsAnEnvironmentError) {
  const auto runner = worker_runner({{"/no/such/program"}, kAmple});
  EXPECT_THROW(runner->kernels(), EnvironmentError);
  EXPECT_THROW(run_with(*runner, "add"), EnvironmentError);
  EXPECT_THROW(worker_runner({{}, kAmple})->kernels(), EnvironmentError);
}

TEST(Worker, ThatIsNoWorkerIsAnEnvironmentErrorForTheListAndACrashForACase) {
  for (const char* script : {"true", "exit 5", "echo hello", "echo '{\"id\":1}'", "echo '[1,2'", "yes | tr -d '\\n'",
                             "echo '{\"id\":1,\"kernels\":[{\"name\":7}]}'", "echo '{\"id\":7,\"kernels\":[]}'",
                             "exec 0<&- 1>&-; sleep 60", "kill -9 $$"}) {
    const auto runner = shell(script);
    EXPECT_THROW(runner->kernels(), EnvironmentError) << script;
    const RunOutcome outcome = run_with(*runner, "add");
    EXPECT_EQ(outcome.status, RunStatus::kCrashed) << script;
    EXPECT_NE(outcome.reason, "") << script;
  }
}

/// A worker that says hello properly and answers the first run with `reply`.
std::string liar(const std::string& reply) {
  return "read a; echo '{\"id\":1,\"kernels\":[{\"name\":\"test_add\",\"op\":\"add\",\"summary\":\"\",\"expects\":\"\",\"base\":\"\",\"fault\":\"\",\"report\":\"\","
         "\"dtypes\":[],\"mutant\":false,\"device\":false}]}'; read b; printf '%s\\n' '" +
         reply + "'; read c";
}

const std::string kRestOfReply = ",\"reason\":\"\",\"variant\":\"\",\"device\":\"\",\"broken\":[],\"spoiled\":false}";

TEST(Worker, ThatLiesIsACrashInWords) {
  const std::string declared_text = to_json(declared({})).dump();
  const auto reply = [&](const std::string& id, const std::string& status, const std::string& arithmetic) {
    return "{\"id\":" + id + ",\"status\":" + status + ",\"declared\":" + arithmetic + kRestOfReply;
  };
  EXPECT_EQ(run_with(*shell(liar(reply("2", "\"ok\"", declared_text))), "add").status, RunStatus::kOk);
  nlohmann::json bad_enum = to_json(declared({}));
  bad_enum["qk"] = "by_hand";
  nlohmann::json bad_count = to_json(declared({}));
  bad_count["splits"] = -1;
  const std::pair<std::string, const char*> lies[] = {
      {"nonsense", "makes no sense"},
      {"{}", "makes no sense"},
      {"", "makes no sense"},
      {"[" + std::string(5000, '['), "makes no sense"},
      {reply("3", "\"ok\"", declared_text), "another request"},
      {reply("2", "\"fine\"", declared_text), "status fine"},
      {reply("2", "7", declared_text), "makes no sense"},
      {reply("2", "\"ok\"", "{}"), "makes no sense"},
      {reply("2", "\"ok\"", bad_enum.dump()), "by_hand"},
      {reply("2", "\"ok\"", bad_count.dump()), "negative count"},
      {reply("2", "\"ok\"", declared_text) + "\nand more", "more than one line"},
  };
  for (const auto& [text, words] : lies) {
    const RunOutcome outcome = run_with(*shell(liar(text)), "add");
    EXPECT_EQ(outcome.status, RunStatus::kCrashed) << text.substr(0, 100);
    EXPECT_NE(outcome.reason.find(words), std::string::npos) << text.substr(0, 100) << ": " << outcome.reason;
  }
}

TEST(Worker, ThatNeverWritesTheOutputLeavesTheCanary) {
  const std::string reply = "{\"id\":2,\"status\":\"ok\",\"declared\":" + to_json(declared({})).dump() + kRestOfReply;
  const RunOutcome outcome = run_with(*shell(liar(reply)), "add");
  ASSERT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
  EXPECT_EQ(outcome.outputs[0].view().code(0), canary_code(Format::kBf16));
}

TEST(Worker, LeavesNoProcessAndNoDescriptorBehind) {
  const std::size_t before = open_descriptors();
  for (int n = 0; n < 3; ++n) {
    const auto runner = good_worker(milliseconds(300));
    for (const char* what : {"add", "segv", "exit", "hang", "add"}) run_with(*runner, what);
    const auto broken = shell("exec 0<&- 1>&-; sleep 60 & exit 0");
    run_with(*broken, "add");
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "a child is left";
}

TEST(ServeWorker, EndsWithTheChannelAndRefusesAnotherLanguage) {
  for (const auto& [text, code] : {std::pair<std::string, int>{"", 0},
                                   {"{\"verb\":\"bye\",\"id\":1}\n", 0},
                                   {"{\"verb\":\"sing\",\"id\":1}\n", 2},
                                   {"what\n", 2},
                                   {"{\"verb\":\"hello\"}\n", 2},
                                   {"half a line", 2}}) {
    int request[2];
    ASSERT_EQ(pipe2(request, O_CLOEXEC), 0);
    ASSERT_EQ(write(request[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(request[1]);
    const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(serve_worker(request[0], sink), code) << text;
    close(request[0]);
    close(sink);
  }
}

TEST(ServeWorker, AnswersARequestThatItCannotServeInWords) {
  int request[2], reply[2];
  ASSERT_EQ(pipe2(request, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(reply, O_CLOEXEC), 0);
  const std::string text =
      "{\"verb\":\"hello\",\"id\":1,\"memory_fd\":-1}\n"
      "{\"verb\":\"run\",\"id\":2,\"kernel\":\"test_add\",\"params\":[],\"memory\":4096,\"inputs\":[],\"outputs\":[],"
      "\"deadline_ms\":1}\n";
  ASSERT_EQ(write(request[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(request[1]);
  EXPECT_EQ(serve_worker(request[0], reply[1]), 0);
  Channel channel(reply[0], -1);
  std::string line;
  ASSERT_EQ(channel.receive(line, Channel::Clock::now() + milliseconds(1000)), Channel::Status::kOk);
  ASSERT_EQ(channel.receive(line, Channel::Clock::now() + milliseconds(1000)), Channel::Status::kOk);
  const nlohmann::json answer = nlohmann::json::parse(line);
  EXPECT_EQ(answer.at("status"), "crashed");
  EXPECT_EQ(answer.at("id"), 2);
  EXPECT_NE(answer.at("reason").get<std::string>().find("shared memory"), std::string::npos);
  for (const int fd : {request[0], reply[0], reply[1]}) close(fd);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "serve") return assay::serve_worker(0, 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
