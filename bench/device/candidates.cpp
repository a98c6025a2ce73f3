#include "bench/device/candidates.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_split.h"
#include "compiler/base/libraries.h"
#include "compiler/base/sha256.h"
#include "compiler/cover/stitching.h"
#include "compiler/domain/group.h"
#include "compiler/emit/emit.h"
#include "compiler/library/library.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/strategy.h"

namespace wl {
namespace {

constexpr int kMostOfLibrary = 4;

absl::Status add_library(const Graph& graph, const Domain& domain, Machine machine, std::vector<Candidate>& out) {
  machine.library = library_for(machine.target->family);
  const std::optional<LibraryGroup> group = library_group(graph, domain, machine);
  if (!group) return absl::OkStatus();
  absl::Status status;
  int left = kMostOfLibrary;
  group->space.enumerate([&](const Point& point) {
    auto source = library_source(graph, domain, *group, group->space.schedule(point), machine);
    status = source.status();
    if (source.ok()) out.push_back({static_cast<int64_t>(out.size()), group->space.text(point), *std::move(source)});
    return status.ok() && --left > 0;
  });
  return status;
}

}  // namespace

bool has_one_of(const std::string& name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

absl::StatusOr<std::vector<Candidate>> candidates_of(const DeviceWorkload& workload, const Graph& graph,
                                                     const Machine& machine, const Wishes& wishes) {
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze_group(graph, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(graph, domain, machine));
  std::vector<Point> points;
  for (const std::string& line : wishes.plans) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (line.empty() || !has_one_of(workload.name, {parts.first})) continue;
    WL_ASSIGN_OR_RETURN(Point point, space.parse(parts.second));
    points.push_back(std::move(point));
  }
  const int wanted = static_cast<int>(points.size()) + wishes.candidates;
  points.insert(points.end(), space.seeds.begin(), space.seeds.end());
  for (Point& point : strategy_named("portfolio").value()->propose(space, {}, 3 * wanted, 1))
    points.push_back(std::move(point));
  std::vector<Candidate> out;
  std::set<std::string> seen;
  for (const Point& point : points) {
    if (static_cast<int>(out.size()) >= wanted) break;
    const auto kernel = lower(graph, domain, space.schedule(point), machine);
    if (!kernel.ok()) continue;
    auto source = emit(*kernel, machine);
    if (source.ok() && seen.insert(source->text).second)
      out.push_back({static_cast<int64_t>(out.size()), space.text(point), *std::move(source)});
  }
  WL_RETURN_IF_ERROR(add_library(graph, domain, machine, out));
  return out;
}

Batch copy_batch(const Machine& machine, int64_t bytes) {
  Batch batch;
  batch.id = "copy";
  batch.problem.key = sha256_hex("copy");
  const int64_t elements = bytes / 8;  // number of elements; every one is an f32 that is read once and written once
  for (const bool output : {false, true}) {
    BufferSpec spec;
    spec.name = output ? "y" : "x";
    spec.shape = {elements};
    spec.output = output;
    batch.problem.buffers.push_back(spec);
  }
  for (const char* store : {"wl_store", "wl_stream"}) {
    for (const int64_t steps : {1, 2, 4, 8}) {
      Candidate candidate;
      candidate.trial = static_cast<int64_t>(batch.candidates.size());
      candidate.plan = cat("copy ", store, " ", steps);
      Source& source = candidate.source;
      source.target = std::string(machine.target->name);
      source.prelude = prelude_text(*machine.target, 4);
      source.entry = cat("wl_copy_", candidate.trial);
      source.grid = elements / (1024 * steps);
      source.threads = 256;
      source.load_bytes = source.store_bytes = 16;
      source.text =
          cat("WL_KERNEL(", source.entry, ", ", source.grid, ", 256, WL_IN(f32, p0, ", elements, "), WL_OUT(f32, p1, ",
              elements, ")) {\n  WL_ENTER;\n  const long at = block*", 1024 * steps, "L + thread*4;\n");
      for (int64_t s = 0; s < steps; ++s)
        append(&source.text, "  f32v t", s, " = wl_load<f32v, 4>(p0 + at + ", 1024 * s, ");\n");
      for (int64_t s = 0; s < steps; ++s)
        append(&source.text, "  ", store, "<4>(p1 + at + ", 1024 * s, ", t", s, ");\n");
      source.text += "}\n";
      batch.candidates.push_back(std::move(candidate));
    }
  }
  const BufferSpec& x = batch.problem.buffers[0];
  for (uint64_t seed : {1, 2}) {
    Check check{seed, {}};
    for (int64_t i = 0; i < elements; i += elements / 61 + 1)
      check.samples.push_back({1, i, fill_value(x.fill, x.dtype, seed, x.stream, static_cast<uint64_t>(i)), 0});
    batch.checks.push_back(std::move(check));
  }
  return batch;
}

}  // namespace wl
