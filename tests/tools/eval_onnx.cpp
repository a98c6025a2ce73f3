// Writes the oracle's results for ONNX files, for comparison with another runtime:
//
//   eval_onnx DIR FILE...    imports each file, writes its generated inputs below DIR as raw little-endian arrays, and
//   prints one JSON object per line: inputs, and sampled outputs with their values and bounds; or the error
//   eval_onnx --cases DIR    writes the one-node models of tests/unit/import/cases.cpp into DIR, and prints on each
//   line a file and whether onnxruntime has a kernel for it
//   eval_onnx --rows         prints the rows of the import table: op, first and last opset version, domain
//   eval_onnx --import FILE...   prints a line for each file: "ok", or the reason why it cannot be imported
//   eval_onnx --given DIR... imports DIR/model.onnx, whose inputs have the names in the lines of DIR/names and the
//   values in DIR/0.bin and so on; writes all elements of all outputs, then all their bounds, as doubles into
//   DIR/out.0.bin and so on, and prints "DIR<tab>ok<tab>dtype:extents<tab>..." or "DIR<tab>message"
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>

#include "compiler/import/import.h"
#include "compiler/import/table.h"
#include "compiler/ir/eval.h"
#include "tests/unit/file_text.h"
#include "tests/unit/import/cases.h"

namespace {

using wl::cat;
using wl::testing::file_text;

constexpr uint64_t kSeed = 7;
constexpr int64_t kBlock = 1 << 20;  // number of elements that are written at a time

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
  WL_ASSIGN_OR_RETURN(const wl::Imported imported, wl::import_onnx(file_text(name)));
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

absl::StatusOr<std::string> evaluate_given(const std::filesystem::path& folder) {
  WL_ASSIGN_OR_RETURN(const wl::Imported imported, wl::import_onnx(file_text(folder / "model.onnx")));
  const wl::Graph& graph = imported.graph;
  std::map<std::string, std::string> given;
  std::ifstream names(folder / "names");
  int number = 0;
  for (std::string name; std::getline(names, name); ++number) given[name] = file_text(folder / cat(number, ".bin"));
  for (const wl::NodeId id : graph.inputs()) {
    const wl::Node& node = graph.nodes[static_cast<size_t>(id)];
    if (!node.fill.literal.empty()) continue;
    const auto found = given.find(node.text);
    if (found == given.end()) return wl::invalid("no values for input ", node.text);
    if (static_cast<int64_t>(found->second.size()) != graph.bytes(id)) {
      return wl::invalid("input ", node.text, " needs ", graph.bytes(id), " bytes, given are ", found->second.size());
    }
  }
  const wl::InputReader reader = [&](wl::NodeId input, int64_t index) {
    const wl::Node& node = graph.nodes[static_cast<size_t>(input)];
    if (!node.fill.literal.empty()) return node.fill.literal[static_cast<size_t>(index)];
    return wl::load_element(node.dtype, given.at(node.text).data(), static_cast<uint64_t>(index));
  };
  std::vector<wl::Query> queries;
  std::string line = "ok";
  for (const wl::Output& output : graph.outputs) {
    const wl::Node& node = graph.nodes[static_cast<size_t>(output.node)];
    wl::Query query{output.node, std::vector<int64_t>(static_cast<size_t>(wl::elements(node.shape)))};
    std::iota(query.indices.begin(), query.indices.end(), 0);
    queries.push_back(std::move(query));
    wl::append(&line, "\t", wl::name_of(node.dtype), ":");
    for (size_t i = 0; i < node.shape.size(); ++i) wl::append(&line, i > 0 ? "," : "", node.shape[i]);
  }
  WL_ASSIGN_OR_RETURN(const auto values, wl::evaluate(graph, reader, queries));
  for (size_t i = 0; i < values.size(); ++i) {
    const wl::DType dtype = graph.nodes[static_cast<size_t>(queries[i].node)].dtype;
    std::ofstream file(folder / cat("out.", i, ".bin"), std::ios::binary);
    for (const wl::Value& value : values[i]) {
      uint64_t memory = 0;
      wl::store_element(dtype, &memory, 0, value.value);
      const double rounded = wl::load_element(dtype, &memory, 0);
      file.write(reinterpret_cast<const char*>(&rounded), sizeof rounded);
    }
    for (const wl::Value& value : values[i])
      file.write(reinterpret_cast<const char*>(&value.bound), sizeof value.bound);
  }
  return line;
}

std::string imported(const std::string& name) {
  const auto result = wl::import_onnx(file_text(name));
  std::string text(result.ok() ? "ok" : result.status().message());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
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
  if (argc == 2 && std::string_view(argv[1]) == "--rows") {
    for (const wl::onnx_import::Row& row : wl::onnx_import::rows())
      std::cout << row.op << " " << row.since << " " << std::min(row.until, wl::onnx_import::kNewestOpset) << " "
                << row.domain << "\n";
    return 0;
  }
  if (argc < 3) {
    std::cerr
        << "usage: eval_onnx DIR FILE... | eval_onnx --cases DIR | eval_onnx --rows | eval_onnx --import FILE... |\n"
           "  eval_onnx --given DIR...\n";
    return 1;
  }
  if (std::string_view(argv[1]) == "--import") {
    for (int i = 2; i < argc; ++i) std::cout << imported(argv[i]) << "\n";
    return 0;
  }
  if (std::string_view(argv[1]) == "--cases") return write_cases(argv[2]);
  if (std::string_view(argv[1]) == "--given") {
    for (int i = 2; i < argc; ++i) {
      const auto line = evaluate_given(argv[i]);
      std::string text = line.ok() ? *line : std::string(line.status().message());
      if (!line.ok()) std::replace(text.begin(), text.end(), '\n', ' ');
      std::cout << argv[i] << "\t" << text << std::endl;
    }
    return 0;
  }
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
