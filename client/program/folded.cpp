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
  // A folded weight that merely reorders one operand is written directly from the caller's bytes, without a copy of
  // them.
  std::vector<size_t> collecting;
  for (size_t reader : readers) {
    Folded& folded = all_[reader];
    const bool alone = folded.weight->from.inputs().size() == 1;
    if (alone && write_moved(*folded.weight, bytes, static_cast<char*>(executor.data(folded.buffer)))) {
      WL_RETURN_IF_ERROR(done(folded, executor));
    } else {
      collecting.push_back(reader);
    }
  }
  bool needed = false;
  for (size_t reader : collecting) {
    Folded& folded = all_[reader];
    folded.set.insert(name);
    if (folded.set.size() == folded.weight->from.inputs().size())
      WL_RETURN_IF_ERROR(compute(folded, executor, {{name, {dtype, bytes.data()}}}));
    needed = needed || is_needed(folded, name);
  }
  held_.erase(name);
  if (needed) held_[name] = {dtype, shape, std::string(bytes)};
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

// Whether a copy of an operand must be kept for a folded weight: while other operands of the weight are still missing,
// or if the bundle contains an older value of the operand, which later computations would use in place of a missing
// copy.
bool FoldedWeights::is_needed(const Folded& folded, const std::string& operand) {
  const Graph& from = folded.weight->from;
  const std::vector<NodeId> inputs = from.inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](NodeId input) {
    const Node& node = from.nodes[input];
    return node.text == operand && (!folded.set.empty() || !node.fill.literal.empty());
  });
}

// Frees the copies of operands that no weight needs any more.
void FoldedWeights::forget() {
  std::erase_if(held_, [&](const auto& held) {
    const std::vector<size_t>& readers = operands_.at(held.first);
    return std::none_of(readers.begin(), readers.end(),
                        [&](size_t reader) { return is_needed(all_[reader], held.first); });
  });
}

absl::Status FoldedWeights::compute(Folded& folded, Executor& executor,
                                    const std::map<std::string, Given>& given) const {
  const Graph& from = folded.weight->from;
  std::vector<Given> values(from.nodes.size());
  for (NodeId input : from.inputs()) {
    const std::string& name = from.nodes[input].text;
    if (const auto held = held_.find(name); held != held_.end())
      values[input] = {held->second.dtype, held->second.bytes.data()};
    if (const auto now = given.find(name); now != given.end()) values[input] = now->second;
  }
  const InputReader read = [&](NodeId input, int64_t index) {
    const auto at = static_cast<uint64_t>(index);
    const Given& value = values[input];
    return value.bytes != nullptr ? load_element(value.dtype, value.bytes, at)
                                  : from.nodes[input].fill.literal[static_cast<size_t>(at)];
  };
  WL_RETURN_IF_ERROR(write_value(*folded.weight, read, static_cast<char*>(executor.data(folded.buffer))));
  return done(folded, executor);
}

absl::Status FoldedWeights::done(Folded& folded, Executor& executor) {
  folded.set.clear();
  folded.computed = true;
  return executor.send(folded.buffer);
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
