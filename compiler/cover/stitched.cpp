// Stitches groups of the greedy cover: neighbours that do not form one loop nest become one kernel of several loop
// nests, if the memory traffic saved between them outweighs what blocks read repeatedly and what their caches cannot
// hold.
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "compiler/cover/cover.h"
#include "compiler/cover/part_graph.h"
#include "compiler/cover/stitching.h"
#include "compiler/cover/values.h"
#include "compiler/domain/stitch.h"

namespace wl {
namespace {

// How many times as fast a GPU reads its L2 cache as its memory; about 3 on an H100.
constexpr double kTeamCacheGain = 3;
// Limits for large graphs without repeated blocks: the largest number of rounds of mergers, and of different mergers
// that are tried. Mergers that save most traffic are tried first.
constexpr int kMostRounds = 8, kMostTried = 100;
constexpr uint64_t kOfferSteps = 20;

// Returns the memory traffic, in bytes, of reading inputs again after they were read once. Such a read counts less if
// the cache still holds the part that the previous block read.
double reread_bytes(const Graph& group, const Stitched& choice, const Machine& machine) {
  const Target& target = *machine.target;
  const double gain = target.is_gpu() ? kTeamCacheGain : target.l2_bytes_per_ns / target.copy_bytes_per_ns;
  const int64_t near = (target.is_gpu() ? target.gpu.l2_bytes : machine.l2_bytes) / 2;
  const std::vector<NodeId> inputs = group.inputs();
  double bytes = 0;
  for (const Stage& stage : choice.stages)
    for (const Stage::Buffer& buffer : stage.buffers) {
      if (buffer.global < 0 || buffer.global >= static_cast<int>(inputs.size())) continue;
      int64_t times = 1, parts = 1;
      for (size_t axis = 0; axis < choice.counts.size(); ++axis)
        (buffer.shift[axis] == 0 ? times : parts) *= choice.counts[axis];
      const int64_t whole = group.bytes(inputs[static_cast<size_t>(buffer.global)]);
      bytes += static_cast<double>(whole * (times - 1)) / (whole / parts <= near ? gain : 1);
    }
  return bytes;
}

// Returns the memory traffic, in bytes, of values that a block keeps for later stages and that exceed the cache of its
// thread or, on a GPU, lie in device memory: each is stored and loaded once.
double spilled_bytes(const Stitched& choice, const Machine& machine) {
  double bytes_on_gpu = 0;
  for (const StitchKept& kept : choice.kept)
    if (!kept.in_scratch) bytes_on_gpu += 2 * static_cast<double>(kept.bytes() * choice.blocks());
  if (machine.target->is_gpu()) return bytes_on_gpu;
  // For each stage: the bytes of the values that a block keeps during it.
  std::vector<int64_t> held(choice.stages.size());
  for (const StitchKept& kept : choice.kept)
    for (size_t stage = kept.first; stage <= kept.last; ++stage) held[stage] += kept.bytes();
  double bytes = 0;
  for (const StitchKept& kept : choice.kept) {
    const auto begin = held.begin() + static_cast<std::ptrdiff_t>(kept.first);
    const auto end = held.begin() + static_cast<std::ptrdiff_t>(kept.last) + 1;
    if (*std::max_element(begin, end) > machine.l2_bytes)
      bytes += 2 * static_cast<double>(kept.bytes() * choice.blocks() * choice.turns_of(kept.first));
  }
  return bytes;
}

class Stitching {
 public:
  Stitching(const CoverValues& values, const Machine& machine, const Cover& greedy, Work* work)
      : values_(values), machine_(machine), work_(work), parts_(static_cast<int>(greedy.groups.size())) {
    std::unordered_map<NodeId, int> part_of;
    for (const Group& group : greedy.groups) {
      std::vector<NodeId>& own = anchors_.emplace_back();
      for (NodeId op : group.ops)
        if (std::binary_search(values.anchors().begin(), values.anchors().end(), op) && !part_of.contains(op)) {
          part_of[op] = static_cast<int>(anchors_.size()) - 1;
          own.push_back(op);
        }
    }
    for (NodeId anchor : values.anchors())
      for (NodeId reader : values.readers(anchor))
        if (part_of.at(anchor) < part_of.at(reader)) parts_.add_edge(part_of.at(anchor), part_of.at(reader));
  }

  std::vector<Group> run() {
    for (int round = 0; round < kMostRounds && go_on(work_, 1) && merge_round(); ++round) {
    }
    std::vector<Group> groups = values_.copies();
    for (const std::vector<NodeId>& anchors : anchors_)
      if (!anchors.empty()) groups.push_back(values_.group(anchors));
    return groups;
  }

