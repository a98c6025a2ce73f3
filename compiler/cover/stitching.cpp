#include "compiler/cover/stitching.h"

#include <algorithm>
#include <optional>

#include "compiler/cover/cover.h"
#include "compiler/cover/levels.h"
#include "compiler/cover/packing.h"
#include "compiler/cover/slab/carried_axis.h"
#include "compiler/cover/slab/shareable.h"
#include "compiler/cover/slab/slab.h"
#include "compiler/cover/slab/turn_sizes.h"
#include "compiler/cover/stitcher.h"
#include "compiler/cover/values.h"
#include "compiler/target/matrix.h"

namespace wl {
namespace {

constexpr int64_t kRows[] = {32, 64, 16, 128, 8, 256, 4};

bool alike(const Stitched& a, const Stitched& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const Stage& x, const Stage& y) { return x.domain.cls == y.domain.cls; });
}

// Adds the choices of blocks of `rows` rows, whose share of the group is `slab`. InvalidArgument: there is none.
absl::Status add_levels(const Shareable& made, const Machine& machine, const Slab& slab, int64_t rows,
                        const StitchOptions& options, Stitch& found) {
  using Levels = StitchOptions::Levels;
  Machine one = machine;
  one.threads = 1;
  WL_ASSIGN_OR_RETURN(const Cover cover, cover_greedy(slab.graph, one, {.memo = options.memo, .work = options.work}));
  const std::vector<PassedValue> values = passed_values(slab.graph, cover);
  const size_t before = found.choices.size();
  const auto add = [&](const Cover& changed, const std::vector<ValueLevel>& levels) {
    absl::StatusOr<Stitched> stitched = stitched_block(made, machine, slab, rows, changed, values, levels, options);
    const auto like = std::find_if(found.choices.begin(), found.choices.end(),
                                   [&](const Stitched& other) { return other.levels == levels; });
    if (stitched.ok() && (like == found.choices.end() || alike(*like, *stitched)))
      found.choices.push_back(*std::move(stitched));
    return stitched.status();
  };
  const absl::Status status = add(cover, std::vector<ValueLevel>(values.size(), ValueLevel::kScratch));
  const bool needed = absl::IsResourceExhausted(status);
  if (options.levels == Levels::kAll || (options.levels == Levels::kNeeded && needed))
    for (const std::vector<ValueLevel>& levels : other_levels(slab.graph, cover, values, *machine.target)) {
      if (const std::optional<Cover> changed = with_levels(slab.graph, cover, values, levels))
        add(*changed, levels).IgnoreError();
      if (options.levels == Levels::kNeeded && found.choices.size() > before) break;
    }
  if (found.choices.size() > before) return absl::OkStatus();
  return needed ? invalid(std::string(status.message())) : status;
}

// Whether some contraction of the group has a matrix instruction whose left factor may be in the registers in which an
// earlier product left its sums. Only then can values stay in registers from stage to stage.
bool may_hold_values(const Graph& group, const Machine& machine) {
  return machine.target->is_gpu() && std::any_of(group.nodes.begin(), group.nodes.end(), [&](const Node& node) {
           if (node.op != Op::contract) return false;
           const auto dtype = [&](size_t i) { return group.nodes[node.operands[i]].dtype; };
           return !matrices_for(dtype(0), dtype(1), machine.target->features, /*resident=*/true).empty();
         });
}

// Adds choices whose blocks iterate over parts of a reduced axis, if there is an axis whose partial results can be
// corrected (carried.h). `resident`: values stay in registers from stage to stage; the length of an iteration must then
// divide the axis.
void add_turning(const Shareable& made, const Machine& machine, std::vector<int64_t> lengths, size_t row, int64_t least,
                 bool resident, const StitchOptions& options, Stitch& found) {
  const Graph& group = made.graph;
  const int64_t extent = group.nodes[group.outputs[0].node].shape[row];
  for (const CarriedAxis& axis : carried_axes(group)) {
    const size_t before = found.choices.size();
    for (int64_t length : turn_lengths(axis.extent)) {
      for (int64_t rows : turn_rows(extent, least)) {
        lengths[row] = rows;
        absl::StatusOr<Slab> slab = slab_of(group, lengths, &axis, length);
        const int64_t left = axis.extent % length;
        absl::StatusOr<Slab> rest;
        if (left > 0) rest = slab_of(group, lengths, &axis, left);
        if (!slab.ok() || (left > 0 && (resident || !rest.ok()))) continue;
        absl::StatusOr<Stitched> stitched =
            stitched_turns(made, machine, *slab, {rows, length, axis, left > 0 ? &*rest : nullptr, resident}, options);
        if (stitched.ok() && (found.choices.size() == before || alike(found.choices[before], *stitched)))
          found.choices.push_back(*std::move(stitched));
      }
    }
    if (found.choices.size() > before) return;
  }
}

}  // namespace

absl::StatusOr<Domain> stitch(const Graph& whole, const Machine& machine, const StitchOptions& asked) {
  const Shareable made = shareable(whole);
  const Graph& group = made.graph;
  CoverMemo own;
  StitchOptions options = asked;
  if (options.memo == nullptr) options.memo = &own;
  const Shape& shape = group.nodes[group.outputs[0].node].shape;
  if (elements(shape) == 0 || shape.empty())
    return invalid("the output has no dimension that could be divided among blocks");
  std::vector<int64_t> lengths = least_lengths(group);
  size_t row = shape.size();  // the dimension that is cut among blocks: the one that can be cut into most parts
  for (size_t i = 0; i < shape.size(); ++i)
    if (lengths[i] < shape[i] && (row == shape.size() || shape[i] / lengths[i] >= shape[row] / lengths[row])) row = i;
  if (row == shape.size()) {  // no dimension can be cut: the error says why the first dimension cannot be cut
    lengths[0] = 1;
    const absl::Status status = slab_of(group, lengths).status();
    return status.ok() ? invalid("an output of one element cannot be divided among blocks") : status;
  }
  const int64_t least = lengths[row];
  auto found = std::make_shared<Stitch>();
  absl::Status status;
  for (int64_t rows : kRows) {
    const int64_t length = std::min(std::max(rows, least), shape[row]);
    if (length % least != 0 || shape[row] % length != 0) continue;
    if (std::any_of(found->choices.begin(), found->choices.end(), [&](const Stitched& s) { return s.rows == length; }))
      continue;
    lengths[row] = length;
    absl::StatusOr<Slab> slab = slab_of(group, lengths);
    status.Update(slab.status());
    if (!slab.ok()) continue;
    status.Update(add_levels(made, machine, *slab, length, options, *found));
  }
  for (const bool resident : {false, true})
    if (options.turns && (!resident || may_hold_values(group, machine)))
      add_turning(made, machine, lengths, row, least, resident, options, *found);
  WL_RETURN_IF_ERROR(ended(options.work));
  if (found->choices.empty())
    return status.ok() ? invalid("no number of rows divides ", shape[row], " rows among blocks") : status;
  Domain domain;
  domain.cls = LoopClass::kStitched;
  domain.stitch = std::move(found);
  return domain;
}

absl::StatusOr<Domain> analyze_group(const Graph& group, const Machine& machine) {
  absl::StatusOr<Domain> domain = analyze(group, machine);
  if (domain.ok()) return domain;
  if (is_unconnected(group)) return pack(group, machine);
  absl::StatusOr<Domain> stitched = stitch(group, machine);
  if (stitched.ok()) return stitched;
  return invalid(std::string(domain.status().message()),
                 "; nor can the group be divided among blocks: ", std::string(stitched.status().message()));
}

}  // namespace wl
