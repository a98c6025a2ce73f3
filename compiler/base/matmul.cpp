#include "compiler/base/matmul.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "compiler/base/status.h"

namespace wl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max(), kMostOffset = int64_t{1} << 48;
constexpr size_t kMostText = 4096;
constexpr int kMostArguments = 1 << 16;
constexpr std::string_view kFunctions[] = {"none", "relu", "gelu_tanh"};

Json json_of(const MatmulMatrix& m) {
  return {{"argument", m.argument}, {"offset", m.offset},   {"rows", m.rows},
          {"columns", m.columns},   {"leading", m.leading}, {"step", m.step}};
}

// Reads the members of a JSON object. The first member that is missing or wrong is remembered as the error.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) refuse("an object", "");
  }

  int64_t integer(const char* name, int64_t least, int64_t most) {
    const Json* const value = member(name);
    if (value == nullptr || !value->is_number_integer()) return refuse("an integer", name), least;
    const auto number = value->get<int64_t>();
    if (number < least || number > most) return refuse(cat("between ", least, " and ", most), name), least;
    return number;
  }
  double real(const char* name) {
    const Json* const value = member(name);
    const double number = value != nullptr && value->is_number() ? value->get<double>() : std::nan("");
    if (!std::isfinite(number)) refuse("a finite number", name);
    return number;
  }
  bool flag(const char* name) {
    const Json* const value = member(name);
    if (value == nullptr || !value->is_boolean()) return refuse("true or false", name), false;
    return value->get<bool>();
  }
  std::string word(const char* name) {
    const Json* const value = member(name);
    if (value == nullptr || !value->is_string()) return refuse("a word", name), "";
    return value->get<std::string>();
  }
  const Json* member(const char* name) const {
    const auto at = object_.is_object() ? object_.find(name) : object_.end();
    return at == object_.end() ? nullptr : &*at;
  }
  void refuse(const std::string& expected, const std::string& name) {
    if (problem_.empty()) problem_ = cat(where_, name.empty() ? "" : ".", name, " is not ", expected);
  }
  const std::string& problem() const { return problem_; }

 private:
  const Json& object_;
  std::string where_, problem_;
};

MatmulMatrix matrix(Reader& from, std::string* problem) {
  MatmulMatrix m;
  m.argument = static_cast<int>(from.integer("argument", 0, kMostArguments));
  m.offset = from.integer("offset", 0, kMostOffset);
  m.rows = from.integer("rows", 1, kMostExtent);
  m.columns = from.integer("columns", 1, kMostExtent);
  m.leading = from.integer("leading", m.rows, kMostOffset);
  m.step = from.integer("step", 0, kMostOffset);
  if (problem->empty()) *problem = from.problem();
  return m;
}

std::string shapes_disagree(const MatmulCall& call) {
  const auto [a_rows, a_depth] =
      call.a_transposed ? std::pair(call.a.columns, call.a.rows) : std::pair(call.a.rows, call.a.columns);
  const auto [b_depth, b_columns] =
      call.b_transposed ? std::pair(call.b.columns, call.b.rows) : std::pair(call.b.rows, call.b.columns);
  if (a_depth != b_depth) return cat("a has a depth of ", a_depth, ", b one of ", b_depth);
  if (call.d.rows != a_rows || call.d.columns != b_columns)
    return cat("d is ", call.d.rows, " x ", call.d.columns, ", the product ", a_rows, " x ", b_columns);
  if (call.c && (call.c->rows != a_rows || call.c->columns != b_columns)) return "c has not the shape of d";
  if (call.bias && (call.bias->rows != a_rows || call.bias->columns != 1)) return "bias is no column of d";
  if (call.batch > 1 && call.d.step < 1) return "all members of the batch have the same d";
  return "";
}

}  // namespace

std::string matmul_text(const MatmulCall& call) {
  Json out = {{"matmul", 1},
              {"factors", std::string(name_of(call.factors))},
              {"result", std::string(name_of(call.result))},
              {"a", json_of(call.a)},
              {"b", json_of(call.b)},
              {"d", json_of(call.d)},
              {"a_transposed", call.a_transposed},
              {"b_transposed", call.b_transposed},
              {"function", std::string(kFunctions[static_cast<size_t>(call.function)])},
              {"alpha", call.alpha},
              {"batch", call.batch},
              {"algorithm", call.algorithm}};
  if (call.tf32) out["tf32"] = true;
  if (call.c) out["c"] = json_of(*call.c);
  if (call.bias) out["bias"] = json_of(*call.bias);
  return out.dump() + "\n";
}

absl::StatusOr<MatmulCall> parse_matmul(std::string_view text) {
  const auto wrong = [](const std::string& what) { return invalid("the call of a library: ", what); };
  if (text.size() > kMostText) return wrong(cat(text.size(), " bytes; at most ", kMostText, " are read"));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Reader from(json, "it");
  MatmulCall call;
  std::string problem;
  (void)from.integer("matmul", 1, 1);
  const auto dtype = [&](const char* name) {
    const std::optional<DType> named = dtype_named(from.word(name));
    const bool known = named && (*named == DType::f32 || *named == DType::f16 || *named == DType::bf16);
    if (!known) from.refuse("f32, f16 or bf16", name);
    return known ? *named : DType::f32;
  };
  call.factors = dtype("factors");
  call.result = dtype("result");
  if (call.result != DType::f32 && call.result != call.factors) from.refuse("f32 or the factors' type", "result");
  call.tf32 = from.member("tf32") != nullptr && from.flag("tf32");
  if (call.tf32 && call.factors != DType::f32) from.refuse("of factors of f32", "tf32");
  const auto read = [&](const char* name, bool needed) -> std::optional<MatmulMatrix> {
    const Json* const of = from.member(name);
    if (of == nullptr && needed) from.refuse("there", name);
    if (of == nullptr) return std::nullopt;
    Reader inner(*of, name);
    return matrix(inner, &problem);
  };
  call.a = read("a", true).value_or(MatmulMatrix());
  call.b = read("b", true).value_or(MatmulMatrix());
  call.d = read("d", true).value_or(MatmulMatrix());
  call.c = read("c", false);
  call.bias = read("bias", false);
  call.a_transposed = from.flag("a_transposed");
  call.b_transposed = from.flag("b_transposed");
  const std::string function = from.word("function");
  for (size_t i = 0; i <= std::size(kFunctions); ++i) {
    if (i == std::size(kFunctions)) from.refuse("none, relu or gelu_tanh", "function");
    if (i == std::size(kFunctions) || kFunctions[i] != function) continue;
    call.function = static_cast<MatmulFunction>(i);
    break;
  }
  call.alpha = from.real("alpha");
  call.batch = from.integer("batch", 1, kMostExtent);
  call.algorithm = static_cast<int>(from.integer("algorithm", 0, kMostAlgorithms - 1));
  if (problem.empty()) problem = from.problem();
  if (problem.empty()) problem = shapes_disagree(call);
  if (!problem.empty()) return wrong(problem);
  return call;
}

}  // namespace wl
