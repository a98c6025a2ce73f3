"""One framework running one ONNX file in a process of its own, on request: the protocol of peers.py for any model.

model_peers.py PEER MODEL INPUTS THREADS    INPUTS: a folder with NAME.npy of every graph input; results go to INPUTS/../PEER
"""

import json
import os
import pathlib
import sys
import time

import numpy as np
import onnx
from onnx import numpy_helper

MAX_CALLS = 300


def read_inputs(model, folder):
    return {i.name: np.load(folder / f"{i.name.replace('/', '_')}.npy") for i in model.graph.input}


def weight_names(model):
    listed = {p.key: p.value for p in model.metadata_props}.get("warploom.weights", "")
    return {name for name in listed.split(",") if name}


class OnnxRuntime:
    def __init__(self, model, inputs, threads):
        import onnxruntime

        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # As initializers: the runtime packs them ahead.
        weights = weight_names(model)
        kept = [i for i in model.graph.input if i.name not in weights]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.graph.initializer.extend(numpy_helper.from_array(inputs[name], name) for name in sorted(weights))
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = {i.name: inputs[i.name] for i in self.session.get_inputs()}
        self.names = [o.name for o in self.session.get_outputs()]
        self.binding = self.session.io_binding()
        self.values = {k: onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in self.inputs.items()}
        for name, value in self.values.items():
            self.binding.bind_ortvalue_input(name, value)
        first = self.session.run(None, self.inputs)
        self.outputs = [onnxruntime.OrtValue.ortvalue_from_numpy(v) for v in first]
        for name, value in zip(self.names, self.outputs):
            self.binding.bind_ortvalue_output(name, value)

    def call(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        return {name: value.numpy() for name, value in zip(self.names, self.outputs)}


class TorchCompile:
    def __init__(self, model, inputs, threads):
        import onnx_torch
        import torch
        import torch._inductor.config

        self.version = torch.__version__
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        torch._inductor.config.freezing = True
        weights = {name: inputs[name] for name in weight_names(model)}
        module = onnx_torch.OnnxModule(model, weights).eval()
        self.names = module.outputs
        self.inputs = [torch.from_numpy(inputs[name]) for name in module.inputs]
        self.module = torch.compile(module, dynamic=False)
        self.no_grad = torch.no_grad
        self.made = None

    def call(self):
        with self.no_grad():
            self.made = self.module(*self.inputs)

    def results(self):
        return {name: value.numpy() for name, value in zip(self.names, self.made)}


PEERS = {"onnxruntime": OnnxRuntime, "torch_compile": TorchCompile}


def main():
    name, path, folder, threads = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    # Frameworks print what they like: only our own lines may reach stdout.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    start = time.perf_counter()
    model = onnx.load(path)
    contender = PEERS[name](model, read_inputs(model, folder), threads)
    for _ in range(3):
        contender.call()
    out = folder.parent / name
    out.mkdir(exist_ok=True)
    for output, value in contender.results().items():
        np.save(out / f"{output.replace('/', '_')}.npy", value)
    ready = {"ready": contender.version, "prepare_s": round(time.perf_counter() - start, 2)}
    print(json.dumps(ready), file=replies, flush=True)
    for line in sys.stdin:
        seconds = float(line.split()[1])
        contender.call()
        samples, end = [], time.perf_counter_ns() + int(seconds * 1e9)
        while len(samples) < 3 or (len(samples) < MAX_CALLS and time.perf_counter_ns() < end):
            before = time.perf_counter_ns()
            contender.call()
            samples.append(time.perf_counter_ns() - before)
        print(json.dumps({"ns": samples}), file=replies, flush=True)


if __name__ == "__main__":
    main()
