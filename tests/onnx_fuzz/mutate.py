"""Makes models of one node for the fuzzer: a template of an operator (tests/unit/import/cases.cpp has at least one for each row of the
import table) with another opset, element type, extents, attributes and values. If the model becomes invalid, the peers refuse it."""

import dataclasses
import json

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

import values

EXTENTS = (0, 1, 2, 3, 5, 7, 13, 31, 63, 64, 65)
MOST_ELEMENTS = 20000
# Names of inputs that are sizes, positions, axes or parameters of quantisation. They get only ordinary values: integers in the ranges of the
# Template, floats around its means.
PLACES = {"indices", "shape", "axes", "axis", "starts", "ends", "steps", "repeats", "split", "pads", "output_shape", "depth", "K", "k", "roi",
          "rois", "scales", "sizes", "sequence_lens", "batch_indices", "max_output_boxes_per_class", "iou_threshold", "score_threshold",
          "dft_length", "frame_step", "frame_length", "size", "cond", "target", "position_ids", "write_indices", "num_mel_bins", "limit",
          "start", "delta", "past_sequence_length", "seqlens_k", "total_sequence_length", "I", "condition_length", "nonpad_kv_seqlen",
          "input_ids", "segment_ids", "scale", "zero_point", "x_scale", "y_scale", "x_zero_point", "y_zero_point"}
# Names of further inputs that get only ordinary values, such as scales. If these made intermediate values infinite, results would depend on the
# order of operations.
TAME = {"scale", "x_scale", "y_scale", "a_scale", "b_scale", "w_scale", "w_scales", "scales", "roi", "rois", "iou_threshold", "score_threshold"}
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(bfloat16)": ml_dtypes.bfloat16,
         "tensor(int8)": np.int8, "tensor(int16)": np.int16, "tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8,
         "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64, "tensor(bool)": np.bool_,
         "tensor(float8e4m3fn)": ml_dtypes.float8_e4m3fn, "tensor(float8e5m2)": ml_dtypes.float8_e5m2}
SCATTERS = ["none", "add", "mul", "max", "min"]
TEXTS = {("ScatterElements", "reduction"): SCATTERS, ("ScatterND", "reduction"): SCATTERS, ("NegativeLogLikelihoodLoss", "reduction"): ["none", "mean", "sum"],
         ("SoftmaxCrossEntropyLoss", "reduction"): ["none", "mean", "sum"], ("BitShift", "direction"): ["LEFT", "RIGHT"],
         ("Gelu", "approximate"): ["none", "tanh"], ("Pad", "mode"): ["constant", "reflect", "edge", "wrap"],
         ("Resize", "mode"): ["nearest", "linear", "cubic"], ("GridSample", "mode"): ["linear", "nearest", "cubic", "bilinear", "bicubic"],
         ("DepthToSpace", "mode"): ["DCR", "CRD"], ("RoiAlign", "mode"): ["avg", "max"],
         ("RoiAlign", "coordinate_transformation_mode"): ["half_pixel", "output_half_pixel"],
         ("GridSample", "padding_mode"): ["zeros", "border", "reflection"],
         ("Resize", "nearest_mode"): ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
         ("Resize", "coordinate_transformation_mode"): ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"],
         ("Resize", "keep_aspect_ratio_policy"): ["stretch", "not_larger", "not_smaller"]}
# Integer attributes that are changed to 0 or 1 only.
FLAGS = {"keepdims", "noop_with_empty_axes", "exclusive", "reverse", "fmod", "select_last_index", "largest", "sorted", "unidirectional",
         "linear_before_reset", "input_forget", "layout", "upper", "ceil_mode", "count_include_pad", "detect_negative", "detect_positive", "training_mode",
         "transA", "transB", "onesided", "inverse", "align_corners", "antialias", "exclude_outside", "saturate", "is_causal", "interleaved",
         "allowzero", "storage_order", "do_rotary", "transBatchA", "transBatchB", "periodic", "stash_type", "spatial", "reverse"}
NEWEST = min(onnx.defs.onnx_opset_version(), 26)


@dataclasses.dataclass
class Template:
    model: onnx.ModelProto
    ranges: dict  # name of an input -> [low, high] of its integers
    stats: dict   # name of an input -> [mean, deviation] of its floats

    @property
    def node(self):
        return self.model.graph.node[0]


def template(path):
    model = onnx.load(path)
    facts = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    return Template(model, facts.get("warploom.int_range", {}), facts.get("warploom.weight_stats", {}))


def schema_of(model):
    node = model.graph.node[0]
    if node.domain not in ("", "ai.onnx"):
        return None
    version = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    return onnx.defs.get_schema(node.op_type, version, "") if onnx.defs.has(node.op_type) else None


def formal(schema, number):
    """Returns the formal parameter of the schema for a node's input at a position; None if there is no schema."""
    return None if schema is None or not schema.inputs else schema.inputs[min(number, len(schema.inputs) - 1)]


