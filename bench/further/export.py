#!/usr/bin/env python3
"""Exports ten models that the project was not developed with, for bench/models.py --further: those of torchvision, timm and
transformers (the U-Net is written here), with random weights of a fixed seed, by torch's default exporter.

    build/venv-peers/bin/python bench/further/export.py FOLDER [NAME ...]

Needs the packages of tools/requirements-further.txt beside what `make bench-peers` installs:

    build/venv-peers/bin/python -m pip install --no-deps -r tools/requirements-further.txt
"""

import pathlib
import sys

OPSET = 18
MAKERS = {}


def maker(function):
    """Registers a function that returns a module and the shapes of its inputs by name."""
    MAKERS[function.__name__] = function
    return function


IMAGE = {"image": (1, 3, 224, 224)}


@maker
def mobilenet_v3_large():
    import torchvision

    return torchvision.models.mobilenet_v3_large(), IMAGE


@maker
def efficientnet_b0():
    import torchvision

    return torchvision.models.efficientnet_b0(), IMAGE


@maker
def resnext50_32x4d():
    import torchvision

    return torchvision.models.resnext50_32x4d(), IMAGE


@maker
def convnext_tiny():
    import torchvision

    return torchvision.models.convnext_tiny(), IMAGE


@maker
def vit_small():
    import timm

    return timm.create_model("vit_small_patch16_224"), IMAGE


@maker
def deit_tiny_distilled():
    import timm

    return timm.create_model("deit_tiny_distilled_patch16_224"), IMAGE


@maker
def unet():
    """The U-Net of Ronneberger et al. 2015 with padded convolutions, batch norm, and 32 channels at the first of five levels."""
    import torch
    from torch import nn

    def level(inputs, outputs):
        layers = []
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [32, 64, 128, 256, 512]
            self.down = nn.ModuleList(map(level, [3, *widths], widths))
            self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
            self.up = nn.ModuleList(level(2 * w, w) for w in reversed(widths[:-1]))
            self.head = nn.Conv2d(widths[0], 2, 1)

        def forward(self, image):
            skipped = []
            for step in self.down:
                image = step(nn.functional.max_pool2d(image, 2) if skipped else image)
                skipped.append(image)
            skipped.pop()
            for wider, step in zip(self.wider, self.up):
                image = step(torch.cat([wider(image), skipped.pop()], 1))
            return self.head(image)

    return UNet(), {"image": (1, 3, 256, 256)}


@maker
def t5_base_layer():
    """The first layer of the encoder, which has the table of relative positions, for 512 tokens."""
    from transformers import T5Config
    from transformers.models.t5 import modeling_t5

    config = T5Config(d_model=768, d_kv=64, d_ff=3072, num_heads=12, dropout_rate=0.0)
    config._attn_implementation = "eager"
    return first_of(modeling_t5.T5Block(config, has_relative_attention_bias=True, layer_idx=0)), {"x": (1, 512, 768)}


@maker
def whisper_base_layer():
    """A layer of the encoder for 1500 frames, which are 30 seconds of sound."""
    from transformers import WhisperConfig
    from transformers.models.whisper import modeling_whisper

    config = WhisperConfig(d_model=512, encoder_attention_heads=8, encoder_ffn_dim=2048)
    config._attn_implementation = "sdpa"
    return first_of(modeling_whisper.WhisperEncoderLayer(config), attention_mask=None), {"x": (1, 1500, 512)}


@maker
def mamba_130m_block():
    """A block for 64 tokens. The exporter unrolls the scan token by token, since no kernels for it are installed."""
    from transformers import MambaConfig
    from transformers.models.mamba import modeling_mamba

    config = MambaConfig(hidden_size=768, state_size=16, num_hidden_layers=1)
    model = modeling_mamba.MambaModel(config)
    return first_of(model.layers[0]), {"x": (1, 64, 768)}


def first_of(module, **fixed):
    """Returns a module that calls `module` with one tensor and the arguments `fixed`, and returns its first result."""
    from torch import nn

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            made = self.module(x, **fixed)
            return made[0] if isinstance(made, tuple) else made

    return Wrapped()


def spread(module):
    """Adds random values to weights that are initialised with zeros or ones, since equal weights would be merged."""
    import torch
    from torch import nn

    with torch.no_grad():
        for name, value in module.named_parameters():
            if value.dim() <= 1 and not name.endswith(".D") or "layer_scale" in name:
                value.add_(0.1 * torch.randn_like(value))
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)


def export(name, folder):
    import torch

    torch.manual_seed(0)
    module, shapes = MAKERS[name]()
    module = module.eval()
    spread(module)
    example = tuple(torch.randn(shape) for shape in shapes.values())
    options = {"input_names": list(shapes), "output_names": ["y"], "opset_version": OPSET, "external_data": False}
    torch.onnx.export(module, example, folder / f"{name}.onnx", dynamo=True, **options)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MAKERS:
        try:
            export(name, folder)
        except ImportError as error:
            sys.exit(f"{name}: {error}; bench/further/export.py says at its top which packages to install, and how")


if __name__ == "__main__":
    main()
