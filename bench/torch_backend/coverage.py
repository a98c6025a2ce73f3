#!/usr/bin/env python3
"""Twenty models of torchvision, timm and transformers (random weights of a fixed seed; the list was made before any was tried) through the
backend of torch.compile: whether results equal eager's, which nodes are left to eager and why, and the kernels' share of a call's time.

    build/venv-peers/bin/python bench/torch_backend/coverage.py [--only NAME ...] [--trials 1] [--jobs 1]

Needs the packages of tools/requirements-further.txt. Prints a table and writes bench/results/torch/coverage-DATE.json.
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

from compare import BOUND, ROOT, difference, results_file

VISION = ("mobilenet_v2", "mobilenet_v3_small", "densenet121", "regnet_y_400mf", "squeezenet1_1", "shufflenet_v2_x0_5", "swin_t")
TIMM = ("resnet26d", "mixer_s32_224", "deit_tiny_patch16_224", "repvgg_a0", "ghostnet_100", "gmlp_ti16_224")
TEXT = ("bert", "distilbert", "roberta", "albert", "gpt2", "opt", "llama")
MODELS = VISION + TIMM + TEXT


def text_model(name):
    import transformers

    small = {"num_hidden_layers": 2, "vocab_size": 1000}
    made = {
        "bert": lambda: transformers.BertModel(transformers.BertConfig(**small)),
        "distilbert": lambda: transformers.DistilBertModel(transformers.DistilBertConfig(n_layers=2, vocab_size=1000)),
        "roberta": lambda: transformers.RobertaModel(transformers.RobertaConfig(**small)),
        "albert": lambda: transformers.AlbertModel(transformers.AlbertConfig(hidden_size=768, intermediate_size=3072, num_attention_heads=12, **small)),
        "gpt2": lambda: transformers.GPT2Model(transformers.GPT2Config(n_layer=2, vocab_size=1000, use_cache=False)),
        "opt": lambda: transformers.OPTModel(transformers.OPTConfig(use_cache=False, **small)),
        "llama": lambda: transformers.LlamaModel(
            transformers.LlamaConfig(hidden_size=768, intermediate_size=2048, num_attention_heads=12, num_key_value_heads=4, use_cache=False, **small)
        ),
    }
    return made[name]()


def model_of(name):
    """Returns a module and its input."""
    import torch

    torch.manual_seed(0)
    if name in TEXT:
        return text_model(name), torch.randint(0, 1000, (1, 64))
    if name in VISION:
        import torchvision

        return getattr(torchvision.models, name)(), torch.randn(1, 3, 224, 224)
    import timm

    model = timm.create_model(name)
    for parameter in model.parameters():
        if parameter.dim() > 1 and not parameter.any():  # some heads are initialised with zeros, which would make every result zero
            torch.nn.init.normal_(parameter, std=0.02)
    return model, torch.randn(1, 3, 224, 224)


def result_of(made):
    return getattr(made, "last_hidden_state", made)


def child(name, trials):
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(ROOT / "build/release/python"))
    import torch
    import warploom.torch
    from warploom._model import Executors

    torch.set_num_threads(2)
    torch.set_grad_enabled(False)
    model, given = model_of(name)
    model.eval()
    wanted = result_of(model(given))
    compiled = torch.compile(model, backend="warploom", dynamic=False, options={"tune": "first", "trials": trials, "kernels_alone": True})
    start = time.perf_counter()
    got = result_of(compiled(given))
    facts = {"name": name, "first_call_s": round(time.perf_counter() - start, 1), "difference": difference(got, wanted)}
    in_kernels, run = [0.0], Executors.run_at

    def timed(self, *arguments):
        begun = time.perf_counter()
        run(self, *arguments)
        in_kernels[0] += time.perf_counter() - begun

    Executors.run_at = timed
    shares = []
    for _ in range(12):
        in_kernels[0], start = 0.0, time.perf_counter()
        compiled(given)
        shares.append(in_kernels[0] / (time.perf_counter() - start))
    reports = warploom.torch.report()
    facts["share"] = round(statistics.median(shares), 3)
    facts["parts"] = sum(report["kernels"] for report in reports)
    facts["eager"] = {why: count for report in reports for why, count in report["eager"].items()}
    print(json.dumps(facts))


def run(name, options, cache):
    command = [sys.executable, __file__, "--child", name, "--trials", str(options.trials)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"XDG_CACHE_HOME": cache})
    if done.returncode != 0:
        return {"name": name, "failed": done.stderr.strip()[-300:]}
    return json.loads(done.stdout.splitlines()[-1])


def line_of(row):
    if "failed" in row:
        return f"| {row['name']} | failed: {row['failed'].splitlines()[-1]} |"
    left = "; ".join(f"{why} ({count})" for why, count in row["eager"].items()) or "nothing"
    right = "right" if row["difference"] <= BOUND else "**wrong**"
    return f"| {row['name']} | {right}, {row['difference']:.0e} | {row['share']:.3f} | {row['parts']} | {left} | {row['first_call_s']:.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=MODELS, choices=MODELS, help="these models")
    parser.add_argument("--trials", type=int, default=1, help="trials of each group of operators")
    parser.add_argument("--jobs", type=int, default=1, help="models at once; times are shares of a call and need a quiet machine")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.trials)
    print("| model | result, largest difference | share of time in kernels | parts | left to eager | first call, s |\n|---|---|---|---|---|---|", flush=True)
    rows, file = [], results_file("coverage-")
    with tempfile.TemporaryDirectory() as cache, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda name: run(name, options, cache), options.only):
            print(line_of(row), flush=True)
            rows.append(row)
    file.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any("failed" in row or row["difference"] > BOUND for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
