// GPU candidates in the worker, on fake drivers (tests/fake_gpu): real processes and deadlines, with the kernel's own
// text run on simulated lanes. If the machine has a GPU, the faulty kernels run on it too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/base/sha256.h"
#include "tests/fake_gpu/image.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/gpu_testing.h"
#include "worker/drivers/gpu/code.h"

namespace wl {
namespace {

using testing::add_batch;
using testing::FakeGpu;
using testing::good_specimen;
using testing::gpu_candidate;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::WithoutClang;

constexpr const char* kTarget = "cuda:sm_90a";

MeasureOptions options_for(ReusedState* state = nullptr) {
  MeasureOptions options = testing::options();
  options.compile_jobs = 2;
  Device device;
  device.target = kTarget;
  options.gpus = {{"cuda:0", device}};
  options.state = state;
  return options;
}

Batch batch_of(std::vector<testing::Specimen> specimens, const std::string& target = kTarget) {
  Batch batch = add_batch(1024);
  batch.recipe.deadline_ns = 3'000'000'000;
  for (const testing::Specimen& specimen : specimens)
    batch.candidates.push_back(gpu_candidate(static_cast<int64_t>(batch.candidates.size()), target, specimen));
  return batch;
}

Measured run_all(const Batch& batch, const MeasureOptions& options) {
  absl::StatusOr<Measured> measured = measure(batch, options);
  EXPECT_TRUE(measured.ok()) << measured.status();
  return measured.ok() ? *std::move(measured) : Measured{};
}

TEST(FakeGpus, AreFoundAndDescribed) {
  const FakeGpu fake;
  const Gpus gpus = find_gpus(testing::options().runner);
  ASSERT_EQ(gpus.found.size(), 2u) << (gpus.missing.empty() ? "" : gpus.missing[0]);
  EXPECT_EQ(gpus.found[0].name, "cuda:0");
  const Device& device = gpus.found[0].device;
  EXPECT_EQ(device.target, "cuda:sm_90a");
  EXPECT_EQ(device.name, "Fake GPU");
  EXPECT_EQ(device.threads, 4);
  EXPECT_EQ(device.l2_bytes, 1 << 20);
  EXPECT_THAT(device.compiler_versions, HasSubstr("nvrtc=13.99; cuda=13"));
  EXPECT_EQ(device.libraries, "cublaslt=13.99.0");
  EXPECT_THAT(device.details, HasSubstr("memory_mib=2048"));
  EXPECT_THAT(device.details, HasSubstr("driver=999.1 clock_max_mhz=1980 memory_max_mhz=1980 power_limit_w=700 mig=0"));
  EXPECT_THAT(device.details, HasSubstr("clock_rated_mhz=1000"));
  EXPECT_EQ(gpus.found[1].name, "hip:0");
  EXPECT_EQ(gpus.found[1].device.target, "hip:gfx90a");
  EXPECT_EQ(gpus.found[1].device.libraries, "hipblaslt=0.99.0");
}

TEST(FakeGpus, AreReportedMissing) {
  const FakeGpu fake;
  setenv("WARPLOOM_FAKE_ABSENT", "1", 1);
  const Gpus gpus = find_gpus(testing::options().runner);
  EXPECT_EQ(gpus.found.size(), 0u);
  ASSERT_EQ(gpus.missing.size(), 2u);
  EXPECT_THAT(gpus.missing[0], HasSubstr("CUDA: libcuda.so.1 finds no device (error 100"));
  EXPECT_THAT(gpus.missing[1], HasSubstr("HIP: "));
}

// Measures three equal kernels together in interleaved rounds, or else each in a batch of its own. If a batch timed
// them one after another, one that noise makes slower than the others would get fewer samples.
TEST(FakeGpus, TimeRightKernels) {
  const FakeGpu fake;
  for (const bool cold : {false, true}) {
    for (const bool rounds : {false, true}) {
      const size_t together = rounds ? 3 : 1;
      for (size_t first = 0; first < 3; first += together) {
        Batch batch = batch_of(std::vector<testing::Specimen>(together, good_specimen()));
        if (rounds) batch.candidates[1].source.text += "// another\n";
        batch.recipe.cold = cold;
        batch.recipe.budget_ns = 60'000'000'000;
        batch.recipe.max_repeats = 8;
        batch.recipe.interleave = rounds;
        batch.keep_objects = rounds;
        const Measured measured = run_all(batch, options_for());
        ASSERT_EQ(measured.trials.size(), together);
        for (const Trial& trial : measured.trials) {
          EXPECT_EQ(trial.outcome, Outcome::kCorrect) << trial.message;
          EXPECT_GE(trial.samples_ns.size(), 3u);
          for (int64_t ns : trial.samples_ns) EXPECT_GT(ns, 0);
          EXPECT_EQ(trial.code.registers, 32);
          EXPECT_EQ(trial.code.widest_load, 16);
        }
        EXPECT_EQ(measured.objects.size(), rounds ? 3u : 0u);
        for (const auto& [trial, object] : measured.objects) {
          EXPECT_EQ(sha256_hex(object), measured.trials[static_cast<size_t>(trial)].object_sha256);
          EXPECT_THAT(fake_gpu::section_of(object.data(), ".wl.kernels"),
                      HasSubstr(batch.candidates[static_cast<size_t>(trial)].source.entry));
        }
      }
    }
  }
}

class OnFakeGpu : public ::testing::TestWithParam<testing::Specimen> {};

// Each kind of fault costs only its own trial: the kernels before and after the faulty one are measured.
TEST_P(OnFakeGpu, AFaultCostsOneTrial) {
  const FakeGpu fake;
  Batch batch = batch_of({good_specimen(), GetParam(), good_specimen()});
  // The deadline is short, since some faults, such as a kernel that does not end, use all of it.
  batch.recipe.deadline_ns = std::chrono::nanoseconds(testing::patience(3)).count() / 2;
  const Measured measured = run_all(batch, options_for());
  ASSERT_EQ(measured.trials.size(), 3u);
  EXPECT_EQ(measured.trials[1].outcome, GetParam().outcome) << measured.trials[1].message;
  EXPECT_THAT(measured.trials[1].message, HasSubstr(GetParam().on_fake));
  for (size_t i : {size_t{0}, size_t{2}})
    EXPECT_EQ(measured.trials[i].outcome, Outcome::kCorrect) << measured.trials[i].message;
}

INSTANTIATE_TEST_SUITE_P(Zoo, OnFakeGpu, ::testing::ValuesIn(testing::kFaultZoo),
                         [](const ::testing::TestParamInfo<testing::Specimen>& row) { return row.param.name; });

// Kernels at which the driver of the GPU fails.
const std::vector<testing::Specimen> kDriverFaults = {
    {"call_that_never_returns", WL_GOOD, Outcome::kTimeout, "deadline", "driver_hang"},
    {"driver_crash", WL_GOOD, Outcome::kRuntimeError, "SIGABRT", "crash"},
    {"more_than_a_unit_has", WL_GOOD, Outcome::kRuntimeError, "asks for more than a unit has", "out_of_resources"},
    {"illegal_instruction", WL_GOOD, Outcome::kRuntimeError, "illegal instruction", "illegal_instruction"}};
INSTANTIATE_TEST_SUITE_P(Drivers, OnFakeGpu, ::testing::ValuesIn(kDriverFaults),
                         [](const ::testing::TestParamInfo<testing::Specimen>& row) { return row.param.name; });

TEST(FakeGpus, JudgementComesBeforeTheDevice) {
  const FakeGpu fake;
  Batch batch = batch_of({good_specimen(), good_specimen()});
  // the second limit, 128 threads per block, makes blocks of 256 threads too large
  batch.limits = {32, 128, 2048, 32, 255, 65536, 227 * 1024, 228 * 1024};
  batch.candidates[1].source.threads = 128;
  batch.candidates[1].source.text += "// fault: crash\n";  // the candidate would crash on the device if it ran
  batch.candidates[1].source.load_bytes = 32;
  const Measured measured = run_all(batch, options_for());
  ASSERT_EQ(measured.trials.size(), 2u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kRejected);
  EXPECT_THAT(measured.trials[0].message, HasSubstr("256 threads; the most are 128"));
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kRejected);
  EXPECT_THAT(measured.trials[1].message, HasSubstr("promises loads of 32 bytes, the code's widest have 16"));
  EXPECT_EQ(measured.trials[1].code.registers, 32);
}

// Compilers may remove loads, and then every plan of a group seems to break its promise of wide loads
// (Source::load_bytes). So the first candidate of a group runs although it seems to break the promise, and only later
// ones are rejected.
TEST(FakeGpus, TheFirstCandidateOfAGroupRunsIfItCan) {
  const FakeGpu fake;
  Batch batch = batch_of({good_specimen(), good_specimen()});
  for (Candidate& candidate : batch.candidates) candidate.source.load_bytes = 32;
  batch.candidates[1].source.text += "// another\n";
  const Measured measured = run_all(batch, options_for());
  ASSERT_EQ(measured.trials.size(), 2u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kRejected);
}

TEST(FakeGpus, ACompileErrorIsOneTrial) {
  const FakeGpu fake;
  Batch batch = batch_of({good_specimen(), {"bad", "this is not C++", Outcome::kCompileError, ""}, good_specimen()});
  const Measured measured = run_all(batch, options_for());
  ASSERT_EQ(measured.trials.size(), 3u);
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kCompileError);
  EXPECT_THAT(measured.trials[1].message, HasSubstr("error"));
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
  EXPECT_EQ(measured.trials[2].outcome, Outcome::kCorrect) << measured.trials[2].message;
}

