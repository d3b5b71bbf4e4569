#!/usr/bin/env python3
"""Makes data/*.safetensors: right answers by PyTorch that tests/parity compares linnet with.

    pip install torch numpy safetensors
    python make_reference.py            # writes the folder data beside this file

Everything is computed in float64 from inputs and weights that float32 holds exactly, and stored as float32: a comparison
to 1e-5 then tests linnet's float32 alone. Versions and options stand in each file's metadata.

lm_*.safetensors  a 2-layer causal transformer: `weights.*` and `gradients.*` under linnet's parameter names, `tokens`,
                  `targets` (-1 counts for nothing), `logits`, `loss`.
ops.safetensors   single ops with awkward settings: `<op>.<case>.<tensor>`, options as texts `<op>.<case>.<option>`.
optim.safetensors trajectories of optimizers over 20 steps: `<optimizer>.<case>.{start,gradients,path}`.

Linear attention is the formula of Katharopoulos et al. 2020, eq. 8-9, written out in its masked quadratic form, with
1e-6 added to the normaliser as the authors' code does.
"""
import pathlib

import numpy
import safetensors
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

DATA = pathlib.Path(__file__).resolve().parent / "data"
VERSIONS = {"torch": torch.__version__.split("+")[0], "numpy": numpy.__version__, "safetensors": safetensors.__version__}


def rounded(x):
    """The nearest float32 numbers, as float64."""
    return x.to(torch.float32).to(torch.float64)


def normal(*shape, std=1.0, mean=0.0):
    return rounded(torch.randn(*shape, dtype=torch.float64) * std + mean)


def save(name, tensors, texts):
    stored = {}
    for key, x in tensors.items():
        x = x.detach()
        stored[key] = (x.to(torch.float32) if x.is_floating_point() else x).clone().contiguous()
    save_file(stored, DATA / name, metadata={**VERSIONS, **{k: str(v) for k, v in texts.items()}})


# ---------------------------------------------------------------------------------------------------------------------
# The transformer. Shapes: x (batch, time, dim); q, k, v (batch, time, heads, dim / heads).

