#!/usr/bin/env python3
"""Writes the tables of standard ONNX operators that the importer needs (compiler/import/schema.h), from the definitions of the
installed onnx package: tools/onnx_schema.py [OUTPUT]. Run it after a change of that package's version in tools/requirements.txt."""
import json
import pathlib
import sys

import onnx

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "compiler/import/onnx_schema.inc"
WIDTH = 130
FIELDS = {"INT": "i", "FLOAT": "f", "STRING": "s"}


def text(value):
    return json.dumps(value)  # the texts of schemas are ASCII, for which JSON has the same escapes as C++


def attribute(schema, name):
    """Returns a row of an attribute: {name, type, whether required, whether it has a default, the default as integer, number, text}."""
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
    """Returns rows {name, whether needed} of the inputs, and whether the last one may be repeated."""
    option = onnx.defs.OpSchema.FormalParameterOption
    rows = [f"    {{{text(i.name)}, {str(i.option == option.Single).lower()}}}," for i in schema.inputs]
    return rows, any(i.option == option.Variadic for i in schema.inputs)


def packed(rows):
    """Returns the rows as lines of text, each with as many rows as fit."""
    lines = [""]
    for row in (row.strip() for row in rows):
        if lines[-1] and len(lines[-1]) + 1 + len(row) > WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "  ") + row
    return lines


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
    lines = ["// Written by tools/onnx_schema.py; tests/checks/onnx_schema.py tells whether it is current.",
             f"constexpr std::string_view kSchemaSource = {text('onnx ' + onnx.__version__)};",
             f"constexpr int kSchemaOpset = {onnx.defs.onnx_opset_version()};",
             "constexpr SchemaAttribute kAttributes[] = {", *packed(attributes), "};",
             "constexpr SchemaInput kInputs[] = {", *packed(inputs), "};",
             "constexpr Schema kSchemas[] = {", *packed(rows), "};", ""]
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else OUTPUT).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
