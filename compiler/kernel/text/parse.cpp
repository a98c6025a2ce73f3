// Parses kernels line by line; loops are parsed by recursion to a limited depth.
#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "compiler/kernel/text/operand_text.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr int kMaxDepth = 32;
constexpr int64_t kMaxWeight = 1000;
// The greatest value that is accepted for a field of a swizzle; every field is a number of bits.
constexpr int64_t kMostSwizzled = 20;
constexpr int kMostArrivals = 1 << 16;

class KernelParser {
 public:
  explicit KernelParser(std::string_view text) : rest_(text) {
    // Limits the numbers of tiles by the number of lines, so that a short text cannot ask for a huge table of tiles.
    read_.most = static_cast<int>(std::min<int64_t>(std::count(text.begin(), text.end(), '\n') + 1, 1'000'000));
    kernel_.vars.push_back({Var::Kind::kBlock, "block", {}, 1, 0});
  }

  absl::StatusOr<Kernel> run() {
    if (absl::Status status = whole(); !status.ok()) return invalid("line ", line_number_, ": ", status.message());
    return std::move(kernel_);
  }

 private:
  absl::Status whole() {
    if (!next_line()) return invalid("expected 'kernel', found the end of the text");
    WL_RETURN_IF_ERROR(header());
    WL_RETURN_IF_ERROR(body(kernel_.body, 0));
    for (size_t i = 0; i < read_.typed.size(); ++i)
      if (!read_.typed[i]) return invalid("%", i, " is missing");
    for (TileId id : read_.forward)
      if (id >= static_cast<TileId>(read_.typed.size())) return invalid("%", id, " is missing");
    if (next_line()) return in_.expected("nothing after '}'");
    // The message of verify() shows the instruction that it rejects, so no line number is added.
    return verify(kernel_);
  }

  bool next_line() {
    while (!rest_.empty()) {
      const size_t end = rest_.find('\n');
      in_ = TextCursor(rest_.substr(0, end));
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      ++line_number_;
      if (!in_.at_end()) return true;
    }
    return false;
  }
  absl::Status end_line() { return in_.at_end() ? absl::OkStatus() : in_.expected("the end of the line"); }

  absl::Status quoted(std::string& value) {
    if (in_.peek() != '"') return in_.expected("a quoted name");
    const std::string_view rest = in_.rest();
    size_t end = 1;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    if (end >= rest.size()) return in_.expected("a quoted name that ends on its line");
    if (!absl::CUnescape(absl::string_view(rest.data() + 1, end - 1), &value))
      return in_.expected("a quoted name with known escapes");
    in_.skip(end + 1);
    return absl::OkStatus();
  }

  absl::Status setting(std::string_view name, int& value) {
    WL_RETURN_IF_ERROR(in_.expect(name));
    WL_RETURN_IF_ERROR(in_.expect("="));
    return in_.number(value, 1, 1'000'000);
  }
  absl::Status setting(std::string_view name, std::string& value) {
    WL_RETURN_IF_ERROR(in_.expect(name));
    WL_RETURN_IF_ERROR(in_.expect("="));
    return quoted(value);
  }

  absl::Status header() {
    WL_RETURN_IF_ERROR(in_.expect("kernel"));
    WL_RETURN_IF_ERROR(quoted(kernel_.name));
    WL_RETURN_IF_ERROR(setting("target", kernel_.target));
    WL_RETURN_IF_ERROR(in_.expect("grid"));
    WL_RETURN_IF_ERROR(in_.expect("="));
    WL_RETURN_IF_ERROR(in_.integer(kernel_.grid, 0, kMaxCount));
    WL_RETURN_IF_ERROR(setting("threads", kernel_.threads));
    WL_RETURN_IF_ERROR(setting("unroll", kernel_.unroll));
    WL_RETURN_IF_ERROR(setting("accumulators", kernel_.accumulators));
    WL_RETURN_IF_ERROR(setting("compiler", kernel_.compiler));
    if (in_.peek() == 'w') {
      WL_RETURN_IF_ERROR(setting("wave", kernel_.wave));
      WL_RETURN_IF_ERROR(setting("team", kernel_.team));
      WL_RETURN_IF_ERROR(setting("teams", kernel_.teams));
      kernel_.vars.push_back({Var::Kind::kTeam, "team", {}, 1, 0});
    }
    if (in_.peek() == 'b') WL_RETURN_IF_ERROR(setting("blocks", kernel_.blocks));
    if (in_.rest().starts_with("cl")) WL_RETURN_IF_ERROR(setting("cluster", kernel_.cluster));
    if (in_.peek() == 'c') WL_RETURN_IF_ERROR(setting("copiers", kernel_.copiers));
    WL_RETURN_IF_ERROR(in_.expect("{"));
    return end_line();
  }