def change_opset(rng, model):
    schema = schema_of(model)
    if schema is None:
        return
    try:
        other = onnx.defs.get_schema(schema.name, version := int(rng.integers(7, NEWEST + 1)), "")
    except onnx.defs.SchemaError:
        return
    node = model.graph.node[0]
    fits = {a.name for a in node.attribute} <= set(other.attributes) and len(node.input) <= max(other.max_input, 0)
    fits = fits and len(node.output) <= other.max_output
    same = [i.name for i in other.inputs][: len(node.input)] == [i.name for i in schema.inputs][: len(node.input)]
    if fits and same and not other.deprecated:
        next(o for o in model.opset_import if o.domain in ("", "ai.onnx")).version = version


def change_type(rng, model):
    """Changes the type of all inputs that have the same type parameter."""
    schema = schema_of(model)
    if schema is None:
        return
    allowed = {c.type_param_str: [TYPES[t] for t in c.allowed_type_strs if t in TYPES] for c in schema.type_constraints}
    names = {i: formal(schema, i) for i, name in enumerate(model.graph.node[0].input) if name}
    parameters = sorted({p.type_str for p in names.values() if len(allowed.get(p.type_str, [])) > 1})
    if not parameters:
        return
    parameter = parameters[rng.integers(len(parameters))]
    dtype = np.dtype(allowed[parameter][rng.integers(len(allowed[parameter]))])
    changed = {model.graph.node[0].input[i] for i, p in names.items() if p.type_str == parameter}
    for value in model.graph.input:
        if value.name in changed:
            value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(dtype)
    for weight in model.graph.initializer:
        if weight.name in changed:
            array = numpy_helper.to_array(weight)
            with np.errstate(all="ignore"):
                weight.CopyFrom(numpy_helper.from_array(array.astype(dtype), weight.name))


def change_extents(rng, model):
    """Replaces an extent by a random one in all inputs, so that operands still fit each other."""
    fixed = {d for w in model.graph.initializer for d in w.dims}
    shapes = [v.type.tensor_type.shape for v in model.graph.input]
    old = sorted({d.dim_value for s in shapes for d in s.dim if d.dim_value > 1} - fixed)
    if not old:
        return
    new = {e: int(rng.choice(EXTENTS)) for e in old if rng.random() < 0.6}
    for shape in shapes:
        for dim in shape.dim:
            dim.dim_value = new.get(dim.dim_value, dim.dim_value)


def texts_of(operator):
    """Returns the values that attributes of text may have, by operator and name. auto_pad has the same values in all operators."""
    return TEXTS | {(operator, "auto_pad"): ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]}


def change_attribute(rng, model):
    schema, node = schema_of(model), model.graph.node[0]
    names = sorted(schema.attributes) if schema is not None else [a.name for a in node.attribute]
    if not names or node.op_type == "Constant":  # a Constant keeps its only attribute, since it must have exactly one
        return
    name = names[rng.integers(len(names))]
    held = next((a for a in node.attribute if a.name == name), None)
    kind = held.type if held is not None else int(schema.attributes[name].type.value)
    if kind == onnx.AttributeProto.INT and name in FLAGS:
        value = int(rng.integers(0, 2))
    elif kind == onnx.AttributeProto.INT:
        value = int(rng.integers(-3, 4))
    elif kind == onnx.AttributeProto.FLOAT:
        value = float(rng.choice([0, 1, -1, 0.5, 2, 3.25, 1e-5, -0.25]))
    elif kind == onnx.AttributeProto.STRING and (node.op_type, name) in texts_of(node.op_type):
        value = str(rng.choice((texts_of(node.op_type))[node.op_type, name]))
    elif kind == onnx.AttributeProto.INTS and held is not None and len(held.ints):
        value = list(held.ints)
        value[rng.integers(len(value))] += int(rng.choice([-1, 1]))
    else:
        return
    if held is not None:
        node.attribute.remove(held)
    node.attribute.append(helper.make_attribute(name, value))


def draw_inputs(rng, base, model):
    """Returns random values for the inputs that are not initializers."""
    schema, node = schema_of(model), model.graph.node[0]
    arrays = {}
    for value in model.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        parameter = formal(schema, list(node.input).index(value.name))
        name = parameter.name if parameter is not None else ""
        low, high = base.ranges.get(value.name, [-10, 10])
        mean, stddev = base.stats.get(value.name, [0.0, 1.0])
        # Recurrent operators also get only ordinary values, since their results for huge values depend on the order of sums.
        place = parameter is None or name in PLACES or name in TAME or node.op_type in ("RNN", "GRU", "LSTM")
        array = values.draw(rng, dtype, shape, low, high, mean, stddev, tame=place)
        if name in ("B", "b") and node.op_type in ("Div", "Mod") and np.dtype(dtype).kind in "iu":
            array = np.where((array == 0) | (array == np.array(-1).astype(dtype)), np.array(3, dtype), array)
        arrays[value.name] = array
    return arrays


def draw_case(rng, base):
    """Returns a changed model and its inputs, or None if the model would be large."""
    model = onnx.ModelProto()
    model.CopyFrom(base.model)
    del model.metadata_props[:]
    for change, share in ((change_opset, 0.4), (change_type, 0.5), (change_attribute, 0.4), (change_extents, 0.5)):
        if rng.random() < share:
            change(rng, model)
    for output in model.graph.output:
        output.ClearField("type")
    if any(np.prod([d.dim_value for d in v.type.tensor_type.shape.dim]) > MOST_ELEMENTS for v in model.graph.input):
        return None
    return model, draw_inputs(rng, base, model)
