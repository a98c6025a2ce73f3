#include "compiler/import/schema.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/base/status.h"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {

using onnx::AttributeProto;

namespace {
#include "compiler/import/onnx_schema.inc"
}  // namespace

std::span<const Schema> schemas() {
  return kSchemas;
}

std::span<const SchemaAttribute> attributes_of(const Schema& schema) {
  return std::span(kAttributes).subspan(static_cast<size_t>(schema.first), static_cast<size_t>(schema.count));
}

std::span<const SchemaInput> inputs_of(const Schema& schema) {
  return std::span(kInputs).subspan(static_cast<size_t>(schema.first_input), static_cast<size_t>(schema.inputs));
}

int newest_opset() {
  return kSchemaOpset;
}
std::string_view schema_source() {
  return kSchemaSource;
}

const Schema* schema_of(std::string_view op, int version) {
  const auto all = schemas();
  const auto after = std::upper_bound(all.begin(), all.end(), std::pair(op, version),
                                      [](const auto& key, const Schema& s) { return key < std::pair(s.op, s.since); });
  return after == all.begin() || (after - 1)->op != op ? nullptr : &*(after - 1);
}

const SchemaAttribute* attribute_of(const Schema& schema, std::string_view name) {
  for (const SchemaAttribute& attribute : attributes_of(schema))
    if (attribute.name == name) return &attribute;
  return nullptr;
}

namespace {

absl::Status check_attributes(const onnx::NodeProto& node, const Schema& schema) {
  const auto known = attributes_of(schema);
  for (const AttributeProto& attribute : node.attribute()) {
    const SchemaAttribute* expected = attribute_of(schema, attribute.name());
    if (expected == nullptr) {
      return invalid(
          "attribute ", attribute.name(), " does not exist in ", schema.op, ", version ", schema.since, ": it has ",
          known.empty() ? "none" : absl::StrJoin(known, ", ", [](std::string* out, const SchemaAttribute& a) {
            out->append(a.name);
          }));
    }
    // Files older than IR version 2 do not give the types of attributes, so an attribute without a type is accepted.
    if (attribute.type() != AttributeProto::UNDEFINED && attribute.type() != expected->type) {
      return invalid("attribute ", attribute.name(), " is ", AttributeProto::AttributeType_Name(attribute.type()),
                     ", expected ",
                     AttributeProto::AttributeType_Name(static_cast<AttributeProto::AttributeType>(expected->type)));
    }
  }
  for (const SchemaAttribute& attribute : known) {
    if (!attribute.required) continue;
    const bool given = std::any_of(node.attribute().begin(), node.attribute().end(),
                                   [&](const AttributeProto& a) { return a.name() == attribute.name; });
    if (!given) return invalid("attribute ", attribute.name, " is missing");
  }
  return absl::OkStatus();
}

absl::Status check_inputs(const onnx::NodeProto& node, const Schema& schema) {
  const auto known = inputs_of(schema);
  for (int i = 0; i < static_cast<int>(known.size()); ++i) {
    const SchemaInput& input = known[static_cast<size_t>(i)];
    const bool given = i < node.input_size() && !node.input(i).empty();
    if (input.needed && !given) return invalid("input ", i, " (", input.name, ") is missing");
  }
  if (!schema.variadic && node.input_size() > schema.inputs) {
    return invalid("has ", node.input_size(), " inputs; ", schema.op, ", version ", schema.since, ", has at most ",
                   schema.inputs);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_node(const onnx::NodeProto& node, const Schema& schema) {
  WL_RETURN_IF_ERROR(check_attributes(node, schema));
  return check_inputs(node, schema);
}

}  // namespace wl::onnx_import