  // Reads lines up to the one that closes the body. Declarations may stand anywhere outside loops.
  absl::Status body(std::vector<Instr>& instrs, int depth) {
    if (depth > kMaxDepth) return invalid("loops nested deeper than ", kMaxDepth);
    while (next_line()) {
      if (in_.take("}")) return end_line();
      const bool numbered = in_.rest().size() > 1 && absl::ascii_isdigit(static_cast<unsigned char>(in_.rest()[1]));
      if (depth == 0 && in_.peek() == 'p' && numbered) {
        WL_RETURN_IF_ERROR(buffer());
      } else if (depth == 0 && in_.take("index")) {
        WL_RETURN_IF_ERROR(declared({Var::Kind::kLoop, "", {}, 1, 0}));
      } else if (depth == 0 && in_.take("let")) {
        WL_RETURN_IF_ERROR(derived());
      } else if (depth == 0 && in_.take("tile")) {
        TileId id = -1;
        WL_RETURN_IF_ERROR(in_.expect("%"));
        WL_RETURN_IF_ERROR(in_.number(id, 0, read_.most));
        WL_RETURN_IF_ERROR(read_.read_type(id));
      } else {
        Instr instr;
        WL_RETURN_IF_ERROR(instruction(instr));
        if (instr.op == InstrOp::kLoop) {
          WL_RETURN_IF_ERROR(in_.expect("{"));
          WL_RETURN_IF_ERROR(end_line());
          WL_RETURN_IF_ERROR(body(instr.body, depth + 1));
        }
        instrs.push_back(std::move(instr));
      }
      WL_RETURN_IF_ERROR(end_line());
    }
    return invalid("expected '}', found the end of the text");
  }

  absl::Status buffer() {
    KernelBuffer b;
    BufferId id = 0;
    WL_RETURN_IF_ERROR(read_.read_buffer(id, static_cast<int>(kernel_.buffers.size())));
    if (id != static_cast<BufferId>(kernel_.buffers.size()))
      return invalid("expected buffer p", kernel_.buffers.size(), ", found p", id);
    WL_RETURN_IF_ERROR(in_.expect("="));
    for (const Level level : {Level::kShared, Level::kWork, Level::kCluster, Level::kOwn})
      if (b.level == Level::kGlobal && in_.take(info(level).text)) b.level = level;
    if (b.level != Level::kGlobal) {
      WL_RETURN_IF_ERROR(in_.expect("@"));
      WL_RETURN_IF_ERROR(in_.integer(b.byte_offset, 0, kMaxCount));
    } else {
      b.once = in_.take("once");
      b.output = b.once || in_.take("out");
      if (!b.output) WL_RETURN_IF_ERROR(in_.expect("in"));
    }
    WL_RETURN_IF_ERROR(quoted(b.name));
    WL_RETURN_IF_ERROR(in_.expect(":"));
    WL_RETURN_IF_ERROR(read_.read_dtype(b.dtype));
    WL_RETURN_IF_ERROR(in_.list(b.shape, 0, kMaxCount));
    double size = 1;
    for (int64_t extent : b.shape) size *= static_cast<double>(std::max<int64_t>(1, extent));
    if (size > static_cast<double>(kMaxCount)) return invalid("a buffer of more than ", kMaxCount, " elements");
    if (in_.take("swizzle")) {
      std::vector<int64_t> numbers;
      WL_RETURN_IF_ERROR(in_.list(numbers, 0, kMostSwizzled));
      if (numbers.size() != 3) return invalid("a swizzle is [bits,base,shift]");
      b.swizzle = {static_cast<int>(numbers[0]), static_cast<int>(numbers[1]), static_cast<int>(numbers[2])};
      if (in_.take("panels")) {
        numbers.clear();
        WL_RETURN_IF_ERROR(in_.list(numbers, 0, kMostSwizzled));
        if (numbers.size() != 3) return invalid("panels are [column,panels,rows], as numbers of bits");
        b.swizzle.column = static_cast<int>(numbers[0]);
        b.swizzle.panels = static_cast<int>(numbers[1]);
        b.swizzle.rows = static_cast<int>(numbers[2]);
      }
    }
    if (in_.take("arrivals")) WL_RETURN_IF_ERROR(in_.number(b.arrivals, 1, kMostArrivals));
    kernel_.buffers.push_back(std::move(b));
    return absl::OkStatus();
  }