TEST(FakeGpus, TrialsKnowTheirClock) {
  const FakeGpu fake;
  setenv("WARPLOOM_FAKE_CLOCKS", "1980 1980 1980 990 1980", 1);
  const Measured measured = run_all(batch_of({good_specimen()}), options_for());
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect);
  EXPECT_EQ(measured.trials[0].clock_mhz, 1980);
  EXPECT_EQ(measured.trials[0].clocks_mhz.size(), measured.trials[0].samples_ns.size());
  // The sample that was taken at 990 MHz has been repeated at the usual clock, so the message mentions no other clock.
  EXPECT_THAT(measured.trials[0].message, Not(HasSubstr("at another clock")));
}

// The fake hipRTC's options, log, code object and error texts are those of hipRTC's manual.
TEST(FakeGpus, HipRtcCompilesWhatClangCannot) {
  const FakeGpu fake;
  const WithoutClang no_clang;
  setenv("WARPLOOM_FAKE_SPILL", "SPILLING", 1);
  Batch batch = batch_of({good_specimen(),
                          {"bad", "this is not C++", Outcome::kCompileError, ""},
                          {"silent", "// silent", Outcome::kCompileError, ""},
                          {"spilling", "// SPILLING", Outcome::kRejected, ""}},
                         "hip:gfx90a");
  MeasureOptions options = options_for();
  options.gpus[0].name = "hip:0";
  options.gpus[0].device.target = "hip:gfx90a";
  const Measured measured = run_all(batch, options);
  ASSERT_EQ(measured.trials.size(), 4u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
  EXPECT_EQ(measured.trials[0].code.registers, 32);
  EXPECT_EQ(measured.trials[0].code.narrowest_load, 16);
  EXPECT_EQ(measured.trials[0].code.widest_store, 16);
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kCompileError);
  EXPECT_THAT(measured.trials[1].message, HasSubstr("error: "));
  EXPECT_EQ(measured.trials[2].outcome, Outcome::kCompileError);
  EXPECT_EQ(measured.trials[2].message, "hiprtc: HIPRTC_ERROR_INTERNAL_ERROR");
  EXPECT_EQ(measured.trials[3].outcome, Outcome::kRejected);
  EXPECT_THAT(measured.trials[3].message, HasSubstr("a lane spills 508 bytes; at most 32 pay"));
}

