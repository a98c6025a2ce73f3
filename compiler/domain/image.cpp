#include "compiler/domain/image.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace wl {
namespace {

// Calls `visit` with one operand of a node, and with every operand that this operand's value is computed from.
template <typename D, typename F>
void each_operand(D& domain, NodeId node, int position, std::set<NodeId>& seen, const F& visit) {
  auto& operand = domain.operands[node][static_cast<size_t>(position)];
  visit(operand);
  if (!operand.pieces.empty() || operand.source < 0 || !seen.insert(operand.source).second) return;
  for (size_t i = 0; i < domain.operands[operand.source].size(); ++i)
    each_operand(domain, operand.source, static_cast<int>(i), seen, visit);
}

using Movement = std::vector<int64_t>;  // for each atom, the change of an address or guard in a step along it

class Sliding {
 public:
  Sliding(const Domain& domain, int position) : domain_(domain), position_(position) {
    each(domain_, [&](const Domain::Operand& operand) {
      possible_ = possible_ && operand.gather_extent == 0;
      if (operand.pieces.empty()) add(operand.access);
      for (const Piece& piece : operand.pieces) add(piece.access);
    });
  }

  std::optional<Image> run(AtomId width, AtomId height, bool along_rows) {
    if (!possible_) return std::nullopt;
    const Slide across = along_rows ? slide(width, -1) : still(width);
    const Slide down = height >= 0 ? slide(height, across.tap) : Slide();
    if (across.tap < 0 && down.tap < 0) return std::nullopt;
    Image image{domain_, position_, across, down};
    for (const AtomId atom : domain_.reduced)
      if (!image.is_tap(atom) && contiguous_along(atom)) image.channel = atom;
    for (const Slide& slide : {across, down}) apply(slide, image.domain);
    return image;
  }

 private:
  template <typename D, typename F>
  void each(D& domain, const F& visit) const {
    std::set<NodeId> seen;
    each_operand(domain, domain.contract, position_, seen, visit);
  }

  void add(const Access& access) {
    if (!access.strides.empty()) movements_.push_back(access.strides);
    for (const Guard& guard : access.guards) movements_.push_back(guard.strides);
  }

  bool contiguous_along(AtomId atom) const {
    bool found = false, all = true;
    const auto visit = [&](const Access& access) {
      if (access.input < 0) return;
      found = found || access.strides[atom] == 1;
      all = all && (access.strides[atom] == 0 || access.strides[atom] == 1);
    };
    each(domain_, [&](const Domain::Operand& operand) {
      if (operand.pieces.empty() && operand.source < 0) visit(operand.access);
      for (const Piece& piece : operand.pieces)
        if (!piece.constant && piece.source < 0) visit(piece.access);
    });
    return found && all;
  }

  // Returns stride and dilation of a slide along `output` by `tap`, divided by their greatest common divisor; {0, 0}
  // if their ratio is not the same in all addresses and guards.
  std::pair<int64_t, int64_t> ratio(AtomId output, AtomId tap) const {
    int64_t stride = 0, dilation = 0;
    for (const Movement& by : movements_) {
      if (by[output] == 0 && by[tap] == 0) continue;
      if (stride == 0) {
        const int64_t common = std::gcd(by[output], by[tap]) * (by[output] < 0 ? -1 : 1);
        stride = by[output] / common;
        dilation = by[tap] / common;
        if (stride <= 0 || dilation <= 0) return {0, 0};
      }
      if (by[tap] * stride != by[output] * dilation) return {0, 0};
    }
    return {stride, dilation};
  }

  Slide still(AtomId output) const {
    const int64_t extent = domain_.atoms[output].extent;
    return {.output = output, .outputs = extent, .positions = extent};
  }