 private:
  std::vector<NodeId> both(int from, int to) const {
    std::vector<NodeId> anchors = anchors_[static_cast<size_t>(from)];
    const std::vector<NodeId>& more = anchors_[static_cast<size_t>(to)];
    anchors.insert(anchors.end(), more.begin(), more.end());
    std::sort(anchors.begin(), anchors.end());
    return anchors;
  }

  int64_t bytes(const std::vector<NodeId>& anchors) const { return values_.bytes_moved(values_.group(anchors)); }

  struct Offer {
    int64_t saved = 0;
    Fingerprint structure;  // the structure of the merged group (CoverValues::structure())
    int from = 0, to = 0;
  };

  std::vector<Offer> offers() const {
    std::vector<Offer> offers;
    for (int from = 0; from < static_cast<int>(anchors_.size()); ++from) {
      if (anchors_[static_cast<size_t>(from)].empty()) continue;
      for (int to : parts_.after(from)) {
        if (!go_on(work_, kOfferSteps)) return {};
        const std::vector<NodeId> merged = both(from, to);
        const int64_t saved =
            bytes(anchors_[static_cast<size_t>(from)]) + bytes(anchors_[static_cast<size_t>(to)]) - bytes(merged);
        if (saved > 0) offers.push_back({saved, values_.structure(values_.group(merged)), from, to});
      }
    }
    std::stable_sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
      return std::tuple(b.saved, a.structure.a, a.structure.b) < std::tuple(a.saved, b.structure.a, b.structure.b);
    });
    return offers;
  }

  bool stitches(const Offer& offer) {
    Fingerprint key = offer.structure;
    key.add(static_cast<uint64_t>(offer.saved));
    const auto [known, is_new] = known_.try_emplace(key, false);
    if (is_new && ++tried_ <= kMostTried && go_on(work_, kAnalysisSteps)) {
      const Graph alone = extract(values_.graph(), values_.group(both(offer.from, offer.to)));
      const absl::StatusOr<Domain> domain =
          stitch(alone, machine_, {.memo = &blocks_, .levels = StitchOptions::Levels::kNeeded, .work = work_});
      known->second = domain.ok() && stitching_pays(alone, *domain->stitch, offer.saved, machine_);
    }
    return known->second;
  }

  // Repeated blocks of a model are treated alike: a merger is made in all of them. It is made in none of them if a part
  // would be merged both with the part before it and with the part after it. A part is merged at most once in a round.
  bool merge_round() {
    const std::vector<Offer> all = offers();
    std::set<int> touched;
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      std::set<int> parts;
      bool apart = true;
      for (end = begin;
           end < all.size() && all[end].saved == all[begin].saved && all[end].structure == all[begin].structure; ++end)
        for (int part : {all[end].from, all[end].to})
          apart = !touched.contains(part) && parts.insert(part).second && apart;
      if (!apart || !stitches(all[begin])) continue;
      for (size_t i = begin; i < end; ++i)
        if (merge(all[i].from, all[i].to)) touched.insert({all[i].from, all[i].to});
    }
    return !touched.empty();
  }

  bool merge(int from, int to) {
    if (!parts_.may_merge(from, to)) return false;
    anchors_[static_cast<size_t>(from)] = both(from, to);
    anchors_[static_cast<size_t>(to)].clear();
    parts_.merge(from, to);
    return true;
  }

  const CoverValues& values_;
  const Machine& machine_;
  Work* const work_;
  // Of each part (a group under construction): its anchors, ascending; empty: the part was merged into another, or only
  // copies.
  std::vector<std::vector<NodeId>> anchors_;
  PartGraph parts_;
  std::unordered_map<Fingerprint, bool, FingerprintHash> known_;
  CoverMemo blocks_;  // a cache of what is known about groups, kept between calls of stitch()
  int tried_ = 0;
};

}  // namespace

bool stitching_pays(const Graph& group, const Stitch& stitch, int64_t saved, const Machine& machine) {
  const int64_t enough = machine.target->is_gpu() ? machine.target->gpu.units / 2 : machine.threads;
  return std::any_of(stitch.choices.begin(), stitch.choices.end(), [&](const Stitched& choice) {
    return choice.blocks() >= enough &&
           reread_bytes(group, choice, machine) + spilled_bytes(choice, machine) < static_cast<double>(saved);
  });
}

absl::StatusOr<Cover> cover_stitched(const Graph& graph, const Machine& machine, const Cover& greedy, Work* work) {
  WL_ASSIGN_OR_RETURN(const CoverValues values, CoverValues::make(graph, machine, nullptr, work));
  std::vector<Group> groups = Stitching(values, machine, greedy, work).run();
  WL_RETURN_IF_ERROR(ended(work));
  return ordered(graph, std::move(groups));
}

}  // namespace wl
