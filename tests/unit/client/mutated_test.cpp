// Manifests that contradict their kernels but have a correct digest: each is refused, or computes the right result.
// Every attempt runs in its own process, so that a crash is detected.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "client/program/bundle.h"
#include "client/program/executor.h"
#include "client/program/json.h"
#include "compiler/base/sha256.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

enum Ending { kRefused = 10, kRight, kWrong };  // exit codes of the process that loads and runs a bundle

class MutatedManifest : public ProgramsTest {
 protected:
  void SetUp() override {
    const Program program = program_of("y[i] = x[i] + w[i];");
    NEEDS_COMPILER(program);
    ASSERT_TRUE(write_bundle(bundle_, program, "{}").ok());
    manifest_ = Json::parse(read_file(bundle_ + "/manifest.json").value());
    manifest_.erase("sha256");
  }

  // Loads the bundle and runs it with x = 3 and w = 5 everywhere, so y must be 13.
  Ending outcome() const {
    const auto program = load_bundle(bundle_);
    if (!program.ok()) return kRefused;
    auto executor = Executor::create(*program, {.threads = 2, .pin = false});
    if (!executor.ok()) return kRefused;
    for (const auto& [name, value] : std::map<std::string, float>{{"x", 3.0f}, {"w", 5.0f}}) {
      const int buffer = input_buffer(*program, name);
      const size_t count = name == "x" ? 6 * 32 : 32;
      const std::vector<float> values(count, value);
      const std::string_view bytes(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
      const Shape shape = name == "x" ? Shape{6, 32} : Shape{32};
      if (buffer < 0 || !executor->set(buffer, DType::f32, shape, bytes).ok()) return kRefused;
    }
    if (!executor->poison_results().ok() || !executor->run().ok()) return kRefused;
    const auto* y = static_cast<const float*>(executor->data(program->outputs.at(0).buffer));
    return std::all_of(y, y + 6 * 32, [](float one) { return one == 13.0f; }) ? kRight : kWrong;
  }

  Ending attempt(const Json& changed) {
    Json json = changed;
    json["sha256"] = sha256_hex(text_of(changed));
    EXPECT_TRUE(write_file(bundle_ + "/manifest.json", text_of(json)).ok());
    const pid_t child = fork();
    if (child == 0) _exit(outcome());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    return static_cast<Ending>(WIFEXITED(status) ? WEXITSTATUS(status) : kWrong);
  }

  const std::string bundle_ = root_ + "/bundle";
  Json manifest_;
};

std::vector<Json> replacements_of(const Json& value) {
  if (value.is_number()) {
    const int64_t now = value.is_number_integer() ? value.get<int64_t>() : 0;
    return {now + 1,
            now - 1,
            0,
            -1,
            2 * now + 1,
            64,
            4096,
            1 << 20,
            int64_t{1} << 40,
            (int64_t{1} << 32) + now,
            std::numeric_limits<int64_t>::max(),
            std::numeric_limits<int64_t>::min(),
            std::numeric_limits<uint64_t>::max(),
            0.5,
            "1",
            nullptr};
  }
  if (value.is_string()) {
    std::vector<Json> out = {"",
                             "x",
                             "w",
                             "y",
                             "t",
                             "f64",
                             "f16",
                             "i64",
                             "f32",
                             "input",
                             "output",
                             "arena",
                             "onednn",
                             "cpu:avx512",
                             "cuda:sm_90",
                             "wl_j",
                             std::string(64, 'f'),
                             "kernels/wl_k.so",
                             1,
                             nullptr};
    return out;
  }
  std::vector<Json> out = {Json::array(), Json::object(), nullptr, 1};
  if (value.is_array()) {
    Json shorter = value, longer = value, turned = value;
    if (!value.empty()) {
      shorter.erase(shorter.size() - 1);
      longer.push_back(value.back());
      std::reverse(turned.begin(), turned.end());
    }
    for (Json* one : {&shorter, &longer, &turned}) out.push_back(*one);
  }
  return out;
}

TEST_F(MutatedManifest, TheBundleItselfIsRight) {
  EXPECT_EQ(attempt(manifest_), kRight);
}

TEST_F(MutatedManifest, EveryFieldIsRefusedOrMakesNoDifference) {
  std::vector<Json::json_pointer> places;
  const std::function<void(const Json&, const Json::json_pointer&)> walk = [&](const Json& at, const auto& place) {
    if (!place.empty()) places.push_back(place);
    if (at.is_object())
      for (const auto& [key, value] : at.items()) walk(value, place / key);
    if (at.is_array())
      for (size_t i = 0; i < at.size(); ++i) walk(at[i], place / i);
  };
  walk(manifest_, Json::json_pointer());
  ASSERT_GT(places.size(), 80u);
  int refused = 0;
  for (const Json::json_pointer& place : places) {
    for (const Json& value : replacements_of(manifest_.at(place))) {
      Json changed = manifest_;
      changed.at(place) = value;
      if (changed == manifest_) continue;
      const Ending ending = attempt(changed);
      EXPECT_NE(ending, kWrong) << place.to_string() << " = " << value.dump();
      refused += ending == kRefused ? 1 : 0;
    }
    Json without = manifest_;
    without.at(place.parent_pointer()).is_object() ? (void)without.at(place.parent_pointer()).erase(place.back())
                                                   : without.at(place.parent_pointer()).erase(std::stoul(place.back()));
    EXPECT_NE(attempt(without), kWrong) << "without " << place.to_string();
  }
  EXPECT_GT(refused, 500);
}

// The error of a changed manifest names the file or the graph that the changed fact contradicts.
TEST_F(MutatedManifest, AContradictionIsNamed) {
  const auto message = [&](const char* place, const Json& value) {
    Json changed = manifest_;
    changed.at(Json::json_pointer(place)) = value;
    Json json = changed;
    json["sha256"] = sha256_hex(text_of(changed));
    EXPECT_TRUE(write_file(bundle_ + "/manifest.json", text_of(json)).ok());
    return std::string(load_bundle(bundle_).status().message());
  };
  const std::string launch =
      "manifest.json: the kernel wl_k is launched in another way than kernels/wl_k.cpp says at its end";
  for (const char* place : {"/kernels/0/grid", "/kernels/0/threads", "/kernels/0/scratch_bytes", "/kernels/0/passes",
                            "/kernels/0/work_bytes"}) {
    EXPECT_EQ(message(place, 3), launch) << place;
  }
  EXPECT_EQ(message("/buffers/0/shape/0", 7), launch);
  // Sources in a bundle of format 4 do not state their launches, so the manifest's arguments are compared with its
  // graphs.
  manifest_["format"] = 4;
  EXPECT_EQ(
      message("/buffers/0/shape/0", 7),
      "manifest.json: it contradicts its kernels: input x is f32[7,32], input 0 of the graph is x, f32[6,32] (or its "
      "values are drawn in another way)");
  EXPECT_EQ(message("/buffers/2/dtype", "f16"),
            "manifest.json: it contradicts its kernels: call 0 gives t, f16[6,32], to kernel wl_k, whose argument 2 is "
            "f32[6,32]");
  EXPECT_EQ(
      message("/calls/1/args", Json({2, 1, 2})),
      "manifest.json: it contradicts its kernels: call 1 of kernel wl_k stores to t, which is another argument too");
}

}  // namespace
}  // namespace wl
