#include "compiler/kernel/text/operand_text.h"

#include "absl/strings/str_join.h"
#include "compiler/kernel/text/expr_text.h"

namespace wl {
namespace {

// The text of each kind of operand: `print` returns it ("" if the operand is optional and absent), `read` parses it.
template <Operand kind>
struct TextOf;

template <>
struct TextOf<Operand::tile> {
  static std::string print(const Kernel&, const Instr& instr) {
    return instr.args.empty() ? "" : cat(" %", absl::StrJoin(instr.args, " %"));
  }
  static absl::Status read(ValueReader& from, Instr& instr) { return from.read_tile(instr.args.emplace_back()); }
};

template <>
struct TextOf<Operand::shape> : TextOf<Operand::tile> {
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("%"));
    WL_RETURN_IF_ERROR(from.in.number(instr.args.emplace_back(), 0, from.most));
    from.forward.push_back(instr.args[0]);
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::slice> {
  static std::string print(const Kernel& kernel, const Instr& instr) { return cat(" ", text_of(kernel, instr.slice)); }
  static absl::Status read(ValueReader& from, Instr& instr) { return from.read_slice(instr.slice); }
};

template <>
struct TextOf<Operand::into> {
  static std::string print(const Kernel& kernel, const Instr& instr) {
    return cat(" to ", text_of(kernel, instr.into));
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("to"));
    return from.read_slice(instr.into);
  }
};

template <>
struct TextOf<Operand::streaming> {
  static std::string print(const Kernel&, const Instr& instr) { return instr.streaming ? " streaming" : ""; }
  static absl::Status read(ValueReader& from, Instr& instr) {
    instr.streaming = from.in.take("streaming");
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::guards> {
  static std::string print(const Kernel& kernel, const Instr& instr) {
    return instr.guards.empty() ? "" : cat(" where ", guards_text(kernel, instr.guards));
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    return from.in.take("where") ? from.read_guards(instr.guards) : absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::otherwise> {
  static std::string print(const Kernel&, const Instr& instr) {
    if (instr.guards.empty()) return "";
    return cat(" else ", instr.args.empty() ? real_text(instr.value) : cat("%", instr.args[0]));
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    if (instr.guards.empty()) return absl::OkStatus();
    WL_RETURN_IF_ERROR(from.in.expect("else"));
    return from.in.peek() == '%' ? from.read_tile(instr.args.emplace_back()) : from.in.real(instr.value);
  }
};

template <>
struct TextOf<Operand::index> {
  static std::string print(const Kernel&, const Instr& instr) {
    return cat(" index*", instr.gather_stride, " of ", instr.gather_extent, instr.gather_inside ? " inside" : "");
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("index"));
    WL_RETURN_IF_ERROR(from.in.expect("*"));
    WL_RETURN_IF_ERROR(from.in.integer(instr.gather_stride, kAnyLow, kAnyHigh));
    WL_RETURN_IF_ERROR(from.in.expect("of"));
    WL_RETURN_IF_ERROR(from.in.integer(instr.gather_extent, 0, kMaxCount));
    instr.gather_inside = from.in.take("inside");
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::level> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(" level ", instr.level); }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("level"));
    return from.in.number(instr.level, 1, 3);
  }
};

template <>
struct TextOf<Operand::expr> {
  static std::string print(const Kernel& kernel, const Instr& instr) { return cat(" ", expr_text(kernel, instr)); }
  static absl::Status read(ValueReader& from, Instr& instr) {
    return read_expr(
        from.in, from.kernel, [&from](TextCursor&, TileId& id) { return from.read_tile(id); }, instr);
  }
};

template <>
struct TextOf<Operand::combine> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(".", name_of(instr.combine)); }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("."));
    const std::string_view name = from.in.word();
    for (const OpInfo& row : ops()) {
      if (row.name != name || !is_combine(row.op)) continue;
      instr.combine = row.op;
      return absl::OkStatus();
    }
    return invalid("expected add, max, min or mul, found '", name, "'");
  }
};

template <>
struct TextOf<Operand::element> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(".", name_of(instr.elements[0])); }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("."));
    return from.read_dtype(instr.elements[0]);
  }
};

template <>
struct TextOf<Operand::part> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(" part ", instr.part); }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("part"));
    int64_t part = 0;
    WL_RETURN_IF_ERROR(from.in.integer(part, 0, 3));
    instr.part = static_cast<int>(part);
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::gap> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(" gap ", instr.gap); }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("gap"));
    return from.in.integer(instr.gap, 1, kMaxCount);
  }
};

