"""Runs one workload with one framework in a process of its own.

    peers.py PEER WORKLOAD THREADS    prepares (imports, compiles, runs once), then prints JSON objects, one per line:
    (at start)     {"ready": version, "prepare_s": s, "sample": [...]}   with the output at places of workloads.sample
    time SECONDS   {"ns": [...]}                                         one entry per call, output included

Weights are constants wherever a framework can make use of that. Inputs and outputs are allocated once where the
framework allows it.
"""

import glob
import json
import math
import os
import resource
import sys
import time

import ml_dtypes
import numpy as np
import parts
import products
import workloads

MAX_CALLS = 300


class OnnxRuntime:
    def __init__(self, workload, made, inputs, threads):
        import onnxruntime

        if is_half(workload.model()):
            raise SystemExit("onnxruntime multiplies no bf16 on CPUs")
        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            made.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.binding = self.session.io_binding()
        wanted = {i.name for i in self.session.get_inputs()}
        self.inputs = {k: onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in inputs.items() if k in wanted}
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, value)
        (output,) = self.session.get_outputs()
        self.output = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(output.shape, np.float32))
        self.binding.bind_ortvalue_output(output.name, self.output)

    def call(self):
        self.session.run_with_iobinding(self.binding)

    def result(self):
        return self.output.numpy()


def is_half(model):
    """Whether a model has bf16 inputs."""
    return any(kind == ml_dtypes.bfloat16 for kind in workloads.dtypes(model.graph.input).values())


def openvino_compiled(model, threads, precision="f32"):
    import openvino

    core = openvino.Core()
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,  # OpenVINO's default is bf16 on machines that have it
    }
    return core.compile_model(core.read_model(model.SerializeToString()), "CPU", options)


class OpenVinoRequest:
    """A model compiled by OpenVINO, with its inputs in place."""

    def __init__(self, model, inputs, threads, precision="f32"):
        import openvino

        self.version = openvino.__version__
        self.compiled = openvino_compiled(model, threads, precision)
        self.request = self.compiled.create_infer_request()
        self.inputs = [openvino.Tensor(inputs[port.any_name], shared_memory=True) for port in self.compiled.inputs]
        for position, value in enumerate(self.inputs):
            self.request.set_input_tensor(position, value)

    def call(self):
        self.request.infer()


class OpenVino(OpenVinoRequest):
    """Products of bf16 as users of OpenVINO have them: a model of f32 that is computed in bf16."""

    def __init__(self, workload, made, inputs, threads):
        super().__init__(made, inputs, threads, "bf16" if is_half(workload.model()) else "f32")

    def result(self):
        return self.request.get_output_tensor(0).data


class Torch:
    mode = None  # the `mode` argument of torch.compile; None: the module is not compiled

    def __init__(self, workload, made, inputs, threads):
        import torch

        self.version = torch.__version__
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        weights = set(workloads.weight_names(made))
        names = [i.name for i in made.graph.input if i.name not in weights]
        self.inputs = [torch_tensor(inputs[name]) for name in names]
        self.module = torch_module(workload.name, {name: torch_tensor(inputs[name]) for name in weights}).eval()
        if self.mode:
            import torch._inductor.config

            torch._inductor.config.freezing = True  # lets Inductor treat weights as constants
            self.module = torch.compile(self.module, mode=self.mode, dynamic=False)
        self.no_grad = torch.no_grad
        self.output = None

    def call(self):
        with self.no_grad():
            self.output = self.module(*self.inputs)

    def result(self):
        return self.output.float().numpy()


def torch_tensor(array):
    """Returns a tensor that shares an array's memory. bf16 needs a detour, because torch knows only NumPy's own dtypes."""
    import torch

    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class TorchCompile(Torch):
    mode = "default"


class TorchMaxAutotune(Torch):
    mode = "max-autotune"


