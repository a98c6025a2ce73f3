#include "client/program/bundle.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <random>

#include "client/program/files.h"
#include "client/program/json.h"
#include "client/program/manifest.h"
#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {
namespace fs = std::filesystem;

class BundleTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch_.path(name); }

  const Scratch scratch_;
};

Program sample() {
  Program program;
  program.graph_text =
      "graph {\n  %0 = input \"x\" : f32[4,8] normal(0,1)\n  %1 = input \"w\" : i64[2] literal(1, 2)\n"
      "  %2 = exp %0 : f32[4,8]\n  %3 = exp %2 : f32[4,8]\n  output \"y\" %3\n  output \"y too\" %3\n}\n";
  program.graph_hash = graph_hash(parse(program.graph_text).value());
  program.target = "cpu:avx2";
  program.device = "a \"CPU\"";
  program.weights = {"w"};
  program.buffers = {{"x", DType::f32, {4, 8}, Place::kInput, 0, {}, 0},
                     {"w", DType::i64, {2}, Place::kInput, 0, {.literal = {1, 2}}, 1},
                     {"t0", DType::f32, {4, 8}, Place::kArena, 0, {}, 0},
                     {"y", DType::f32, {4, 8}, Place::kOutput, 0, {}, 0}};
  program.outputs = {{"y", 3}, {"y too", 3}};
  ProgramKernel kernel;
  kernel.key = std::string(64, 'b');
  kernel.plan = "plan 1";
  kernel.graph = "graph {\n  %0 = input \"i0\" : f32[32] normal(0,1)\n  %1 = exp %0 : f32[32]\n  output \"o0\" %1\n}\n";
  kernel.source = {"cpu:avx2", "gcc", "// prelude\n", "// text\n", "wl_k0", 4, 2, 128};
  kernel.inputs = kernel.outputs = 1;
  kernel.object = "not really an object";
  program.kernels = {kernel};
  program.steps = {{0, {0, 2}}, {0, {2, 3}}};
  EXPECT_TRUE(lay_out(program).ok());
  return program;
}

TEST_F(BundleTest, RoundTrips) {
  ASSERT_TRUE(write_bundle(path("b"), sample(), "{}").ok());
  auto read = load_bundle(path("b"));
  ASSERT_TRUE(read.ok()) << read.status();
  Program want = sample();
  EXPECT_EQ(read->graph_text, want.graph_text);
  EXPECT_EQ(read->device, want.device);
  EXPECT_EQ(read->weights, want.weights);
  ASSERT_EQ(read->buffers.size(), want.buffers.size());
  EXPECT_EQ(read->buffers[1].fill, want.buffers[1].fill);
  EXPECT_EQ(read->buffers[2].offset, want.buffers[2].offset);
  EXPECT_EQ(read->outputs[1].name, "y too");
  EXPECT_EQ(read->kernels[0].source.grid, 4);
  EXPECT_EQ(read->steps[1].args, want.steps[1].args);
  EXPECT_EQ(read_file(read->kernels[0].object_path).value(), want.kernels[0].object);
  EXPECT_EQ(read_file(path("b/kernels/wl_k0.cpp")).value(),
            "// prelude\n// text\n"
            "// Launched with grid 4, threads 2, scratch 128, passes 1, workspace 0, library none.\n"
            "// Call 0: input 0 f32[4,8] -> intermediate 2 f32[4,8].\n"
            "// Call 1: intermediate 2 f32[4,8] -> output 3 f32[4,8].\n");
}

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = read_file(entry.path().string()).value();
  }
  return files;
}

TEST_F(BundleTest, EqualProgramsGiveEqualBytesAndReplaceABundle) {
  ASSERT_TRUE(write_bundle(path("a"), sample(), "{}").ok());
  ASSERT_TRUE(write_bundle(path("b"), sample(), "{\"old\": 1}").ok());
  EXPECT_NE(files_of(path("a")), files_of(path("b")));
  ASSERT_TRUE(write_bundle(path("b") + "/", sample(), "{}").ok());
  EXPECT_EQ(files_of(path("a")), files_of(path("b")));
  // The folder that contains the bundles contains nothing else, such as temporary files.
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_.folder()), fs::directory_iterator()), 2);
}

TEST_F(BundleTest, RefusesToReplaceAnythingElse) {
  fs::create_directories(path("mine"));
  ASSERT_TRUE(write_file(path("mine/thesis.txt"), "years").ok());
  absl::Status status = write_bundle(path("mine"), sample(), "{}");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("it is not a bundle"), std::string::npos);
  EXPECT_EQ(read_file(path("mine/thesis.txt")).value(), "years");
  EXPECT_FALSE(write_bundle(path("mine/thesis.txt"), sample(), "{}").ok());
}

