// What the oracle says about ONNX files, for comparison with another runtime:
//   eval_onnx DIR FILE...   imports each file, writes its generated inputs below DIR as raw little-endian arrays, and
//                           prints one JSON object a line: inputs, and sampled outputs with their values and bounds;
//                           or the error
//   eval_onnx --cases DIR   writes the one-node models of tests/unit/import/cases.cpp into DIR, and prints on each line
//                           a file and whether onnxruntime has a kernel for it
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "compiler/import/import.h"
#include "compiler/ir/eval.h"
#include "tests/unit/import/cases.h"

namespace {

using wl::cat;

constexpr uint64_t kSeed = 7;
constexpr int64_t kBlock = 1 << 20;  // elements written at once

std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return absl::StrFormat("%.17g", value);
}

template <typename List, typename Text>
std::string json_list(const List& list, Text text) {
  std::string out = "[";
  for (const auto& item : list) wl::append(&out, out.size() > 1 ? "," : "", text(item));
  return out + "]";
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) wl::append(&out, c == '"' || c == '\\' ? "\\" : "", std::string(1, c));
  return out + "\"";
}

std::string head(const std::string& name, const wl::Node& node) {
  return cat("\"name\":", json_text(name), ",\"dtype\":\"", wl::name_of(node.dtype),
             "\",\"shape\":", json_list(node.shape, [](int64_t v) { return cat(v); }));
}

void write_input(const std::filesystem::path& path, const wl::Node& node, uint64_t stream) {
  std::ofstream file(path, std::ios::binary);
  const int64_t count = wl::elements(node.shape), size = wl::size_of(node.dtype);
  std::vector<char> block(static_cast<size_t>(std::min(count, kBlock) * size));
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    wl::fill_range(node.fill, node.dtype, kSeed, stream, static_cast<uint64_t>(begin), static_cast<uint64_t>(end),
                   block.data());
    file.write(block.data(), (end - begin) * size);
  }
  if (!file) throw std::runtime_error(cat("cannot write ", path.string()));
}

absl::StatusOr<std::string> evaluate_file(const std::string& name, const std::filesystem::path& folder) {
  std::ifstream file(name, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  WL_ASSIGN_OR_RETURN(const wl::Imported imported, wl::import_onnx(bytes.str()));
  const wl::Graph& graph = imported.graph;
  std::string inputs;
  const auto ids = graph.inputs();
  for (size_t i = 0; i < ids.size(); ++i) {
    const wl::Node& node = graph.nodes[static_cast<size_t>(ids[i])];
    const auto path = folder / cat(std::filesystem::path(name).stem().string(), ".", i, ".bin");
    write_input(path, node, i);
    wl::append(&inputs, i > 0 ? "," : "", "{", head(node.text, node), ",\"file\":", json_text(path.string()), "}");
  }
  WL_ASSIGN_OR_RETURN(const wl::Check check, wl::make_check(graph, kSeed));
  std::string outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    std::vector<wl::Check::Sample> samples;
    for (const auto& sample : check.samples) {
      if (sample.buffer == static_cast<int>(ids.size() + i)) samples.push_back(sample);
    }
    const wl::Node& node = graph.nodes[static_cast<size_t>(graph.outputs[i].node)];
    wl::append(&outputs, i > 0 ? "," : "", "{", head(graph.outputs[i].name, node),
               ",\"indices\":", json_list(samples, [](const auto& s) { return cat(s.index); }),
               ",\"values\":", json_list(samples, [](const auto& s) { return json_number(s.expected); }),
               ",\"bounds\":", json_list(samples, [](const auto& s) { return json_number(s.bound); }), "}");
  }
  return cat("{\"file\":", json_text(name), ",\"inputs\":[", inputs, "],\"outputs\":[", outputs, "]}");
}

int write_cases(const std::filesystem::path& folder) {
  const auto cases = wl::testing::import_cases();
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto path = folder / (wl::testing::case_name(cases[i], i) + ".onnx");
    std::ofstream file(path, std::ios::binary);
    file << wl::testing::model_of(cases[i]).SerializeAsString();
    if (!file.flush()) return 1;
    std::cout << path.string() << " " << cases[i].peer << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: eval_onnx DIR FILE... | eval_onnx --cases DIR\n";
    return 1;
  }
  if (std::string_view(argv[1]) == "--cases") return write_cases(argv[2]);
  for (int i = 2; i < argc; ++i) {
    const auto line = evaluate_file(argv[i], argv[1]);
    if (!line.ok()) {
      std::cout << "{\"file\":" << json_text(argv[i])
                << ",\"error\":" << json_text(std::string(line.status().message())) << "}\n";
      continue;
    }
    std::cout << *line << "\n";
  }
}
