#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

static_assert(std::endian::native == std::endian::little, "values of bytes(...) are copied as they are in memory");

template <typename T>
std::string shortest(T value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

// Formats `value` as the shortest number that reads back equal after rounding to `dtype`, so narrow floats print
// briefly.
std::string number(double value, DType dtype = DType::f64) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  bool narrow = is_float(dtype) && dtype != DType::f64 && static_cast<double>(static_cast<float>(value)) == value;
  return narrow ? shortest(static_cast<float>(value)) : shortest(value);
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (u < 0x20 || u == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      result += "\\x";
      result += kHex[u >> 4];
      result += kHex[u & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// Returns the little-endian bytes of the values, each converted to T (float or double); nullopt if T cannot hold one of
// the values exactly.
template <typename T>
std::optional<std::string> bytes_of(const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    const T narrow = static_cast<T>(value);
    if (static_cast<double>(narrow) != value && !std::isnan(value)) return std::nullopt;
    bytes.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  }
  return bytes;
}

// Long lists of floats are printed as bytes in base64, which usually take less than half as many characters.
std::optional<std::string> as_bytes(DType dtype, const std::vector<double>& values) {
  constexpr size_t kFew = 32;
  if (!is_float(dtype) || values.size() <= kFew) return std::nullopt;
  return dtype == DType::f64 ? bytes_of<double>(values) : bytes_of<float>(values);
}

void append_fill(std::string* out, const Node& node) {
  const Fill& fill = node.fill;
  if (const auto bytes = as_bytes(node.dtype, fill.literal)) {
    append(out, " bytes(\"", absl::Base64Escape(*bytes), "\")");
  } else if (!fill.literal.empty()) {
    append(out, " literal(", absl::StrJoin(fill.literal, ",", [](std::string* to, double v) { *to += number(v); }),
           ")");
  } else if (is_float(node.dtype)) {
    append(out, " normal(", number(fill.mean), ",", number(fill.stddev), ")");
  } else if (node.dtype != DType::b1) {
    append(out, " uniform(", fill.low, ",", fill.high, ")");
  }
}

void append_node(std::string* out, const Node& node, NodeId id) {
  const OpInfo& row = info(node.op);
  append(out, "%", id, " = ", row.name);
  for (NodeId operand : node.operands) append(out, " %", operand);
  if (node.op == Op::input || node.op == Op::contract) append(out, " ", quote(node.text));
  if (node.tf32) append(out, " tf32");
  if (node.op == Op::constant) append(out, " ", number(node.value, node.dtype));
  if (!row.ints.empty()) append(out, " ", row.ints, "=", shape_text(node.ints));
  if (!row.ints2.empty()) append(out, " ", row.ints2, "=", shape_text(node.ints2));
  if (node.op == Op::pad) append(out, " value=", number(node.value, node.dtype));
  append(out, " : ", type_text(node.dtype, node.shape));
  if (node.op == Op::input) append_fill(out, node);
}

}  // namespace

std::string print_node(const Graph& graph, NodeId id) {
  std::string out;
  append_node(&out, graph.nodes[id], id);
  return out;
}

std::string print(const Graph& graph) {
  std::string out = "graph {\n";
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    out += "  ";
    append_node(&out, graph.nodes[id], id);
    out += '\n';
  }
  for (const Output& output : graph.outputs) append(&out, "  output ", quote(output.name), " %", output.node, "\n");
  return out + "}\n";
}

std::string graph_hash(const Graph& graph) {
  Graph anonymous = graph;
  int count = 0;
  for (Node& node : anonymous.nodes) {
    if (node.op != Op::input) continue;
    node.text = cat("i", count++);
    if (is_float(node.dtype)) node.fill = Fill{};
  }
  count = 0;
  for (Output& output : anonymous.outputs) output.name = cat("o", count++);
  return sha256_hex(print(anonymous));
}

}  // namespace wl