template <>
struct TextOf<Operand::factors> {
  static std::string print(const Kernel&, const Instr& instr) {
    return cat(".", name_of(instr.elements[0]), ".", name_of(instr.elements[1]));
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    for (DType& dtype : instr.elements) {
      WL_RETURN_IF_ERROR(from.in.expect("."));
      WL_RETURN_IF_ERROR(from.read_dtype(dtype));
    }
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::matrix> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(".", info(instr.matrix).name); }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("."));
    const std::string_view name = from.in.word();
    const std::optional<MatrixOp> row = matrix_named(name);
    if (!row) return invalid("no matrix instruction is called '", name, "'");
    instr.matrix = *row;
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::tiles> : TextOf<Operand::tile> {
  static absl::Status read(ValueReader& from, Instr& instr) {
    do {
      WL_RETURN_IF_ERROR(from.read_tile(instr.args.emplace_back()));
    } while (from.in.peek() == '%');
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::axes> {
  static std::string print(const Kernel&, const Instr& instr) {
    return cat(" axes [", absl::StrJoin(instr.axes, ","), "]");
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("axes"));
    std::vector<int64_t> axes;
    WL_RETURN_IF_ERROR(from.in.list(axes, 0, 15));
    instr.axes.assign(axes.begin(), axes.end());
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::value> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(" ", real_text(instr.value)); }
  static absl::Status read(ValueReader& from, Instr& instr) { return from.in.real(instr.value); }
};

template <>
struct TextOf<Operand::start> {
  static std::string print(const Kernel& kernel, const Instr& instr) {
    return cat(" axis ", instr.axis, " from ", text_of(kernel, instr.slice.offset));
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("axis"));
    WL_RETURN_IF_ERROR(from.in.number(instr.axis, 0, 15));
    WL_RETURN_IF_ERROR(from.in.expect("from"));
    return from.read_affine(instr.slice.offset);
  }
};

template <>
struct TextOf<Operand::through> {
  static std::string print(const Kernel& kernel, const Instr& instr) {
    return instr.slice.buffer < 0 ? "" : cat(" through ", text_of(kernel, instr.slice));
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    return from.in.take("through") ? from.read_slice(instr.slice) : absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::trips> {
  static std::string print(const Kernel& kernel, const Instr& instr) {
    return cat(" ", text_of(kernel, instr.var), " in ", minimum_text(kernel, instr.trips),
               instr.role == Role::kCopiers ? " copiers" : "");
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.read_variable(instr.var));
    WL_RETURN_IF_ERROR(from.in.expect("in"));
    WL_RETURN_IF_ERROR(from.read_minimum(instr.trips));
    if (from.in.take("copiers")) instr.role = Role::kCopiers;
    return absl::OkStatus();
  }
};

template <>
struct TextOf<Operand::phase> : TextOf<Operand::slice> {};

template <>
struct TextOf<Operand::parity> {
  static std::string print(const Kernel& kernel, const Instr& instr) {
    return cat(" parity ", text_of(kernel, instr.parity));
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    WL_RETURN_IF_ERROR(from.in.expect("parity"));
    return from.read_affine(instr.parity);
  }
};

template <>
struct TextOf<Operand::pending> {
  static std::string print(const Kernel&, const Instr& instr) { return cat(" ", instr.pending); }
  static absl::Status read(ValueReader& from, Instr& instr) { return from.in.number(instr.pending, 0, 1'000); }
};

template <>
struct TextOf<Operand::last> {
  static std::string print(const Kernel& kernel, const Instr& instr) {
    return cat(instr.pending > 0 ? cat(" last ", instr.pending) : "",
               instr.slice.buffer >= 0 ? cat(" ", text_of(kernel, instr.slice)) : "");
  }
  static absl::Status read(ValueReader& from, Instr& instr) {
    if (!from.in.take("last")) return absl::OkStatus();
    WL_RETURN_IF_ERROR(from.in.number(instr.pending, 2, 1'000'000));
    return from.in.peek() == 'p' ? from.read_slice(instr.slice) : absl::OkStatus();
  }
};

struct OperandText {
  std::string (*print)(const Kernel&, const Instr&);
  absl::Status (*read)(ValueReader&, Instr&);
};

constexpr OperandText kOperandTexts[] = {
    {nullptr, nullptr},  // Operand::none has no text
#define WL_OPERAND(id) {TextOf<Operand::id>::print, TextOf<Operand::id>::read},
#include "compiler/kernel/instrs.def"
};

}  // namespace

std::string operands_text(const Kernel& kernel, const Instr& instr) {
  std::string out;
  for (Operand operand : info(instr.op).operands)
    if (operand != Operand::none) out += kOperandTexts[static_cast<int>(operand)].print(kernel, instr);
  return out;
}

absl::Status read_operands(ValueReader& reader, Instr& instr) {
  for (Operand operand : info(instr.op).operands)
    if (operand != Operand::none) WL_RETURN_IF_ERROR(kOperandTexts[static_cast<int>(operand)].read(reader, instr));
  return absl::OkStatus();
}

}  // namespace wl