// The real hipRTC, like the fake one, ends the process if it does not know an architecture. So the worker does not
// ask it to compile for such an architecture.
TEST(FakeGpus, HipRtcIsNotAskedForWhatItDoesNotKnow) {
  const FakeGpu fake;
  const WithoutClang no_clang;
  MeasureOptions options = options_for();
  options.gpus[0].name = "hip:0";
  options.gpus[0].device.target = "hip:gfx1100";
  const Measured measured = run_all(batch_of({good_specimen()}, "hip:gfx1100"), options);
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kRejected);
  EXPECT_THAT(measured.trials[0].message,
              HasSubstr("and the installed hipRTC does not support gfx1100 (it knows gfx90a)"));
}

// Among several clangs, the newest one by version is used, whatever its name. A clang that does not know the
// architecture is skipped, and other programs are ignored.
TEST(FakeGpus, AreCompiledForByTheNewestClangThatKnowsThem) {
  const FakeGpu fake;
  const WithoutClang only_these;
  only_these.add("clang++", "echo 97.0.0");
  only_these.add("clang++-100", "echo 100.1.0");
  only_these.add("clang++-101", "[ \"$1\" = -dumpversion ] && echo 101.0.0");
  only_these.add("clang++-200-test", "echo 200.0.0");
  const Gpus gpus = find_gpus(testing::options().runner);
  ASSERT_EQ(gpus.found.size(), 2u) << (gpus.missing.empty() ? "" : gpus.missing[0]);
  EXPECT_EQ(gpus.found[1].device.compiler_versions, "clang=100.1.0; hip=6");
  EXPECT_THAT(gpus.found[1].device.compilers, ::testing::ElementsAre("clang"));
}

