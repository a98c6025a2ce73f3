"""One framework running one ONNX file in a process of its own, on request: the protocol of peers.py for any model.

model_peers.py PEER MODEL INPUTS THREADS    INPUTS: a folder with NAME.npy of every graph input; results go to INPUTS/../PEER
"""

import pathlib
import sys
import time

import numpy as np
import onnx
import peers
import workloads

def read_inputs(model, folder):
    return {i.name: np.load(folder / f"{i.name.replace('/', '_')}.npy") for i in model.graph.input}


class OnnxRuntime:
    def __init__(self, model, inputs, threads):
        import onnxruntime

        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        model = peers.with_constant_weights(model, inputs)
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
        weights = {name: inputs[name] for name in workloads.weight_names(model)}
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
    replies = peers.begin(threads)
    start = time.perf_counter()
    model = onnx.load(path)
    contender = PEERS[name](model, read_inputs(model, folder), threads)
    for _ in range(3):
        contender.call()
    out = folder.parent / name
    out.mkdir(exist_ok=True)
    for output, value in contender.results().items():
        np.save(out / f"{output.replace('/', '_')}.npy", value)
    peers.serve(contender, {"prepare_s": round(time.perf_counter() - start, 2)}, replies)


if __name__ == "__main__":
    main()
