"""The class Model: a bundle as a function of arrays."""

import atexit
import functools
import threading
import weakref

import numpy as np

from . import _core

# NumPy's types by Warploom's dtypes. NumPy lacks 8-bit floats and bf16; their arrays have unsigned integers of the same bits.
_NUMPY = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i64": np.int64, "i32": np.int32,
    "i16": np.int16, "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
    "b1": np.bool_, "f8e4m3fn": np.uint8, "f8e5m2": np.uint8,
}  # fmt: skip
# The names of PyTorch's types by Warploom's dtypes.
TORCH = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "b1": "bool",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip
_ALIGNMENT = 64  # kernels use an array in place if its address is a multiple of this


_OWNERS = weakref.WeakSet()  # Python objects that own models, executors or clients of the C library


def owns(owner):
    """Clears an object's attributes when Python exits. A daemon thread, for example, may keep the object alive then, but the C library's
    objects in it must be freed before the extension module is."""
    _OWNERS.add(owner)


@atexit.register
def _let_go():
    for owner in list(_OWNERS):
        owner.__dict__.clear()


def _empty(tensor):
    """Returns a new NumPy array for a tensor, aligned so that kernels can use the array in place."""
    dtype = np.dtype(_NUMPY[tensor.dtype])
    memory = np.empty(tensor.nbytes + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + tensor.nbytes].view(dtype).reshape(tensor.shape)


def maker_of(tensor):
    """Returns a function that makes a new PyTorch tensor like `tensor` at each call. PyTorch aligns its memory to 64 bytes."""
    import torch  # noqa: PLC0415: only callers that have PyTorch call this

    return functools.partial(torch.empty, tensor.shape, dtype=getattr(torch, TORCH[tensor.dtype]))


def torch_empty(tensor):
    return maker_of(tensor)()


class Executors:
    """The executors of a model. Each call takes an idle executor, or creates one; all executors share the weights. Thread-safe."""

    def __init__(self, core, **options):
        owns(self)
        self._core, self._options = core, options
        self._lock = threading.Lock()
        self._idle = {}  # executors that no call uses, by size

    def _taken(self, size):
        with self._lock:
            idle = self._idle.setdefault(size, [])
            executor = idle.pop() if idle else None
        return executor or _core.Executor(self._core, size, **self._options)

    def _give_back(self, size, executor):
        with self._lock:
            self._idle[size].append(executor)

    def prepare(self, size=0):
        """Creates an executor, and so raises an error if the kernels cannot be loaded."""
        self._give_back(size, self._taken(size))

    def run_at(self, size, inputs, outputs):
        """Runs with inputs and outputs at addresses, which are lists in the graph's order. The memory at each must be a contiguous array of
        the tensor's dtype and shape, which is not checked."""
        executor = self._taken(size)
        try:
            executor.run_at(inputs, outputs)
        finally:
            self._give_back(size, executor)

    def run(self, size, given, results):
        """Computes the arrays `results` from the arrays `given`, both in the graph's order. Keeps no reference to them."""
        executor = self._taken(size)
        try:
            for index, array in enumerate(given):
                executor.bind_input(index, array)
            for index, array in enumerate(results):
                executor.bind_output(index, array)
            executor.run()
        finally:
            for index in range(len(results)):
                executor.bind_output(index, None)
            for index in range(len(given)):
                executor.bind_input(index, None)
            self._give_back(size, executor)


def _is_torch(value):
    return type(value).__module__.partition(".")[0] == "torch"


class Model:
    """A tuned model: a function of its inputs, which are given in the graph's order or by name.

    Thread-safe: each call uses an executor of its own, and all share the weights. Arrays are those of NumPy or any that support DLPack, on
    the CPU. They are used in place if they are contiguous and their address is a multiple of 64, as that of PyTorch's tensors is.
    """

    def __init__(self, folder, *, threads=0, pin=False, device="", source=""):
        """Loads the bundle in `folder`. threads: limit of threads; 0: as many as the kernels were tuned with. pin: whether threads are pinned
        to CPUs; for benchmarks."""
        owns(self)
        self._core = folder if isinstance(folder, _core.Model) else _core.Model(str(folder))
        self.source = source  # where Client.fetch() found the model: "process", "disk", "coordinator" or "fallback"; otherwise ""
        self._executors = Executors(self._core, threads=threads, pin=pin, device=device or "")
        self._inputs = [self._core.inputs(size) for size in range(len(self._core.sizes))]
        self._outputs = [self._core.outputs(size) for size in range(len(self._core.sizes))]

    @property
    def chosen(self):
        """How Client.fetch() says that the kernels were chosen: "predicted" or "tuned"; "" if it does not say, and for other models."""
        return ("", "predicted", "tuned")[self._core.chosen]

    @property
    def replaced(self):
        """Whether the client that fetched the model has newer kernels, which the next fetch() returns."""
        return self._core.replaced

    @property
    def sizes(self):
        """The extents of symbolic dimensions for which the model was tuned, such as ["batch=8"]; [""] if there are none."""
        return self._core.sizes

    def inputs(self, size=0):
        """Name, dtype and shape of every input at a size, an index of `sizes`."""
        return self._inputs[size]

    def outputs(self, size=0):
        """Name, dtype and shape of every output at a size."""
        return self._outputs[size]

    def weights(self):
        """Name, dtype and shape of every weight. Weights are not among the inputs."""
        return self._core.weights()

    def load_weights(self, path):
        """Sets every weight for which an .onnx, .npz or .npy file, or a folder of .npy files, has a value."""
        self._core.load_weights(str(path))

    def set_weight(self, name, array):
        """Sets a weight to a copy of the array."""
        self._core.set_weight(name, array)

    def generate_weights(self, seed=1):
        """Fills every weight that has no value with random numbers; for tests and timing."""
        self._core.generate_weights(seed)

    def _in_order(self, arrays, by_name):
        names = [tensor.name for tensor in self._inputs[0]]
        unknown = set(by_name) - set(names)
        if unknown or len(arrays) + len(by_name) != len(names) or set(by_name) & set(names[: len(arrays)]):
            wrong = f"no input is named {min(unknown)}" if unknown else f"{len(arrays) + len(by_name)} arrays were given"
            raise TypeError(f"{wrong}; the inputs are {', '.join(names)}")
        return [*arrays, *(by_name[name] for name in names[len(arrays) :])]

    def _size_of(self, arrays):
        if len(self._inputs) == 1:
            return 0
        return self._core.size_of([list(array.shape) for array in arrays])

    def __call__(self, *arrays, **by_name):
        """Computes the outputs: one array, or a tuple of several. They are PyTorch tensors if the first input is one, else NumPy arrays."""
        arrays = self._in_order(arrays, by_name)
        if arrays and _is_torch(arrays[0]):
            given, made = [array.detach().contiguous() for array in arrays], torch_empty
        else:
            given, made = [np.ascontiguousarray(array) for array in arrays], _empty
        size = self._size_of(given)
        results = [made(tensor) for tensor in self._outputs[size]]
        self._executors.run(size, given, results)
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self):
        signature = ", ".join(map(repr, self._inputs[0]))
        return f"warploom.Model({signature} -> {', '.join(map(repr, self._outputs[0]))})"


def load(folder, *, threads=0, pin=False, device=""):
    """Loads the bundle that `warploom tune --out FOLDER` or warploom.tune() wrote."""
    return Model(folder, threads=threads, pin=pin, device=device)
