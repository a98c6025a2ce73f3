// Covers of a graph that are timed as a whole: the batch in which a worker times them in turns, and the choice among
// them (docs/design/covers.md#whole-covers). Pure functions, so a restarted coordinator asks for the same batch and
// makes the same choice.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/job_plan.h"

namespace wl {

// A cover with the job result that choosing it would give.
struct WholeCover {
  std::string name;
  JobPlan plan;
  JobResult result;
  Records other = {};  // records that the cover runs in place of the job's records of the same keys
};

// Returns how many trials every group of a simpler cover gets before the covers are timed, in a job that asks for
// `trials` of each group.
int64_t first_trials(int64_t trials);

// Removes covers that run the same kernels on the same values as an earlier one.
void drop_equal(std::vector<WholeCover>& covers);

// Returns the batch, without id and trace: a chain for each cover, and each kernel once. Its problem has the inputs and
// outputs of the graph, and a key that covers everything that may change a time: kernels, their order, values and
// device. `covers`: at least one, all of one graph and device, and with records for all groups.
Batch chains_of(const std::vector<WholeCover>& covers, const Records& records, const TuneOptions& options);

// Returns a lower bound in ns of the time of the fastest cover (compiler/model/roofline.h).
double floor_of(const std::vector<WholeCover>& covers);

// Whether the covers have to be timed again: several may be the fastest, and one of their times is confirmed by too few
// samples, because other load ran meanwhile. `trials`: of one batch or of several.
bool were_disturbed(const std::vector<Trial>& trials);
// Merges the trials of several batches of the same covers: one trial for each cover, with all its samples.
std::vector<Trial> together(const std::vector<Trial>& trials);

// Returns the sum in ns of the times of the launches of a result, each timed alone.
double kernels_ns(const JobResult& result);

// Returns the covers' times, one entry each, with one cover chosen: the one with the least time or, among those within
// 1 % of that, the one with the fewest kernels, then the fewest bytes. A cover without a time is not chosen, unless no
// cover has a time: then the first one is. `trials`: named like the covers.
std::vector<TimedCover> decide(const std::vector<WholeCover>& covers, const std::vector<Trial>& trials);

// Returns the indices of the covers that may become the fastest if their kernels get more trials: those whose time is
// at most 15 % above the least time.
std::vector<size_t> contenders(const std::vector<TimedCover>& timed);

}  // namespace wl
