// Folded weights: weights that a model computes before its first run from other weights, their operands
// (compiler/ir/weights/fold_weights.h). Copies of operands are kept until all operands of a folded weight are known;
// then the folded weight is computed in double precision, and copies of large operands are freed. The last operand is
// not copied, so callers that set small operands first save memory.
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
  // Whether a name is that of a folded weight or of an operand of a folded weight.
  bool reads(const std::string& name) const { return operands_.contains(name) || is_folded(name); }
  // Sets an operand, or a folded weight itself. Computes every folded weight whose operands have all been set since it
  // was last computed, and stores it in `executor`, which runs a program with these weights. InvalidArgument: dtype,
  // shape or size differ from the weight's.
  absl::Status set(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes,
                   Executor& executor);
  // Must be called after a series of set(). For a folded weight of which only some operands were set since it was last
  // computed, the other operands keep their values; the weight is computed if these are known.
  absl::Status finish(Executor& executor);
  // Fills every folded weight that has no value, or of which only some operands have been set, with random numbers
  // drawn by the fill of the weight's own buffer.
  absl::Status generate(uint64_t seed, Executor& executor);
  // Returns the names of the operands that folded weights need but that have no value. `begun`: considers only folded
  // weights of which some other operand has been set.
  std::set<std::string> missing(bool begun = false) const;
  // Returns names, dtypes and shapes of all operands of folded weights.
  std::vector<TensorInfo> operands() const;

 private:
  struct Folded {
    const FoldedWeight* weight = nullptr;
    int buffer = -1;
    bool computed = false;      // whether the folded weight has a value; small weights have one from the bundle
    std::set<std::string> set;  // operands of the folded weight that were set since it was last computed
  };
  // A reference to an array of the caller.
  struct Given {
    DType dtype = DType::f32;
    const char* bytes = nullptr;
  };
  // Computes a folded weight from its operands, all of which are either kept or in `given`, by name.
  absl::Status compute(Folded& folded, Executor& executor, const std::map<std::string, Given>& given = {}) const;
  // Marks a weight, whose value is in the executor's host memory, as computed, and sends it to the GPU if there is one.
  static absl::Status done(Folded& folded, Executor& executor);
  bool is_known(const Node& operand) const;
  static bool is_needed(const Folded& folded, const std::string& operand);
  void forget();

  std::vector<Folded> all_;  // the program's folded weights, in the program's order
  // For each operand, the indices of the folded weights that read it.
  std::map<std::string, std::vector<size_t>> operands_;
  std::map<std::string, Array> held_;  // for each name of an operand, a copy of it while it is still needed
};

}  // namespace wl
