#include "compiler/cover/table/covers.h"

#include "absl/strings/str_join.h"
#include "compiler/cover/planned/planned.h"

namespace wl {
namespace {

constexpr CoverRow kCovers[] = {
#define WL_COVER(function, name, refines, above_greedy, says) {name, says, refines, above_greedy, make_##function},
#include "compiler/cover/table/covers.def"
#undef WL_COVER
};

}  // namespace

absl::StatusOr<const CoverRow*> cover_named(std::string_view name) {
  for (const CoverRow& row : kCovers)
    if (row.name == name) return &row;
  return invalid("unknown cover \"", name, "\"; known: ",
                 absl::StrJoin(kCovers, ", ", [](std::string* out, const CoverRow& row) { out->append(row.name); }));
}

absl::StatusOr<Cover> make_stitched(const CoverRequest& request) {
  return cover_stitched(request.graph, request.machine, request.greedy);
}

absl::StatusOr<Cover> make_greedy(const CoverRequest& request) {
  return request.greedy;
}

absl::StatusOr<Cover> make_planned(const CoverRequest& request) {
  WL_ASSIGN_OR_RETURN(const std::shared_ptr<const ColumnPool> pool, request.pool());
  return cover_planned(*pool, request.prices);
}

absl::StatusOr<Cover> make_contractions_alone(const CoverRequest& request) {
  return cover_greedy(request.graph, request.machine, {.contractions_alone = true});
}

absl::StatusOr<Cover> make_one_per_op(const CoverRequest& request) {
  return cover_one_per_op(request.graph, request.machine);
}

}  // namespace wl
