"""Small graphs in canonical text, for tests that need no model, and models of given nodes."""

SOFTMAX_MATMUL = """graph {
  %0 = input "x" : f32[384,512] normal(0,1)
  %1 = input "w" : f32[512,256] normal(0,1)
  %2 = reduce_max %0 axes=[1] : f32[384]
  %3 = broadcast %2 dims=[0] : f32[384,512]
  %4 = sub %0 %3 : f32[384,512]
  %5 = exp %4 : f32[384,512]
  %6 = reduce_sum %5 axes=[1] : f32[384]
  %7 = broadcast %6 dims=[0] : f32[384,512]
  %8 = div %5 %7 : f32[384,512]
  %9 = contract %8 %1 "mk,kn->mn" : f32[384,256]
  %10 = tanh %9 : f32[384,256]
  output "y" %10
}
"""

# The tanh of a matrix product of an input and a weight.
LAYER = """graph {
  %0 = input "x" : f32[24,64] normal(0,1)
  %1 = input "w" : f32[64,40] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[24,40]
  %3 = tanh %2 : f32[24,40]
  output "y" %3
}
"""

PRODUCT = """graph {
  %0 = input "x" : f32[24,64] normal(0,1)
  %1 = input "w" : f32[64,40] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[24,40]
  output "y" %2
}"""

SOFTMAX = """graph {
  %0 = input "x" : f32[32,200] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[32]
  %2 = broadcast %1 dims=[0] : f32[32,200]
  %3 = sub %0 %2 : f32[32,200]
  %4 = exp %3 : f32[32,200]
  %5 = reduce_sum %4 axes=[1] : f32[32]
  %6 = broadcast %5 dims=[0] : f32[32,200]
  %7 = div %4 %6 : f32[32,200]
  output "y" %7
}
"""

# A feed-forward block: two contractions, a bias, a GELU and a residual, with extents that are no multiples of tiles.
FEED_FORWARD = """graph {
  %0 = input "x" : f32[40,72] normal(0,1)
  %1 = input "w1" : f32[72,100] normal(0,1)
  %2 = input "b1" : f32[100] normal(0,1)
  %3 = input "w2" : f32[100,72] normal(0,1)
  %4 = contract %0 %1 "mk,kn->mn" : f32[40,100]
  %5 = broadcast %2 dims=[1] : f32[40,100]
  %6 = add %4 %5 : f32[40,100]
  %7 = constant 0.70710677 : f32[40,100]
  %8 = mul %6 %7 : f32[40,100]
  %9 = erf %8 : f32[40,100]
  %10 = constant 1 : f32[40,100]
  %11 = add %9 %10 : f32[40,100]
  %12 = mul %6 %11 : f32[40,100]
  %13 = contract %12 %3 "mk,kn->mn" : f32[40,72]
  %14 = add %13 %0 : f32[40,72]
  output "y" %14
}
"""

# Three matrix products of one input, which are independent of each other.
PRODUCTS = """graph {
  %0 = input "x" : f32[96,64] normal(0,1)
  %1 = input "a" : f32[64,96] normal(0,1)
  %2 = input "b" : f32[64,96] normal(0,1)
  %3 = input "c" : f32[64,40] normal(0,1)
  %4 = contract %0 %1 "mk,kn->mn" : f32[96,96]
  %5 = contract %0 %2 "mk,kn->mn" : f32[96,96]
  %6 = contract %0 %3 "mk,kn->mn" : f32[96,40]
  output "q" %4
  output "k" %5
  output "v" %6
}
"""

# A 3x3 and a 1x1 convolution with an activation between them. The second output is the sum of the activation over all pixels.
CONVOLUTIONS = """graph {
  %0 = input "x" : f32[16,9,9] normal(0,1)
  %1 = input "w" : f32[16,3,3,32] normal(0,1)
  %2 = input "v" : f32[32,32] normal(0,1)
  %3 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[16,11,11]
  %4 = window %3 axes=[1,2] params=[3,1,1,3,1,1] : f32[16,9,9,3,3]
  %5 = contract %4 %1 "kmoli,klin->nmo" : f32[32,9,9]
  %6 = constant 0 : f32[32,9,9]
  %7 = max %5 %6 : f32[32,9,9]
  %8 = contract %7 %2 "kmo,kn->nmo" : f32[32,9,9]
  output "y" %8
  %9 = reduce_sum %7 axes=[1,2] : f32[32]
  output "sums" %9
}
"""

