#include "compiler/cover/stitcher.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/cover/slab/carried.h"
#include "compiler/cover/values.h"
#include "compiler/domain/axes.h"

namespace wl {
namespace {

constexpr size_t kMostStages = 6;
// The largest number of stages (loop nests) of a block that iterates over parts of an axis. The stages of a shorter
// last part do not count.
constexpr size_t kMostTurning = 8;

// For a block's part of node `origin`: returns the part's strides in the buffer of the whole node, one for each axis of
// the part as its stage stores it (`part`). `cut` is the part's shape in the slab; the two shapes may differ in axes of
// extent 1 only, otherwise the result is empty.
std::vector<int64_t> pitches_of(const Graph& group, NodeId origin, const Shape& cut, const Shape& part) {
  const std::vector<int64_t> strides = row_major_strides(group.nodes[origin].shape);
  std::vector<int64_t> pitches;
  size_t at = 0;
  for (int64_t extent : part) {
    if (extent == 1) {
      pitches.push_back(0);
      continue;
    }
    while (at < cut.size() && cut[at] == 1) ++at;
    if (at == cut.size() || cut[at] != extent) return {};
    pitches.push_back(strides[at++]);
  }
  return pitches;
}

// Whether iterations of two lengths carry the same values, except for shapes that depend on the length.
bool carry_alike(const CarriedParts& a, const CarriedParts& b) {
  return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [](const CarriedValue& x, const CarriedValue& y) {
                      return x.dtype == y.dtype && x.of_turn == y.of_turn && (x.of_turn || x.shape == y.shape);
                    });
}

// Returns a fingerprint that is equal for stages of equal structure whose results are stored with equal strides. Names
// of inputs and outputs do not count.
Fingerprint structure_of(const Graph& stage, const std::vector<std::vector<int64_t>>& pitches) {
  Fingerprint result;
  for (const Node& node : stage.nodes) {
    const Fingerprint own = node.op == Op::input ? read_fingerprint(node) : fingerprint(node);
    result.add(own.a);
    result.add(own.b);
    result.add_all(node.operands);
  }
  for (const Output& output : stage.outputs) result.add(static_cast<uint64_t>(output.node));
  for (const std::vector<int64_t>& strides : pitches) result.add_all(strides);
  return result;
}

class Stitcher {
 public:
  Stitcher(const Shareable& made, const Machine& machine, const Slab& slab, const StitchOptions& options)
      : group_(made.graph), was_(made.was), machine_(machine), slab_(slab), options_(options) {
    machine_.threads = 1;
  }

  // Makes the stages of a block of `rows` rows: the groups of `cover`, of the slab's graph. `levels`: of `values`.
  absl::StatusOr<Stitched> run(int64_t rows, const Cover& cover, std::span<const PassedValue> values,
                               std::vector<ValueLevel> levels) {
    result_.rows = rows;
    result_.counts = slab_.counts;
    result_.levels = std::move(levels);
    CarriedParts::Part whole{slab_.graph, {}};
    for (NodeId id : whole.graph.inputs()) whole.ends[whole.graph.nodes[id].text] = {.input = slab_.origin[id]};
    for (size_t i = 0; i < whole.graph.outputs.size(); ++i)
      whole.ends[whole.graph.outputs[i].name] = {.output = static_cast<int>(i)};
    for (const Group& group : cover.groups) WL_RETURN_IF_ERROR(add(whole, group, &slab_.origin));
    for (size_t i = 0; i < values.size(); ++i)
      if (result_.level(i) == ValueLevel::kDevice) result_.kept[kept_.at(values[i].node)].in_scratch = false;
    if (result_.stages.size() > kMostStages)
      return invalid("a block would run ", result_.stages.size(), " loop nests; the most are ", kMostStages);
    return finish();
  }

  absl::StatusOr<Stitched> run(const TurnsOfBlock& of) {
    const auto& [rows, length, axis, rest, resident] = of;
    result_.rows = rows;
    result_.counts = slab_.counts;
    WL_ASSIGN_OR_RETURN(const CarriedParts parts, carried_parts(group_, axis, slab_, resident));
    for (const CarriedValue& value : parts.values)
      result_.kept.push_back({.name = value.name,
                              .dtype = value.dtype,
                              .shape = value.shape,
                              .start = value.start,
                              .becomes = value.becomes});
    if (!parts.before.graph.outputs.empty()) WL_RETURN_IF_ERROR(add_stages(parts.before));
    const size_t first = result_.stages.size();
    WL_RETURN_IF_ERROR(add_turn(parts));
    result_.turns = {length, slab_.turns, first, result_.stages.size()};
    result_.turns.resident = resident;
    if (rest != nullptr) {
      WL_ASSIGN_OR_RETURN(const CarriedParts last, carried_parts(group_, axis, *rest));
      if (!carry_alike(parts, last)) return invalid("turns of other lengths would carry other values");
      WL_RETURN_IF_ERROR(add_turn(last));
      result_.turns.rest = result_.stages.size() - result_.turns.last;
    }
    if (const CarriedLimit limit = carried_limit(group_, axis); limit.row >= 0) {
      const Slab::Cut cut = slab_.cuts[limit.row][static_cast<size_t>(group_.nodes[limit.row].ints[0])];
      // The last row of a block depends on the most elements of the axis, so it decides how many elements the block
      // visits.
      if (cut.axis >= 0 && cut.axis < static_cast<int>(slab_.counts.size()) && cut.length + limit.plus > 0)
        result_.turns.visited = {cut.axis, cut.length - 1 + limit.plus, cut.length};
    }
    WL_RETURN_IF_ERROR(add_stages(parts.after));
    if (const size_t nests = result_.stages.size() - result_.turns.rest; nests > kMostTurning)
      return invalid("a block would run ", nests, " loop nests; the most are ", kMostTurning);
    for (size_t i = 0; i < parts.values.size(); ++i) result_.kept[i].last = result_.stages.size() - 1;
    return finish();
  }

