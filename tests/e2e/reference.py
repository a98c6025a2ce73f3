"""Compares results with those of onnxruntime for the same model. Needs a Python environment with onnxruntime."""

import pathlib

BOUND = 1e-4  # largest allowed error, relative to the output's largest magnitude: Warploom and onnxruntime add in f32, in different orders


def available():
    try:
        import numpy  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return True


def largest_difference(model, folder):
    """Returns the largest difference between the outputs in `folder` (NAME.npy, computed from inputs/NAME.npy) and onnxruntime's, relative
    to the largest magnitude of each output."""
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    folder = pathlib.Path(folder)
    inputs = {i.name: numpy.load(folder / "inputs" / f"{i.name.replace('/', '_')}.npy") for i in session.get_inputs()}
    worst = 0.0
    for output, expected in zip(session.get_outputs(), session.run(None, inputs)):
        found = numpy.load(folder / f"{output.name.replace('/', '_')}.npy")
        assert found.shape == expected.shape and found.dtype == expected.dtype, f"{found.shape} {expected.shape}"
        scale = max(float(numpy.abs(expected).max(initial=0)), 1e-30)
        difference = float(numpy.abs(found.astype("f8") - expected.astype("f8")).max(initial=0)) / scale
        assert difference == difference, "not a number where onnxruntime has one"
        worst = max(worst, difference)
    return worst
