// Weights that a model computes from others before its first run (ir/fold_weights.h): their operands are collected
// until all are there, the weight is computed, in double precision, and large operands are forgotten.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/program/bucket.h"
#include "client/program/executor.h"
#include "client/program/npy.h"
#include "client/program/program.h"

namespace wl {

class FoldedWeights {
 public:
  explicit FoldedWeights(const Program& program);

  bool is_folded(const std::string& name) const;
  // Whether it is the name of a folded weight, or some folded weight is made from the weight of that name.
  bool reads(const std::string& name) const { return operands_.contains(name) || is_folded(name); }
  // Keeps the value; stores every folded weight to `executor`, which runs a program with these, whose operands have all
  // been set since it was last computed. Errors: InvalidArgument for another dtype or shape than the weight has.
  absl::Status set(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes,
                   Executor& executor);
  // Ends a round of set(): computes those of which only some operands were set, where the others are known.
  absl::Status finish(Executor& executor);
  // Random values for those without any, from their own fills.
  absl::Status generate(uint64_t seed, Executor& executor);
  // Operands without a value, of the folded weights that are not computed; if `begun`, of those only of which some
  // operand was set.
  std::set<std::string> missing(bool begun = false) const;
  // Names, dtypes and shapes of all operands.
  std::vector<TensorInfo> operands() const;

 private:
  struct Folded {
    const FoldedWeight* weight = nullptr;
    int buffer = -1;
    bool computed = false;      // ever; the bundle computed small ones
    std::set<std::string> set;  // operands, since it was computed
  };
  absl::Status compute(Folded& folded, Executor& executor);
  bool is_known(const Node& operand) const;
  void forget();

  std::vector<Folded> all_;                              // in the order of the program's
  std::map<std::string, std::vector<size_t>> operands_;  // by name, those that read it
  std::map<std::string, Array> held_;
};

}  // namespace wl
