"""Reads the objects that newer versions of kubectl send as protocol buffers: the namespaces and secrets of `kubectl create`. The field
numbers are those of generated.proto in k8s.io/api and k8s.io/apimachinery."""

import base64

MAGIC = b"k8s\0"  # first bytes of an object, before a message Unknown with a TypeMeta as field 1 and the object itself as field 2


def number(content, at):
    """Returns the varint at a position, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(content):
            raise ValueError("a number is cut off")
        value |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 128:
            return value, at


def fields(content):
    """Yields the number and the value of each field of a message; a value is bytes or a number."""
    at = 0
    while at < len(content):
        tag, at = number(content, at)
        value, at = number(content, at)
        if tag & 7 not in (0, 2):
            raise ValueError(f"field {tag >> 3} is of no kind that is known here")
        if tag & 7 == 2:
            if at + value > len(content):
                raise ValueError(f"field {tag >> 3} is cut off")
            value, at = content[at : at + value], at + value
        yield tag >> 3, value


def entry(content):
    """Returns an entry of a secret as JSON has it: key -> value in base64."""
    pair = dict(fields(content))
    return {pair[1].decode(): base64.b64encode(pair.get(2, b"")).decode()}


def message(table):
    """Returns a reader of messages of one type. table: field number -> the field's name and reader."""

    def read(content):
        """Returns the object that a message describes. Fields that are not in the table must be empty or 0, so that nothing is lost."""
        result = {}
        for key, value in fields(content):
            if key not in table:
                if value:
                    raise ValueError(f"field {key} is not known here")
                continue
            name, reader = table[key]
            value = reader(value)
            result[name] = {**result.get(name, {}), **value} if isinstance(value, dict) else value
        return result

    return read


TYPE = message({1: ("apiVersion", bytes.decode), 2: ("kind", bytes.decode)})
METADATA = message({1: ("name", bytes.decode), 3: ("namespace", bytes.decode)})
OBJECTS = {
    "Namespace": message({1: ("metadata", METADATA), 3: ("status", message({}))}),
    "Secret": message({1: ("metadata", METADATA), 2: ("data", entry), 3: ("type", bytes.decode)}),
}


def decoded(content):
    """Returns the object in a request's body as JSON would represent it. Raises ValueError or LookupError for objects that are not
    supported."""
    if not content.startswith(MAGIC):
        raise ValueError("this is no object of Kubernetes")
    outer = dict(fields(content[len(MAGIC) :]))
    what = TYPE(outer[1])
    return {**what, **OBJECTS[what["kind"]](outer[2])}
