// Weights that a model computes from others before its first run (ir/fold_weights.h). Operands are collected until all
// are known; then the weight is computed in double precision, and large operands are freed. The last operand is not
// copied, so memory is least where small ones are set first.
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
  // Whether the name is that of a folded weight or of an operand of one.
  bool reads(const std::string& name) const { return operands_.contains(name) || is_folded(name); }
  // Keeps the value of an operand, and stores every folded weight whose operands have all been set since it was last
  // computed to `executor`, which runs a program with these weights. InvalidArgument: dtype or shape differ from the
  // weight's.
  absl::Status set(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes,
                   Executor& executor);
  // Ends a round of set(): computes the weights of which only some operands were set, if the others are known.
  absl::Status finish(Executor& executor);
  // Gives operands without a value random values, as their own fills say.
  absl::Status generate(uint64_t seed, Executor& executor);
  // Returns the operands without a value that folded weights still need; if `begun`, only those of weights of which
  // some operand was set.
  std::set<std::string> missing(bool begun = false) const;
  // Returns names, dtypes and shapes of all operands of folded weights.
  std::vector<TensorInfo> operands() const;

 private:
  struct Folded {
    const FoldedWeight* weight = nullptr;
    int buffer = -1;
    bool computed = false;      // whether it was ever computed; the bundle has small ones computed
    std::set<std::string> set;  // operands that were set since it was last computed
  };
  // Values that are somebody else's.
  struct Given {
    DType dtype = DType::f32;
    const char* bytes = nullptr;
  };
  // Computes a weight all operands of which are known, or given by name.
  absl::Status compute(Folded& folded, Executor& executor, const std::map<std::string, Given>& given = {}) const;
  // Its value is in the executor's memory.
  static absl::Status done(Folded& folded, Executor& executor);
  bool is_known(const Node& operand) const;
  static bool is_needed(const Folded& folded, const std::string& operand);
  void forget();

  std::vector<Folded> all_;  // the program's folded weights, in its order
  // for each operand, the indices of the folded weights that read it
  std::map<std::string, std::vector<size_t>> operands_;
  std::map<std::string, Array> held_;
};

}  // namespace wl