def softmax_attention(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


def linear_attention(q, k, v, eps=1e-6):
    a, b = F.elu(q) + 1, F.elu(k) + 1
    scores = torch.einsum("nihd,njhd->nhij", a, b).tril()
    return torch.einsum("nhij,njhm->nihm", scores, v) / (scores.sum(-1) + eps).transpose(1, 2)[..., None]


def block(x, w, name, heads, attend, pre_norm):
    def linear(x, part):
        return F.linear(x, w[f"{name}.{part}.weight"], w[f"{name}.{part}.bias"])

    def norm(x, part):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.{part}.weight"], w[f"{name}.{part}.bias"], 1e-5)

    def attention(x):
        batch, time, dim = x.shape
        q, k, v = linear(x, "attention.qkv").reshape(batch, time, 3, heads, dim // heads).unbind(2)
        return linear(attend(q, k, v).reshape(batch, time, dim), "attention.out")

    def feed_forward(x):
        return linear(F.gelu(linear(x, "feed_forward.up")), "feed_forward.down")

    if pre_norm:
        x = x + attention(norm(x, "norm1"))
        return x + feed_forward(norm(x, "norm2"))
    x = norm(x + attention(x), "norm1")
    return norm(x + feed_forward(x), "norm2")


def language_model(name, attend, pre_norm, vocab=13, dim=16, layers=2, heads=2, hidden=40, max_time=12, batch=3, time=11):
    w = {}

    def matrix(name, rows, columns):
        w[f"{name}.weight"] = normal(rows, columns, std=columns ** -0.5 * 1.3)
        w[f"{name}.bias"] = normal(rows, std=0.2)

    def norm(name):
        w[f"{name}.weight"] = normal(dim, std=0.2, mean=1.0)
        w[f"{name}.bias"] = normal(dim, std=0.2)

    w["embed.weight"] = normal(vocab, dim)
    w["positions.weight"] = normal(max_time, dim, std=0.5)
    for i in range(layers):
        norm(f"stack.blocks.{i}.norm1")
        matrix(f"stack.blocks.{i}.attention.qkv", 3 * dim, dim)
        matrix(f"stack.blocks.{i}.attention.out", dim, dim)
        norm(f"stack.blocks.{i}.norm2")
        matrix(f"stack.blocks.{i}.feed_forward.up", hidden, dim)
        matrix(f"stack.blocks.{i}.feed_forward.down", dim, hidden)
    if pre_norm:
        norm("stack.norm")
    matrix("head", vocab, dim)
    for x in w.values():
        x.requires_grad_()

    tokens = torch.randint(vocab, (batch, time), dtype=torch.int32)
    targets = torch.randint(vocab, (batch, time), dtype=torch.int32)
    targets[1, 7:] = -1
    x = F.embedding(tokens.long(), w["embed.weight"]) + w["positions.weight"][:time]
    for i in range(layers):
        x = block(x, w, f"stack.blocks.{i}", heads, attend, pre_norm)
    if pre_norm:
        x = F.layer_norm(x, (dim,), w["stack.norm.weight"], w["stack.norm.bias"], 1e-5)
    logits = F.linear(x, w["head.weight"], w["head.bias"])
    loss = F.cross_entropy(logits.reshape(-1, vocab), targets.reshape(-1).long(), ignore_index=-1)
    loss.backward()

    tensors = {"tokens": tokens, "targets": targets, "logits": logits, "loss": loss}
    tensors.update({f"weights.{k}": x for k, x in w.items()})
    tensors.update({f"gradients.{k}": x.grad for k, x in w.items()})
    save(f"lm_{name}.safetensors", tensors,
         dict(attention=attend.__name__, pre_norm=int(pre_norm), vocab=vocab, dim=dim, layers=layers, heads=heads,
              hidden=hidden, max_time=max_time))


# ---------------------------------------------------------------------------------------------------------------------
# Single ops: every float input gets its gradient `d<input>` for the upstream gradient `dy`.

class Cases:
    def __init__(self):
        self.tensors, self.texts = {}, {}

    def add(self, case, f, inputs, constants=None, **options):
        leaves = {k: x.clone().requires_grad_() for k, x in inputs.items()}
        y = f(**leaves)
        dy = normal(*y.shape) if y.dim() else torch.ones((), dtype=torch.float64)
        y.backward(dy)
        parts = {"y": y, "dy": dy, **inputs, **(constants or {}), **{f"d{k}": x.grad for k, x in leaves.items()}}
        self.tensors.update({f"{case}.{k}": x for k, x in parts.items()})
        self.texts.update({f"{case}.{k}": v for k, v in options.items()})


def ops():
    c = Cases()

    logits = normal(4, 7, 9, std=8)
    targets = torch.randint(9, (4, 7), dtype=torch.int32)
    targets[2, 3:] = -1
    targets[0, 0] = -1
    for reduce in ("none", "sum", "mean"):
        for smoothing in (0.0, 0.1, 0.9):
            def cross_entropy(logits):
                y = F.cross_entropy(logits.reshape(-1, 9), targets.reshape(-1).long(), ignore_index=-1,
                                    reduction=reduce, label_smoothing=smoothing)
                return y.reshape(4, 7) if reduce == "none" else y
            c.add(f"cross_entropy.{reduce}_{round(smoothing * 100)}", cross_entropy, {"logits": logits},
                  {"targets": targets}, reduce=reduce, ignore_index=-1, label_smoothing=smoothing)

    x = rounded(torch.cat([torch.linspace(-14, 14, 113), torch.tensor([1e-30, -1e-8, 1e-4, -5.5, 40.0, -40.0])]).double())
    for name, f in (("gelu", F.gelu), ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")), ("elu", F.elu),
                    ("softplus", lambda x: F.softplus(x, threshold=1e3)), ("sigmoid", torch.sigmoid)):
        c.add(f"{name}.plain", lambda x: f(x), {"x": x})

    for case, shape, axes, std, mean, eps, affine in (
            ("plain", (3, 5, 17), 1, 1, 0, 1e-5, True), ("large_mean", (3, 5, 17), 1, 1, 1000, 1e-5, True),
            ("small_spread", (6, 8), 1, 1e-3, 0, 1e-5, True), ("two_axes", (3, 4, 5), 2, 2, 1, 1e-3, True),
            ("no_affine", (7, 33), 1, 1, 0, 0.1, False), ("constant_rows", (4, 6), 1, 0, 3, 1e-5, True)):
        inputs = {"x": normal(*shape, std=std, mean=mean)}
        if affine:
            inputs.update(weight=normal(*shape[-axes:], mean=1), bias=normal(*shape[-axes:]))
        c.add(f"layer_norm.{case}", lambda x, weight=None, bias=None: F.layer_norm(x, shape[-axes:], weight, bias, eps),
              inputs, eps=eps)

    pairs = torch.rand(6, 6) < 0.6
    pairs |= torch.eye(6, dtype=torch.bool)
    for case, options, value_dim in (("plain", {}, 8), ("causal", {"causal": 1}, 8), ("scaled", {"scale": 0.75}, 8),
                                     ("wide_values", {"causal": 1}, 11), ("pairs", {"masked": 1}, 8)):
        def attention(q, k, v):
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            return F.scaled_dot_product_attention(q, k, v, attn_mask=pairs if "masked" in options else None,
                                                  is_causal="causal" in options,
                                                  scale=options.get("scale")).transpose(1, 2)
        c.add(f"softmax_attention.{case}", attention,
              {"q": normal(2, 6, 3, 8, std=2), "k": normal(2, 6, 3, 8, std=2), "v": normal(2, 6, 3, value_dim)},
              {"pairs": pairs.to(torch.uint8)} if "masked" in options else None, **options)

    for case, scale, max_norm in (("clipped", 3.0, 1.0), ("untouched", 0.01, 1.0)):
        parts = [torch.nn.Parameter(torch.zeros(*shape, dtype=torch.float64)) for shape in ((3, 4), (5,), (1,))]
        for i, p in enumerate(parts):
            p.grad = normal(*p.shape, std=scale)
            c.tensors[f"clip_grad_norm.{case}.before{i}"] = p.grad.clone()
        norm = torch.nn.utils.clip_grad_norm_(parts, max_norm)
        for i, p in enumerate(parts):
            c.tensors[f"clip_grad_norm.{case}.after{i}"] = p.grad
        c.texts.update({f"clip_grad_norm.{case}.norm": float(norm), f"clip_grad_norm.{case}.max_norm": max_norm})

    save("ops.safetensors", c.tensors, c.texts)


# ---------------------------------------------------------------------------------------------------------------------

def optimizers():
    steps, n = 20, 6
    tensors, texts = {}, {}
    table = {
        "sgd.plain": (torch.optim.SGD, dict(lr=0.05), {}),
        "sgd.momentum": (torch.optim.SGD, dict(lr=0.02, momentum=0.9, weight_decay=0.03), dict(momentum=0.9, weight_decay=0.03)),
        "sgd.nesterov": (torch.optim.SGD, dict(lr=0.02, momentum=0.8, nesterov=True), dict(momentum=0.8, nesterov=1)),
        "adam.plain": (torch.optim.Adam, dict(lr=0.01), {}),
        "adam.decay": (torch.optim.Adam, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
                       dict(beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1)),
        "adamw.decay": (torch.optim.AdamW, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
                        dict(beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1)),
        "radam.plain": (torch.optim.RAdam, dict(lr=0.01), {}),
        "radam.coupled": (torch.optim.RAdam, dict(lr=0.01, weight_decay=0.1), dict(weight_decay=0.1, coupled=1)),
        "radam.decoupled": (torch.optim.RAdam, dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
                            dict(weight_decay=0.1, coupled=0)),
        "radam.betas": (torch.optim.RAdam, dict(lr=0.02, betas=(0.7, 0.9), eps=1e-3), dict(beta1=0.7, beta2=0.9, eps=1e-3)),
    }
    for case, (kind, arguments, options) in table.items():
        start = normal(n)
        gradients = normal(steps, n) * rounded(10.0 ** torch.arange(-4, 2, dtype=torch.float64))
        gradients[3:6, 1] = 0
        gradients = rounded(gradients)
        p = torch.nn.Parameter(start.clone())
        optimizer = kind([p], **arguments)
        path = []
        for g in gradients:
            p.grad = g.clone()
            optimizer.step()
            path.append(p.detach().clone())
        tensors.update({f"{case}.start": start, f"{case}.gradients": gradients, f"{case}.path": torch.stack(path)})
        texts.update({f"{case}.{k}": v for k, v in dict(options, lr=arguments["lr"]).items()})
    save("optim.safetensors", tensors, texts)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    torch.manual_seed(20)
    torch.set_num_threads(1)
    for attend in (softmax_attention, linear_attention):
        for pre_norm in (True, False):
            language_model(f"{attend.__name__.split('_')[0]}_{'pre' if pre_norm else 'post'}_norm", attend, pre_norm)
    ops()
    optimizers()
