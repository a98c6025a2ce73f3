#include "server/training.h"

#include <algorithm>

#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "files/read.h"

namespace wl {
namespace {

constexpr int kMostRecords = 10'000;

absl::Status add_rows(const KernelRecord& record, const std::vector<PhaseTrial>& trials, TrainingRows* out) {
  WL_ASSIGN_OR_RETURN(const Graph group, parse(record.graph));
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(record.device));
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze_group(group, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(group, domain, machine));
  for (const PhaseTrial& item : trials) {
    const std::vector<int64_t>& samples = item.trial.samples_ns;
    if (item.phase != 0 || item.trial.outcome != Outcome::kCorrect || samples.empty()) continue;
    const double ns = std::max(1.0, undisturbed_ns(samples));
    const auto point = space.parse(item.trial.plan);
    const auto kernel =
        point.ok() ? lower(group, domain, space.schedule(*point), machine) : absl::StatusOr<Kernel>(point.status());
    if (kernel.ok()) {
      out->rows.push_back({cat(record.key, " ", record.environment), features_of(*kernel, machine), ns});
    } else {
      ++out->left_out;
    }
  }
  ++out->groups;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingRows> training_rows(Store& store) {
  WL_ASSIGN_OR_RETURN(const std::vector<RecordRow> records,
                      store.list_records(std::nullopt, kMostRecords, {.every = true}));
  TrainingRows out;
  for (const RecordRow& row : records) {
    WL_ASSIGN_OR_RETURN(const std::vector<PhaseTrial> trials, store.trials(row.search_id));
    // If this version has no kernel for a group, all trials of the group are left out.
    if (!add_rows(row.record, trials, &out).ok()) out.left_out += static_cast<int>(trials.size());
  }
  return out;
}

std::string ranker_beside(const std::string& store_file) {
  return store_file + ".ranker";
}

absl::StatusOr<Ranker> read_ranker(const std::string& file) {
  const absl::StatusOr<std::string> text = read_file(file);
  if (!text.ok())
    return absl::NotFoundError(cat("ranker: ", std::string(text.status().message()), "; `warploom-train` makes one"));
  auto ranker = parse_ranker(*text);
  if (!ranker.ok()) return absl::Status(ranker.status().code(), cat("ranker ", file, ": ", ranker.status().message()));
  return ranker;
}

}  // namespace wl
