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
  int left_out = 0;  // trials whose plan or group this version cannot lower
};
// Returns a row for every correct trial of a round (not of promotions) of the searches behind the newest 10,000
// records; each trial's plan is lowered again, which takes about a millisecond.
absl::StatusOr<TrainingRows> training_rows(Store& store);

// Returns the default name of the file of a store's ranker: STORE.ranker.
std::string ranker_beside(const std::string& store_file);
// NotFound: the file cannot be read. Other errors are those of parse_ranker().
absl::StatusOr<Ranker> read_ranker(const std::string& file);

}  // namespace wl
