#include "compiler/cover/explain.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/legal.h"
#include "compiler/cover/packing.h"
#include "compiler/cover/stitching.h"
#include "compiler/cover/values.h"
#include "compiler/domain/group_order.h"
#include "compiler/domain/pack.h"
#include "compiler/domain/stitch.h"
#include "compiler/model/cost.h"

namespace wl {
namespace {

constexpr size_t kNamedOps = 6, kNamedNeighbours = 8;

using Anchors = std::vector<NodeId>;

// Returns a message about nodes, such as "%2 sub [8]: ...", without their numbers: they are those of a group's graph,
// while the explanation numbers nodes as the whole graph does.
std::string without_numbers(std::string_view message) {
  std::string out;
  for (size_t i = 0; i < message.size(); ++i) {
    size_t end = i + 1;
    while (message[i] == '%' && end < message.size() && absl::ascii_isdigit(message[end])) ++end;
    if (end > i + 1 && end < message.size() && message[end] == ' ')
      i = end;
    else
      out += message[i];
  }
  return out;
}

class Explanation {
 public:
  // analyze_group() must accept every group of the cover.
  Explanation(const CoverValues& values, const Cover& cover, const Machine& machine, Work* work)
      : values_(values), machine_(machine), rates_(rates_of(machine)), work_(work) {
    for (const Group& group : cover.groups) {
      if (!go_on(work_, kAnalysisSteps)) return;
      Anchors& mine = groups_.emplace_back();
      for (NodeId op : group.ops)
        if (values.anchor_behind(op) == op) mine.push_back(op);
      for (NodeId op : mine) group_of_[op].push_back(groups_.size() - 1);
      written_.push_back(cost_of_group(group));
      packed_.push_back(packed_text(extract(values.graph(), group)));
    }
  }

  // Returns the text of the explanation. If the Work ends first, the text is incomplete.
  std::string text() {
    Cost now, alone;
    size_t ops = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      add(now, *written_[g]);
      ops += groups_[g].size();
    }
    for (NodeId op : values_.anchors()) add(alone, *price({op}));
    std::string out =
        absl::StrFormat("# %d kernel%s instead of %d, %s instead of %s; modelled %s instead of %s\n", groups_.size(),
                        groups_.size() == 1 ? "" : "s", values_.anchors().size() + values_.copies().size(),
                        bytes_text(now.bytes), bytes_text(alone.bytes), time_text(now.micros), time_text(alone.micros));
    if (ops > values_.anchors().size())
      append(&out, "# ", ops - values_.anchors().size(), " ops are computed more than once\n");
    for (size_t g = 0; g < groups_.size() && go_on(work_, kAnalysisSteps * (1 + groups_[g].size())); ++g)
      out += group_text(g);
    return out;
  }

  // Returns for each group its memory traffic and modelled time, written as in text().
  std::vector<std::string> prices() const {
    std::vector<std::string> out;
    for (const absl::StatusOr<Cost>& cost : written_) out.push_back(price_text(*cost));
    return out;
  }

