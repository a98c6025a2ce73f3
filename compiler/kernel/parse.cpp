// Reads kernels line by line; loops nest by recursion to a fixed depth.
#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/escaping.h"
#include "compiler/kernel/expr_text.h"
#include "compiler/kernel/text_cursor.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr int kMaxDepth = 32;
constexpr int64_t kMaxWeight = 1000;
constexpr int64_t kMaxCount = int64_t{1} << 40;
constexpr int64_t kAnyLow = std::numeric_limits<int64_t>::min(), kAnyHigh = std::numeric_limits<int64_t>::max();

bool gives_tile(InstrOp op) {
  constexpr InstrOp kNone[] = {InstrOp::kStore,   InstrOp::kPrefetch,  InstrOp::kLoop,   InstrOp::kFence,
                               InstrOp::kBarrier, InstrOp::kAsyncLoad, InstrOp::kCommit, InstrOp::kWait,
                               InstrOp::kPass,    InstrOp::kMeet};
  return std::find(std::begin(kNone), std::end(kNone), op) == std::end(kNone);
}

class KernelParser {
 public:
  explicit KernelParser(std::string_view text) : rest_(text) {
    // No number may make more entries than the text has lines.
    most_ = static_cast<int>(std::min<int64_t>(std::count(text.begin(), text.end(), '\n') + 1, 1'000'000));
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
    for (size_t i = 0; i < typed_.size(); ++i)
      if (!typed_[i]) return invalid("%", i, " is missing");
    for (TileId id : later_)
      if (id >= static_cast<TileId>(typed_.size())) return invalid("%", id, " is missing");
    if (next_line()) return in_.expected("nothing after '}'");
    // The line that verify() complains about is in its message.
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
    if (in_.peek() == 'c') WL_RETURN_IF_ERROR(setting("cluster", kernel_.cluster));
    WL_RETURN_IF_ERROR(in_.expect("{"));
    return end_line();
  }