  // Returns the slide along the loop `output` whose image is smallest. The tap loop `taken` belongs to the slide
  // along another loop and is not considered.
  Slide slide(AtomId output, AtomId taken) {
    Slide best = still(output);
    for (AtomId tap : domain_.reduced) {
      const auto [stride, dilation] = ratio(output, tap);
      if (stride == 0 || tap == taken || domain_.atoms[tap].extent == 0) continue;
      Slide found = best;
      found.tap = tap;
      found.taps = domain_.atoms[tap].extent;
      found.planes = std::min(stride, found.taps);
      found.step = dilation;
      const int64_t rounds = (found.taps + found.planes - 1) / found.planes;
      found.positions = found.outputs + (rounds - 1) * dilation;
      // Of two possible slides, the better one makes the image smaller, compared with the elements that the products
      // read.
      if (found.planes * found.positions * best.taps < best.planes * best.positions * found.taps) {
        best = found;
        strides_[output] = stride;
      }
    }
    return best;
  }

  // Sets the extents of the slide's two loops in the image's domain: the numbers of positions and of planes.
  void apply(const Slide& slide, Domain& domain) {
    if (slide.tap < 0) return;
    domain.atoms[slide.output].extent = slide.positions;
    domain.atoms[slide.tap].extent = slide.planes;
    if (slide.taps % slide.planes == 0) return;
    // If the planes do not divide the taps, the last planes have fewer taps than the first, and so need fewer
    // positions. Their other positions may lie outside of the input, so a guard excludes them.
    Guard guard{0, Movement(domain.atoms.size(), 0), 0};
    guard.strides[slide.output] = strides_[slide.output];
    guard.strides[slide.tap] = slide.step;
    guard.extent = strides_[slide.output] * (slide.outputs - 1) + slide.step * (slide.taps - 1) + 1;
    each(domain, [&](Domain::Operand& operand) {
      if (operand.pieces.empty()) {
        if (operand.source >= 0 || !operand.access.moves_along(slide.output)) return;
        operand.pieces = {{.source = -1, .constant = false, .value = 0, .access = operand.access}};
      }
      for (Piece& piece : operand.pieces) {
        const auto guards = [&](const Guard& other) { return other.strides[slide.output] != 0; };
        std::vector<Guard>& all = piece.access.guards;
        if (!piece.constant && piece.source < 0 && std::none_of(all.begin(), all.end(), guards)) all.push_back(guard);
      }
      const Piece& last = operand.pieces.back();
      if (!last.access.guards.empty())
        operand.pieces.push_back({.source = -1, .constant = true, .value = 0, .access = {}});
    });
  }

  const Domain& domain_;
  const int position_;
  bool possible_ = true;
  std::vector<Movement> movements_;
  std::map<AtomId, int64_t> strides_;
};

}  // namespace

std::optional<Image> column_image(const Domain& domain, bool along_rows) {
  if (domain.contract < 0 || domain.n.empty()) return std::nullopt;
  const AtomId height = domain.n.size() > 1 ? domain.n[domain.n.size() - 2] : -1;
  return Sliding(domain, domain.right_operand()).run(domain.n.back(), height, along_rows);
}

std::optional<Image> row_image(const Domain& domain, bool along_rows) {
  return column_image(turned(domain), along_rows);
}

std::optional<Guard> zeros_around(const Domain& domain, const Image& image) {
  const std::vector<Piece>& pieces = domain.operands[domain.contract][static_cast<size_t>(image.operand)].pieces;
  const AtomId output = image.height.output, tap = image.height.tap;
  if (output < 0 || tap < 0 || pieces.size() != 2 || pieces[0].constant || !pieces[1].constant || pieces[1].value != 0)
    return std::nullopt;
  for (const Guard& guard : pieces[0].access.guards) {
    bool alone = guard.strides[output] > 0 && guard.strides[tap] > 0;
    for (AtomId atom = 0; atom < static_cast<AtomId>(guard.strides.size()); ++atom)
      alone = alone && (guard.strides[atom] == 0 || atom == output || atom == tap);
    const int64_t reach =
        guard.strides[output] * (image.height.outputs - 1) + guard.strides[tap] * (image.height.taps - 1);
    if (alone && (guard.offset < 0 || guard.offset + reach >= guard.extent)) return guard;
  }
  return std::nullopt;
}

}  // namespace wl
