// The parser reads the text line by line, one node or output in each, from left to right. It does not recurse. The size
// of every list is bounded by the length of the text or by a limit.
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

constexpr int64_t kMaxNodes = 1'000'000;

const std::unordered_map<std::string_view, Op>& ops_by_name() {
  static const auto* kByName = [] {
    auto* map = new std::unordered_map<std::string_view, Op>;
    for (const OpInfo& row : ops()) map->emplace(row.name, row.op);
    return map;
  }();
  return *kByName;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  absl::StatusOr<Graph> graph() {
    if (!next_line() || !take("graph") || !take("{") || !at_end()) return error("expected 'graph {'");
    bool closed = false;
    while (!closed && next_line()) {
      absl::Status status;
      if (take("}")) {
        closed = true;
      } else if (take("output")) {
        status = output();
      } else {
        status = node();
      }
      if (!status.ok()) return error(status.message());
      if (!at_end()) return error(cat("expected the end of the line, found '", excerpt(), "'"));
    }
    if (!closed) return error("expected '}', found the end of the text");
    if (next_line()) return error(cat("expected nothing after '}', found '", excerpt(), "'"));
    return std::move(graph_);
  }

 private:
  absl::Status error(absl::string_view message) const { return invalid("line ", line_number_, ": ", message); }

  // Moves to the next line that is neither blank nor a comment; returns false at the end of the text.
  bool next_line() {
    while (!rest_.empty()) {
      size_t end = rest_.find('\n');
      line_ = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      ++line_number_;
      if (!at_end()) return true;
    }
    return false;
  }

  void skip_space() {
    while (!line_.empty() && (line_[0] == ' ' || line_[0] == '\t' || line_[0] == '\r')) line_.remove_prefix(1);
  }
  bool at_end() {
    skip_space();
    return line_.empty() || line_[0] == '#';
  }
  std::string excerpt() {
    skip_space();
    std::string text(line_.substr(0, 24));
    for (char& c : text) {
      if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
    }
    return text.empty() ? "the end of the line" : text;
  }
  absl::Status expected(std::string_view what) { return invalid("expected ", what, ", found '", excerpt(), "'"); }

  // Consumes `token`, a word or a punctuation mark, if the rest of the line begins with it.
  bool take(std::string_view token) {
    skip_space();
    if (line_.substr(0, token.size()) != token) return false;
    bool word = is_word(token.back());
    if (word && line_.size() > token.size() && is_word(line_[token.size()])) return false;
    line_.remove_prefix(token.size());
    return true;
  }
  static bool is_word(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  std::string_view word() {
    skip_space();
    size_t n = 0;
    while (n < line_.size() && is_word(line_[n])) ++n;
    std::string_view result = line_.substr(0, n);
    line_.remove_prefix(n);
    return result;
  }

  absl::Status integer(int64_t& value) {
    skip_space();
    auto [end, status] = std::from_chars(line_.data(), line_.data() + line_.size(), value);
    if (status == std::errc::result_out_of_range) return expected("an integer of 64 bits");
    if (status != std::errc()) return expected("an integer");
    line_.remove_prefix(static_cast<size_t>(end - line_.data()));
    return absl::OkStatus();
  }

  absl::Status real(double& value) {
    skip_space();
    auto [end, status] = std::from_chars(line_.data(), line_.data() + line_.size(), value);
    if (status == std::errc::result_out_of_range) return expected("a number in the range of a double");
    if (status != std::errc()) return expected("a number");
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    number_ = line_.substr(0, static_cast<size_t>(end - line_.data()));
    line_.remove_prefix(number_.size());
    return absl::OkStatus();
  }

  // Returns the bits of the number that was parsed last if it is an integer of the 64-bit `dtype` that a double cannot
  // hold; otherwise nullopt.
  std::optional<uint64_t> wide_integer(DType dtype) const {
    const auto read = [&](auto value) -> std::optional<uint64_t> {
      const auto [end, status] = std::from_chars(number_.data(), number_.data() + number_.size(), value);
      if (status != std::errc() || end != number_.data() + number_.size()) return std::nullopt;
      const auto bits = static_cast<uint64_t>(value);
      const bool held = integer_of(dtype, bits) - integer_of(dtype, bits & ~kLow) == static_cast<double>(bits & kLow);
      return held ? std::nullopt : std::optional(bits);
    };
    if (dtype == DType::i64) return read(int64_t{0});
    return dtype == DType::u64 ? read(uint64_t{0}) : std::nullopt;
  }
  static double integer_of(DType dtype, uint64_t bits) {
    return dtype == DType::u64 ? static_cast<double>(bits) : static_cast<double>(static_cast<int64_t>(bits));
  }
  absl::Status held_by_double(DType dtype) const {
    if (!wide_integer(dtype)) return absl::OkStatus();
    return invalid(number_, " has more digits than a double holds; only a constant may");
  }

  // Replaces an integer constant that a double cannot hold by the sum of two constants: its value with the lowest 11
  // bits cleared, and the value of these bits.
  absl::Status split(uint64_t bits, Node& node) {
    Node low = node;
    node.value = integer_of(node.dtype, bits & ~kLow);
    low.value = static_cast<double>(bits & kLow);
    Node sum{.op = Op::add, .dtype = node.dtype, .shape = node.shape};
    for (Node* part : {&node, &low}) {
      WL_RETURN_IF_ERROR(infer(graph_.nodes, *part));
      sum.operands.push_back(static_cast<NodeId>(graph_.nodes.size()));
      graph_.nodes.push_back(std::move(*part));
    }
    node = std::move(sum);
    return absl::OkStatus();
  }

  absl::Status list(std::vector<int64_t>& values) {
    if (!take("[")) return expected("'['");
    if (take("]")) return absl::OkStatus();
    do {
      WL_RETURN_IF_ERROR(integer(values.emplace_back()));
    } while (take(","));
    return take("]") ? absl::OkStatus() : expected("']'");
  }

  absl::Status text(std::string& value) {
    skip_space();
    if (line_.empty() || line_[0] != '"') return expected("a quoted name");
    for (size_t i = 1; i < line_.size(); ++i) {
      if (line_[i] == '"') {
        line_.remove_prefix(i + 1);
        return absl::OkStatus();
      }
      if (line_[i] != '\\') {
        value += line_[i];
        continue;
      }
      if (++i == line_.size()) break;
      if (line_[i] == 'x' && i + 2 < line_.size()) {
        unsigned byte = 0;
        auto [end, status] = std::from_chars(&line_[i + 1], &line_[i + 1] + 2, byte, 16);
        if (status != std::errc() || end != &line_[i + 1] + 2)
          return invalid("expected two hexadecimal digits after \\x");
        value += static_cast<char>(byte);
        i += 2;
      } else if (line_[i] == '"' || line_[i] == '\\') {
        value += line_[i];
      } else {
        return invalid("unknown escape in a quoted name; known are \\\", \\\\ and \\xHH");
      }
    }
    return invalid("a quoted name does not end on its line");
  }

  absl::Status id(int64_t& value) {
    if (!take("%")) return expected("'%' and a node's number");
    return integer(value);
  }

  absl::Status reference(NodeId& node) {
    int64_t number = 0;
    WL_RETURN_IF_ERROR(id(number));
    auto it = ids_.find(number);
    if (it == ids_.end())
      return invalid("%", number, " is used before it is defined (a graph must not contain a cycle)");
    node = it->second;
    return absl::OkStatus();
  }

  absl::Status output() {
    Output result;
    WL_RETURN_IF_ERROR(text(result.name));
    WL_RETURN_IF_ERROR(reference(result.node));
    graph_.outputs.push_back(std::move(result));
    return absl::OkStatus();
  }

  absl::Status attribute(std::string_view name, std::vector<int64_t>& values) {
    if (name.empty()) return absl::OkStatus();
    if (!take(name) || !take("=")) return expected(cat("'", name, "=['"));
    return list(values);
  }

  // Reads a string in base64 that has the bytes of values of type T.
  template <typename T>
  absl::Status floats(std::vector<double>& values) {
    std::string encoded, bytes;
    WL_RETURN_IF_ERROR(text(encoded));
    if (!absl::Base64Unescape(encoded, &bytes) || bytes.empty() || bytes.size() % sizeof(T) != 0)
      return invalid("expected base64 of values of ", sizeof(T), " bytes each");
    for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      values.push_back(static_cast<double>(value));
    }
    return absl::OkStatus();
  }

  absl::Status fill(DType dtype, Fill& result) {
    std::string_view kind = word();
    if (kind.empty()) return absl::OkStatus();
    if (kind != "normal" && kind != "uniform" && kind != "literal" && kind != "bytes")
      return invalid("expected normal, uniform, literal or bytes, found '", kind, "'");
    if (!take("(")) return expected("'('");
    if (kind == "normal") {
      WL_RETURN_IF_ERROR(real(result.mean));
      if (!take(",")) return expected("','");
      WL_RETURN_IF_ERROR(real(result.stddev));
    } else if (kind == "uniform") {
      WL_RETURN_IF_ERROR(integer(result.low));
      if (!take(",")) return expected("','");
      WL_RETURN_IF_ERROR(integer(result.high));
    } else if (kind == "bytes") {
      WL_RETURN_IF_ERROR(dtype == DType::f64 ? floats<double>(result.literal) : floats<float>(result.literal));
      if (!is_float(dtype)) return invalid("only the values of floats can be given as bytes");
    } else {
      do {
        WL_RETURN_IF_ERROR(real(result.literal.emplace_back()));
        WL_RETURN_IF_ERROR(held_by_double(dtype));
      } while (take(","));
    }
    return take(")") ? absl::OkStatus() : expected("')'");
  }

  absl::Status type(Node& node) {
    if (!take(":")) return expected("':' and a type");
    std::string_view name = word();
    auto dtype = dtype_named(name);
    if (!dtype) return invalid("unknown dtype '", name, "'");
    node.dtype = *dtype;
    WL_RETURN_IF_ERROR(list(node.shape));
    return absl::OkStatus();
  }

  absl::Status node() {
    int64_t number = 0;
    WL_RETURN_IF_ERROR(id(number));
    if (number < 0) return invalid("a node's number must not be negative");
    if (!take("=")) return expected("'='");
    std::string_view name = word();
    auto it = ops_by_name().find(name);
    if (it == ops_by_name().end()) return invalid("unknown op '", name, "'");
    Node node{.op = it->second};
    const OpInfo& row = info(node.op);
    for (skip_space(); !line_.empty() && line_[0] == '%'; skip_space())
      WL_RETURN_IF_ERROR(reference(node.operands.emplace_back()));
    if (node.op == Op::input || node.op == Op::contract) WL_RETURN_IF_ERROR(text(node.text));
    node.tf32 = node.op == Op::contract && take("tf32");
    if (node.op == Op::constant) WL_RETURN_IF_ERROR(real(node.value));
    WL_RETURN_IF_ERROR(attribute(row.ints, node.ints));
    WL_RETURN_IF_ERROR(attribute(row.ints2, node.ints2));
    if (node.op == Op::pad) {
      if (!take("value") || !take("=")) return expected("'value='");
      WL_RETURN_IF_ERROR(real(node.value));
    }
    WL_RETURN_IF_ERROR(type(node));
    if (node.op == Op::pad) WL_RETURN_IF_ERROR(held_by_double(node.dtype));
    if (const auto bits = wide_integer(node.dtype); node.op == Op::constant && bits)
      WL_RETURN_IF_ERROR(split(*bits, node));
    if (node.op == Op::input) WL_RETURN_IF_ERROR(fill(node.dtype, node.fill));
    Node inferred = node;
    WL_RETURN_IF_ERROR(infer(graph_.nodes, inferred));
    if (inferred.shape != node.shape || inferred.dtype != node.dtype) {
      return invalid(row.name, ": expected type ", type_text(inferred.dtype, inferred.shape), ", found ",
                     type_text(node.dtype, node.shape));
    }
    if (static_cast<int64_t>(graph_.nodes.size()) == kMaxNodes) return invalid("more than ", kMaxNodes, " nodes");
    if (!ids_.emplace(number, static_cast<NodeId>(graph_.nodes.size())).second)
      return invalid("%", number, " is defined twice");
    graph_.nodes.push_back(std::move(inferred));
    return absl::OkStatus();
  }

  static constexpr uint64_t kLow = 2047;
  std::string_view rest_, line_;
  std::string_view number_;  // text of the number that was parsed last
  int line_number_ = 0;
  std::unordered_map<int64_t, NodeId> ids_;
  Graph graph_;
};

}  // namespace

absl::StatusOr<Graph> parse(std::string_view text) {
  Parser parser(text);
  WL_ASSIGN_OR_RETURN(Graph graph, parser.graph());
  WL_RETURN_IF_ERROR(verify(graph));
  return graph;
}

}  // namespace wl
