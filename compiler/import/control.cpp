// Imports If, Loop and Scan. An If with a constant condition takes one branch while importing, and the body of a loop
// is copied for every iteration. An If with a computed condition evaluates both branches and selects between their
// outputs element by element.
#include <algorithm>

#include "compiler/import/importer.h"
#include "compiler/import/table.h"

namespace wl::onnx_import {
namespace {

constexpr int64_t kMaxIterations = 4096;
const Opsets kOwnOpsets = {{"", 11}};  // opset version of the ops that this file creates

void set_int(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

absl::StatusOr<const onnx::GraphProto*> body_of(const onnx::NodeProto& node, std::string_view name) {
  const auto* attribute = attribute_of(node, name);
  if (attribute == nullptr || !attribute->has_g()) return invalid("attribute ", name, " must be a graph");
  return &attribute->g();
}

std::vector<int64_t> ints_of(const onnx::NodeProto& node, std::string_view name, size_t count) {
  const auto* attribute = attribute_of(node, name);
  std::vector<int64_t> list;
  if (attribute != nullptr) list.assign(attribute->ints().begin(), attribute->ints().end());
  list.resize(count, 0);
  return list;
}

CallValue constant(Literal literal) {
  CallValue value{.dtype = literal.dtype, .shape = literal.shape};
  value.literal = std::move(literal);
  return value;
}

}  // namespace

absl::StatusOr<CallValue> Importer::compute(const std::string& op, const std::vector<CallValue>& inputs,
                                            const std::function<void(onnx::NodeProto&)>& make) {
  onnx::NodeProto node;
  node.set_op_type(op);
  if (make) make(node);
  const std::string prefix = cat(op, ".", bodies_++, "/");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = cat(prefix, i);
    CallValue value = inputs[i];
    if (value.name.empty()) value.name = name;
    values_[name] = std::move(value);
    node.add_input(name);
  }
  node.add_output(prefix + "y");
  WL_RETURN_IF_ERROR(add_row(node, op, {&kOwnOpsets}));
  return values_.at(prefix + "y");
}

absl::StatusOr<CallValue> Importer::stacked(const std::vector<CallValue>& parts, int64_t axis) {
  std::vector<CallValue> wide;
  for (const CallValue& part : parts) {
    WL_ASSIGN_OR_RETURN(auto one, compute("Unsqueeze", {part}, [&](onnx::NodeProto& node) {
                          auto& axes = *node.add_attribute();
                          axes.set_name("axes");
                          axes.set_type(onnx::AttributeProto::INTS);
                          axes.add_ints(axis);
                        }));
    wide.push_back(std::move(one));
  }
  return compute("Concat", wide, [&](onnx::NodeProto& node) { set_int(node, "axis", axis); });
}

absl::StatusOr<CallValue> Importer::element(const CallValue& value, int64_t axis, int64_t index) {
  return compute("Gather", {value, constant(int_literal({}, {index}))},
                 [&](onnx::NodeProto& node) { set_int(node, "axis", axis); });
}

absl::Status Importer::add_if(const onnx::NodeProto& node, const ImportContext& context) {
  if (node.input_size() != 1) return invalid("it needs a condition");
  WL_ASSIGN_OR_RETURN(const auto* yes, body_of(node, "then_branch"));
  WL_ASSIGN_OR_RETURN(const auto* no, body_of(node, "else_branch"));
  const CallValue condition = values_.at(node.input(0));
  if (elements(condition.shape) != 1) return invalid("its condition has shape ", shape_text(condition.shape));
  const auto add_branch = [&](const onnx::GraphProto& branch) {
    const std::string prefix = new_prefix(node);
    return add_body(branch, prefix, prefix, {}, context);
  };
  if (condition.literal) {
    WL_ASSIGN_OR_RETURN(const auto results, add_branch(condition.literal->at(0) != 0 ? *yes : *no));
    return set_outputs(node, results);
  }
  WL_ASSIGN_OR_RETURN(const auto a, add_branch(*yes));
  WL_ASSIGN_OR_RETURN(const auto b, add_branch(*no));
  std::vector<CallValue> results;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].shape != b[i].shape || a[i].dtype != b[i].dtype) {
      return unimplemented("output ", i, " is ", type_text(a[i].dtype, a[i].shape), " or ",
                           type_text(b[i].dtype, b[i].shape), ", as data decide; the condition must be constant");
    }
    WL_ASSIGN_OR_RETURN(auto flag, compute("Squeeze", {condition}, {}));
    WL_ASSIGN_OR_RETURN(auto chosen, compute("Where", {flag, a[i], b[i]}, {}));
    results.push_back(std::move(chosen));
  }
  return set_outputs(node, results);
}

