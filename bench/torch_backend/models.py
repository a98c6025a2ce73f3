"""Models of transformers and torchvision for compare.py, with random weights of a fixed seed; of the largest only one layer
or block, so that a run takes minutes. Each maker returns a module and its inputs."""

MAKERS = {}


def maker(function):
    MAKERS[function.__name__] = function
    return function


def image(batch=1):
    import torch

    return (torch.randn(batch, 3, 224, 224),)


@maker
def resnet50():
    import torchvision

    return torchvision.models.resnet50(), image()


@maker
def mobilenet_v3():
    import torchvision

    return torchvision.models.mobilenet_v3_large(), image()


@maker
def vit_b_16():
    import torch
    import torchvision

    model = torchvision.models.vit_b_16()
    torch.nn.init.normal_(model.heads.head.weight, std=0.02)  # the head is initialised with zeros, which would make every result zero
    return model, image()


@maker
def bert_base():
    import torch
    from transformers import BertConfig, BertModel

    class Bert(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(BertConfig(attn_implementation="sdpa"), add_pooling_layer=False)

        def forward(self, indices):
            return self.bert(indices).last_hidden_state

    return Bert(), (torch.randint(0, 30000, (1, 128)),)


@maker
def llama_block():
    import torch
    from transformers import LlamaConfig, LlamaModel

    class Block(torch.nn.Module):
        """One decoder layer of LLaMA-2 with 7 billion parameters, without the cache."""

        def __init__(self):
            super().__init__()
            model = LlamaModel(LlamaConfig(num_hidden_layers=1, vocab_size=32, use_cache=False))
            self.layer, self.rotary = model.layers[0], model.rotary_emb

        def forward(self, x, positions):
            made = self.layer(x, position_embeddings=self.rotary(x, positions), position_ids=positions)
            return made[0] if isinstance(made, tuple) else made

    return Block(), (torch.randn(1, 128, 4096), torch.arange(128)[None])


@maker
def gpt2_decode():
    import torch
    from torch import nn
    from torch.nn import functional

    class Layer(nn.Module):
        """A layer of GPT-2 that decodes one token, with the keys and values of the 256 tokens before it and its own."""

        def __init__(self, width=768, heads=12):
            super().__init__()
            self.heads = heads
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.taken, self.given = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, keys, values):
            batch, tokens, width = x.shape
            parts = self.taken(self.first(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            query, key, value = parts[0], torch.cat([keys, parts[1]], 2), torch.cat([values, parts[2]], 2)
            seen = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, tokens, width)
            x = x + self.given(seen)
            return x + self.down(functional.gelu(self.up(self.second(x)), approximate="tanh")), key, value

    class Decoder(nn.Module):
        def __init__(self, layers=12):
            super().__init__()
            self.layers, self.norm = nn.ModuleList(Layer() for _ in range(layers)), nn.LayerNorm(768)

        def forward(self, x, keys, values):
            made = []
            for i, layer in enumerate(self.layers):
                x, key, value = layer(x, keys[i], values[i])
                made += [key, value]
            return self.norm(x), *made

    return Decoder(), (torch.randn(1, 1, 768), torch.randn(12, 1, 12, 256, 64), torch.randn(12, 1, 12, 256, 64))
