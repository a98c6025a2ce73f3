#include "compiler/cover/table/covers.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/base/suggest.h"
#include "compiler/cover/planned/planned.h"
#include "compiler/cover/values.h"

namespace wl {
namespace {

constexpr CoverRow kCovers[] = {
#define WL_COVER(function, name, layout, refines, judged, above_greedy, simpler, most_ops, says) \
  {name, says, CoverLayout::layout, refines, judged, above_greedy, simpler, most_ops, make_##function},
#include "compiler/cover/table/covers.def"
#undef WL_COVER
};

}  // namespace

absl::StatusOr<const CoverRow*> cover_named(std::string_view name) {
  for (const CoverRow& row : kCovers)
    if (row.name == name) return &row;
  return invalid("unknown cover \"", name, "\"", suggestion_of(name, kCovers), "; known: ",
                 absl::StrJoin(kCovers, ", ", [](std::string* out, const CoverRow& row) { out->append(row.name); }));
}

std::vector<std::string> simpler_covers(const CoverRow& row, bool relaid) {
  std::vector<std::string> names;
  for (const CoverRow& other : kCovers)
    if (row.judged && other.simpler && !(relaid && other.layout == row.layout)) names.emplace_back(other.name);
  return names;
}

absl::Status fits_cover(const CoverRow& row, const Graph& graph) {
  const int64_t ops = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                    [](const Node& node) { return class_of(node.op) != OpClass::kLeaf; });
  if (ops <= row.most_ops) return absl::OkStatus();
  return absl::ResourceExhaustedError(cat("cover ", row.name, ": takes graphs of at most ", row.most_ops,
                                          " ops, and this one has ", ops,
                                          "; cut it into smaller graphs or choose another --cover"));
}

absl::StatusOr<Cover> make_stitched(const CoverRequest& request) {
  return cover_stitched(request.graph, request.machine, request.greedy, request.work);
}

absl::StatusOr<Cover> make_greedy(const CoverRequest& request) {
  return request.greedy;
}

absl::StatusOr<Cover> make_planned(const CoverRequest& request) {
  WL_ASSIGN_OR_RETURN(const std::shared_ptr<const ColumnPool> pool, request.pool());
  return cover_planned(*pool, request.prices, request.work);
}

absl::StatusOr<Cover> make_contractions_alone(const CoverRequest& request) {
  return cover_greedy(request.graph, request.machine, {.contractions_alone = true, .work = request.work});
}

absl::StatusOr<Cover> make_one_kernel(const CoverRequest& request) {
  WL_ASSIGN_OR_RETURN(const CoverValues values,
                      CoverValues::make(request.graph, request.machine, nullptr, request.work));
  Cover cover;
  if (!values.anchors().empty()) cover.groups.push_back(values.group(values.anchors()));
  cover.groups.insert(cover.groups.end(), values.copies().begin(), values.copies().end());
  return cover;
}

absl::StatusOr<Cover> make_one_per_op(const CoverRequest& request) {
  return cover_one_per_op(request.graph, request.machine, request.work);
}

}  // namespace wl
