// Prints layouts and reads them back (kernel/layout.h has the format). If each position bit moves along one
// coordinate bit, the text lists position bits for every axis. Otherwise, for layouts with XORs or replicated bits,
// the text lists the coordinate vector of every position bit.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/kernel/layout.h"
#include "compiler/kernel/text/text_cursor.h"

namespace wl {
namespace {

constexpr std::string_view kKinds = "vlur";
constexpr int kMaxAxes = 16, kMaxBits = 48;
constexpr int64_t kMaxExtent = int64_t{1} << 40;

// Returns how many earlier bases of the layout have the same kind as this base (v, l, u or r).
int number_of(const Layout& layout, size_t base) {
  return static_cast<int>(std::count_if(layout.bases.begin(), layout.bases.begin() + static_cast<int64_t>(base),
                                        [&](const Layout::Base& b) { return b.kind == layout.bases[base].kind; }));
}

// Whether a layout's text lists position bits for every axis. For that, every coordinate bit must have exactly one
// base, which moves along no other bit, and the bases must be ordered by kind, the order that reading such a text
// gives.
bool prints_by_axis(const Layout& layout) {
  uint64_t seen = 0;
  size_t kind = 0;
  for (const Layout::Base& base : layout.bases) {
    if (base.vector == 0 || (base.vector & (base.vector - 1)) != 0 || (seen & base.vector) != 0) return false;
    seen |= base.vector;
    const size_t mine = kKinds.find(base.kind);
    if (mine < kind) return false;
    kind = mine;
  }
  int bits = 0;
  for (int b : layout.bits) bits += b;
  return seen == (uint64_t{1} << bits) - 1;
}

std::string outer_text(const Layout::Outer& outer) {
  return cat(outer.count, std::string(1, outer.kind));
}

absl::Status parse_outer(TextCursor& in, Layout::Outer& outer) {
  WL_RETURN_IF_ERROR(in.integer(outer.count, 0, kMaxExtent));
  const std::string_view kind = in.word();
  if (kind.size() != 1 || kKinds.find(kind[0]) == std::string_view::npos) return in.expected("v, l, u or r");
  outer.kind = kind[0];
  return absl::OkStatus();
}

// Reads a position bit such as "v3".
absl::Status parse_position(std::string_view word, char& kind, int& number) {
  TextCursor digits(word.empty() ? word : word.substr(1));
  if (word.empty() || kKinds.find(word[0]) == std::string_view::npos || digits.at_end())
    return invalid("expected a position bit as v0, found '", word, "'");
  kind = word[0];
  WL_RETURN_IF_ERROR(digits.number(number, 0, kMaxBits - 1));
  return digits.at_end() ? absl::OkStatus() : invalid("expected a position bit as v0, found '", word, "'");
}

absl::Status parse_axes(TextCursor& in, Layout& layout) {
  std::vector<int> numbers;
  int shift = 0, last = -1;
  while (in.rest().find("dim") != std::string_view::npos && in.peek() == 'd') {
    int axis = 0;
    in.skip(3);
    WL_RETURN_IF_ERROR(in.number(axis, last + 1, layout.rank() - 1));
    last = axis;
    WL_RETURN_IF_ERROR(in.expect("="));
    while (in.peek() != '\0' && kKinds.find(in.peek()) != std::string_view::npos) {
      Layout::Base base;
      WL_RETURN_IF_ERROR(parse_position(in.word(), base.kind, numbers.emplace_back()));
      if (shift == kMaxBits) return invalid("a layout of more than ", kMaxBits, " bits");
      base.vector = uint64_t{1} << shift++;
      ++layout.bits[axis];
      layout.bases.push_back(base);
    }
    if (absl::ascii_isdigit(static_cast<unsigned char>(in.peek())))
      WL_RETURN_IF_ERROR(parse_outer(in, layout.outer[axis]));
    if (!in.take(";")) break;
  }
  // Sorts the bases by kind and number. The numbers of the bases of a kind must be 0, 1, 2, ...
  std::vector<Layout::Base> sorted;
  for (char kind : kKinds) {
    const auto of_kind = std::count_if(layout.bases.begin(), layout.bases.end(),
                                       [kind](const Layout::Base& b) { return b.kind == kind; });
    for (int number = 0; number < of_kind; ++number) {
      size_t at = 0;
      while (at < layout.bases.size() && !(layout.bases[at].kind == kind && numbers[at] == number)) ++at;
      if (at == layout.bases.size()) return invalid("bit ", std::string(1, kind), number, " is missing");
      sorted.push_back(layout.bases[at]);
    }
  }
  layout.bases = std::move(sorted);
  return absl::OkStatus();
}

absl::Status parse_bases(TextCursor& in, Layout& layout) {
  WL_RETURN_IF_ERROR(in.expect("["));
  int total = 0;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    if (axis > 0) WL_RETURN_IF_ERROR(in.expect(","));
    WL_RETURN_IF_ERROR(in.number(layout.bits[axis], 0, kMaxBits - total));
    total += layout.bits[axis];
  }
  WL_RETURN_IF_ERROR(in.expect("]"));
  WL_RETURN_IF_ERROR(in.expect("outer"));
  for (Layout::Outer& outer : layout.outer) WL_RETURN_IF_ERROR(parse_outer(in, outer));
  WL_RETURN_IF_ERROR(in.expect("bases"));
  while (in.peek() != '\0' && kKinds.find(in.peek()) != std::string_view::npos) {
    Layout::Base base;
    int number = 0;
    int64_t vector = 0;
    WL_RETURN_IF_ERROR(parse_position(in.word(), base.kind, number));
    WL_RETURN_IF_ERROR(in.expect("="));
    WL_RETURN_IF_ERROR(in.integer(vector, 0, (int64_t{1} << total) - 1));
    base.vector = static_cast<uint64_t>(vector);
    if (layout.bases.size() == kMaxBits) return invalid("a layout of more than ", kMaxBits, " position bits");
    layout.bases.push_back(base);
    if (number_of(layout, layout.bases.size() - 1) != number) return invalid("position bits must be numbered in order");
  }
  return absl::OkStatus();
}

}  // namespace

