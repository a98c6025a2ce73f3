// Covers of a graph that are timed as a whole: the batch in which a worker times them in turns, and the choice among
// them (docs/design/covers.md#whole-covers). Pure functions, so a restarted coordinator asks for and decides the same.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/job_plan.h"

namespace wl {

// A cover with the job result that it would give.
struct WholeCover {
  std::string name;
  JobPlan plan;
  JobResult result;
};

// Returns the number of trials of every group of a simpler cover before the covers are timed, in a job that asks for
// `trials` of each group.
int64_t first_trials(int64_t trials);

// Removes covers that run the same kernels on the same values as an earlier one.
void drop_equal(std::vector<WholeCover>& covers);

// Returns the batch, without id and trace: a chain for each cover, and each kernel once. Its problem has the inputs and
// outputs of the graph, and a key of everything that may change a time: kernels, order, values and device. `covers`: at
// least one, all of one graph and device, all groups with records.
Batch chains_of(const std::vector<WholeCover>& covers, const Records& records, const TuneOptions& options);

// Returns a lower bound in ns of the time of the fastest cover (compiler/model/roofline.h).
double floor_of(const std::vector<WholeCover>& covers);

// Whether several covers may be the fastest and one of their times is confirmed by too few samples, because other load
// ran meanwhile. Then they have to be timed again. `trials`: of one batch or of several.
bool were_disturbed(const std::vector<Trial>& trials);
// Merges the trials of several batches of the same covers: one trial for each cover, with all its samples.
std::vector<Trial> together(const std::vector<Trial>& trials);

// Returns the covers' times, one entry each, of which one is chosen: the cover with the least time or, among those
// within 1 % of it, the one with the fewest kernels, then the fewest bytes. A cover without a time is not chosen,
// unless none has one: then the first is. `trials`: named like the covers.
std::vector<TimedCover> decide(const std::vector<WholeCover>& covers, const std::vector<Trial>& trials);

// Returns the indices of the covers that may become the fastest with more trials of their kernels: those within a
// factor of the least time.
std::vector<size_t> contenders(const std::vector<TimedCover>& timed);

}  // namespace wl