 private:
  static void add(Cost& sum, const Cost& cost) {
    sum.bytes += cost.bytes;
    sum.micros += cost.micros;
  }
  static std::string bytes_text(int64_t bytes) { return absl::StrFormat("%.3f MB", static_cast<double>(bytes) / 1e6); }
  static std::string time_text(double micros) { return absl::StrFormat("%.1f us", micros); }
  static std::string price_text(const Cost& cost) {
    return cat(bytes_text(cost.bytes), " in ", time_text(cost.micros));
  }
  std::string ops_text(const Anchors& ops) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < ops.size() && i < kNamedOps; ++i)
      names.push_back(cat("%", ops[i], " ", name_of(values_.graph().nodes[ops[i]].op)));
    if (ops.size() > kNamedOps) names.push_back(cat("and ", ops.size() - kNamedOps, " more"));
    return absl::StrJoin(names, ", ");
  }

  // Returns the cost of a group of the cover. Unlike the functions that make covers, it accepts groups that are not
  // worthwhile() (legal.h).
  absl::StatusOr<Cost> cost_of_group(const Group& group) const {
    const Graph part = extract(values_.graph(), group);
    WL_ASSIGN_OR_RETURN(const Domain domain, analyze_group(part, machine_));
    return cost_of(part, domain, machine_, rates_);
  }

  absl::StatusOr<Cost> priced(const Group& group, const Anchors& ops) const {
    const Graph part = extract(values_.graph(), group);
    WL_ASSIGN_OR_RETURN(const Domain domain, analyze_group(part, machine_));
    size_t atoms = 0;
    for (NodeId op : ops)
      if (values_.graph().nodes[op].op == Op::contract) atoms = std::max<size_t>({atoms, 1, values_.atoms_alone(op)});
    const bool one_nest = domain.cls != LoopClass::kStitched && domain.cls != LoopClass::kPacked;
    if (ops.size() > 1 && one_nest && !worthwhile(part, domain, machine_, atoms))
      return invalid("one kernel would repeat work that two kernels do once");
    return cost_of(part, domain, machine_, rates_);
  }

  absl::StatusOr<Cost> price(const Anchors& ops) const {
    if (ops.size() > kMaxGroupAnchors)
      return invalid("a kernel of one loop nest may have at most ", kMaxGroupAnchors, " ops");
    if (!convex(ops)) return invalid("ops between them would have to be in the same kernel");
    return priced(values_.group(ops), ops);
  }

  // Whether the set of ops is convex: no path leads out of it and back.
  bool convex(const Anchors& ops) const {
    std::set<NodeId> seen;
    Anchors todo;
    const auto inside = [&](NodeId op) { return std::binary_search(ops.begin(), ops.end(), op); };
    const auto follow = [&](NodeId op) {
      for (NodeId reader : values_.readers(op))
        if (!inside(reader) && reader < ops.back() && seen.insert(reader).second) todo.push_back(reader);
    };
    for (NodeId op : ops) follow(op);
    while (!todo.empty()) {
      const NodeId op = todo.back();
      todo.pop_back();
      for (NodeId reader : values_.readers(op))
        if (inside(reader)) return false;
      follow(op);
    }
    return true;
  }

  std::string group_text(size_t g) {
    const Anchors& ops = groups_[g];
    const Cost& cost = *written_[g];
    std::string out = absl::StrFormat("g%d: %s\n", g, ops.empty() ? "a copy" : ops_text(ops));
    Cost alone;
    for (NodeId op : ops) add(alone, *price({op}));
    if (ops.size() > 1) {
      append(&out, "  fused: ", price_text(cost), "; as ", ops.size(), " kernels ", price_text(alone), "\n");
      out += packed_[g] + cut_text(ops, cost);
    } else {
      append(&out, "  alone: ", price_text(cost), "\n");
    }
    std::set<size_t> neighbours;
    for (NodeId op : ops) {
      for (NodeId source : values_.sources(op)) neighbours.insert(group_of_[source].begin(), group_of_[source].end());
      for (NodeId reader : values_.readers(op)) neighbours.insert(group_of_[reader].begin(), group_of_[reader].end());
    }
    neighbours.erase(g);
    size_t named = 0;
    for (size_t other : neighbours) {
      if (++named > kNamedNeighbours) break;
      Anchors both;
      std::set_union(ops.begin(), ops.end(), groups_[other].begin(), groups_[other].end(), std::back_inserter(both));
      const absl::StatusOr<Cost> merged = price(both);
      append(&out, "  with g", other, ": ");
      if (merged.ok()) {
        absl::StrAppendFormat(&out, "%s in %s; apart %s in %s\n", bytes_text(merged->bytes), time_text(merged->micros),
                              bytes_text(cost.bytes + written_[other]->bytes),
                              time_text(cost.micros + written_[other]->micros));
      } else {
        append(&out, "not one kernel: ", without_numbers(std::string(merged.status().message())), "\n");
      }
    }
    return out;
  }

  // Describes the members of a packed group; "" for other groups.
  std::string packed_text(const Graph& part) const {
    if (!is_unconnected(part)) return "";
    const absl::StatusOr<Domain> domain = analyze_group(part, machine_);
    if (!domain.ok() || domain->cls != LoopClass::kPacked) return "";
    std::vector<std::string> parts;
    double apart = 0;
    for (const Member& member : domain->packed->members) {
      const Cost cost = cost_of(member.graph, member.domain, member_machine(machine_), rates_);
      parts.push_back(cat(name_of(member.domain.cls), " in ", time_text(cost.micros)));
      apart += cost.micros;
    }
    return absl::StrFormat("  packed: %d kernels side by side, %s; in launches of their own %s\n", parts.size(),
                           absl::StrJoin(parts, ", "), time_text(apart));
  }

  // Describes the best way to cut the group into two kernels, one with the earlier ops and one with the later ones.
  std::string cut_text(const Anchors& ops, const Cost& whole) const {
    double best = -1;
    Cost parts;
    size_t at = 0;
    for (size_t cut = 1; cut < ops.size(); ++cut) {
      const auto middle = ops.begin() + static_cast<std::ptrdiff_t>(cut);
      const absl::StatusOr<Cost> first = price({ops.begin(), middle}), second = price({middle, ops.end()});
      if (!first.ok() || !second.ok()) continue;
      const double micros = first->micros + second->micros;
      if (best >= 0 && micros >= best) continue;
      best = micros;
      parts = *first;
      add(parts, *second);
      at = cut;
    }
    if (best < 0) return "";
    return absl::StrFormat("  cut before %%%d: %s in %s, %+.1f us\n", ops[at], bytes_text(parts.bytes),
                           time_text(parts.micros), parts.micros - whole.micros);
  }

  const CoverValues& values_;
  const Machine& machine_;
  const Rates rates_;
  Work* const work_;
  std::vector<Anchors> groups_;
  std::vector<absl::StatusOr<Cost>> written_;
  std::vector<std::string> packed_;
  std::map<NodeId, std::vector<size_t>> group_of_;
};

}  // namespace