def torch_module(name, weights):
    """Returns the workload as a function that users of torch would write."""
    import torch
    import torch.nn.functional as F

    class Module(torch.nn.Module):
        def __init__(self, forward):
            super().__init__()
            for key, value in weights.items():
                self.register_parameter(key.replace(".", "_"), torch.nn.Parameter(value, requires_grad=False))
            self.function = forward

        def forward(self, *inputs):
            return self.function(self, *inputs)

    def group_norm_silu(_, x, scale, shift):
        return F.silu(F.group_norm(x, workloads.GROUP_NORM[4], scale.reshape(-1), shift.reshape(-1), 1e-5))

    def bert_layer(w, x, mask):
        def heads(matrix, bias):
            return (x @ matrix + bias).view(1, 512, 12, 64).transpose(1, 2)

        q, k, v = heads(w.val_0, w.q_bias), heads(w.val_8, w.k_bias), heads(w.val_16, w.v_bias)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(1, 512, 768)
        h = F.layer_norm(a @ w.val_30 + w.o_bias + x, (768,), w.ln1_weight, w.ln1_bias, 1e-12)
        f = F.gelu(h @ w.val_34 + w.up_bias) @ w.val_43 + w.down_bias
        return F.layer_norm(f + h, (768,), w.ln2_weight, w.ln2_bias, 1e-12)

    def layer_norm(_, x, r, scale, shift):
        return F.layer_norm(x + r, (x.shape[-1],), scale, shift, 1e-5)

    return Module(
        {
            "softmax": lambda _, x: F.softmax(x, -1),
            "log_softmax": lambda _, x: F.log_softmax(x, -1),
            "layer_norm": layer_norm,
            "layer_norm_cached": layer_norm,
            "bias_gelu": lambda _, x, bias: F.gelu(x + bias),
            "group_norm_silu": group_norm_silu,
            "transpose_add": lambda _, x, z: x.t() + z,
            "sgemm": lambda _, a, b: a @ b,
            "bert_layer": bert_layer,
            **parts.torch_functions(),
            **products.torch_functions(),
        }[name]
    )


class Xla:
    def __init__(self, workload, made, inputs, threads):
        import jax

        self.version = jax.__version__
        weights = set(workloads.weight_names(made))
        constants = {name: jax.numpy.asarray(inputs[name]) for name in weights}
        self.inputs = [jax.device_put(inputs[i.name]) for i in made.graph.input if i.name not in weights]
        function = jax_function(workload.name, constants)
        self.function = jax.jit(function).lower(*self.inputs).compile()
        self.output = None

    def call(self):
        self.output = self.function(*self.inputs)
        self.output.block_until_ready()

    def result(self):
        return np.asarray(self.output)


def jax_function(name, w):
    import jax
    import jax.numpy as jnp

    def layer_norm(x, scale, shift, epsilon=1e-5):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * scale + shift

    def gelu(x):
        return 0.5 * x * (1 + jax.lax.erf(x / math.sqrt(2)))

    def group_norm_silu(x, scale, shift):
        g = x.reshape(x.shape[0], workloads.GROUP_NORM[4], -1)
        centred = g - g.mean(-1, keepdims=True)
        n = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return jax.nn.silu(n.reshape(x.shape) * scale + shift)

    def bert_layer(x, mask):
        def heads(matrix, bias):
            return (x @ matrix + bias).reshape(1, 512, 12, 64).transpose(0, 2, 1, 3)

        q, k, v = heads(w["val_0"], w["q.bias"]), heads(w["val_8"], w["k.bias"]), heads(w["val_16"], w["v.bias"])
        a = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / 8 + mask) @ v
        a = a.transpose(0, 2, 1, 3).reshape(1, 512, 768)
        h = layer_norm(a @ w["val_30"] + w["o.bias"] + x, w["ln1.weight"], w["ln1.bias"], 1e-12)
        f = gelu(h @ w["val_34"] + w["up.bias"]) @ w["val_43"] + w["down.bias"]
        return layer_norm(f + h, w["ln2.weight"], w["ln2.bias"], 1e-12)

    return {
        "softmax": lambda x: jax.nn.softmax(x),
        "log_softmax": lambda x: jax.nn.log_softmax(x),
        "layer_norm": lambda x, r, scale, shift: layer_norm(x + r, scale, shift),
        "layer_norm_cached": lambda x, r, scale, shift: layer_norm(x + r, scale, shift),
        "bias_gelu": lambda x, bias: gelu(x + bias),
        "group_norm_silu": group_norm_silu,
        "transpose_add": lambda x, z: x.T + z,
        "sgemm": lambda a, b: jnp.matmul(a, b),
        "bert_layer": bert_layer,
        **parts.jax_functions(),
        **products.jax_functions(w),
    }[name]