 private:
  absl::StatusOr<Stitched> finish() {
    if (stored_ != group_.outputs.size()) return invalid("two outputs are the same value");
    for (StitchKept& kept : result_.kept)
      if (kept.counts_along >= 0) kept.last = result_.stages.size() - 1;
    WL_RETURN_IF_ERROR(share_memory());
    return std::move(result_);
  }

  // Adds the stages of a part of the block's work: the groups of the part's greedy cover.
  absl::Status add_stages(const CarriedParts::Part& part) {
    kept_.clear();
    WL_ASSIGN_OR_RETURN(const Cover cover,
                        cover_greedy(part.graph, machine_, {.memo = options_.memo, .work = options_.work}));
    for (const Group& group : cover.groups) WL_RETURN_IF_ERROR(add(part, group, nullptr));
    return absl::OkStatus();
  }

  absl::Status add_turn(const CarriedParts& parts) {
    if (!parts.place.graph.outputs.empty()) WL_RETURN_IF_ERROR(add_stages(parts.place));
    return add_stages(parts.turn);
  }

  // Adds a stage. `origins`: for each node of the part, the node of the group that it is; null where the part's nodes
  // are not nodes of the group.
  absl::Status add(const CarriedParts::Part& whole, const Group& part, const std::vector<NodeId>* origins) {
    Stage stage;
    stage.graph = extract(whole.graph, part);
    for (NodeId read : part.reads) {
      const Node& node = whole.graph.nodes[read];
      if (node.op == Op::input) {
        const CarriedEnd& end = whole.ends.at(node.text);
        if (end.value >= 0)
          stage.buffers.push_back({-1, end.value, {}});
        else if (group_.nodes[end.input].op == Op::iota)
          stage.buffers.push_back({-1, counted(end.input, node), {}});
        else
          stage.buffers.push_back({input_number(end.input), -1, slab_.shift(group_, end.input)});
        continue;
      }
      const auto kept = kept_.find(read);
      if (kept == kept_.end()) return invalid(named(read, origins), " is stored as an output and read again");
      stage.buffers.push_back({-1, kept->second, {}});
      result_.kept[kept->second].last = std::max(result_.kept[kept->second].last, result_.stages.size());
    }
    std::vector<std::vector<int64_t>> pitches;
    for (size_t i = 0; i < part.stores.size(); ++i) {
      const NodeId stored = part.stores[i];
      const Shape& shape = whole.graph.nodes[stored].shape;
      const Node& own = stage.graph.nodes[stage.graph.outputs[i].node];
      pitches.emplace_back();
      const CarriedEnd end = end_of(whole, stored);
      if (end.output >= 0) {
        ++stored_;
        const NodeId origin = group_.outputs[static_cast<size_t>(end.output)].node;
        if (is_leaf(group_.nodes[origin]) && group_.nodes[origin].op == Op::input)
          return invalid("output ", end.output, " is an input");
        const int inputs = static_cast<int>(group_.inputs().size());
        stage.buffers.push_back({inputs + end.output, -1, slab_.shift(group_, origin)});
        pitches.back() = pitches_of(group_, origin, shape, own.shape);
        if (pitches.back().size() != own.shape.size())
          return invalid(node_text(group_, origin), ": a block's part of this output has other axes");
        continue;
      }
      kept_[stored] = end.value >= 0 ? end.value : static_cast<int>(result_.kept.size());
      stage.buffers.push_back({-1, kept_[stored], {}});
      if (end.value >= 0) {
        if (stored_values_.insert(end.value).second && !result_.kept[end.value].start)
          result_.kept[end.value].first = result_.stages.size();
        continue;
      }
      const std::string name =
          origins != nullptr ? cat("v", was_[(*origins)[stored]]) : cat("turn", result_.kept.size());
      result_.kept.push_back({name, own.dtype, own.shape, result_.stages.size(), 0});
    }
    WL_ASSIGN_OR_RETURN(stage.domain, domain_of(stage.graph, pitches));
    stage.domain.uncopied = uncopied_inputs(stage);
    result_.stages.push_back(std::move(stage));
    return absl::OkStatus();
  }

