// Inlines the bodies of nodes. The nodes of a subgraph take the place of the node that contains it, and those of a
// model's function take the place of the node that calls it.
#include "compiler/import/importer.h"

namespace wl::onnx_import {
namespace {

constexpr int kDeepest = 24;
// Limit of the number of inlined nodes, which grows exponentially if each function calls two others.
constexpr int64_t kMaxInlined = 100'000;

std::set<std::string> defined_in(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

// Replaces the names of values that `graph` reads from the enclosing graph by those that `names` maps them to.
void rename_captured(onnx::GraphProto& graph, const Names& names) {
  const auto own = defined_in(graph);
  Names outer;
  for (const auto& [from, to] : names) {
    if (!own.contains(from)) outer.emplace(from, to);
  }
  for (auto& node : *graph.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      if (const auto it = outer.find(input); it != outer.end()) input = it->second;
    }
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_captured(*attribute.mutable_g(), outer);
    }
  }
  for (auto& output : *graph.mutable_output()) {
    if (const auto it = outer.find(output.name()); it != outer.end()) output.set_name(it->second);
  }
}

// Replaces the attribute references in a node of a function by the attributes that they refer to. `given` has the
// attributes of the function's call, and the function's defaults for other attributes. References to attributes that
// are not given are removed.
void resolve_references(onnx::NodeProto& node, const std::map<std::string, const onnx::AttributeProto*>& given) {
  for (int i = node.attribute_size() - 1; i >= 0; --i) {
    auto& attribute = *node.mutable_attribute(i);
    if (attribute.has_g()) {
      for (auto& inner : *attribute.mutable_g()->mutable_node()) resolve_references(inner, given);
    }
    if (attribute.ref_attr_name().empty()) continue;
    const auto it = given.find(attribute.ref_attr_name());
    if (it == given.end()) {
      node.mutable_attribute()->DeleteSubrange(i, 1);
      continue;
    }
    const std::string name = attribute.name();
    attribute = *it->second;
    attribute.set_name(name);
  }
}

// Returns the attributes of a function that have defaults (FunctionProto.attribute_proto). The field is read by its
// number, 11, since the installed schema may be too old to name it.
std::vector<onnx::AttributeProto> default_attributes(const onnx::FunctionProto& function) {
  constexpr int kAttributeProto = 11;
  std::vector<onnx::AttributeProto> result;
  const auto& unknown = function.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() != kAttributeProto || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    onnx::AttributeProto attribute;
    if (attribute.ParseFromString(field.length_delimited())) result.push_back(std::move(attribute));
  }
  return result;
}

}  // namespace

const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

absl::Status Importer::enter(const ImportContext& context) {
  if (++inlined_ > kMaxInlined) {
    return unimplemented("bodies and functions unroll to more than ", kMaxInlined, " nodes");
  }
  if (context.depth > kDeepest) {
    return invalid("bodies and functions are nested more than ", kDeepest, " deep (does one call itself?)");
  }
  return absl::OkStatus();
}

std::string Importer::new_prefix(const onnx::NodeProto& node) {
  return cat(node.output_size() > 0 ? node.output(0) : node.op_type(), ".", bodies_++, "/");
}

absl::Status Importer::add_renamed(const onnx::NodeProto& node, int index, const Names& names,
                                   const ImportContext& context, const std::function<void(onnx::NodeProto&)>& change) {
  if (++inlined_ > kMaxInlined) {
    return unimplemented("bodies and functions unroll to more than ", kMaxInlined, " nodes");
  }
  onnx::NodeProto copy = node;
  if (change) change(copy);
  for (auto* list : {copy.mutable_input(), copy.mutable_output()}) {
    for (std::string& name : *list) {
      if (const auto it = names.find(name); it != names.end()) name = it->second;
    }
  }
  for (auto& attribute : *copy.mutable_attribute()) {
    if (attribute.has_g()) rename_captured(*attribute.mutable_g(), names);
  }
  return add_node(copy, label(node, index), context);
}

