#include "client/program/folded.h"

#include <algorithm>

namespace wl {

FoldedWeights::FoldedWeights(const Program& program) {
  for (const FoldedWeight& weight : program.folded) {
    Folded folded;
    folded.weight = &weight;
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program.buffers[i];
      if (buffer.place != Place::kInput || buffer.name != weight.name) continue;
      folded.buffer = static_cast<int>(i);
      folded.computed = !buffer.fill.literal.empty();
    }
    for (NodeId input : weight.from.inputs()) operands_[weight.from.nodes[input].text].push_back(all_.size());
    all_.push_back(folded);
  }
}

bool FoldedWeights::is_known(const Node& operand) const {
  return held_.contains(operand.text) || !operand.fill.literal.empty();
}

absl::Status FoldedWeights::set(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes,
                                Executor& executor) {
  for (Folded& folded : all_) {
    if (folded.weight->name != name) continue;
    folded.computed = true;
    folded.set.clear();
    return executor.set(folded.buffer, dtype, shape, bytes);
  }
  const std::vector<size_t>& readers = operands_.at(name);
  for (size_t reader : readers) {
    const Graph& from = all_[reader].weight->from;
    for (NodeId input : from.inputs()) {
      const Node& node = from.nodes[input];
      if (node.text != name || (node.dtype == dtype && node.shape == shape)) continue;
      return invalid("weight ", name, " is ", type_text(node.dtype, node.shape), ", the given array is ",
                     type_text(dtype, shape));
    }
  }
  if (static_cast<int64_t>(bytes.size()) != elements(shape) * size_of(dtype))
    return invalid("weight ", name, " is ", type_text(dtype, shape), ", the given array has ", bytes.size(), " bytes");
  // What only puts one weight in another order needs no copy of it.
  std::vector<size_t> collecting;
  for (size_t reader : readers) {
    Folded& folded = all_[reader];
    const bool alone = folded.weight->from.inputs().size() == 1;
    const std::optional<std::string> moved = alone ? value_of_moved(*folded.weight, bytes) : std::nullopt;
    if (moved) {
      WL_RETURN_IF_ERROR(store(folded, *moved, executor));
    } else {
      collecting.push_back(reader);
    }
  }
  if (collecting.empty()) return absl::OkStatus();
  held_[name] = {dtype, shape, std::string(bytes)};
  for (size_t reader : collecting) {
    Folded& folded = all_[reader];
    folded.set.insert(name);
    if (folded.set.size() == folded.weight->from.inputs().size()) WL_RETURN_IF_ERROR(compute(folded, executor));
  }
  forget();
  return absl::OkStatus();
}

absl::Status FoldedWeights::finish(Executor& executor) {
  for (Folded& folded : all_) {
    const Graph& from = folded.weight->from;
    const std::vector<NodeId> inputs = from.inputs();
    const bool known =
        std::all_of(inputs.begin(), inputs.end(), [&](NodeId input) { return is_known(from.nodes[input]); });
    if (known && !folded.set.empty()) WL_RETURN_IF_ERROR(compute(folded, executor));
  }
  forget();
  return absl::OkStatus();
}

// Forgets large operands that no unfinished weight needs. Small ones stay, since the bundle has a value for them that
// may be outdated.
void FoldedWeights::forget() {
  std::set<std::string> needed;
  for (const Folded& folded : all_) {
    for (NodeId input : folded.weight->from.inputs()) {
      const Node& node = folded.weight->from.nodes[input];
      if (!folded.set.empty() || !node.fill.literal.empty()) needed.insert(node.text);
    }
  }
  std::erase_if(held_, [&](const auto& held) { return !needed.contains(held.first); });
}

absl::StatusOr<std::string> FoldedWeights::value(const FoldedWeight& weight) const {
  const Graph& from = weight.from;
  const std::vector<NodeId> inputs = from.inputs();
  std::vector<const Array*> arrays(from.nodes.size(), nullptr);
  for (NodeId input : inputs) {
    const auto held = held_.find(from.nodes[input].text);
    if (held != held_.end()) arrays[input] = &held->second;
  }
  const InputReader read = [&](NodeId input, int64_t index) {
    const auto at = static_cast<uint64_t>(index);
    const Array* array = arrays[input];
    return array != nullptr ? load_element(array->dtype, array->bytes.data(), at)
                            : from.nodes[input].fill.literal[static_cast<size_t>(at)];
  };
  return value_of(weight, read);
}

absl::Status FoldedWeights::compute(Folded& folded, Executor& executor) {
  WL_ASSIGN_OR_RETURN(const std::string bytes, value(*folded.weight));
  return store(folded, bytes, executor);
}

absl::Status FoldedWeights::store(Folded& folded, std::string_view bytes, Executor& executor) {
  const Graph& from = folded.weight->from;
  const Node& node = from.nodes[from.outputs[0].node];
  folded.set.clear();
  folded.computed = true;
  return executor.set(folded.buffer, node.dtype, node.shape, bytes);
}

absl::Status FoldedWeights::generate(uint64_t seed, Executor& executor) {
  for (Folded& folded : all_) {
    if (folded.computed && folded.set.empty()) continue;
    WL_RETURN_IF_ERROR(executor.generate(folded.buffer, seed));
    folded.computed = true;
    folded.set.clear();
  }
  forget();
  return absl::OkStatus();
}

bool FoldedWeights::is_folded(const std::string& name) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Folded& folded) { return folded.weight->name == name; });
}

std::set<std::string> FoldedWeights::missing(bool begun) const {
  std::set<std::string> names;
  for (const Folded& folded : all_) {
    if (folded.set.empty() && (begun || folded.computed)) continue;
    for (NodeId input : folded.weight->from.inputs())
      if (!is_known(folded.weight->from.nodes[input])) names.insert(folded.weight->from.nodes[input].text);
  }
  return names;
}

std::vector<TensorInfo> FoldedWeights::operands() const {
  std::vector<TensorInfo> infos;
  for (const auto& [name, readers] : operands_) {
    const Graph& from = all_[readers[0]].weight->from;
    for (NodeId input : from.inputs()) {
      const Node& node = from.nodes[input];
      if (node.text == name) infos.push_back({name, node.dtype, node.shape});
    }
  }
  return infos;
}

}  // namespace wl
