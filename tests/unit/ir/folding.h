// Checks of folded weights, for several tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/ir/weights/fold_weights.h"
#include "tests/unit/ir/outputs.h"

namespace wl::testing {

// Widths of weight panels, in columns, for a target with vectors of 16 elements.
inline const std::vector<int64_t> kPanels = {64, 32, 48};

inline std::vector<std::string> names_of(const WeightFolding& folding) {
  std::vector<std::string> names;
  for (const FoldedWeight& folded : folding.folded) names.push_back(folded.name);
  return names;
}

// A function that returns an element of the graph input with this name.
using ByName = std::function<double(const std::string& name, int64_t index)>;
inline OutputValues values_of_outputs(const Graph& graph, const ByName& read) {
  return values_of_outputs(graph, [&](NodeId input, int64_t index) { return read(graph.nodes[input].text, index); });
}

// Checks that `graph` and its folded graph have the same outputs.
inline void expect_same_values(const Graph& graph, const WeightFolding& folding, uint64_t seed) {
  const InputReader generated = generated_inputs(graph, seed);
  std::map<std::string, NodeId> inputs;
  for (NodeId input : graph.inputs()) inputs[graph.nodes[input].text] = input;
  const ByName original = [&](const std::string& name, int64_t index) { return generated(inputs.at(name), index); };
  std::map<std::string, std::vector<double>> folded;
  for (const FoldedWeight& weight : folding.folded) {
    const DType dtype = weight.from.nodes[weight.from.outputs[0].node].dtype;
    const OutputValues values = values_of_outputs(weight.from, original);
    for (const Value& value : values[0]) folded[weight.name].push_back(round_to(dtype, value.value));
  }
  const ByName after = [&](const std::string& name, int64_t index) {
    const auto found = folded.find(name);
    return found == folded.end() ? original(name, index) : found->second[static_cast<size_t>(index)];
  };
  ASSERT_EQ(folding.graph.outputs.size(), graph.outputs.size());
  const OutputValues all_expected = values_of_outputs(graph, original),
                     all_got = values_of_outputs(folding.graph, after);
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    ASSERT_EQ(folding.graph.outputs[o].name, graph.outputs[o].name);
    const std::vector<Value>&expected = all_expected[o], &got = all_got[o];
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double bound = got[i].bound + expected[i].bound;
      if (!std::isfinite(bound) || (std::isnan(got[i].value) && std::isnan(expected[i].value))) continue;
      if (got[i].value == expected[i].value) continue;
      ASSERT_LE(std::fabs(got[i].value - expected[i].value), bound) << "element " << i << "\n"
                                                                    << print(graph) << "\nfolded:\n"
                                                                    << print(folding.graph);
    }
  }
}

}  // namespace wl::testing
