// How a schedule divides the loops of a CPU contraction.
#include <algorithm>

#include "compiler/schedule/contract/counted.h"
#include "compiler/schedule/contract/cpu/product.h"

namespace wl {
namespace {

// Splits the rows into tasks, and the rows of a task into tiles. Rows are split evenly, so tiles have at most two
// heights.
absl::Status split_rows(const CpuLoops& loops, const Schedule& schedule, CpuSplit& out) {
  out.row_tasks = schedule[kRowTasks];
  out.rows_per_task = loops.rows;
  if (loops.has_outer_rows) {
    out.outer_rows_per_task = quotient_up(loops.outer_rows, out.row_tasks);
    out.row_tasks = quotient_up(loops.outer_rows, out.outer_rows_per_task);
    out.outer_rows_per_block = out.outer_rows_per_task;
  } else {
    if (loops.rows % out.row_tasks != 0)
      return invalid(loops.rows, " rows do not split into ", out.row_tasks, " equal tasks");
    out.rows_per_task /= out.row_tasks;
  }
  out.row_tiles = quotient_up(out.rows_per_task, std::min(schedule[kMr], out.rows_per_task));
  const int64_t base = out.rows_per_task / out.row_tiles, more = out.rows_per_task % out.row_tiles;
  if (more > 0) out.row_groups.push_back({base + 1, base + 1, 0, more});
  // Tiles in tile registers must all have the same height. If the rows do not divide evenly, the last tiles would be
  // one row shorter, so each begins one row earlier and computes the last row of the preceding tile again.
  const int64_t again = loops.fits_tiles && more > 0 ? 1 : 0;
  out.row_groups.push_back({base + again, base, more * (base + 1) - again, out.row_tiles - more});
  out.mr = out.row_groups[0].height;
  return absl::OkStatus();
}

// Splits the rows of an image into tasks, and those of a task into blocks.
void split_image_rows(const CpuLoops& loops, const Schedule& schedule, CpuSplit& out) {
  int64_t& tasks = loops.rows_are_pixels ? out.row_tasks : out.column_tasks;
  tasks = std::min(schedule[loops.rows_are_pixels ? kRowTasks : kColumnTasks], loops.image_rows);
  out.image_rows_per_task = quotient_up(loops.image_rows, tasks);
  tasks = quotient_up(loops.image_rows, out.image_rows_per_task);
  const int64_t nc = schedule[kNc];
  out.image_rows_per_block =
      nc == 0 ? out.image_rows_per_task : std::clamp<int64_t>(nc / loops.image_width, 1, out.image_rows_per_task);
  if (loops.rows_are_pixels) out.outer_rows_per_block = out.image_rows_per_block;
}

// Splits the `columns` columns of a block into panels whose widths differ by at most one vector, so that no panel has
// an empty vector.
void split_panels(const CpuLoops& loops, int64_t columns, CpuSplit& out) {
  const int64_t vectors = quotient_up(columns, loops.lanes);
  out.panels_per_block = quotient_up(columns, out.nr);
  const int64_t base = vectors / out.panels_per_block, more = vectors % out.panels_per_block;
  if (more > 0) out.panel_groups.push_back({(base + 1) * loops.lanes, 0, more});
  out.panel_groups.push_back({base * loops.lanes, more * (base + 1) * loops.lanes, out.panels_per_block - more});
  out.nr = out.panel_groups[0].width;
  out.columns_per_block = vectors * loops.lanes;
}

// Splits all columns evenly into panels. If the last vector is only partly filled, the last panel becomes a group of
// its own, because only this panel needs a check for the end of the columns.
void split_whole_row(const CpuLoops& loops, CpuSplit& out) {
  split_panels(loops, loops.columns, out);
  CpuSplit::Panels& last = out.panel_groups.back();
  if (loops.columns % loops.lanes == 0 || last.count == 1) return;
  --last.count;
  out.panel_groups.push_back({last.width, last.first_column + last.count * last.width, 1});
}

void split_columns(const CpuLoops& loops, const Schedule& schedule, CpuSplit& out) {
  out.nr = std::min(schedule[kNv] * loops.lanes, quotient_up(loops.columns, loops.lanes) * loops.lanes);
  out.panels_per_column_atom = quotient_up(loops.columns, out.nr);
  out.panels = out.panels_per_column_atom * loops.outer_columns;
  out.column_tasks = std::min(schedule[kColumnTasks], out.panels);
  out.panels_per_task = quotient_up(out.panels, out.column_tasks);
  out.column_tasks = quotient_up(out.panels, out.panels_per_task);
  const int64_t nc = schedule[kNc];
  const bool has_image = loops.rows_are_pixels || loops.columns_are_pixels;
  out.panels_per_block =
      nc == 0 || has_image ? out.panels_per_task : std::min(out.panels_per_task, std::max<int64_t>(1, nc / out.nr));
  if (has_image) split_image_rows(loops, schedule, out);
  if (loops.columns_are_pixels) {
    // The last row of a block is not followed by a halo (the padding between two rows of an image).
    split_panels(loops,
                 loops.copies_image ? (out.image_rows_per_block - 1) * loops.image_positions + loops.image_width
                                    : out.image_rows_per_block * loops.image_width,
                 out);
    out.panels_per_column_atom = out.panels = out.panels_per_task = out.panels_per_block;
    return;
  }
  // Whether one block has all columns, so that the columns need not be cut at the same places for all rows.
  const bool whole = out.panels == out.panels_per_column_atom && out.panels == out.panels_per_block;
  out.is_whole_row = whole && loops.cuts_anywhere;
  if (out.is_whole_row) return split_whole_row(loops, out);
  out.panel_groups = {{out.nr, 0, out.panels_per_block}};
  out.columns_per_block = out.panels_per_block * out.nr;
}

void split_depth(const CpuLoops& loops, const Schedule& schedule, CpuSplit& out) {
  const int64_t kc = schedule[kKc], step = loops.depth_group * loops.depth_words, k0 = loops.depth;
  const auto blocks = [&] { return std::max<int64_t>(1, quotient_up(k0, out.k_block)); };
  const bool one = kc == 0 || loops.inner_turns == 0 || !loops.blocks_depth;
  out.k_block = std::max<int64_t>(step, one ? k0 : std::min(k0, kc / loops.inner_turns));
  out.k_blocks = blocks();
  out.k_block = quotient_up(std::max<int64_t>(1, quotient_up(k0, out.k_blocks)), step) * step;
  out.k_blocks = blocks();
  out.depth = quotient_up(out.k_block, loops.depth_group) * loops.inner_turns;
  out.left_depth = out.depth * loops.left_group;
}

}  // namespace

absl::StatusOr<CpuSplit> split_of(const CpuLoops& loops, const Schedule& schedule) {
  CpuSplit out;
  WL_RETURN_IF_ERROR(split_rows(loops, schedule, out));
  split_columns(loops, schedule, out);
  split_depth(loops, schedule, out);
  return out;
}

}  // namespace wl
