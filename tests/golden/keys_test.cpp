// The same computation from different sources has the same keys: one BERT layer, written by torch's two exporters and
// by hand (tests/data/exporters/make.py says how they differ), is cut into groups of equal text. All files store
// weights as [in,out]; a transposed weight is another access to memory, so it needs another kernel and has another key.
// tests/golden/keys/bert_layer.txt has the groups; UPDATE_GOLDEN=1 rewrites it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "compiler/cover/cover.h"
#include "compiler/import/import.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "tests/golden/groups.h"
#include "tests/unit/file_text.h"

namespace wl {
namespace {

const std::string kData = WARPLOOM_SOURCE_DIR "/tests/data/";
const std::string kGolden = WARPLOOM_SOURCE_DIR "/tests/golden/keys/bert_layer.txt";

Machine fixed_machine() {
  Machine machine;
  machine.target = target_named("cpu:avx512").value();
  machine.threads = 2;
  return machine;
}

// The text of each distinct group and how often the group occurs, by the group's key.
struct Keys {
  std::map<std::string, std::pair<std::string, int>> groups;
  std::string text() const {
    std::string result;
    for (const auto& [key, group] : groups) append(&result, "== ", key, " x", group.second, "\n", group.first);
    return result;
  }
};

absl::StatusOr<Keys> keys_of(const std::string& path) {
  WL_ASSIGN_OR_RETURN(const Imported imported, import_onnx(testing::file_text(path)));
  WL_ASSIGN_OR_RETURN(const Graph graph, simplify(imported.graph));
  WL_ASSIGN_OR_RETURN(const Cover cover, cover_greedy(graph, fixed_machine()));
  Keys keys;
  for (const Group& group : cover.groups) {
    const Graph part = extract(graph, group);
    auto& [text, count] = keys.groups[graph_hash(part)];
    text = print(part);
    ++count;
  }
  return keys;
}

// Returns the texts of the groups that only one of `expected` and `found` has.
std::string difference(const Keys& expected, const Keys& found) {
  std::string result;
  for (const auto& [key, group] : expected.groups)
    if (!found.groups.contains(key)) append(&result, "missing ", key, "\n", group.first);
  for (const auto& [key, group] : found.groups)
    if (!expected.groups.contains(key)) append(&result, "new ", key, "\n", group.first);
  return result;
}

TEST(Keys, OfOneLayerAreThoseOfTheGoldenWhateverTheSource) {
  std::vector<std::string> sources = {kData + "bert_base_layer_b1_s512.onnx"};
  for (const auto& entry : std::filesystem::directory_iterator(kData + "exporters"))
    if (entry.path().extension() == ".onnx") sources.push_back(entry.path());
  std::sort(sources.begin(), sources.end());
  ASSERT_GE(sources.size(), 8u);
  const auto first = keys_of(sources[0]);
  ASSERT_TRUE(first.ok()) << sources[0] << ": " << first.status();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(std::filesystem::path(kGolden).parent_path());
    std::ofstream(kGolden) << first->text();
  }
  const std::string golden = testing::file_text(kGolden);
  for (const std::string& source : sources) {
    const auto keys = keys_of(source);
    ASSERT_TRUE(keys.ok()) << source << ": " << keys.status();
    std::printf("%s: %zu keys\n", std::filesystem::path(source).filename().c_str(), keys->groups.size());
    for (const auto& [key, group] : keys->groups) std::printf("  %s x%d\n", key.c_str(), group.second);
    EXPECT_EQ(difference(*first, *keys), "") << source;
    EXPECT_TRUE(keys->text() == golden) << source << " is not as in " << kGolden << "; UPDATE_GOLDEN=1 rewrites it";
  }
}

}  // namespace
}  // namespace wl