  // Returns the domain of a stage. The memo keeps the domains of stages, since blocks of other groups, or blocks with
  // other numbers of rows, often have the same stages.
  const absl::StatusOr<Domain>& domain_of(const Graph& stage, const std::vector<std::vector<int64_t>>& pitches) {
    return CoverMemo::remembered(options_.memo->stages, structure_of(stage, pitches),
                                 [&] { return analyze(stage, machine_, pitches); });
  }

  // Returns the index in Stitched::kept of the value in scratch that holds a block's part of an iota. Adds the value
  // if there is none yet.
  int counted(NodeId iota, const Node& part) {
    const Slab::Cut cut = slab_.cuts[iota][static_cast<size_t>(group_.nodes[iota].ints[0])];
    for (size_t i = 0; i < result_.kept.size(); ++i)
      if (result_.kept[i].counts_along == cut.axis && result_.kept[i].dtype == part.dtype &&
          result_.kept[i].shape == part.shape)
        return static_cast<int>(i);
    result_.kept.push_back({cat("counted", result_.kept.size()), part.dtype, part.shape});
    result_.kept.back().counts_along = cut.axis;
    result_.kept.back().counts_step = cut.length;
    if (cut.axis == static_cast<int>(result_.counts.size())) result_.kept.back().first = result_.stages.size();
    return static_cast<int>(result_.kept.size()) - 1;
  }

  // Returns the inputs of a stage's graph that asynchronous copies cannot read (Domain::uncopied).
  static std::vector<NodeId> uncopied_inputs(const Stage& stage) {
    constexpr int64_t kWord = 4;
    std::vector<NodeId> out;
    const std::vector<NodeId> inputs = stage.graph.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<int64_t>& shift = stage.buffers[i].shift;
      const int64_t size = size_of(stage.graph.nodes[inputs[i]].dtype);
      const auto inside_word = [size](int64_t elements) { return elements * size % kWord != 0; };
      if (stage.buffers[i].kept >= 0 || std::any_of(shift.begin(), shift.end(), inside_word)) out.push_back(inputs[i]);
    }
    return out;
  }

  std::string named(NodeId node, const std::vector<NodeId>* origins) const {
    return origins != nullptr ? node_text(group_, was_[(*origins)[node]]) : "a value of a turn";
  }

  // Returns what an output of the part stands for, namely the output with the node `stored`. If there is none, all
  // fields are -1.
  static CarriedEnd end_of(const CarriedParts::Part& part, NodeId stored) {
    for (const Output& output : part.graph.outputs)
      if (output.node == stored) return part.ends.at(output.name);
    return {};
  }

  absl::Status share_memory() {
    for (size_t k = 0; k < result_.stages.size(); ++k) {
      Target target = *machine_.target;
      for (const StitchKept& kept : result_.kept)
        if (kept.first <= k && k <= kept.last && kept.in_scratch && !result_.turns.resident)
          target.gpu.block_shared -= kept.bytes();
      if (target.is_gpu() && target.gpu.block_shared <= 0)
        return absl::ResourceExhaustedError(
            cat("the values that a block of ", result_.rows, " rows keeps exceed the shared memory of ", target.name));
      result_.stages[k].target = std::make_shared<Target>(target);
    }
    return absl::OkStatus();
  }

  int input_number(NodeId input) const {
    const std::vector<NodeId> inputs = group_.inputs();
    return static_cast<int>(std::find(inputs.begin(), inputs.end(), input) - inputs.begin());
  }

  const Graph& group_;
  const std::vector<NodeId>& was_;  // of each node of group_: its number in the graph that the caller passed
  Machine machine_;
  const Slab& slab_;
  const StitchOptions& options_;
  Stitched result_;
  // For each node of the part's graph that is kept in scratch: its index in Stitched::kept.
  std::map<NodeId, int> kept_;
  std::set<int> stored_values_;  // indices of the carried values that some stage has stored
  size_t stored_ = 0;            // number of the group's outputs that some stage has stored
};

}  // namespace

absl::StatusOr<Stitched> stitched_block(const Shareable& made, const Machine& machine, const Slab& slab, int64_t rows,
                                        const Cover& cover, std::span<const PassedValue> values,
                                        std::vector<ValueLevel> levels, const StitchOptions& options) {
  return Stitcher(made, machine, slab, options).run(rows, cover, values, std::move(levels));
}

absl::StatusOr<Stitched> stitched_turns(const Shareable& made, const Machine& machine, const Slab& slab,
                                        const TurnsOfBlock& turns, const StitchOptions& options) {
  return Stitcher(made, machine, slab, options).run(turns);
}

}  // namespace wl
