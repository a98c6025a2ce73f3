#include "compiler/import/import.h"

#include <set>
#include <unordered_map>

#include "absl/strings/str_join.h"
#include "compiler/import/fold.h"
#include "compiler/import/model.h"
#include "compiler/import/table.h"
#include "onnx/onnx_pb.h"

namespace wl {
namespace onnx_import {
namespace {

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const ImportOptions& options)
      : graph_(model.graph()), model_(model), options_(options) {}

  absl::StatusOr<Imported> run() {
    WL_ASSIGN_OR_RETURN(opsets_, opsets_of(model_));
    WL_RETURN_IF_ERROR(find_rows());
    WL_ASSIGN_OR_RETURN(metadata_, metadata_of(model_));
    WL_RETURN_IF_ERROR(add_initializers());
    WL_RETURN_IF_ERROR(add_inputs());
    std::vector<std::string> known;
    for (const auto& [name, value] : values_) known.push_back(name);
    WL_ASSIGN_OR_RETURN(const auto order, sorted_nodes(graph_, known));
    for (const int index : order) WL_RETURN_IF_ERROR(add_node(index));
    WL_RETURN_IF_ERROR(add_outputs());
    WL_ASSIGN_OR_RETURN(auto graph, builder_.finish());
    Imported result{std::move(graph), {}, metadata_.source};
    const std::set<std::string> listed(metadata_.weights.begin(), metadata_.weights.end());
    for (const NodeId id : result.graph.inputs()) {
      const std::string& name = result.graph.nodes[static_cast<size_t>(id)].text;
      if (!data_inputs_.contains(name) || listed.contains(name)) result.weights.push_back(name);
    }
    return result;
  }

 private:
  int version_of(const std::string& domain) const {
    const auto it = opsets_.find(domain);
    return it == opsets_.end() ? 1 : it->second;
  }

  // All rows are looked up first, so that one error lists every op that is missing.
  absl::Status find_rows() {
    std::map<std::string, int> missing;
    std::string first;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const auto& node = graph_.node(i);
      const std::string domain = domain_of(node.domain());
      const int version = version_of(domain);
      const Row* other = nullptr;
      const Row* row = find_row(domain, node.op_type(), version, &other);
      rows_.push_back(row);
      if (row != nullptr) continue;
      if (missing.empty()) {
        first = cat(label(node, i), ": op ", node.op_type(), " of ", domain_text(domain), ", opset ", version,
                    ", is not supported");
        if (other != nullptr) first += cat(" (known since opset ", other->since, ")");
      }
      ++missing[cat(domain.empty() ? "" : domain + ".", node.op_type())];
    }
    if (missing.empty()) return absl::OkStatus();
    return unimplemented(
        first, "; missing in this file: ", absl::StrJoin(missing, ", ", [](std::string* out, const auto& entry) {
          *out += cat(entry.first, " x", entry.second);
        }));
  }

  absl::Status add_initializers() {
    if (graph_.sparse_initializer_size() > 0) return unimplemented("sparse initializers are not supported");
    for (const auto& tensor : graph_.initializer()) {
      const std::string what = cat("initializer ", tensor.name());
      if (tensor.name().empty()) return invalid("an initializer has no name");
      if (values_.contains(tensor.name())) return invalid(what, ": the name occurs twice");
      WL_ASSIGN_OR_RETURN(auto decoded, decode_tensor(tensor, what));
      values_[tensor.name()] =
          Value{tensor.name(), decoded.dtype, decoded.shape, std::move(decoded.literal), decoded.fill, -1};
    }
    return absl::OkStatus();
  }

