"""The onnx package's backend test cases as folders that run_onnx reads (tests/tools/onnx_case.h)."""
import dataclasses
import glob
import hashlib
import os
import pathlib
import re
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
# Names of cases whose every input is a size or a shape. If these inputs became constants, nothing would remain to be computed.
SHAPES_ONLY = re.compile(r"test_(range|constantofshape|hannwindow|hammingwindow|blackmanwindow|melweightmatrix)")
# Names of cases whose kernels take minutes to compile, such as concats of ever more tensors.
SLOW = {"test_densenet121"}
FEW = 64  # largest number of elements of an input that may be a shape, an axis or a scale


@dataclasses.dataclass
class Case:
    name: str
    kind: str
    model: onnx.ModelProto
    inputs: list  # arrays in the order of the graph's inputs; None for an optional input that is left out
    outputs: list
    rtol: float
    atol: float
    excluded: str = ""  # the reason why the case is excluded; empty if it is included


def array_of(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, (list, dict)) or value is None else np.asarray(value)


def read_proto(path, type_proto):
    """Returns the value of a .pb file of a test case, whose type the graph states; None if it is not a tensor."""
    if type_proto.WhichOneof("value") != "tensor_type":
        return None
    return numpy_helper.to_array(onnx.load_tensor(path))


def sets_of(case, model):
    """Yields pairs of inputs and expected outputs of a case."""
    if case.data_sets is not None:
        yield from case.data_sets
        return
    known = {w.name for w in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in known]
    if case.url is not None:  # For a real model, the onnx package has one expected output; it belongs to the input that is computed here.
        value = inputs[0].type.tensor_type.shape
        shape = [d.dim_value if d.HasField("dim_value") else 1 for d in value.dim]
        count = int(np.prod(shape))
        expected = glob.glob(str(light_model(case)).replace(".onnx", "_output_0.pb"))
        yield ([(np.arange(count).reshape(shape) / count).astype(np.float32)],
               [numpy_helper.to_array(onnx.load_tensor(expected[0]))])
        return
    for folder in sorted(glob.glob(f"{case.model_dir}/test_data_set_*")):
        def values(kind, infos):
            return [read_proto(f"{folder}/{kind}_{i}.pb", info.type) for i, info in enumerate(infos)]
        yield values("input", inputs), values("output", model.graph.output)


def share():
    """Returns the share of the cases that are tried: WARPLOOM_TEST_SCALE, at most 1."""
    return min(1, float(os.environ.get("WARPLOOM_TEST_SCALE", "1")))


def drawn(every):
    """Returns a sample of the cases, of the share that is tried, drawn with the seed WARPLOOM_TEST_SEED."""
    seed = os.environ.get("WARPLOOM_TEST_SEED", "1")
    place = lambda case: int.from_bytes(hashlib.sha256(f"{seed} {case.name}".encode()).digest()[:4], "big") / 2**32
    return [case for case in every if place(case) < share()]


def least(floor):
    """Returns the share of the drawn cases that must pass if the share `floor` of all cases must pass. It is smaller, since a sample may
    have more failing cases."""
    return floor if share() == 1 else floor - 0.02


def light_model(case):
    return pathlib.Path(onnx.__file__).parent.parent / case.url


def load():
    """Returns every case. A test of the package with several data sets becomes one case for each."""
    from onnx.backend.test import loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for case in loader.load_model_tests(kind=kind):
                model = case.model
                if model is None:
                    model = onnx.load(light_model(case) if case.url else f"{case.model_dir}/model.onnx")
                for number, (inputs, outputs) in enumerate(sets_of(case, model)):
                    name = case.name if number == 0 else f"{case.name}.{number}"
                    results = [array_of(v) for v in outputs]
                    yield Case(name, kind, model, [array_of(v) for v in inputs], results, case.rtol,
                               max(case.atol, rounding_of_transforms(model, results)))


def rounding_of_transforms(model, results):
    """Returns the absolute error that is allowed for results which the package computed by a fast Fourier transform: half a unit in the
    last place of the largest element. For elements that should be 0, the package's own tolerance is smaller than this error."""
    if not any(node.op_type in ("DFT", "STFT") for node in model.graph.node):
        return 0
    return max(float(np.finfo(each.dtype).eps) / 2 * float(np.abs(each).max(initial=0)) for each in results)


