"""Reads the objects that newer versions of kubectl send as protocol buffers, which are those of `kubectl create`: namespaces and secrets.
The numbers are those of generated.proto in k8s.io/api and k8s.io/apimachinery."""

import base64

MAGIC = b"k8s\0"  # then a message Unknown: 1 is a TypeMeta, 2 the object


def number(content, at):
    """The number at a position, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(content):
            raise ValueError("a number is cut off")
        value |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 128:
            return value, at


def fields(content):
    """Key and value of each field of a message: bytes, or a number."""
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
    """A key of a secret with its value as in JSON."""
    pair = dict(fields(content))
    return {pair[1].decode(): base64.b64encode(pair.get(2, b"")).decode()}


def message(table):
    """A reader of messages of a type: key -> name of the field and its reader."""

    def read(content):
        """The object of a message. A field that the table has not must be empty or 0, so that nothing gets lost."""
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
    """The object that a request's body is, as JSON has it. Raises ValueError or LookupError on what is not read here."""
    if not content.startswith(MAGIC):
        raise ValueError("this is no object of Kubernetes")
    outer = dict(fields(content[len(MAGIC) :]))
    what = TYPE(outer[1])
    return {**what, **OBJECTS[what["kind"]](outer[2])}
