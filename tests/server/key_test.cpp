// The keys of records and of results in stores. Any change in how a key is made needs another kKeyVersion.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <unordered_map>

#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "server/engine/devices.h"
#include "server/jobs/job_plan.h"
#include "tests/server/fakes.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/proto/random_records.h"

namespace wl {
namespace {

TEST(Keys, AreThoseOfExistingStores) {
  const std::string text = "graph {\n  %0 = input \"x\" : f32[4]\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n";
  const Graph graph = parse(text).value();
  const Device device = fake_device();
  for (const bool cold : {false, true}) {
    TuneOptions options;
    options.cold = cold;
    const std::string measured = cold ? "cold" : "warm";
    EXPECT_EQ(problem_key(graph, device, options), Encoder("warploom.problem", 1)
                                                       .text(graph_hash(graph))
                                                       .text(device.fingerprint())
                                                       .text("strict")
                                                       .text(measured)
                                                       .hash());
    EXPECT_EQ(result_key(text, device, options), Encoder("warploom.result", 1)
                                                     .text(text)
                                                     .text(device.fingerprint())
                                                     .text(environment_of(device))
                                                     .text("strict")
                                                     .text(measured)
                                                     .text(options.cover)
                                                     .hash());
  }
}

// A kernel that reads a part of a larger input may have the same code as a kernel that reads a whole input. A program
// calls them with different arguments, so their entry names must differ.
TEST(Entries, DifferWhereTheGroupsDo) {
  const char* const whole =
      "graph {\n  %0 = input \"x\" : f32[4,16]\n  %1 = input \"w\" : f32[16,16]\n"
      "  %2 = contract %0 %1 \"mk,nk->mn\" : f32[4,16]\n  output \"y\" %2\n}\n";
  const char* const part =
      "graph {\n  %0 = input \"x\" : f32[4,16]\n  %1 = input \"w\" : f32[48,16]\n"
      "  %2 = slice %1 starts=[0,0] steps=[1,1] : f32[16,16]\n"
      "  %3 = contract %0 %2 \"mk,nk->mn\" : f32[4,16]\n  output \"y\" %3\n}\n";
  Device device = fake_device();
  device.target = "cpu:avx2";
  std::set<std::string> entries;
  for (const char* const text : {whole, part}) {
    const auto plan = make_plan(text, {}, device, warploom_compiler());
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->groups.size(), 1u);
    const auto group = warploom_compiler().open(plan->groups[0].graph, plan->machine);
    ASSERT_TRUE(group.ok()) << group.status();
    const auto source = (*group)->generate((*group)->seeds().front());
    ASSERT_TRUE(source.ok()) << source.status();
    entries.insert(source->entry);
  }
  EXPECT_EQ(entries.size(), 2u);
}

// Jobs with a library have other keys and environments than jobs without it, and the keys differ between versions of
// the library.
TEST(Keys, OfJobsWithALibraryDiffer) {
  const Graph graph =
      parse("graph {\n  %0 = input \"x\" : f32[4]\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n").value();
  Device device = fake_device();
  std::set<std::string> keys, environments;
  for (const char* const libraries : {"", "onednn=2.6.3", "onednn=2.7.0"}) {
    device.libraries = libraries;
    keys.insert(problem_key(graph, device, {}));
    environments.insert(environment_of(device));
  }
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_EQ(environments.size(), 3u);
}

TEST(Devices, HaveALibraryForJobsThatAllowIt) {
  Device device = fake_device();
  EXPECT_TRUE(device_with(device, "none"));
  EXPECT_FALSE(device_with(device, "onednn"));
  device.libraries = "onednn=2.6.3";
  EXPECT_EQ(device_with(device, "none")->libraries, "");
  EXPECT_EQ(device_with(device, "onednn")->libraries, "onednn=2.6.3");
  EXPECT_FALSE(device_with(device, "another"));
  // A device with the library serves jobs with and without it. A device that lacks the library, or has another version,
  // serves only jobs without it.
  const Device without = *device_with(device, "none");
  Device older = device;
  older.libraries = "onednn=2.5.0";
  EXPECT_TRUE(serves(device, device) && serves(device, without) && serves(without, without));
  EXPECT_FALSE(serves(without, device) || serves(older, device));
}

struct Posed {
  Graph graph;
  Device device;
  bool cold = false;
};

// Returns as text all that a key must depend on: everything except the names of inputs and outputs, and how float
// inputs are filled for timing.
std::string meaning_of(const Posed& posed) {
  Graph graph = posed.graph;
  for (Node& node : graph.nodes) {
    if (node.op != Op::input) continue;
    node.text = "";
    if (is_float(node.dtype)) node.fill = Fill{};
  }
  for (Output& output : graph.outputs) output.name = "";
  const Device& d = posed.device;
  std::string device;
  for (const std::string& part : {d.target, d.name}) append(&device, part.size(), ":", part);
  append(&device, d.libraries.size(), ":", d.libraries, " ");
  append(&device, d.threads, " ", d.l1_bytes, " ", d.l2_bytes, " ", d.l3_bytes);
  return cat(print(graph), "\n", device, "\n", posed.cold);
}

// Returns the problem with one random change: in a character of its graph's text, in a field of its device, or in how
// it is timed; nullopt if the changed text is no graph.
std::optional<Posed> neighbour(const Posed& posed, testing::Random& draw) {
  Posed other = posed;
  switch (draw.below(11)) {
    case 0:
      other.cold = !other.cold;
      return other;
    case 1:
      other.device.name.insert(static_cast<size_t>(draw.below(std::ssize(other.device.name) + 1)), 1,
                               "|:a 1"[draw.below(5)]);
      return other;
    case 2: {
      int64_t* const caches[] = {&other.device.l1_bytes, &other.device.l2_bytes, &other.device.l3_bytes};
      *caches[draw.below(3)] += 1 + draw.below(1 << 20);
      return other;
    }
    case 3:
      other.device.threads += static_cast<int>(1 + draw.below(64));
      return other;
    case 4:
      other.device.libraries = cat("onednn=2.", draw.below(8));
      return other;
    default:
      break;
  }
  std::string text = print(posed.graph);
  text[static_cast<size_t>(draw.below(std::ssize(text)))] = draw.some("0123456789abcdefghiklmnoprstuvx,[]%-. ", 1)[0];
  absl::StatusOr<Graph> graph = parse(text);
  if (!graph.ok()) return std::nullopt;
  other.graph = *std::move(graph);
  return other;
}

// Problems that mean different computations have different keys, and problems that mean the same have the same key.
TEST(Keys, OfNeighboursDiffer) {
  const uint64_t seed = testing::test_seed(1);
  testing::Random draw(seed);
  // `meanings` has the digest of the meaning by key; `keys` has the key by this digest.
  std::unordered_map<std::string, std::string> meanings, keys;
  const int64_t wanted = testing::scaled(100'000);
  int64_t made = 0;
  for (uint64_t number = seed; std::ssize(meanings) < wanted; ++number) {
    Posed posed{random_graph(number), fake_device()};
    for (int turn = 0; turn < 200 && std::ssize(meanings) < wanted; ++turn) {
      const std::optional<Posed> other = neighbour(posed, draw);
      if (!other) continue;
      ++made;
      TuneOptions options;
      options.cold = other->cold;
      const std::string key = problem_key(other->graph, other->device, options);
      const std::string meaning = sha256_bytes(meaning_of(*other));
      const auto known = meanings.emplace(key, meaning).first;
      ASSERT_EQ(known->second, meaning) << "one key for two problems, the second being\n" << meaning_of(*other);
      const auto same = keys.emplace(meaning, key).first;
      ASSERT_EQ(same->second, key) << "two keys for the problem\n" << meaning_of(*other);
    }
  }
  std::printf("%lld neighbours, %zu different ones, no collision\n", static_cast<long long>(made), meanings.size());
}

}  // namespace
}  // namespace wl