  absl::Status declared(Var var) {
    var.name = std::string(in_.word());
    int number = 0;
    WL_RETURN_IF_ERROR(in_.expect("#"));
    const int next = static_cast<int>(kernel_.vars.size());
    WL_RETURN_IF_ERROR(in_.number(number, next, next));
    kernel_.vars.push_back(std::move(var));
    return absl::OkStatus();
  }

  absl::Status derived() {
    WL_RETURN_IF_ERROR(declared({Var::Kind::kDerived, "", {}, 1, 0}));
    Var var = std::move(kernel_.vars.back());
    kernel_.vars.pop_back();
    WL_RETURN_IF_ERROR(in_.expect("="));
    WL_RETURN_IF_ERROR(read_.read_minimum(var.of));
    if (in_.take("/")) WL_RETURN_IF_ERROR(in_.integer(var.div, 2, kAnyHigh));
    if (in_.take("%")) WL_RETURN_IF_ERROR(in_.integer(var.mod, 1, kAnyHigh));
    // Evaluating a derived variable evaluates all variables that it derives from. The number of evaluations is
    // limited, because it may grow exponentially with the length of the text.
    int64_t weight = 1;
    for (const Affine& a : var.of)
      for (const auto& [source, coefficient] : a.terms) weight += weight_[source];
    if (weight > kMaxWeight) return invalid("a variable derived from more than ", kMaxWeight, " others");
    weight_[static_cast<VarId>(kernel_.vars.size())] = weight;
    kernel_.vars.push_back(std::move(var));
    return absl::OkStatus();
  }

  absl::Status instruction(Instr& instr) {
    if (in_.take("%")) {
      WL_RETURN_IF_ERROR(in_.number(instr.result, 0, read_.most));
      WL_RETURN_IF_ERROR(in_.expect("="));
    }
    const TextCursor before = in_;
    const std::string_view name = in_.word();
    const auto row = std::find_if(instrs().begin(), instrs().end(), [&](const InstrInfo& i) { return i.name == name; });
    if (row == instrs().end()) {
      in_ = before;
      return in_.expected("an instruction");
    }
    instr.op = row->op;
    const bool gives = row->gives_tile();
    if (gives != (instr.result >= 0)) return invalid(name, gives ? " gives a tile" : " gives no tile");
    WL_RETURN_IF_ERROR(read_operands(read_, instr));
    if (!gives) return absl::OkStatus();
    if (in_.peek() == ':') return read_.read_type(instr.result);
    if (instr.result >= static_cast<TileId>(read_.typed.size()) || !read_.typed[instr.result])
      return in_.expected("':' and the type of a new tile");
    return absl::OkStatus();
  }

  std::string_view rest_;
  int line_number_ = 0;
  std::map<VarId, int64_t> weight_;  // for each derived variable: how many variables are visited to evaluate it
  ValueReader read_;
  TextCursor& in_ = read_.in;
  Kernel& kernel_ = read_.kernel;
};

}  // namespace

absl::StatusOr<Kernel> parse_kernel(std::string_view text) {
  return KernelParser(text).run();
}

}  // namespace wl
