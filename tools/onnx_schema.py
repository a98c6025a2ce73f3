#!/usr/bin/env python3
"""Writes what the importer needs to know of the standard ONNX operators (compiler/import/schema.h), as the
installed onnx package defines them, to a C++ file: tools/onnx_schema.py OUTPUT. The build runs it."""
import json
import pathlib
import sys

import onnx

FIELDS = {"INT": "i", "FLOAT": "f", "STRING": "s"}


def text(value):
    return json.dumps(value)  # ASCII; for the texts in schemas JSON has the same escapes as C++


def attribute(schema, name):
    """Returns {name, type, required, default given, integer, number, text}."""
    given = schema.attributes[name]
    kind = str(given.type).rpartition(".")[2]
    default = given.default_value
    known = default.name != "" and kind in FIELDS
    integer = default.i if known and kind == "INT" else 0
    number = repr(default.f) if known and kind == "FLOAT" else "0"
    string = default.s.decode() if known and kind == "STRING" else ""
    return (f"    {{{text(name)}, {onnx.AttributeProto.AttributeType.Value(kind)}, {str(given.required).lower()}, "
            f"{str(known).lower()}, {integer}, {number}, {text(string)}}},")


def takes(schema):
    """Returns [{name, needed}] of the inputs, and whether the last one may be repeated."""
    option = onnx.defs.OpSchema.FormalParameterOption
    rows = [f"    {{{text(i.name)}, {str(i.option == option.Single).lower()}}}," for i in schema.inputs]
    return rows, any(i.option == option.Variadic for i in schema.inputs)


def main():
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""]
    schemas.sort(key=lambda s: (s.name, s.since_version))
    attributes, inputs, rows = [], [], []
    for schema in schemas:
        names = sorted(schema.attributes)
        own, variadic = takes(schema)
        rows.append(f"    {{{text(schema.name)}, {schema.since_version}, {str(schema.deprecated).lower()}, "
                    f"{len(attributes)}, {len(names)}, {len(inputs)}, {len(own)}, {str(variadic).lower()}}},")
        inputs += own
        attributes += [attribute(schema, name) for name in names]
    lines = ['#include "compiler/import/schema.h"', "", "namespace wl::onnx_import {", "namespace {",
             "constexpr SchemaAttribute kAttributes[] = {", *attributes, "};",
             "constexpr SchemaInput kInputs[] = {", *inputs, "};",
             "constexpr Schema kSchemas[] = {", *rows, "};", "}  // namespace", "",
             "std::span<const Schema> schemas() { return kSchemas; }",
             "std::span<const SchemaAttribute> attributes_of(const Schema& schema) {",
             "  return std::span(kAttributes).subspan(static_cast<size_t>(schema.first), "
             "static_cast<size_t>(schema.count));", "}",
             "std::span<const SchemaInput> inputs_of(const Schema& schema) {",
             "  return std::span(kInputs).subspan(static_cast<size_t>(schema.first_input), "
             "static_cast<size_t>(schema.inputs));", "}",
             f"int newest_opset() {{ return {onnx.defs.onnx_opset_version()}; }}",
             f"std::string_view schema_source() {{ return {text('onnx ' + onnx.__version__)}; }}", "",
             "}  // namespace wl::onnx_import", ""]
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