// The sandbox also hides the worker's files from GPU compilers.
TEST(FakeGpus, CompilersReadNoFileOfTheWorker) {
  const FakeGpu fake;
  MeasureOptions options = options_for();
  if (options.sandbox == Sandbox::kNone) GTEST_SKIP() << sandbox_works();
  const Scratch scratch;
  std::ofstream(scratch.path("secret")) << "static const int wl_secret = 7319;\n";
  const std::string include = absl::StrCat("\n#include \"", scratch.path("secret"), "\"\n");
  const testing::Specimen reads = {"reads", WL_GOOD, Outcome::kCompileError, "", "", include.c_str()};
  const testing::Specimen asks = {"asks", WL_GOOD, Outcome::kCorrect,
                                  "",     "",      "\n#if __has_include(\"/etc/passwd\")\n#error seen\n#endif\n"};
  const Measured measured = run_all(batch_of({reads, asks, good_specimen()}), options);
  ASSERT_EQ(measured.trials.size(), 3u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCompileError) << measured.trials[0].message;
  EXPECT_THAT(measured.trials[0].message, HasSubstr("No such file"));
  for (size_t t : {1, 2}) EXPECT_EQ(measured.trials[t].outcome, Outcome::kCorrect) << measured.trials[t].message;
}

// If a device begins to compute wrong results, the canary in the next process detects this, and no candidate is blamed.
TEST(FakeGpus, AWedgedDeviceIsQuarantined) {
  const FakeGpu fake;
  const Scratch scratch;
  setenv("WARPLOOM_FAKE_STATE", scratch.path("").c_str(), 1);
  const testing::Specimen wedge = {"wedge", WL_GOOD, Outcome::kRuntimeError, "", "wedge"};
  MeasureOptions options = options_for();
  options.sandbox = Sandbox::kNone;  // a sandbox would hide the folder with the fake driver's state
  const auto measured = measure(batch_of({wedge, good_specimen()}), options);
  ASSERT_FALSE(measured.ok());
  EXPECT_TRUE(absl::IsUnavailable(measured.status())) << measured.status();
  EXPECT_THAT(std::string(measured.status().message()), HasSubstr("device cuda:0 is quarantined"));
  std::filesystem::remove(scratch.path("wedged"));
  EXPECT_EQ(run_all(batch_of({good_specimen()}), options).trials[0].outcome, Outcome::kCorrect);
}

TEST(FakeGpus, ArgumentsThatDoNotFitAreNobodysFault) {
  const FakeGpu fake;
  setenv("WARPLOOM_FAKE_MEMORY", "100000000", 1);
  Batch batch = add_batch(int64_t{64} << 20, 1 << 20);
  batch.candidates.push_back(gpu_candidate(0, kTarget, good_specimen()));
  const auto measured = measure(batch, options_for());
  EXPECT_TRUE(absl::IsResourceExhausted(measured.status())) << measured.status();
  EXPECT_THAT(std::string(measured.status().message()), Not(HasSubstr("quarantined")));
}

TEST(FakeGpus, RunnersAndCompilersLiveOnBetweenBatches) {
  const FakeGpu fake;
  ReusedState state;
  EXPECT_EQ(run_all(batch_of({good_specimen()}), options_for(&state)).trials.size(), 1u);
  ASSERT_TRUE(state.runner.running());
  const pid_t first = state.runner.pid();
  EXPECT_EQ(run_all(batch_of({good_specimen()}), options_for(&state)).trials[0].outcome, Outcome::kCorrect);
  EXPECT_EQ(state.runner.pid(), first);
  // A runner ends after any error of a GPU.
  EXPECT_EQ(run_all(batch_of({testing::kFaultZoo[0]}), options_for(&state)).trials[0].outcome, Outcome::kRuntimeError);
  EXPECT_FALSE(state.runner.running());
}