TEST_F(BundleTest, EveryFlippedByteIsFound) {
  ASSERT_TRUE(write_bundle(path("b"), sample(), "{}").ok());
  int flipped = 0;
  for (const auto& [name, bytes] : files_of(path("b"))) {
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x20);
      if (name == "manifest.json") {
        EXPECT_FALSE(parse_manifest(changed).ok()) << "byte " << at;
      } else {
        ASSERT_TRUE(write_file(path("b/" + name), changed).ok());
        EXPECT_EQ(load_bundle(path("b")).status().code(), absl::StatusCode::kDataLoss) << name << " byte " << at;
      }
      ++flipped;
    }
    ASSERT_TRUE(write_file(path("b/" + name), bytes).ok());
  }
  EXPECT_GT(flipped, 1000);
  EXPECT_TRUE(load_bundle(path("b")).ok());
  fs::remove(path("b/kernels/wl_k0.so"));
  EXPECT_EQ(load_bundle(path("b")).status().code(), absl::StatusCode::kDataLoss);
}

// Changes a manifest, corrects its digest, and returns the error of parsing it.
std::string refusal_of(const std::string& text, const std::function<void(Json&)>& change) {
  Json json = Json::parse(text);
  json.erase("sha256");
  change(json);
  json["sha256"] = sha256_hex(text_of(json));
  const absl::Status status = parse_manifest(text_of(json)).status();
  EXPECT_FALSE(status.ok()) << text_of(json);
  return std::string(status.message());
}

TEST_F(BundleTest, NamesOfAManifestAreChecked) {
  ASSERT_TRUE(write_bundle(path("b"), sample(), "{}").ok());
  const std::string text = read_file(path("b/manifest.json")).value();
  const std::string nul("graph.txt\0", 10);
  for (const std::string& file : {std::string("../x"), std::string("/etc/passwd"), std::string("kernels/../../x"), nul,
                                  std::string("kernels//x"), std::string(".x"), std::string("x\ny"), std::string()}) {
    EXPECT_NE(refusal_of(text, [&](Json& json) { json["files"][0]["path"] = file; }).find("path: expected"),
              std::string::npos);
  }
  for (const char* entry : {"../x", "9x", "x.y", ""}) {
    EXPECT_NE(refusal_of(text, [&](Json& json) { json["kernels"][0]["entry"] = entry; }).find("entry: expected"),
              std::string::npos);
  }
  for (const char* name : {"a\x1b[2Jb", "a\nb", "\x7f"}) {
    EXPECT_NE(refusal_of(text, [&](Json& json) { json["buffers"][0]["name"] = name; }).find("name: expected"),
              std::string::npos);
    EXPECT_NE(refusal_of(text, [&](Json& json) { json["outputs"][0]["name"] = name; }).find("name: expected"),
              std::string::npos);
    EXPECT_NE(refusal_of(text, [&](Json& json) { json["target"]["device"] = name; }).find("device: expected"),
              std::string::npos);
    EXPECT_NE(refusal_of(text, [&](Json& json) { json["bind"][name] = 3; }).find("bind: expected"), std::string::npos);
    EXPECT_NE(refusal_of(text, [&](Json& json) { json["weights"][0] = name; }).find("weights: expected"),
              std::string::npos);
  }
  EXPECT_NE(refusal_of(text, [](Json& json) { json["kernels"][0]["key"] = "../x"; }).find("key: expected"),
            std::string::npos);
  const std::string huge(1 << 20, 'x');
  EXPECT_NE(refusal_of(text, [&](Json& json) { json["kernels"][0]["plan"] = huge; }).find("plan: expected"),
            std::string::npos);
}

TEST_F(BundleTest, ManifestsOfAnyBytesNeverCrash) {
  ASSERT_TRUE(write_bundle(path("b"), sample(), "{}").ok());
  std::string text = read_file(path("b/manifest.json")).value();
  std::mt19937 rng(5);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    for (unsigned k = 0; k < 1 + rng() % 3; ++k) changed[rng() % changed.size()] = static_cast<char>(rng());
    EXPECT_EQ(parse_manifest(changed).ok(), changed == text);
  }
  EXPECT_FALSE(parse_manifest("").ok());
  EXPECT_FALSE(parse_manifest("[]").ok());
  EXPECT_EQ(parse_manifest("{\"format\": 99}").status().message(),
            "bundle format 99 is newer than 5, which this program knows; use a newer warploom");
}

}  // namespace
}  // namespace wl
