// Covers of a whole graph that are timed whole: the batch in which a worker times them in turn, and which of them is
// taken (docs/design/covers.md#whole-covers). Pure functions, so a restarted coordinator asks and decides the same.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/job_plan.h"

namespace wl {

// A cover with the answer that it would give.
struct WholeCover {
  std::string name;
  JobPlan plan;
  JobResult result;
};

// Trials that every group of a simpler cover gets before the covers are timed, where a job asks for `trials` of each.
int64_t first_trials(int64_t trials);

// Without those that run the same kernels on the same values as an earlier one.
void drop_equal(std::vector<WholeCover>& covers);

// The batch, without id and trace: a chain for each cover and its kernels once. Its problem has the inputs and
// outputs of the graph, and a key that depends on everything that may change a time: kernels, order, values and device.
// `covers`: of one graph and device, all groups with records; at least one.
Batch chains_of(const std::vector<WholeCover>& covers, const Records& records, const TuneOptions& options);

// ns that the fastest of the covers takes at least (compiler/model/roofline.h).
double floor_of(const std::vector<WholeCover>& covers);

// Whether several covers may be the fastest, and the time of one of them is confirmed by too few samples: other load
// ran meanwhile. They are timed again then. `trials`: of one batch or of several.
bool were_disturbed(const std::vector<Trial>& trials);
// The trials of several batches of the same covers as those of one: samples of one name together.
std::vector<Trial> together(const std::vector<Trial>& trials);

// What the covers took: one entry each, of which one is chosen. That is the cover that took the least time, unless
// others took as long within what times vary: of these the one with the fewest kernels, then the fewest bytes. A cover
// without a time is not chosen, unless none has one: then the first is. `trials`: by name of the cover.
std::vector<TimedCover> decide(const std::vector<WholeCover>& covers, const std::vector<Trial>& trials);

// Covers that more trials of their kernels may make the fastest: indices of those that took at most so much longer.
std::vector<size_t> contenders(const std::vector<TimedCover>& timed);

}  // namespace wl
