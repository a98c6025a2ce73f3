#include "compiler/import/import.h"

#include "absl/strings/str_join.h"
#include "compiler/base/suggest.h"
#include "compiler/import/importer.h"
#include "compiler/import/table.h"
#include "compiler/ir/ranges.h"

namespace wl {
namespace onnx_import {
namespace {

int version_in(const Opsets& opsets, const std::string& domain) {
  const auto it = opsets.find(domain);
  return it == opsets.end() ? 1 : it->second;
}

bool has_body(const onnx::NodeProto& node) {
  return domain_of(node.domain()).empty() &&
         (node.op_type() == "If" || node.op_type() == "Loop" || node.op_type() == "Scan");
}

// Returns, for an error message about an op without a row in the import table, what the ONNX standard says about the
// op; "" if the standard explains nothing.
std::string why_missing(const std::string& domain, const std::string& op, int version) {
  if (!domain.empty()) return "";
  const Schema* schema = schema_of(op, version);
  if (schema == nullptr) return ": the standard has no such op in that version";
  return schema->deprecated ? cat(": deprecated since opset ", schema->since) : "";
}

std::string function_key(const std::string& domain, const std::string& name) {
  return cat(domain, ":", name);
}

}  // namespace

Importer::Importer(const onnx::ModelProto& model, const ImportOptions& options)
    : graph_(model.graph()), model_(model), options_(options) {
  for (const auto& function : model.functions()) {
    functions_[function_key(domain_of(function.domain()), function.name())] = &function;
  }
}

absl::StatusOr<Imported> Importer::run() {
  WL_ASSIGN_OR_RETURN(opsets_, opsets_of(model_));
  WL_RETURN_IF_ERROR(check_nodes());
  WL_ASSIGN_OR_RETURN(metadata_, metadata_of(model_));
  WL_RETURN_IF_ERROR(add_initializers());
  WL_RETURN_IF_ERROR(add_inputs());
  std::vector<std::string> known;
  for (const auto& [name, value] : values_) known.push_back(name);
  WL_ASSIGN_OR_RETURN(const auto order, sorted_nodes(graph_, known));
  for (const int index : order) {
    const auto& node = graph_.node(index);
    WL_RETURN_IF_ERROR(add_node(node, label(node, index), {&opsets_}));
  }
  WL_RETURN_IF_ERROR(add_outputs());
  WL_ASSIGN_OR_RETURN(auto graph, builder_.finish());
  draw_integers(graph);
  Imported result{std::move(graph), {}, metadata_.source};
  const std::set<std::string> listed(metadata_.weights.begin(), metadata_.weights.end());
  for (const NodeId id : result.graph.inputs()) {
    const std::string& name = result.graph.nodes[static_cast<size_t>(id)].text;
    if (!data_inputs_.contains(name) || listed.contains(name)) result.weights.push_back(name);
  }
  return result;
}

bool Importer::is_known(const onnx::NodeProto& node, const Opsets& opsets) const {
  const std::string domain = domain_of(node.domain());
  return has_body(node) || functions_.contains(function_key(domain, node.op_type())) ||
         find_row(domain, node.op_type(), version_in(opsets, domain)) != nullptr;
}

// Looks up the rows of all nodes of the main graph before any node is imported, so that one error lists every missing
// op.
absl::Status Importer::check_nodes() const {
  std::map<std::string, int> missing;
  std::string first;
  for (int i = 0; i < graph_.node_size(); ++i) {
    const auto& node = graph_.node(i);
    if (is_known(node, opsets_)) continue;
    const std::string domain = domain_of(node.domain());
    if (missing.empty()) {
      const int version = version_in(opsets_, domain);
      const Row* other = nullptr;
      find_row(domain, node.op_type(), version, &other);
      first = cat(label(node, i), ": op ", node.op_type(), " of ", domain_text(domain), ", opset ", version,
                  ", is not supported", why_missing(domain, node.op_type(), version));
      if (other != nullptr) first += cat(" (supported since opset ", other->since, ")");
    }
    ++missing[cat(domain.empty() ? "" : domain + ".", node.op_type())];
  }
  if (missing.empty()) return absl::OkStatus();
  return unimplemented(
      first, "; unsupported in this file: ", absl::StrJoin(missing, ", ", [](std::string* out, const auto& entry) {
        *out += cat(entry.first, " x", entry.second);
      }));
}

absl::Status Importer::add_initializer(const onnx::TensorProto& tensor, const std::string& name) {
  const std::string what = cat("initializer ", name);
  if (tensor.name().empty()) return invalid("an initializer has no name");
  if (values_.contains(name)) return invalid(what, ": the name occurs twice");
  const bool elsewhere = tensor.data_location() == onnx::TensorProto::EXTERNAL;
  onnx::TensorProto copy;
  if (elsewhere) {
    copy = tensor;
    WL_RETURN_IF_ERROR(embed(copy, options_.external, what));
  }
  WL_ASSIGN_OR_RETURN(auto decoded, decode_tensor(elsewhere ? copy : tensor, what));
  values_[name] = CallValue{name, decoded.type.dtype,   decoded.shape, std::move(decoded.literal), decoded.fill,
                            -1,   decoded.type.per_byte};
  return absl::OkStatus();
}

absl::Status Importer::add_initializers() {
  if (graph_.sparse_initializer_size() > 0) return unimplemented("sparse initializers are not supported");
  for (const auto& tensor : graph_.initializer()) WL_RETURN_IF_ERROR(add_initializer(tensor, tensor.name()));
  return absl::OkStatus();
}

absl::Status Importer::add_inputs() {
  std::vector<std::string> dimensions;
  for (const auto& input : graph_.input()) {
    if (input.name().empty()) return invalid("an input of the graph has no name");
    if (!data_inputs_.insert(input.name()).second) return invalid("input ", input.name(), ": the name occurs twice");
    if (values_.contains(input.name())) {
      // Before IR version 4, every initializer had to be listed as a graph input as well. Such an input takes the
      // initializer's value.
      data_inputs_.erase(input.name());
      continue;
    }
    WL_ASSIGN_OR_RETURN(const auto type, input_type(input, options_, dimensions));
    const auto fill = metadata_.fills.find(input.name());
    CallValue value{input.name(), type.element.dtype, type.shape, std::nullopt, {}, -1, type.element.per_byte};
    if (type.element.per_byte > 1) value.fill.low = 0, value.fill.high = 256;
    if (fill != metadata_.fills.end()) value.fill = fill->second;
    WL_RETURN_IF_ERROR(materialise(value, builder_).status());
    values_[input.name()] = std::move(value);
  }
  for (const auto& [name, extent] : options_.bind) {
    if (std::find(dimensions.begin(), dimensions.end(), name) != dimensions.end()) continue;
    return invalid("--bind ", name, "=", extent, ": no input has a dimension of that name",
                   suggestion(name, dimensions), "; the model has ",
                   dimensions.empty() ? "none" : absl::StrJoin(dimensions, ", "));
  }
  return absl::OkStatus();
}

const CallValue* Importer::find(const std::string& name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

absl::Status Importer::add_node(const onnx::NodeProto& node, const std::string& where, const ImportContext& context) {
  const auto located = [&](const absl::Status& status) {
    return status.ok() ? status : absl::Status(status.code(), cat(where, ": ", status.message()));
  };
  for (const std::string& name : node.input()) {
    if (name.empty() || values_.contains(name)) continue;
    return invalid(where, ": reads '", name, "', which no input, initializer or node provides");
  }
  const std::string domain = domain_of(node.domain());
  const int version = version_in(*context.opsets, domain);
  const Row* row = find_row(domain, node.op_type(), version);
  if (domain.empty() && (row != nullptr || has_body(node))) {
    const Schema* schema = schema_of(node.op_type(), version);
    if (schema != nullptr && !schema->deprecated) WL_RETURN_IF_ERROR(located(check_node(node, *schema)));
  }
  if (domain.empty() && node.op_type() == "If") return located(add_if(node, context));
  if (domain.empty() && node.op_type() == "Loop") return located(add_loop(node, context));
  if (domain.empty() && node.op_type() == "Scan") return located(add_scan(node, context));
  if (row == nullptr) {
    const auto function = functions_.find(function_key(domain, node.op_type()));
    if (function != functions_.end()) return located(add_function(node, *function->second, context));
  }
  return add_row(node, where, context);
}

absl::Status Importer::add_row(const onnx::NodeProto& node, const std::string& where, const ImportContext& context) {
  const auto located = [&](const absl::Status& status) {
    return absl::Status(status.code(), cat(where, ": ", status.message()));
  };
  const std::string domain = domain_of(node.domain());
  const int version = version_in(*context.opsets, domain);
  const Row* row = find_row(domain, node.op_type(), version);
  if (row == nullptr) {
    return located(unimplemented("op ", node.op_type(), " of ", domain_text(domain), ", opset ", version,
                                 ", is not supported", why_missing(domain, node.op_type(), version)));
  }
  std::vector<CallValue*> inputs;
  for (const std::string& name : node.input()) inputs.push_back(name.empty() ? nullptr : &values_.at(name));
  std::vector<Call::Result> results;
  if (auto folded = fold(*row, node, version, inputs)) {
    results = *std::move(folded);
  } else {
    auto built = build(*row, node, version, inputs, builder_, /*cache=*/true);
    if (!built.ok()) return located(built.status());
    results = *std::move(built);
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Call::Result& result = results[static_cast<size_t>(i)];
    CallValue value{.name = node.output(i)};
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

absl::Status Importer::add_outputs() {
  if (graph_.output_size() == 0) return invalid("the graph has no outputs");
  std::set<std::string> names;
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

}  // namespace onnx_import

absl::StatusOr<Imported> import_onnx(std::string_view bytes, const ImportOptions& options) {
  const google::protobuf::LogSilencer silence;  // keeps protobuf from printing messages of its own to the terminal
  if (bytes.empty()) return invalid("not an ONNX model: the file is empty");
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return invalid("an ONNX model in one piece has at most 2 GiB, this one has ", bytes.size(), " bytes");
  }
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return invalid("not an ONNX model: the ", bytes.size(),
                   " bytes do not parse; the file is truncated or of another kind");
  }
  if (!model.has_graph()) return invalid("not an ONNX model: there is no graph in it");
  return onnx_import::Importer(model, options).run();
}

}  // namespace wl