std::string Layout::text() const {
  std::string out = cat("[", absl::StrJoin(shape, ","), "]");
  if (!prints_by_axis(*this)) {
    append(&out, " bits [", absl::StrJoin(bits, ","), "] outer");
    for (const Outer& o : outer) append(&out, " ", outer_text(o));
    out += " bases";
    for (size_t i = 0; i < bases.size(); ++i)
      append(&out, " ", std::string(1, bases[i].kind), number_of(*this, i), "=", bases[i].vector);
    return out;
  }
  int shift = 0;
  for (int axis = 0; axis < rank(); ++axis) {
    std::vector<std::string> tokens;
    for (int bit = 0; bit < bits[axis]; ++bit, ++shift)
      for (size_t i = 0; i < bases.size(); ++i)
        if (bases[i].vector == uint64_t{1} << shift)
          tokens.push_back(cat(std::string(1, bases[i].kind), number_of(*this, i)));
    if (outer[axis] != Outer()) tokens.push_back(outer_text(outer[axis]));
    if (!tokens.empty()) append(&out, " dim", axis, "=", absl::StrJoin(tokens, " "), ";");
  }
  if (out.back() == ';') out.pop_back();
  return out;
}

absl::StatusOr<Layout> read_layout(TextCursor& in) {
  Layout layout;
  WL_RETURN_IF_ERROR(in.list(layout.shape, 0, kMaxExtent));
  if (layout.rank() > kMaxAxes) return invalid("a layout of more than ", kMaxAxes, " axes");
  layout.bits.assign(layout.shape.size(), 0);
  layout.outer.assign(layout.shape.size(), {});
  if (in.take("bits")) {
    WL_RETURN_IF_ERROR(parse_bases(in, layout));
  } else {
    WL_RETURN_IF_ERROR(parse_axes(in, layout));
  }
  double positions = 1, size = 1;
  for (size_t i = 0; i < layout.bases.size(); ++i) positions *= 2;
  for (const Layout::Outer& outer : layout.outer) positions *= static_cast<double>(std::max<int64_t>(1, outer.count));
  for (int64_t extent : layout.shape) size *= static_cast<double>(std::max<int64_t>(1, extent));
  if (std::max(positions, size) > static_cast<double>(kMaxExtent))
    return invalid("a tile of more than ", kMaxExtent, " elements");
  return layout;
}

absl::StatusOr<Layout> parse_layout(std::string_view text) {
  TextCursor in(text);
  WL_ASSIGN_OR_RETURN(Layout layout, read_layout(in));
  if (!in.at_end()) return in.expected("the end of the layout");
  return layout;
}

}  // namespace wl
