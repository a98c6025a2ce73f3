"""The entry point of torch.compile(model, backend="warploom")."""

import functools

from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext

from ._breaks import listen
from ._decompositions import decompositions
from ._options import checked
from ._parts import report, with_kernels
from ._resize import in_place_of_theirs
from ._sizes import ManySizes, dynamic_arguments

__all__ = ["backend", "report"]


def _static_inputs():
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return set(metadata.static_input_indices) if metadata is not None else set()


def _compile(gm, example_inputs, *, is_inference, options):
    static = _static_inputs() if is_inference else set()
    dynamic = dynamic_arguments(gm.graph)
    return make_boxed_func(ManySizes(gm, dynamic, static, options) if dynamic else with_kernels(gm, static, options))


def backend(gm, example_inputs, *, options=None, mode=None):
    """The backend of torch.compile. Its options are those of `warploom tune`, as in torch.compile(m, backend="warploom", options={"trials":
    32}), and "progress", which means the same as in warploom.tune(). Raises TypeError for an unknown option and ValueError for a wrong
    value."""
    options = checked(options, mode)
    compiler = functools.partial(_compile, is_inference=False, options=options)
    with in_place_of_theirs():
        return aot_autograd(
            fw_compiler=compiler,
            bw_compiler=compiler,
            inference_compiler=functools.partial(_compile, is_inference=True, options=options),
            decompositions=decompositions(),
        )(gm, example_inputs)


backend._dynamo_backend_init = listen  # Dynamo calls this when torch.compile looks up the backend
