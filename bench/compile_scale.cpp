// Measures the time and the memory that the compiler needs for a model before its search begins, for each stage:
// import, folding of weights, canonicalisation, covers, keys of groups, loop domains.
//
//   compile_scale [--rules] MODEL.onnx...    one JSON object per file on stdout:
//   {"file": ..., "nodes": ..., "simple_nodes": ..., "groups": ..., "keys": ...,
//    "stages": {"import": {"s": seconds, "cpu_s": CPU seconds, "peak_mb": largest resident memory}, ...},
//    "rules": {"commute": {...}, ...}}        with --rules: the same figures of each rule alone, up to its fixpoint
//
// Where Linux lets a process reset its peak resident memory (/proc/self/clear_refs), "peak_mb" is the peak of the stage
// alone; elsewhere it is the peak of all stages so far.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>

#include "compiler/cover/cover.h"
#include "compiler/domain/domain.h"
#include "compiler/import/import.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "compiler/ir/weights/fold_weights.h"

namespace wl {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

template <typename Stage>
auto timed(std::string_view name, std::string& json, Stage stage) {
  std::ofstream("/proc/self/clear_refs") << 5;
  const double begin = now_s(), cpu_begin = cpu_s();
  auto result = stage();
  char text[200];
  std::snprintf(text, sizeof text, "%s\"%s\": {\"s\": %.6f, \"cpu_s\": %.6f, \"peak_mb\": %.1f}",
                json.empty() ? "" : ", ", std::string(name).c_str(), now_s() - begin, cpu_s() - cpu_begin, peak_mb());
  json += text;
  return result;
}

absl::Status measure(const std::string& path, bool each_rule) {
  Machine machine;
  machine.target = *target_named("cpu:avx512");
  machine.threads = 2;
  std::string stages, rules_alone;
  const auto imported = timed("import", stages, [&] {
    std::ifstream file(path, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return import_onnx(bytes.str());
  });
  WL_RETURN_IF_ERROR(imported.status());
  const auto folding = timed("fold", stages, [&] { return fold_weights(imported->graph, imported->weights); });
  WL_RETURN_IF_ERROR(folding.status());
  const Graph& graph = folding->graph;
  if (each_rule) {
    std::set<std::string, std::less<>> all;
    for (const Rule& rule : rules()) all.emplace(rule.name);
    for (const Rule& rule : rules()) {
      auto others = all;
      others.erase(std::string(rule.name));
      WL_RETURN_IF_ERROR(timed(rule.name, rules_alone, [&] { return simplify(graph, others).status(); }));
    }
  }
  const auto simple = timed("canonicalise", stages, [&] { return simplify(graph); });
  WL_RETURN_IF_ERROR(simple.status());
  const auto cover = timed("cover_greedy", stages, [&] { return cover_greedy(*simple, machine); });
  WL_RETURN_IF_ERROR(cover.status());
  std::unordered_map<std::string, const Group*> keys;
  timed("keys", stages, [&] {
    for (const Group& group : cover->groups) keys.emplace(graph_hash(extract(*simple, group)), &group);
    return 0;
  });
  const auto analyzed = timed("analyze", stages, [&] {
    absl::Status status;
    for (const auto& [key, group] : keys) status.Update(analyze(extract(*simple, *group), machine).status());
    return status;
  });
  WL_RETURN_IF_ERROR(analyzed);
  const auto stitched = timed("cover_stitched", stages, [&] { return cover_stitched(*simple, machine, *cover); });
  const auto single = timed("cover_one_per_op", stages, [&] { return cover_one_per_op(*simple, machine); });
  for (const auto* made : {&stitched, &single}) WL_RETURN_IF_ERROR(made->status());
  std::cout << cat("{\"file\": \"", path, "\", \"nodes\": ", graph.nodes.size(),
                   ", \"simple_nodes\": ", simple->nodes.size(), ", \"groups\": ", cover->groups.size(),
                   ", \"keys\": ", keys.size(), ", \"stages\": {", stages, "}");
  if (each_rule) std::cout << ", \"rules\": {" << rules_alone << "}";
  std::cout << "}" << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  bool each_rule = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--rules") {
      each_rule = true;
      continue;
    }
    if (const absl::Status status = wl::measure(argv[i], each_rule); !status.ok()) {
      std::cerr << argv[i] << ": " << status.message() << std::endl;
      return 1;
    }
  }
  return 0;
}