absl::Status Importer::add_loop(const onnx::NodeProto& node, const ImportContext& context) {
  WL_ASSIGN_OR_RETURN(const auto* body, body_of(node, "body"));
  if (node.input_size() < 2) return invalid("it needs a trip count and a condition, which may be empty");
  const CallValue* trips = node.input(0).empty() ? nullptr : find(node.input(0));
  const CallValue* condition = node.input(1).empty() ? nullptr : find(node.input(1));
  const auto count = static_cast<size_t>(node.input_size()) - 2;
  if (static_cast<size_t>(body->output_size()) < count + 1) {
    return invalid("its body has ", body->output_size(), " outputs, expected at least ", count + 1);
  }
  for (const CallValue* value : {trips, condition}) {
    if (value == nullptr) continue;
    if (!value->literal) {
      return unimplemented("its trip count and its condition must be constant; '", value->name,
                           "' is computed from data");
    }
    if (elements(value->shape) != 1) return invalid("'", value->name, "' must be one number");
  }
  const int64_t most = trips == nullptr ? std::numeric_limits<int64_t>::max() : trips->literal->int_at(0);
  bool running = condition == nullptr || condition->literal->at(0) != 0;
  std::vector<CallValue> state;
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = node.input(static_cast<int>(i) + 2);
    if (name.empty()) return invalid("input ", i + 2, " is needed");
    state.push_back(values_.at(name));
  }
  const size_t scans = static_cast<size_t>(body->output_size()) - 1 - count;
  std::vector<std::vector<CallValue>> collected(scans);
  const std::string tensors = new_prefix(node);
  for (int64_t i = 0; i < most && running; ++i) {
    if (i >= kMaxIterations) return unimplemented("it runs more than ", kMaxIterations, " times");
    std::vector<CallValue> inputs = {constant(int_literal({}, {i})), constant(make_literal(DType::b1, {}, {1}))};
    const std::string prefix = new_prefix(node);
    for (size_t k = 0; k < 2; ++k) inputs[k].name = cat(prefix, k == 0 ? "iteration" : "condition");
    inputs.insert(inputs.end(), state.begin(), state.end());
    WL_ASSIGN_OR_RETURN(auto results, add_body(*body, prefix, tensors, inputs, context));
    for (size_t k = 0; k < count; ++k) state[k] = results[k + 1];
    for (size_t k = 0; k < scans; ++k) collected[k].push_back(results[k + 1 + count]);
    if (!results[0].literal) {
      return unimplemented("its condition is computed from data; only constant trip counts are supported");
    }
    running = results[0].literal->at(0) != 0;
  }
  for (size_t k = 0; k < scans; ++k) {
    if (collected[k].empty())
      return unimplemented("it never runs, so the shape of its output ", count + k, " is unknown");
    WL_ASSIGN_OR_RETURN(auto all, stacked(collected[k], 0));
    state.push_back(std::move(all));
  }
  return set_outputs(node, state);
}

