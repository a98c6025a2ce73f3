// Loss functions, which exported training graphs contain.
#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

// Returns -log p of the target class at each position, multiplied by the weight of the class and reduced as attribute
// `reduction` says. `logs` are log probabilities: [batch, classes, ...]; target: [batch, ...]. `weight` is the number
// of the input that has the class weights.
T picked_loss(Call& c, T logs, T target, int weight) {
  const Shape places = target.shape();
  T index = target, factor;
  if (weight < c.inputs() && c.has(weight)) factor = c.in(weight);
  const bool weighted = factor.valid();
  if (c.has_attr("ignore_index")) {
    const T counts = apply(Op::ne, {target, static_cast<double>(c.attr("ignore_index", 0))});
    index = select(counts, target, 0.0);
    const T each = weighted ? gather_axis(factor, index, 0) : c.constant(1, logs.dtype(), places);
    factor = select(counts, each, 0.0);
  } else if (weighted) {
    factor = gather_axis(factor, index, 0);
  }
  Shape column = places;
  column.insert(column.begin() + 1, 1);
  T loss = -reshape(take_along(logs, reshape(index, column), 1), places);
  if (factor.valid()) loss = loss * factor;
  const std::string reduction = c.attr_text("reduction", "mean");
  const auto axes = axes_from(0, loss.rank());
  if (reduction == "none") return loss;
  if (reduction == "sum") return reduce(Op::reduce_sum, loss, axes, false);
  if (reduction != "mean") c.fail("reduction '", reduction, "', expected none, sum or mean");
  if (!factor.valid()) return mean(loss, axes, false);
  return reduce(Op::reduce_sum, loss, axes, false) / reduce(Op::reduce_sum, factor, axes, false);
}

void check_target(Call& c, T scores, T target) {
  Shape expected = scores.shape();
  if (expected.size() >= 2) expected.erase(expected.begin() + 1);
  if (scores.rank() < 2 || target.shape() != expected) {
    c.fail("scores of shape ", shape_text(scores.shape()), " and targets of shape ", shape_text(target.shape()),
           " do not fit");
  }
}

}  // namespace

T negative_log_likelihood(Call& c) {
  const T logs = c.in(0), target = c.in(1);
  check_target(c, logs, target);
  return picked_loss(c, logs, target, 2);
}

T softmax_cross_entropy(Call& c) {
  const T scores = c.in(0), target = c.in(1);
  check_target(c, scores, target);
  const std::vector<int64_t> axes = {1};
  const T shifted = scores - stretch(reduce(Op::reduce_max, scores, axes, false), axes, scores.shape());
  const T sum = reduce(Op::reduce_sum, apply(Op::exp, {shifted}), axes, false);
  const T logs = shifted - stretch(apply(Op::log, {sum}), axes, scores.shape());
  if (c.wants(1)) c.set(1, logs);
  return picked_loss(c, logs, target, 2);
}

}  // namespace wl::onnx_import
