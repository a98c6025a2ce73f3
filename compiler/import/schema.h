// The standard ONNX operators as the installed onnx package defines them: names, versions, attributes and inputs. The
// build generates the tables from that package (tools/onnx_schema.py); the importer checks nodes against them, and
// takes from them the values of attributes that a node leaves out.
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
  int type;  // AttributeProto.AttributeType
  bool required;
  bool has_default;  // of the types INT, FLOAT and STRING; other defaults are not kept
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
  int since;         // opset version
  bool deprecated;   // from this version on
  int first, count;  // attributes
  int first_input, inputs;
  bool variadic;  // the last input stands for any number of them
};

std::span<const Schema> schemas();  // by name, then version
std::span<const SchemaAttribute> attributes_of(const Schema& schema);
std::span<const SchemaInput> inputs_of(const Schema& schema);
int newest_opset();
std::string_view schema_source();  // "onnx 1.23.2"

// The schema in force at an opset version. Null for an op that does not exist there.
const Schema* schema_of(std::string_view op, int version);
const SchemaAttribute* attribute_of(const Schema& schema, std::string_view name);

// A node of the default domain: each attribute is the schema's, of its type, and nothing that is required, attribute or
// input, is left out; nor are there more inputs than the op has.
absl::Status check_node(const onnx::NodeProto& node, const Schema& schema);

}  // namespace wl::onnx_import