SCALAR = """graph {
  %0 = input "x" : f32[] normal(0,1)
  %1 = input "y" : f32[] normal(0,1)
  %2 = mul %0 %1 : f32[]
  %3 = exp %2 : f32[]
  output "z" %3
}
"""

ZERO_SIZE = """graph {
  %0 = input "x" : f32[0,16] normal(0,1)
  %1 = exp %0 : f32[0,16]
  output "y" %1
}
"""

ZERO_REDUCED = """graph {
  %0 = input "x" : f32[4,0] normal(0,1)
  %1 = reduce_sum %0 axes=[1] : f32[4]
  output "y" %1
}
"""

# A graph that has its input as two of its outputs.
PASS_THROUGH = """graph {
  %0 = input "x" : f32[4,4] normal(0,1)
  %1 = exp %0 : f32[4,4]
  output "same" %0
  output "again" %0
  output "y" %1
}
"""

CONSTANT = """graph {
  %0 = input "x" : f32[8] normal(0,1)
  %1 = constant 2.5 : f32[8]
  %2 = add %0 %1 : f32[8]
  output "c" %1
  output "y" %2
}
"""

CYCLE = """graph {
  %0 = input "x" : f32[4] normal(0,1)
  %1 = add %0 %2 : f32[4]
  %2 = exp %1 : f32[4]
  output "y" %2
}
"""

TWO_OUTPUTS = """graph {
  %0 = input "x" : f32[4] normal(0,1)
  %1 = exp %0 : f32[4]
  %2 = neg %0 : f32[4]
  output "y" %1
  output "y" %2
}
"""


def graph(*lines):
    """Returns a graph of these lines."""
    return "graph {\n  " + "\n  ".join(lines) + "\n}\n"


def distinct_ops(count):
    """Returns a graph of independent ops with different shapes, so that every op is a kernel of its own."""
    inputs = [f'%{i} = input "x{i}" : f32[{i + 16}] normal(0,1)' for i in range(count)]
    ops = [f"%{count + i} = exp %{i} : f32[{i + 16}]" for i in range(count)]
    return graph(*inputs, *ops, *(f'output "y{i}" %{count + i}' for i in range(count)))


def several_products(count, rows, columns):
    """Returns a graph of independent products, the i-th of which has `rows` + i rows."""
    lines = []
    for i in range(count):
        lines.append(f'%{2 * i} = input "a{i}" : f32[{rows + i},32] normal(0,1)')
        lines.append(f'%{2 * i + 1} = input "b{i}" : f32[32,{columns}] normal(0,1)')
    lines += [f'%{2 * count + i} = contract %{2 * i} %{2 * i + 1} "mk,kn->mn" : f32[{rows + i},{columns}]' for i in range(count)]
    return graph(*lines, *(f'output "y{i}" %{2 * count + i}' for i in range(count)))


EXP = """graph {
  %0 = input "x" : f32[32,200] normal(0,1)
  %1 = exp %0 : f32[32,200]
  output "y" %1
}
"""


def _many_inputs(count):
    """Returns a graph with so many inputs, their concatenation and their sum: its kernels have more arguments than those of any layer."""
    inputs = [f'%{i} = input "x{i}" : f32[2] normal(0,1)' for i in range(count)]
    joined = f"%{count} = concat {' '.join(f'%{i}' for i in range(count))} axis=[0] : f32[{2 * count}]"
    sums = [f"%{count + i} = add %{0 if i == 1 else count + i - 1} %{i} : f32[2]" for i in range(1, count)]
    return graph(*inputs, joined, *sums, f'output "y" %{count}', f'output "sum" %{2 * count - 1}')


MANY_INPUTS = _many_inputs(300)


def onnx_model(nodes, inputs, outputs, weights=None):
    """Returns an ONNX model. Inputs and outputs are triples of a name, a type and a shape; weights are a dict: name -> array."""
    from onnx import helper, numpy_helper  # imported here, since few tests need the package onnx

    values = ([helper.make_tensor_value_info(*row) for row in rows] for rows in (inputs, outputs))
    made = helper.make_graph(nodes, "g", *values, [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
