// Makes a kernel's source from the text of its group's plan, for benches that compile candidates themselves.
#pragma once

#include "compiler/cover/stitching.h"
#include "compiler/emit/emit.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {

inline absl::StatusOr<Source> source_of(const Graph& group, const std::string& plan, const Machine& machine) {
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze_group(group, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(group, domain, machine));
  WL_ASSIGN_OR_RETURN(const Point point, space.parse(plan));
  WL_ASSIGN_OR_RETURN(const Kernel kernel, lower(group, domain, space.schedule(point), machine));
  return emit(kernel, machine);
}

}  // namespace wl