  // Lines up to the one that closes the body. Declarations may stand anywhere outside loops.
  absl::Status body(std::vector<Instr>& instrs, int depth) {
    if (depth > kMaxDepth) return invalid("loops nested deeper than ", kMaxDepth);
    while (next_line()) {
      if (in_.take("}")) return end_line();
      const bool word = in_.rest().substr(0, 2) == "pr" || in_.rest().substr(0, 2) == "pa";  // prefetch, pass
      if (depth == 0 && in_.peek() == 'p' && !word) {
        WL_RETURN_IF_ERROR(buffer());
      } else if (depth == 0 && in_.take("index")) {
        WL_RETURN_IF_ERROR(declared({Var::Kind::kLoop, "", {}, 1, 0}));
      } else if (depth == 0 && in_.take("let")) {
        WL_RETURN_IF_ERROR(derived());
      } else if (depth == 0 && in_.take("tile")) {
        TileId id = -1;
        WL_RETURN_IF_ERROR(in_.expect("%"));
        WL_RETURN_IF_ERROR(in_.number(id, 0, most_));
        WL_RETURN_IF_ERROR(type(id));
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
    WL_RETURN_IF_ERROR(buffer_number(id, static_cast<int>(kernel_.buffers.size())));
    if (id != static_cast<BufferId>(kernel_.buffers.size()))
      return invalid("expected buffer p", kernel_.buffers.size(), ", found p", id);
    WL_RETURN_IF_ERROR(in_.expect("="));
    const bool work = in_.take("work"), cluster = !work && in_.take("cluster");
    if (work || cluster || in_.take("scratch")) {
      b.level = work ? Level::kWork : cluster ? Level::kCluster : Level::kShared;
      WL_RETURN_IF_ERROR(in_.expect("@"));
      WL_RETURN_IF_ERROR(in_.integer(b.byte_offset, 0, kMaxCount));
    } else {
      b.once = in_.take("once");
      b.output = b.once || in_.take("out");
      if (!b.output) WL_RETURN_IF_ERROR(in_.expect("in"));
    }
    WL_RETURN_IF_ERROR(quoted(b.name));
    WL_RETURN_IF_ERROR(in_.expect(":"));
    WL_RETURN_IF_ERROR(dtype(b.dtype));
    WL_RETURN_IF_ERROR(in_.list(b.shape, 0, kMaxCount));
    double size = 1;
    for (int64_t extent : b.shape) size *= static_cast<double>(std::max<int64_t>(1, extent));
    if (size > static_cast<double>(kMaxCount)) return invalid("a buffer of more than ", kMaxCount, " elements");
    kernel_.buffers.push_back(std::move(b));
    return absl::OkStatus();
  }
  absl::Status buffer_number(BufferId& id, int most) {
    if (in_.peek() != 'p') return in_.expected("a buffer as p0");
    in_.skip(1);
    return in_.number(id, 0, most);
  }

  absl::Status dtype(DType& value) {
    const auto named = dtype_named(in_.word());
    if (!named) return in_.expected("a dtype");
    value = *named;
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
    WL_RETURN_IF_ERROR(minimum(var.of));
    if (in_.take("/")) WL_RETURN_IF_ERROR(in_.integer(var.div, 2, kAnyHigh));
    if (in_.take("%")) WL_RETURN_IF_ERROR(in_.integer(var.mod, 1, kAnyHigh));
    // Evaluating a variable evaluates what it derives from: bounded, so that texts cannot make that explode.
    int64_t weight = 1;
    for (const Affine& a : var.of)
      for (const auto& [source, coefficient] : a.terms) weight += weight_[source];
    if (weight > kMaxWeight) return invalid("a variable derived from more than ", kMaxWeight, " others");
    weight_[static_cast<VarId>(kernel_.vars.size())] = weight;
    kernel_.vars.push_back(std::move(var));
    return absl::OkStatus();
  }

  absl::Status variable(VarId& var) {
    const TextCursor before = in_;
    const std::string_view name = in_.word();
    if (name == "block" && in_.peek() != '#') {
      var = 0;
      return absl::OkStatus();
    }
    if (name == "team" && in_.peek() != '#' && kernel_.wave > 0) {
      var = 1;
      return absl::OkStatus();
    }
    if (name.empty() || !in_.take("#")) {
      in_ = before;
      return in_.expected("'block' or a variable as i#1");
    }
    WL_RETURN_IF_ERROR(in_.number(var, 1, static_cast<int>(kernel_.vars.size()) - 1));
    if (kernel_.vars[var].name != name)
      return invalid("variable ", var, " is called '", kernel_.vars[var].name, "', not '", name, "'");
    return absl::OkStatus();
  }

  absl::Status affine(Affine& value) {
    bool based = false;
    do {
      const char next = in_.peek();
      if (!based && (next == '-' || absl::ascii_isdigit(static_cast<unsigned char>(next)))) {
        WL_RETURN_IF_ERROR(in_.integer(value.base, kAnyLow, kAnyHigh));
        based = true;
        continue;
      }
      auto& [var, coefficient] = value.terms.emplace_back(0, 1);
      WL_RETURN_IF_ERROR(variable(var));
      if (in_.take("*")) WL_RETURN_IF_ERROR(in_.integer(coefficient, kAnyLow, kAnyHigh));
    } while (in_.take("+"));
    return absl::OkStatus();
  }

  absl::Status minimum(std::vector<Affine>& of) {
    if (in_.take("(")) {
      WL_RETURN_IF_ERROR(affine(of.emplace_back()));
      return in_.expect(")");
    }
    if (!in_.take("min(")) return affine(of.emplace_back());
    do {
      WL_RETURN_IF_ERROR(affine(of.emplace_back()));
    } while (in_.take(","));
    return in_.expect(")");
  }

  absl::Status type(TileId id) {
    WL_RETURN_IF_ERROR(in_.expect(":"));
    if (id < static_cast<TileId>(typed_.size()) && typed_[id]) return invalid("%", id, " has a type already");
    Tile tile;
    WL_RETURN_IF_ERROR(dtype(tile.dtype));
    WL_ASSIGN_OR_RETURN(tile.layout, read_layout(in_));
    if (in_.take("bounds")) {
      tile.bound.resize(tile.layout.shape.size());
      while (absl::ascii_isdigit(static_cast<unsigned char>(in_.peek()))) {
        int axis = 0;
        WL_RETURN_IF_ERROR(in_.number(axis, 0, tile.layout.rank() - 1));
        WL_RETURN_IF_ERROR(in_.expect(":"));
        if (!tile.bound[axis].empty()) return invalid("axis ", axis, " has a bound already");
        WL_RETURN_IF_ERROR(minimum(tile.bound[axis]));
      }
    }
    if (id >= static_cast<TileId>(typed_.size())) {
      typed_.resize(id + 1, false);
      kernel_.tiles.resize(id + 1);
    }
    typed_[id] = true;
    kernel_.tiles[id] = std::move(tile);
    return absl::OkStatus();
  }

  // A tile whose type is known.
  absl::Status tile(TileId& id) {
    WL_RETURN_IF_ERROR(in_.expect("%"));
    WL_RETURN_IF_ERROR(in_.number(id, 0, most_));
    if (id >= static_cast<TileId>(typed_.size()) || !typed_[id])
      return invalid("%", id, " is used before it is defined");
    return absl::OkStatus();
  }

  absl::Status slice(Slice& value) {
    WL_RETURN_IF_ERROR(buffer_number(value.buffer, static_cast<int>(kernel_.buffers.size()) - 1));
    WL_RETURN_IF_ERROR(in_.expect("["));
    WL_RETURN_IF_ERROR(affine(value.offset));
    WL_RETURN_IF_ERROR(in_.expect("]"));
    WL_RETURN_IF_ERROR(in_.expect("strides"));
    return in_.list(value.strides, kAnyLow, kAnyHigh);
  }

  absl::Status instruction(Instr& instr) {
    if (in_.take("%")) {
      WL_RETURN_IF_ERROR(in_.number(instr.result, 0, most_));
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
    const bool gives = gives_tile(instr.op);
    if (gives != (instr.result >= 0)) return invalid(name, gives ? " gives a tile" : " gives no tile");
    WL_RETURN_IF_ERROR(operands(instr));
    if (!gives) return absl::OkStatus();
    if (in_.peek() == ':') return type(instr.result);
    if (instr.result >= static_cast<TileId>(typed_.size()) || !typed_[instr.result])
      return in_.expected("':' and the type of a new tile");
    return absl::OkStatus();
  }

  absl::Status operands(Instr& instr) {
    switch (instr.op) {
      case InstrOp::kLoad:
        WL_RETURN_IF_ERROR(slice(instr.slice));
        instr.streaming = in_.take("streaming");
        if (!in_.take("where")) return absl::OkStatus();
        WL_RETURN_IF_ERROR(guards(instr));
        WL_RETURN_IF_ERROR(in_.expect("else"));
        return in_.peek() == '%' ? tile(instr.args.emplace_back()) : in_.real(instr.value);
      case InstrOp::kStore:
        WL_RETURN_IF_ERROR(tile(instr.args.emplace_back()));
        WL_RETURN_IF_ERROR(slice(instr.slice));
        instr.streaming = in_.take("streaming");
        return in_.take("where") ? guards(instr) : absl::OkStatus();
      case InstrOp::kGather:
        WL_RETURN_IF_ERROR(tile(instr.args.emplace_back()));
        WL_RETURN_IF_ERROR(slice(instr.slice));
        WL_RETURN_IF_ERROR(in_.expect("index"));
        WL_RETURN_IF_ERROR(in_.expect("*"));
        WL_RETURN_IF_ERROR(in_.integer(instr.gather_stride, kAnyLow, kAnyHigh));
        WL_RETURN_IF_ERROR(in_.expect("of"));
        return in_.integer(instr.gather_extent, 0, kMaxCount);
      case InstrOp::kPrefetch:
        WL_RETURN_IF_ERROR(later_tile(instr));
        WL_RETURN_IF_ERROR(slice(instr.slice));
        WL_RETURN_IF_ERROR(in_.expect("level"));
        return in_.number(instr.level, 1, 3);
      case InstrOp::kMap:
        return read_expr(
            in_, kernel_, [this](TextCursor&, TileId& id) { return tile(id); }, instr);
      case InstrOp::kFold:
      case InstrOp::kCross:
        return reduction(instr);
      case InstrOp::kFill:
        return in_.real(instr.value);
      case InstrOp::kIota:
        WL_RETURN_IF_ERROR(in_.expect("axis"));
        WL_RETURN_IF_ERROR(in_.number(instr.axis, 0, 15));
        WL_RETURN_IF_ERROR(in_.expect("from"));
        return affine(instr.slice.offset);
      case InstrOp::kConvert:
        return tile(instr.args.emplace_back());
      case InstrOp::kLoop:
        WL_RETURN_IF_ERROR(variable(instr.var));
        WL_RETURN_IF_ERROR(in_.expect("in"));
        return minimum(instr.trips);
      case InstrOp::kAsyncLoad:
        WL_RETURN_IF_ERROR(later_tile(instr));
        WL_RETURN_IF_ERROR(slice(instr.slice));
        WL_RETURN_IF_ERROR(in_.expect("to"));
        WL_RETURN_IF_ERROR(slice(instr.into));
        return in_.take("where") ? guards(instr) : absl::OkStatus();
      case InstrOp::kWait:
        return in_.number(instr.pending, 0, 1'000);
      case InstrOp::kPass:
        if (!in_.take("last")) return absl::OkStatus();
        WL_RETURN_IF_ERROR(in_.number(instr.pending, 2, 1'000'000));
        return in_.peek() == 'p' ? slice(instr.slice) : absl::OkStatus();
      case InstrOp::kFence:
      case InstrOp::kBarrier:
      case InstrOp::kCommit:
      case InstrOp::kMeet:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // What is fetched ahead is a tile that a later load defines, or none.
  absl::Status later_tile(Instr& instr) {
    WL_RETURN_IF_ERROR(in_.expect("%"));
    WL_RETURN_IF_ERROR(in_.number(instr.args.emplace_back(), 0, most_));
    later_.push_back(instr.args[0]);
    return absl::OkStatus();
  }

  absl::Status guards(Instr& instr) {
    do {
      SliceGuard& guard = instr.guards.emplace_back();
      WL_RETURN_IF_ERROR(affine(guard.at));
      WL_RETURN_IF_ERROR(in_.expect("strides"));
      WL_RETURN_IF_ERROR(in_.list(guard.strides, kAnyLow, kAnyHigh));
      WL_RETURN_IF_ERROR(in_.expect("of"));
      WL_RETURN_IF_ERROR(in_.integer(guard.extent, 0, kMaxCount));
    } while (in_.take("and"));
    return absl::OkStatus();
  }

  absl::Status reduction(Instr& instr) {
    WL_RETURN_IF_ERROR(in_.expect("."));
    const std::string_view name = in_.word();
    for (Op op : {Op::add, Op::max, Op::min, Op::mul}) {
      if (name_of(op) != name) continue;
      instr.combine = op;
      WL_RETURN_IF_ERROR(tile(instr.args.emplace_back()));
      WL_RETURN_IF_ERROR(in_.expect("axes"));
      std::vector<int64_t> axes;
      WL_RETURN_IF_ERROR(in_.list(axes, 0, 15));
      instr.axes.assign(axes.begin(), axes.end());
      return absl::OkStatus();
    }
    return invalid("expected add, max, min or mul, found '", name, "'");
  }

  std::string_view rest_;
  TextCursor in_{""};
  int line_number_ = 0, most_ = 0;
  std::vector<bool> typed_;          // tiles whose type is known
  std::vector<TileId> later_;        // tiles that must have one in the end
  std::map<VarId, int64_t> weight_;  // of derived variables
  Kernel kernel_;
};

}  // namespace

absl::StatusOr<Kernel> parse_kernel(std::string_view text) {
  return KernelParser(text).run();
}

}  // namespace wl