// Unrolls a Scan without a batch axis. `inputs` are the initial states, followed by the tensors that are scanned along
// `axes`. Returns the final states, followed by the scan outputs (each stacked from the values of all iterations).
absl::StatusOr<std::vector<CallValue>> Importer::scan_once(const onnx::NodeProto& node, std::vector<CallValue> inputs,
                                                           const std::vector<int64_t>& axes,
                                                           const ImportContext& context) {
  WL_ASSIGN_OR_RETURN(const auto* body, body_of(node, "body"));
  const size_t scanned = axes.size(), states = inputs.size() - scanned;
  if (static_cast<size_t>(body->output_size()) < states) return invalid("its body has too few outputs");
  const size_t collected_count = static_cast<size_t>(body->output_size()) - states;
  const bool old = context.opsets->contains("") && context.opsets->at("") < 9;
  const auto backwards = ints_of(node, old ? "directions" : "scan_input_directions", scanned);
  const auto out_backwards = ints_of(node, "scan_output_directions", collected_count);
  const auto out_axes = ints_of(node, "scan_output_axes", collected_count);
  int64_t steps = -1;
  std::vector<int64_t> along_axes = axes;
  for (size_t k = 0; k < scanned; ++k) {
    const Shape& shape = inputs[states + k].shape;
    const auto rank = static_cast<int64_t>(shape.size());
    int64_t& axis = along_axes[k];
    if (axis < -rank || axis >= rank) return invalid("scan input ", k, " has no axis ", axis);
    if (axis < 0) axis += rank;
    const int64_t extent = shape[static_cast<size_t>(axis)];
    if (steps >= 0 && extent != steps) return invalid("scan inputs have ", steps, " and ", extent, " elements");
    steps = extent;
  }
  if (steps > kMaxIterations) return unimplemented("it runs more than ", kMaxIterations, " times");
  std::vector<CallValue> state(inputs.begin(), inputs.begin() + static_cast<int64_t>(states));
  std::vector<std::vector<CallValue>> collected(collected_count);
  const std::string tensors = new_prefix(node);
  for (int64_t i = 0; i < steps; ++i) {
    std::vector<CallValue> now = state;
    for (size_t k = 0; k < scanned; ++k) {
      WL_ASSIGN_OR_RETURN(auto one, element(inputs[states + k], along_axes[k], backwards[k] != 0 ? steps - 1 - i : i));
      now.push_back(std::move(one));
    }
    WL_ASSIGN_OR_RETURN(auto results, add_body(*body, new_prefix(node), tensors, now, context));
    for (size_t k = 0; k < states; ++k) state[k] = results[k];
    for (size_t k = 0; k < collected_count; ++k) collected[k].push_back(results[states + k]);
  }
  for (size_t k = 0; k < collected_count; ++k) {
    if (collected[k].empty()) return unimplemented("it never runs, so the shapes of its outputs are unknown");
    if (out_backwards[k] != 0) std::reverse(collected[k].begin(), collected[k].end());
    const auto rank = static_cast<int64_t>(collected[k][0].shape.size()) + 1;
    if (out_axes[k] < -rank || out_axes[k] >= rank) return invalid("scan output ", k, " has no axis ", out_axes[k]);
    WL_ASSIGN_OR_RETURN(auto all, stacked(collected[k], out_axes[k] < 0 ? out_axes[k] + rank : out_axes[k]));
    state.push_back(std::move(all));
  }
  return state;
}

absl::Status Importer::add_scan(const onnx::NodeProto& node, const ImportContext& context) {
  const auto* attribute = attribute_of(node, "num_scan_inputs");
  const bool old = context.opsets->contains("") && context.opsets->at("") < 9;
  const int first = old ? 1 : 0;
  const int64_t count = attribute == nullptr ? 0 : attribute->i();
  if (count < 1 || count > node.input_size() - first) return invalid("num_scan_inputs is ", count);
  std::vector<CallValue> inputs;
  for (int i = first; i < node.input_size(); ++i) {
    if (node.input(i).empty()) return invalid("input ", i, " is needed");
    inputs.push_back(values_.at(node.input(i)));
  }
  if (!old) {
    const auto axes = ints_of(node, "scan_input_axes", static_cast<size_t>(count));
    WL_ASSIGN_OR_RETURN(const auto results, scan_once(node, std::move(inputs), axes, context));
    return set_outputs(node, results);
  }
  // Up to opset version 8, every input of Scan has a leading batch axis, so each element of the batch is scanned by
  // itself and the results are stacked.
  if (!node.input(0).empty()) return unimplemented("sequence_lens are not supported");
  const int64_t batch = inputs[0].shape.empty() ? 0 : inputs[0].shape[0];
  if (batch > kMaxIterations) return unimplemented("a batch of ", batch);
  std::vector<std::vector<CallValue>> parts;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<CallValue> mine;
    for (const CallValue& input : inputs) {
      if (input.shape.empty() || input.shape[0] != batch) return invalid("batches of different sizes");
      WL_ASSIGN_OR_RETURN(auto one, element(input, 0, b));
      mine.push_back(std::move(one));
    }
    const std::vector<int64_t> axes(static_cast<size_t>(count), 0);
    WL_ASSIGN_OR_RETURN(auto results, scan_once(node, std::move(mine), axes, context));
    parts.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) parts[i].push_back(std::move(results[i]));
  }
  if (parts.empty()) return unimplemented("it never runs, so the shapes of its outputs are unknown");
  std::vector<CallValue> results;
  for (const auto& part : parts) {
    WL_ASSIGN_OR_RETURN(auto all, stacked(part, 0));
    results.push_back(std::move(all));
  }
  return set_outputs(node, results);
}

}  // namespace wl::onnx_import