Cover cover_of(const Composition& result) {
  Cover cover;
  for (const Composition::Launch& launch : result.launches) {
    Group group{.ops = launch.computes, .reads = {}, .stores = launch.stores};
    const auto read = [&](NodeId id) {
      if (!std::binary_search(group.ops.begin(), group.ops.end(), id) &&
          std::find(group.reads.begin(), group.reads.end(), id) == group.reads.end())
        group.reads.push_back(id);
    };
    for (const NodeId id : group.ops)
      for (const NodeId operand : result.graph.nodes[id].operands) read(operand);
    for (const NodeId id : group.stores) read(id);
    cover.groups.push_back(in_order(result.graph, std::move(group)));
  }
  return cover;
}

absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Cover& cover, const Machine& machine, Work* work) {
  WL_ASSIGN_OR_RETURN(const CoverValues values, CoverValues::make(graph, machine, nullptr, work));
  for (const Group& group : cover.groups) {
    if (!go_on(work, kAnalysisSteps)) return work->status();
    WL_RETURN_IF_ERROR(analyze_group(extract(graph, group), machine).status());
  }
  Explanation explanation(values, cover, machine, work);
  std::string text = explanation.text();
  WL_RETURN_IF_ERROR(ended(work));
  return CoverExplanation{std::move(text), picture_of(values, cover, explanation.prices())};
}

absl::StatusOr<CoverExplanation> explain(const Composition& result, const Machine& machine, Work* work) {
  for (size_t i = 0; i < result.launches.size(); ++i)
    if (result.launches[i].stores.empty())
      return invalid("step ", i, ": nothing that it stores is needed by an output");
  return explain(result.graph, cover_of(result), machine, work);
}

}  // namespace wl