  absl::Status add_inputs() {
    std::vector<std::string> dimensions;
    for (const auto& input : graph_.input()) {
      if (input.name().empty()) return invalid("an input of the graph has no name");
      if (!data_inputs_.insert(input.name()).second) return invalid("input ", input.name(), ": the name occurs twice");
      if (values_.contains(input.name())) {  // its default is its value, as before IR version 4
        data_inputs_.erase(input.name());
        continue;
      }
      WL_ASSIGN_OR_RETURN(const auto type, input_type(input, options_, dimensions));
      const auto fill = metadata_.fills.find(input.name());
      Value value{input.name(), type.dtype, type.shape, std::nullopt, {}, -1};
      if (fill != metadata_.fills.end()) value.fill = fill->second;
      value.node = builder_.input(value.name, value.dtype, value.shape, value.fill);
      WL_RETURN_IF_ERROR(builder_.status());
      values_[input.name()] = std::move(value);
    }
    for (const auto& [name, extent] : options_.bind) {
      if (std::find(dimensions.begin(), dimensions.end(), name) != dimensions.end()) continue;
      return invalid("--bind ", name, "=", extent, ": no input has a dimension of that name; the model has ",
                     dimensions.empty() ? "none" : absl::StrJoin(dimensions, ", "));
    }
    return absl::OkStatus();
  }

  absl::Status add_node(int index) {
    const auto& node = graph_.node(index);
    const auto located = [&](const absl::Status& status) {
      return absl::Status(status.code(), cat(label(node, index), ": ", status.message()));
    };
    std::vector<Value*> inputs;
    for (const std::string& name : node.input()) inputs.push_back(name.empty() ? nullptr : &values_.at(name));
    const int version = version_of(domain_of(node.domain()));
    std::vector<Call::Result> results;
    if (auto folded = fold(*rows_[static_cast<size_t>(index)], node, version, inputs)) {
      results = *std::move(folded);
    } else {
      auto built = build(*rows_[static_cast<size_t>(index)], node, version, inputs, builder_, /*cache=*/true);
      if (!built.ok()) return located(built.status());
      results = *std::move(built);
    }
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      Call::Result& result = results[static_cast<size_t>(i)];
      Value value{.name = node.output(i)};
      if (result.literal) {
        value.dtype = result.literal->dtype;
        value.shape = result.literal->shape;
        value.literal = std::move(result.literal);
      } else if (result.node >= 0) {
        value.node = result.node;
        value.dtype = builder_.node(result.node).dtype;
        value.shape = builder_.node(result.node).shape;
      } else {
        return located(unimplemented("output ", i, " ('", node.output(i), "') is not supported"));
      }
      values_[node.output(i)] = std::move(value);
    }
    return absl::OkStatus();
  }

  absl::Status add_outputs() {
    if (graph_.output_size() == 0) return invalid("the graph has no outputs");
    std::set<std::string> names;
    const onnx::NodeProto none;
    for (const auto& output : graph_.output()) {
      if (!names.insert(output.name()).second)
        return invalid("two outputs of the graph are called '", output.name(), "'");
      const auto it = values_.find(output.name());
      if (it == values_.end()) {
        return invalid("output '", output.name(), "' of the graph: no node, input or initializer provides it");
      }
      WL_ASSIGN_OR_RETURN(const NodeId id, materialise(it->second, builder_));
      builder_.output(output.name(), id);
      WL_RETURN_IF_ERROR(builder_.status());
    }
    return absl::OkStatus();
  }

  const onnx::GraphProto& graph_;
  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  std::map<std::string, int> opsets_;
  Metadata metadata_;
  std::vector<const Row*> rows_;  // of each node
  std::unordered_map<std::string, Value> values_;
  std::set<std::string> data_inputs_;
  Builder builder_;
};

}  // namespace
}  // namespace onnx_import

absl::StatusOr<Imported> import_onnx(std::string_view bytes, const ImportOptions& options) {
  const google::protobuf::LogSilencer silence;  // what is wrong is in our Status, not on the terminal
  if (bytes.empty()) return invalid("not an ONNX model: the file is empty");
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return invalid("an ONNX model in one piece has at most 2 GiB, this one has ", bytes.size(), " bytes");
  }
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return invalid("not an ONNX model: the ", bytes.size(),
                   " bytes do not parse; the file is cut short or something else");
  }
  if (!model.has_graph()) return invalid("not an ONNX model: there is no graph in it");
  return onnx_import::Importer(model, options).run();
}

}  // namespace wl
