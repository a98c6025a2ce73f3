"""Enough of the ONNX wire format to write small broken models without the onnx package."""


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    """Returns a field of a message: length-delimited if the payload is bytes or text, a varint if it is a number."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    if isinstance(payload, str):
        payload = payload.encode()
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def value_info(name, dims, dtype=1):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def node(op, inputs, outputs, name=""):
    return b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name) + field(4, op)


def model(nodes, inputs, outputs, opset=17):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g")
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, opset))
