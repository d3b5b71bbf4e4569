#!/usr/bin/env python3
"""Makes data/attention.safetensors: what the dense attentions of pytorch-fast-transformers give.

    pip install torch numpy safetensors pytorch-fast-transformers==0.4.0
    python make_attention.py            # writes into the folder data beside this file

Cases full.*, linear.*, causal_linear.* and local.*: `<case>.{q,k,v,y,dy,dq,dk,dv}`, `<case>.lengths` of the keys, and the
options as texts. Inputs are what float32 holds exactly. Values are float64, of the formulas with autograd, and the package
must give the same to 1e-5: its CPU kernels know float32 only.
"""
import torch
from fast_transformers.attention import CausalLinearAttention, FullAttention, LinearAttention, LocalAttention
from fast_transformers.masking import FullMask, LengthMask, TriangularCausalMask

from make_reference import Cases, normal, save

EPS = 1e-6  # what the package adds to the denominator of linear attention


def distances(queries, keys):
    return torch.arange(queries)[:, None] - torch.arange(keys)


def softmax(q, k, v, allowed):
    """allowed (batch, queries, keys)"""
    scores = torch.einsum("nihd,njhd->nhij", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("nhij,njhm->nihm", scores.masked_fill(~allowed[:, None], -torch.inf).softmax(-1), v)


def linear(q, k, v, allowed):
    a, b = (torch.nn.functional.elu(x) + 1 for x in (q, k))
    scores = torch.einsum("nihd,njhd->nhij", a, b) * allowed[:, None]
    return torch.einsum("nhij,njhm->nihm", scores, v) / (scores.sum(-1) + EPS).transpose(1, 2)[..., None]


def package_agrees(case, layer, inputs, dy, mask, queries, lengths, wanted):
    single = {name: x.float().requires_grad_() for name, x in inputs.items()}
    y = layer(*single.values(), mask, LengthMask(torch.full((len(lengths),), queries)),
              LengthMask(torch.tensor(lengths), max_len=inputs["k"].shape[1]))
    y.backward(dy.float())
    for name, got in {"y": y, **{f"d{name}": x.grad for name, x in single.items()}}.items():
        want = wanted[f"{case}.{name}"]
        difference = (got.double() - want).abs().max() / want.abs().max().clamp(min=1)
        assert difference < 1e-5, (case, name, difference)


def main():
    c = Cases()
    for case, kind, queries, keys, lengths, options in (
            ("full.plain", FullAttention, 13, 17, (17, 17), {}),
            ("full.lengths", FullAttention, 13, 17, (17, 6), {}),
            ("full.causal", FullAttention, 14, 14, (14, 9), dict(causal=1)),
            ("linear.plain", LinearAttention, 13, 17, (17, 17), {}),
            ("linear.lengths", LinearAttention, 13, 17, (17, 6), {}),
            ("causal_linear.plain", CausalLinearAttention, 26, 26, (26, 26), dict(causal=1)),
            ("causal_linear.lengths", CausalLinearAttention, 26, 26, (26, 11), dict(causal=1)),
            ("local.plain", LocalAttention, 17, 17, (17, 17), dict(window=3)),
            ("local.lengths", LocalAttention, 17, 17, (17, 14), dict(window=4)),
            ("local.causal", LocalAttention, 17, 17, (17, 17), dict(window=4, causal=1)),
            ("local.wide", LocalAttention, 9, 9, (9, 5), dict(window=12))):
        gap = distances(queries, keys)
        near = torch.ones_like(gap, dtype=torch.bool)
        if "causal" in options:
            near &= gap >= 0
        if "window" in options:
            near &= gap.abs() <= options["window"]
        allowed = near & (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None]
        inputs = {"q": normal(2, queries, 2, 6), "k": normal(2, keys, 2, 6), "v": normal(2, keys, 2, 5)}
        formula = linear if kind in (LinearAttention, CausalLinearAttention) else softmax
        c.add(case, lambda q, k, v: formula(q, k, v, allowed), inputs,
              {"lengths": torch.tensor(lengths, dtype=torch.int32)}, **options)
        if kind is FullAttention:
            layer = kind(attention_dropout=0.0)
        elif kind is LocalAttention:
            layer = kind(2 * options["window"] + 1, attention_dropout=0.0)
        else:
            layer = kind(6, eps=EPS)
        mask = TriangularCausalMask(queries) if "causal" in options else FullMask(queries, keys)
        package_agrees(case, layer, inputs, c.tensors[f"{case}.dy"], mask, queries, lengths, c.tensors)
    save("attention.safetensors", c.tensors, c.texts)


if __name__ == "__main__":
    torch.manual_seed(22)
    torch.set_num_threads(1)
    main()
