#include "client/cli/report_table.h"

#include <algorithm>
#include <map>

#include "client/cli/table.h"
#include "client/remote/report.h"
#include "client/remote/trust.h"
#include "compiler/base/libraries.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// The relative spread of the samples above which the report warns that other programs used the machine.
constexpr double kBusy = 0.2;

std::string rate_text(const GroupResult& group) {
  if (!(group.best_ns > 0)) return "";
  // A group with many operations per byte is bound by arithmetic; other groups are bound by memory traffic.
  if (group.flops > 16.0 * static_cast<double>(group.bytes))
    return absl::StrFormat("%.1f GF/s", group.flops / group.best_ns);
  return absl::StrFormat("%.1f GB/s", static_cast<double>(group.bytes) / group.best_ns);
}

}  // namespace

std::string default_text(double default_ns, bool estimated) {
  return cat(estimated ? "~" : "", time_text(default_ns));
}

std::string speed_up_text(double default_ns, double best_ns, bool estimated) {
  if (!(default_ns > 0 && best_ns > 0)) return "-";
  return cat(estimated ? "~" : "", absl::StrFormat("%.2fx", default_ns / best_ns));
}

std::string report_table(const Job& job, bool colour, bool trust_workers) {
  const JobResult& result = *job.result;
  std::set<std::string> cached = cached_keys(job);
  Table table({{"group"},
               {"what"},
               {"count", true},
               {"kernels", true},
               {"default", true},
               {"best", true},
               {"speed-up", true},
               {"rate", true},
               {"error/bound", true},
               {"from"}},
              colour);
  for (size_t i = 0; i < result.groups.size(); ++i) {
    const GroupResult& group = result.groups[i];
    table.add({cat("g", i), describe_group(group.graph), cat(group.count),
               cat(group.kernels_default, " -> ", group.kernels),
               default_text(group.default_ns, group.default_estimated), time_text(group.best_ns),
               speed_up_text(group.default_ns, group.best_ns, group.default_estimated), rate_text(group),
               cat(number_text(group.max_error), "/", number_text(group.bound)), source_of(job, group, cached)});
  }
  table.rule();
  table.add({"total", "", "", cat(result.kernels_default, " -> ", result.kernels),
             default_text(result.default_ns, result.default_estimated), time_text(result.best_ns),
             speed_up_text(result.default_ns, result.best_ns, result.default_estimated),
             result.best_ns > 0 ? absl::StrFormat("%.1f GB/s", static_cast<double>(result.bytes) / result.best_ns) : "",
             "", cat(job.cached ? 0 : job.progress.trials_done, " trials")});
  std::string text = table.text();
  if (result.default_estimated)
    text +=
        "~: one kernel for each operation was timed for the groups that take most time, and is estimated for others\n";
  if (const double whole = result.whole_ns(); whole > 0 && result.steps.size() > 1)
    append(&text, "the whole program takes ", time_text(whole),
           " as it runs; the total above adds up its kernels alone\n");
  if (result.cover_rounds > 0)
    append(&text, "cover: chosen again ", result.cover_rounds, result.cover_rounds == 1 ? " time" : " times",
           result.cover_certified
               ? "; no other candidate can make it faster\n"
               : " by measured times; --effort thorough continues until no other cover can be faster\n");
  for (const TimedCover& cover : result.covers)
    append(&text, cover.samples_ns.empty() ? "not timed whole: " : "timed whole: ", cover.name, ", ", cover.kernels,
           " kernels, ", absl::StrFormat("%.1f MB, ", static_cast<double>(cover.bytes) / 1e6),
           time_text(undisturbed_ns(cover.samples_ns)), cover.chosen ? "; chosen" : "", cover.why.empty() ? "" : ": ",
           cover.why, "\n");
  std::map<std::string_view, std::string> won;  // for each name of a library, the groups for which it was fastest
  for (size_t i = 0; i < result.groups.size(); ++i)
    if (const Library* const library = library_of_plan(result.groups[i].plan))
      append(&won[library->name], won[library->name].empty() ? "" : ", ", "g", i);
  for (const auto& [name, groups] : won)
    append(&text, name, ": was fastest for ", groups, "; whoever runs these kernels needs ",
           library_named(name)->package, "\n");
  // In embedded mode there is no second worker that could confirm kernels, so no note says that a confirmation is
  // missing.
  const auto confirmed = std::count_if(result.groups.begin(), result.groups.end(),
                                       [](const GroupResult& group) { return !group.confirmed_by.empty(); });
  const auto built =
      std::count_if(result.groups.begin(), result.groups.end(), [](const GroupResult& group) { return group.built; });
  const auto doubted = std::count_if(result.groups.begin(), result.groups.end(), is_doubted);
  const auto fleet = std::count_if(result.groups.begin(), result.groups.end(), [](const GroupResult& group) {
    return !group.measured_by.empty() && group.measured_by != kEmbeddedWorker;
  });
  if (fleet > 0)
    append(&text, "confirmed: ", confirmed, " of ", result.groups.size(),
           " kernels were built to the same bytes and timed by a second worker, ", built,
           " built to them by the coordinator itself\n");
  if (doubted > 0)
    append(&text, "not confirmed: ", doubted, " of ", result.groups.size(),
           trust_workers ? " kernels, whose objects are used as their workers sent them (--trust-workers)\n"
                         : " kernels; whoever uses them builds their objects from the sources\n");
  if (const double spread = spread_of(result); spread > kBusy)
    append(&text,
           absl::StrFormat("samples of one kernel spread by %.0f %%: other programs were using the machine, so faster "
                           "kernels may have been missed; tune again (--retune) when it is idle\n",
                           100 * spread));
  return text;
}

}  // namespace wl
