"""Runs one ONNX file with one framework in a process of its own: the protocol of peers.py for any model.

    model_peers.py PEER MODEL INPUTS THREADS

INPUTS is a folder with NAME.npy of every graph input; results go to INPUTS/../PEER.
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

    def facts(self):
        return {}


def count_traffic():
    """Returns a dict that counts what Inductor schedules after this call: generated kernels, calls of libraries, and the bytes that both
    move, by Inductor's own `num_bytes_accessed`, in which each buffer of a kernel counts once."""
    import torch
    from torch._inductor import graph, scheduler

    counted = {"generated": 0, "calls": 0, "bytes": 0}
    compile_scheduled = graph.GraphLowering.codegen

    def codegen(lowering):
        done = compile_scheduled(lowering)
        for node in lowering.scheduler.nodes:
            accesses = node.get_read_write_buffer_accesses(include_reads=True, include_writes=True)
            moved = sum(accesses.values())
            # The bytes of constants are added here, since Inductor does not count them. A call of MKL has two copies of a weight, a
            # packed one and the original, but reads only the packed one, so only that one counts.
            named = {read.name for read in node.read_writes.reads} & set(lowering.constants) - set(accesses)
            twice = "_mkl_linear" in str(getattr(node.node, "python_kernel_name", ""))
            for tensor in map(lowering.constants.get, named):
                packed = tensor.is_mkldnn
                moved += tensor.nbytes if not packed else 0 if twice else torch.ops.mkldnn._nbytes(tensor)
            if isinstance(node, scheduler.NopKernelSchedulerNode) or moved == 0:
                continue
            counted["calls" if isinstance(node, scheduler.ExternKernelSchedulerNode) else "generated"] += 1
            counted["bytes"] += moved
        return done

    graph.GraphLowering.codegen = codegen
    return counted


class TorchCompile:
    def __init__(self, model, inputs, threads):
        import torch
        import torch._inductor.config
        from interpreters import onnx_torch

        self.version = torch.__version__
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        torch._inductor.config.freezing = True
        weights = {name: inputs[name] for name in workloads.weight_names(model)}
        module = onnx_torch.OnnxModule(model, weights).eval()
        self.names = module.outputs
        self.inputs = [torch.from_numpy(inputs[name]) for name in module.inputs]
        torch._inductor.config.force_disable_caches = True  # without caches, since only graphs that Inductor compiles in this process are counted
        self.counted = count_traffic()
        self.module = torch.compile(module, dynamic=False, fullgraph=True)
        self.no_grad = torch.no_grad
        self.made = None

    def call(self):
        with self.no_grad():
            self.made = self.module(*self.inputs)

    def facts(self):
        return dict(self.counted)

    def results(self):
        return {name: value.numpy() for name, value in zip(self.names, self.made)}


class OpenVino(peers.OpenVinoRequest):
    def __init__(self, model, inputs, threads):
        super().__init__(peers.with_constant_weights(model, inputs), inputs, threads)
        self.names = [o.name for o in model.graph.output]

    def results(self):
        return {name: self.request.get_tensor(name).data for name in self.names}

    def facts(self):
        return {}


class Xla:
    def __init__(self, model, inputs, threads):
        import jax
        from interpreters import onnx_jax

        self.version = jax.__version__
        weights = {name: inputs[name] for name in workloads.weight_names(model)}
        self.inputs = [jax.device_put(inputs[i.name]) for i in model.graph.input if i.name not in weights]
        self.function = onnx_jax.compiled(model, weights, self.inputs)
        self.names = [o.name for o in model.graph.output]
        self.made = None

    def call(self):
        self.made = self.function(*self.inputs)
        for value in self.made:
            value.block_until_ready()

    def results(self):
        return {name: np.asarray(value) for name, value in zip(self.names, self.made)}

    def facts(self):
        return {}


PEERS = {"onnxruntime": OnnxRuntime, "torch_compile": TorchCompile, "openvino": OpenVino, "xla": Xla}


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
    ready = {"prepare_s": round(time.perf_counter() - start, 2), **contender.facts()}
    peers.serve(contender, ready, replies)


if __name__ == "__main__":
    main()
