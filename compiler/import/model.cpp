#include "compiler/import/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>
#include <unordered_map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/suggest.h"
#include "compiler/import/schema.h"
#include "nlohmann/json.hpp"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {
namespace {

// Parses `text` as a JSON object. `key` is the metadata key that `text` belongs to; error messages name it.
absl::StatusOr<nlohmann::json> object_of(const std::string& key, const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid("metadata ", key, ": expected a JSON object");
  return json;
}

bool pair_of_numbers(const nlohmann::json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number();
}

absl::Status read_stats(const std::string& key, const std::string& text, Metadata& result) {
  WL_ASSIGN_OR_RETURN(const auto json, object_of(key, text));
  for (const auto& [name, value] : json.items()) {
    if (!pair_of_numbers(value) || !(value[1].get<double>() >= 0)) {
      return invalid("metadata ", key, ": '", name, "' must be [mean, deviation]");
    }
    result.fills[name].mean = value[0].get<double>();
    result.fills[name].stddev = value[1].get<double>();
  }
  return absl::OkStatus();
}

absl::Status read_ranges(const std::string& key, const std::string& text, Metadata& result) {
  WL_ASSIGN_OR_RETURN(const auto json, object_of(key, text));
  for (const auto& [name, value] : json.items()) {
    if (!pair_of_numbers(value) || !value[0].is_number_integer() || !value[1].is_number_integer() ||
        value[0].get<int64_t>() >= value[1].get<int64_t>()) {
      return invalid("metadata ", key, ": '", name, "' must be [low, high) in integers");
    }
    result.fills[name].low = value[0].get<int64_t>();
    result.fills[name].high = value[1].get<int64_t>();
  }
  return absl::OkStatus();
}

}  // namespace

std::string domain_of(const std::string& name) {
  return name == "ai.onnx" ? "" : name;
}
std::string domain_text(const std::string& domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

absl::StatusOr<std::map<std::string, int>> opsets_of(const onnx::ModelProto& model) {
  std::map<std::string, int> result;
  for (const auto& opset : model.opset_import()) {
    const std::string domain = domain_of(opset.domain());
    const int64_t version = opset.version();
    if (version < 1 || version > std::numeric_limits<int>::max()) {
      return invalid("opset version ", version, " of ", domain_text(domain), " is out of range");
    }
    if (domain.empty() && version > newest_opset()) {
      return unimplemented("opset ", version, " of ai.onnx is newer than ", newest_opset(), ", the newest that ",
                           schema_source(), " knows, with which Warploom was built; export for an older one");
    }
    result[domain] = static_cast<int>(version);
  }
  if (result.empty()) return invalid("not an ONNX model: it names no opset version (opset_import)");
  return result;
}

absl::StatusOr<Metadata> metadata_of(const onnx::ModelProto& model) {
  Metadata result;
  result.source = model.graph().name();
  for (const auto& entry : model.metadata_props()) {
    if (entry.key() == "warploom.weights") result.weights = absl::StrSplit(entry.value(), ',', absl::SkipEmpty());
    if (entry.key() == "warploom.source") result.source = entry.value();
    if (entry.key() == "warploom.weight_stats") WL_RETURN_IF_ERROR(read_stats(entry.key(), entry.value(), result));
    if (entry.key() == "warploom.int_range") WL_RETURN_IF_ERROR(read_ranges(entry.key(), entry.value(), result));
  }
  return result;
}

// Returns a question for the end of an error message: whether a name in `bind` that resembles `dimension` was meant
// to be `dimension`. Returns "" if no name resembles it.
static std::string meant_by(const std::map<std::string, int64_t>& bind, const std::string& dimension) {
  for (const auto& [name, extent] : bind)
    if (!suggestion(name, {dimension}).empty()) return cat(" (is --bind ", name, "=", extent, " meant?)");
  return "";
}

absl::StatusOr<InputType> input_type(const onnx::ValueInfoProto& input, const ImportOptions& options,
                                     std::vector<std::string>& dimensions) {
  const std::string what = cat("input ", input.name());
  if (!input.type().has_tensor_type()) return unimplemented(what, ": only tensors are supported");
  const auto& type = input.type().tensor_type();
  InputType result;
  WL_ASSIGN_OR_RETURN(result.element, element_type_of(type.elem_type(), what));
  if (!type.has_shape()) return unimplemented(what, ": its rank is unknown; export the model with shapes");
  for (int axis = 0; axis < type.shape().dim_size(); ++axis) {
    const auto& dim = type.shape().dim(axis);
    if (dim.has_dim_value()) {
      result.shape.push_back(dim.dim_value());
      continue;
    }
    const bool named = !dim.dim_param().empty();
    const std::string name = named ? dim.dim_param() : cat(input.name(), ".", axis);
    dimensions.push_back(name);
    const auto bound = options.bind.find(name);
    if (bound == options.bind.end()) {
      return invalid(what, ": dimension ", axis, " (", named ? name : "unnamed", ") is not bound; pass --bind ", name,
                     "=N", meant_by(options.bind, name));
    }
    result.shape.push_back(bound->second);
  }
  WL_RETURN_IF_ERROR(check_shape(result.shape, what));
  return result;
}

std::string label(const onnx::NodeProto& node, int index) {
  if (!node.name().empty()) return cat("node \"", node.name(), "\" (", node.op_type(), ")");
  return cat("node #", index, " (", node.op_type(), ")");
}

namespace {

// Collects the names of values that the bodies of a node read from the enclosing graph.
void add_captured(const onnx::GraphProto& body, std::set<std::string> own, std::vector<std::string>& names) {
  for (const auto& input : body.input()) own.insert(input.name());
  for (const auto& tensor : body.initializer()) own.insert(tensor.name());
  for (const auto& node : body.node()) own.insert(node.output().begin(), node.output().end());
  for (const auto& node : body.node()) {
    for (const std::string& name : node.input()) {
      if (!own.contains(name)) names.push_back(name);
    }
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) add_captured(attribute.g(), own, names);
    }
  }
  for (const auto& output : body.output()) {
    if (!own.contains(output.name())) names.push_back(output.name());
  }
}

