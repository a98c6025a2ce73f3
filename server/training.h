// What rankers learn from and where coordinators find them. A ranker is trained by a program of its own
// (warploom-train) from the trials of all groups and devices in a store, and read once, when a coordinator starts: no
// request waits for training, and a search keeps the ranker that its coordinator started with.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/ranker_train.h"
#include "server/store/store.h"

namespace wl {

struct TrainingRows {
  std::vector<RankRow> rows;
  int groups = 0;
  int left_out = 0;  // correct trials whose plan is in no space of this version any more
};
// Every correct search trial of the groups that have a record, its plan lowered again. Takes about a millisecond a
// trial.
absl::StatusOr<TrainingRows> training_rows(Store& store);

// Where a store's ranker lies unless another file is named: beside it.
std::string ranker_beside(const std::string& store_file);
// NotFound: there is none; otherwise as parse_ranker().
absl::StatusOr<Ranker> read_ranker(const std::string& file);

}  // namespace wl