// If another thread cancels the measurement while a kernel hangs, the runner's process is killed and no candidate
// gets an outcome.
TEST(FakeGpus, CancelEndsAHang) {
  const FakeGpu fake;
  std::atomic<bool> cancel = false;
  MeasureOptions options = options_for();
  options.cancel = &cancel;
  options.progress = [&](const Progress& progress) { cancel = progress.phase == "check"; };
  const Measured measured = run_all(batch_of({testing::kFaultZoo[2]}), options);
  EXPECT_TRUE(measured.cancelled);
  EXPECT_EQ(measured.trials.size(), 0u);
}

// Tests the HIP driver without a HIP compiler, since HIP compilers make no code that the fake driver could run.
TEST(FakeGpus, SpeakHipToo) {
  const FakeGpu fake;
  // The fake NVRTC compiles a correct kernel, which the fake HIP driver loads as a module.
  Batch batch = batch_of({good_specimen()});
  batch.keep_objects = true;
  const Measured made = run_all(batch, options_for());
  ASSERT_EQ(made.objects.size(), 1u);
  const std::string code = made.objects.at(0);

  auto runner = Runner::start({testing::options().runner, "hip:0", nullptr, nullptr});
  ASSERT_TRUE(runner.ok()) << runner.status();
  const int64_t deadline = monotonic_ns() + 20'000'000'000;
  ASSERT_TRUE(runner->canary(deadline).ok());
  SetupCommand setup;
  setup.buffers = batch.problem.buffers;
  setup.seed = 1;
  ASSERT_TRUE(runner->setup(setup, deadline).ok());
  const Source& source = batch.candidates[0].source;
  ASSERT_TRUE(runner->load({0, code, source.entry, source.grid, source.threads, 0}, deadline).ok());
  const auto checked = runner->check({0, true}, deadline);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->damage, "");
  EXPECT_TRUE(checked->unwritten.empty());
  const Check::Sample& sample = batch.checks[0].samples[3];
  const auto peeked = runner->peek({{{sample.buffer, sample.index}}}, deadline);
  ASSERT_TRUE(peeked.ok());
  EXPECT_NEAR(peeked->values[0], sample.expected, sample.bound);
  const auto timed = runner->time({{0}, batch.recipe}, deadline);
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_GT(timed->slots[0].samples_ns.size(), 2u);
  EXPECT_FALSE(runner->load({1, code, "wl_nothing", 1, 1, 0}, deadline).ok());
}

TEST(Gpus, NoSuchDeviceIsNobodysFault) {
  // If no compiler is available, the batch ends before any device is used, so the test is skipped.
  if (const std::string missing = gpu_compiler_missing(kTarget); !missing.empty()) GTEST_SKIP() << missing;
  MeasureOptions options = testing::options();
  const auto measured = measure(batch_of({good_specimen()}), options);
  ASSERT_FALSE(measured.ok());
}

// NVRTC accepts the texts of all faulty kernels, so they fail only on the device.
TEST(Zoo, Compiles) {
  if (const std::string missing = gpu_compiler_missing(kTarget); !missing.empty()) GTEST_SKIP() << missing;
  for (const testing::Specimen& specimen : testing::kFaultZoo) {
    const Source source = gpu_candidate(0, kTarget, specimen).source;
    const auto unit = compile_gpu({&source, 1}, ::testing::TempDir());
    EXPECT_TRUE(unit.ok()) << specimen.name << ": " << unit.status();
  }
}

// On a real GPU, every faulty kernel has its required outcome, and the device works afterwards.
TEST(Zoo, IsSurvivedByARealGpu) {
  const Gpus gpus = find_gpus(testing::options().runner);
  const auto at = std::find_if(gpus.found.begin(), gpus.found.end(),
                               [](const Gpus::Gpu& gpu) { return gpu.device.target.starts_with("cuda:"); });
  if (at == gpus.found.end()) GTEST_SKIP() << (gpus.missing.empty() ? "no CUDA device" : gpus.missing[0]);
  MeasureOptions options = testing::options();
  options.gpus = {*at};
  for (const testing::Specimen& specimen : testing::kFaultZoo) {
    SCOPED_TRACE(specimen.name);
    const Measured measured = run_all(batch_of({specimen, good_specimen()}, at->device.target), options);
    ASSERT_EQ(measured.trials.size(), 2u);
    EXPECT_EQ(measured.trials[0].outcome, specimen.outcome) << measured.trials[0].message;
    EXPECT_EQ(measured.trials[1].outcome, Outcome::kCorrect) << measured.trials[1].message;
  }
}

}  // namespace
}  // namespace wl