absl::StatusOr<std::vector<CallValue>> Importer::add_body(const onnx::GraphProto& body, const std::string& prefix,
                                                          const std::string& tensors,
                                                          const std::vector<CallValue>& inputs,
                                                          const ImportContext& context) {
  const ImportContext inner{context.opsets, context.depth + 1};
  WL_RETURN_IF_ERROR(enter(inner));
  if (static_cast<size_t>(body.input_size()) != inputs.size()) {
    return invalid("its body has ", body.input_size(), " inputs, expected ", inputs.size());
  }
  Names names;
  for (int i = 0; i < body.input_size(); ++i) {
    const std::string& name = names[body.input(i).name()] = prefix + body.input(i).name();
    values_[name] = inputs[static_cast<size_t>(i)];
  }
  for (const auto& tensor : body.initializer()) {
    // An input that the caller passes replaces the initializer of the same name.
    if (names.contains(tensor.name())) continue;
    const std::string& name = names[tensor.name()] = tensors + tensor.name();
    if (find(name) == nullptr) WL_RETURN_IF_ERROR(add_initializer(tensor, name));
  }
  for (const auto& node : body.node()) {
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      if (!names.emplace(name, prefix + name).second) return invalid("its body has two values '", name, "'");
    }
  }
  for (int i = 0; i < body.node_size(); ++i) WL_RETURN_IF_ERROR(add_renamed(body.node(i), i, names, inner));
  std::vector<CallValue> results;
  for (const auto& output : body.output()) {
    const auto own = names.find(output.name());
    const CallValue* value = find(own == names.end() ? output.name() : own->second);
    if (value == nullptr) return invalid("output '", output.name(), "' of its body: nothing provides it");
    results.push_back(*value);
  }
  return results;
}

absl::Status Importer::set_outputs(const onnx::NodeProto& node, const std::vector<CallValue>& values) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    if (static_cast<size_t>(i) >= values.size()) {
      return invalid("it has ", node.output_size(), " outputs, its body gives ", values.size());
    }
    CallValue value = values[static_cast<size_t>(i)];
    // A weight keeps its own name. A literal for which there is no node yet gets the name of this output, as it may
    // become a graph input.
    if (value.literal && value.node < 0) value.name = node.output(i);
    values_[node.output(i)] = std::move(value);
  }
  return absl::OkStatus();
}

absl::Status Importer::add_function(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                                    const ImportContext& context) {
  Opsets opsets;
  for (const auto& opset : function.opset_import()) {
    opsets[domain_of(opset.domain())] =
        static_cast<int>(std::clamp<int64_t>(opset.version(), 1, std::numeric_limits<int>::max()));
  }
  const ImportContext inner{&opsets, context.depth + 1};
  WL_RETURN_IF_ERROR(enter(inner));
  const std::string prefix = new_prefix(node);
  Names names;
  for (int i = 0; i < function.input_size(); ++i) {
    names[function.input(i)] = i < node.input_size() ? node.input(i) : "";
  }
  std::map<std::string, const onnx::AttributeProto*> given;
  const auto defaults = default_attributes(function);
  for (const auto& attribute : defaults) given[attribute.name()] = &attribute;
  for (const auto& attribute : node.attribute()) given[attribute.name()] = &attribute;
  for (const auto& inside : function.node()) {
    for (const std::string& name : inside.output()) {
      if (name.empty()) continue;
      if (!names.emplace(name, prefix + name).second) return invalid("its function has two values '", name, "'");
    }
  }
  for (int i = 0; i < function.node_size(); ++i) {
    WL_RETURN_IF_ERROR(add_renamed(function.node(i), i, names, inner,
                                   [&](onnx::NodeProto& copy) { resolve_references(copy, given); }));
  }
  std::vector<CallValue> results;
  for (const std::string& name : function.output()) {
    const auto own = names.find(name);
    const CallValue* value = own == names.end() ? nullptr : find(own->second);
    if (value == nullptr) return invalid("output '", name, "' of its function: nothing provides it");
    results.push_back(*value);
  }
  return set_outputs(node, results);
}

}  // namespace wl::onnx_import
