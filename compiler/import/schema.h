// The standard ONNX operators as the onnx package defines them: names, versions, attributes and inputs.
// tools/onnx_schema.py writes these tables (onnx_schema.inc). The importer checks nodes against them and takes defaults
// of attributes from them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace onnx {
class NodeProto;
}

namespace wl::onnx_import {

struct SchemaAttribute {
  std::string_view name;
  int type;  // type of the attribute: a number of AttributeProto.AttributeType
  bool required;
  bool has_default;  // whether there is a default; only defaults of type INT, FLOAT or STRING are kept
  int64_t integer;
  float number;
  std::string_view text;
};

struct SchemaInput {
  std::string_view name;
  bool needed;
};

struct Schema {
  std::string_view op;
  int since;         // opset version that introduced this version of the op
  bool deprecated;   // whether the op is deprecated from version `since` on
  int first, count;  // the index of the op's first attribute, and the number of its attributes
  int first_input, inputs;
  bool variadic;  // whether the last input stands for any number of inputs
};

std::span<const Schema> schemas();  // returns all schemas, ordered by name, then version
std::span<const SchemaAttribute> attributes_of(const Schema& schema);
std::span<const SchemaInput> inputs_of(const Schema& schema);
int newest_opset();
std::string_view schema_source();  // returns the package that the schemas come from, e.g. "onnx 1.23.2"

// Returns the schema of an op that is in force at an opset version; null if the op does not exist in that version.
const Schema* schema_of(std::string_view op, int version);
const SchemaAttribute* attribute_of(const Schema& schema, std::string_view name);

// Checks a node of the default domain: each attribute is in the schema and has its type, no required attribute or input
// is left out, and there are not more inputs than the op has.
absl::Status check_node(const onnx::NodeProto& node, const Schema& schema);

}  // namespace wl::onnx_import