# Properties of a model, by which excluded.txt selects cases.
def graphs_of(model):
    todo = [model.graph]
    while todo:
        graph = todo.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                todo += [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)


def facts_of(model):
    facts = set()

    def add_tensor(data_type):
        facts.add(("type", onnx.TensorProto.DataType.Name(data_type)))

    for graph in graphs_of(model):
        for value in list(graph.input) + list(graph.output):
            kind = value.type.WhichOneof("value")
            if kind == "tensor_type" and graph is model.graph and value in graph.output:
                facts.add(("result", onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)))
            if kind == "tensor_type":
                add_tensor(value.type.tensor_type.elem_type)
            elif kind:
                facts.add(("type", kind.removesuffix("_type")))
        for weight in graph.initializer:
            add_tensor(weight.data_type)
        for node in graph.node:
            facts |= {("domain", node.domain), ("op", node.op_type)}
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    add_tensor(attribute.t.data_type)
    return facts


def read_excluded(path):
    rows = []
    for line in pathlib.Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            kind, pattern, reason = line.split(None, 2)
            rows.append((kind, pattern, reason))
    return rows


def why_excluded(case, rows):
    facts = facts_of(case.model)
    for kind, pattern, reason in rows:
        if (kind == "name" and re.fullmatch(pattern, case.name)) or (kind, pattern) in facts:
            return reason
    return ""


# Helpers for writing a case into a folder.
def fixed_shapes(model, arrays):
    """Returns the model with the extents of this case's inputs, and without value_info that could contradict them."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        if value.name in arrays and value.type.WhichOneof("value") == "tensor_type":
            shape = value.type.tensor_type.shape
            shape.ClearField("dim")
            for extent in arrays[value.name].shape:
                shape.dim.add().dim_value = extent
    return copy


def with_constants(model, arrays, names):
    """Returns the model with some inputs as initializers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = [value for value in copy.graph.input if value.name not in names]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    copy.graph.initializer.extend(numpy_helper.from_array(arrays[name], name) for name in names)
    return copy


def constant_sets(case, arrays):
    """Returns the sets of inputs that may have to be known when the model is compiled, because ONNX passes shapes, axes and counts as
    inputs; smallest set first."""
    order = list(arrays)
    few = [n for n in order if arrays[n].ndim <= 1 and arrays[n].size <= FEW]
    integers = [n for n in few if n != order[0] and arrays[n].dtype.kind in "iub"]
    sets = [integers, [n for n in few if n != order[0]]]
    if SHAPES_ONLY.match(case.name):
        sets.append(few)
    seen = [[]]
    for names in sets:
        if names not in seen:
            seen.append(names)
    return seen[1:]


def as_stored(array):
    """Returns integers of four bits in the form that Warploom reads: two in a byte, which halves the last extent, or flattened if the last
    extent is odd."""
    if array.dtype not in (ml_dtypes.int4, ml_dtypes.uint4):
        return array
    bits = array.astype(np.int8).reshape(-1).view(np.uint8) & 15
    stored = bits[::2].copy()
    stored[: bits.size // 2] |= bits[1::2] << 4
    return stored.reshape(*array.shape[:-1], array.shape[-1] // 2) if array.ndim and array.shape[-1] % 2 == 0 else stored


def write(case, folder):
    folder.mkdir(parents=True)
    known = {w.name for w in case.model.graph.initializer}
    order = [value.name for value in case.model.graph.input if value.name not in known]
    if len(order) != len(case.inputs):  # The case has values for initializers too, which a model may also list as inputs.
        order = [value.name for value in case.model.graph.input]
    arrays = {name: value for name, value in zip(order, case.inputs) if isinstance(value, np.ndarray)}
    model = fixed_shapes(case.model, arrays)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for number, names in enumerate(constant_sets(case, arrays), 1):
        (folder / f"model{number}.onnx").write_bytes(with_constants(model, arrays, names).SerializeToString())
    given = dict(arrays)
    given.update({w.name: numpy_helper.to_array(w) for w in case.model.graph.initializer})
    lines = []
    for number, (name, array) in enumerate(given.items()):
        np.save(folder / f"in{number}.npy", as_stored(np.asarray(array, order="C")))
        lines.append(f"{name}\tin{number}.npy\n")
    (folder / "inputs.txt").write_text("".join(lines))
