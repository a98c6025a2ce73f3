// The training data of rankers (learned cost models), and their files. The program warploom-train trains a ranker from
// the trials of all groups and devices in a store. A coordinator reads the ranker once, when it starts, so no request
// waits for training, and all rounds of a search use the same ranker.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/ranker_train.h"
#include "server/store/store.h"

namespace wl {

struct TrainingRows {
  std::vector<RankRow> rows;
  int groups = 0;
  int left_out = 0;  // number of trials whose plan or group this version cannot lower
};
// Returns a row for every correct trial of the searches behind the newest 10,000 records. Only trials of rounds count,
// not those of promotions. Each trial's plan is lowered again, which takes about a millisecond.
absl::StatusOr<TrainingRows> training_rows(Store& store);

// Returns the name that the ranker of a store has by default: STORE.ranker.
std::string ranker_beside(const std::string& store_file);
// Reads a ranker. NotFound: the file cannot be read. Other errors are those of parse_ranker().
absl::StatusOr<Ranker> read_ranker(const std::string& file);

}  // namespace wl