std::vector<std::string> names_read(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add_captured(attribute.g(), {}, names);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<int>> sorted_nodes(const onnx::GraphProto& graph, const std::vector<std::string>& known) {
  constexpr int kGiven = -1;
  std::unordered_map<std::string, int> provider;
  for (const std::string& name : known) provider.emplace(name, kGiven);
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : graph.node(i).output()) {
      if (name.empty()) continue;
      const auto [it, fresh] = provider.emplace(name, i);
      if (fresh) continue;
      return invalid(label(graph.node(i), i), ": output '", name, "' is already ",
                     it->second == kGiven ? "an input of the graph"
                                          : cat("an output of ", label(graph.node(it->second), it->second)));
    }
  }
  // This is Kahn's algorithm. Of the nodes that are ready, the one with the smallest index is taken, so that nodes in a
  // valid order keep it.
  std::vector<int> waiting(static_cast<size_t>(graph.node_size()), 0);
  std::vector<std::vector<int>> readers(static_cast<size_t>(graph.node_size()));
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : names_read(graph.node(i))) {
      if (name.empty()) continue;
      const auto it = provider.find(name);
      if (it == provider.end()) {
        return invalid(label(graph.node(i), i), ": reads '", name, "', which no input, initializer or node provides");
      }
      if (it->second == kGiven) continue;
      readers[static_cast<size_t>(it->second)].push_back(i);
      ++waiting[static_cast<size_t>(i)];
    }
    if (waiting[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const int reader : readers[static_cast<size_t>(i)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  if (static_cast<int>(order.size()) == graph.node_size()) return order;
  std::vector<std::string> stuck;
  for (int i = 0; i < graph.node_size() && stuck.size() < 5; ++i) {
    if (waiting[static_cast<size_t>(i)] > 0) stuck.push_back(label(graph.node(i), i));
  }
  return invalid("the graph has a cycle; among the nodes on or after it: ", absl::StrJoin(stuck, ", "));
}

}  // namespace wl::onnx_import