PEERS = {
    "torch": Torch,
    "torch_compile": TorchCompile,
    "torch_max_autotune": TorchMaxAutotune,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "xla": Xla,
}
TITLES = {
    "torch": "torch eager",
    "torch_compile": "torch.compile",
    "torch_max_autotune": "max-autotune",
    "onnxruntime": "onnxruntime",
    "openvino": "OpenVINO",
    "xla": "XLA",
}


def with_constant_weights(made, inputs):
    """Returns the model with its weights as initializers, so that ONNX runtimes can pack the weights in advance."""
    from onnx import numpy_helper

    weights = set(workloads.weight_names(made))
    kept = [i for i in made.graph.input if i.name not in weights]
    del made.graph.input[:]
    made.graph.input.extend(kept)
    made.graph.initializer.extend(numpy_helper.from_array(inputs[name], name) for name in weights)
    return made


def environment(peer, threads):
    """Returns the environment variables with which a peer's process is started."""
    count = str(threads)
    started_with = {
        **os.environ,
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    # torch and XLA allocate their output in every call. The C library's malloc returns the memory to the system each
    # time, and page faults then take two to three times as long as the kernel. A malloc that keeps memory avoids that.
    # Other peers keep their outputs, and OpenVINO does not work with another malloc.
    keeping = glob.glob("/usr/lib/*/libjemalloc.so.2")
    if keeping and (peer.startswith("torch") or peer == "xla"):
        started_with["LD_PRELOAD"] = keeping[0]
        started_with["MALLOC_CONF"] = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0"
    return started_with


KEPT_FREE = 2 << 30  # bytes of memory that begin() leaves free for other programs


def available_memory():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return math.inf


def begin(threads):
    """Confines this process to `threads` cores, and to the memory that is free, so that a framework that stores all
    scores of long attention fails instead of stopping the machine; returns the file for its replies."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    most = available_memory() - KEPT_FREE
    if most < math.inf:
        resource.setrlimit(resource.RLIMIT_DATA, (max(0, most), max(0, most)))
    # Frameworks print messages, but stdout may only contain replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return replies


def serve(contender, ready, replies):
    """Reports that the contender is ready, then answers requests until stdin ends."""
    print(json.dumps({"ready": contender.version, **ready}), file=replies, flush=True)
    for line in sys.stdin:
        seconds = float(line.split()[1])
        contender.call()
        samples, end = [], time.perf_counter_ns() + int(seconds * 1e9)
        while len(samples) < 3 or (len(samples) < MAX_CALLS and time.perf_counter_ns() < end):
            before = time.perf_counter_ns()
            contender.call()
            samples.append(time.perf_counter_ns() - before)
        print(json.dumps({"ns": samples}), file=replies, flush=True)


EVERY = (*workloads.WORKLOADS, *parts.PARTS, *products.PRODUCTS)


def by_name(name):
    return next(workload for workload in EVERY if workload.name == name)


def main():
    peer, name, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    replies = begin(threads)
    start = time.perf_counter()
    workload = by_name(name)
    inputs = workloads.make_inputs(workload.model())
    made = workload.model(peer=True)
    if peer in ("onnxruntime", "openvino"):
        inputs = {name: inputs[name].astype(kind) for name, kind in workloads.dtypes(made.graph.input).items()}
        made = with_constant_weights(made, inputs)
    contender = PEERS[peer](workload, made, inputs, threads)
    for _ in range(5):
        contender.call()
    ready = {
        "prepare_s": round(time.perf_counter() - start, 2),
        "sample": workloads.sample(contender.result()).tolist(),
    }
    serve(contender, ready, replies)


if __name__ == "__main__":
    main()
