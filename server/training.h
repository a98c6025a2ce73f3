// The training data of rankers, and the files of rankers. The program warploom-train trains a ranker from the trials of
// all groups and devices in a store. A coordinator reads it once, when it starts, so no request waits for training and
// a search keeps one ranker.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/ranker_train.h"
#include "server/store/store.h"

namespace wl {

struct TrainingRows {
  std::vector<RankRow> rows;
  int groups = 0;
  int left_out = 0;  // correct trials whose plan this version cannot lower
};
// Every correct search trial of the groups that have a record, its plan lowered again. Takes about a millisecond a
// trial.
absl::StatusOr<TrainingRows> training_rows(Store& store);

// The file of a store's ranker, unless another one is named.
std::string ranker_beside(const std::string& store_file);
// NotFound: there is none; otherwise as parse_ranker().
absl::StatusOr<Ranker> read_ranker(const std::string& file);

}  // namespace wl
