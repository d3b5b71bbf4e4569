#!/usr/bin/env python3
"""Makes data/lsh_attention.safetensors and data/clustered_attention.safetensors: what pytorch-fast-transformers gives.

    pip install torch numpy safetensors pytorch-fast-transformers==0.4.0
    python make_sparse_attention.py     # writes into the folder data beside this file

Inputs are what float32 holds exactly. A case holds `<case>.{q,k,v,y,dy,dq,dk,dv}` and its options as texts.

lsh        ReformerAttention itself, in float64, with the hashes of its rounds. Its sort is made stable here.
clustered  the package's CPU kernels know float32 only, so y and the gradients come from the published formulas in float64,
           with autograd; the package, given the same clusters, must give the same y, and the same gradients of clustered
           and causal attention. Improved attention: the package takes the mass of the top keys as a constant on the way
           back (its kernel for the broadcast records nothing), which is checked; the values stored here do not.
"""
import unittest.mock

import torch
from fast_transformers.attention import (ClusteredAttention, ImprovedClusteredAttention, ImprovedClusteredCausalAttention,
                                         reformer_attention as reformer)
from fast_transformers.masking import FullMask, LengthMask, TriangularCausalMask

from make_reference import Cases, normal, save


def lsh():
    c = Cases()
    for case, shape, options in (("plain", (2, 24, 2, 6), dict(chunk=4, rounds=1, own=1, causal=0)),
                                 ("rounds", (2, 32, 2, 5), dict(chunk=8, rounds=3, own=1, causal=0)),
                                 ("masked", (2, 24, 1, 6), dict(chunk=6, rounds=2, own=0, causal=0)),
                                 ("causal", (1, 32, 2, 6), dict(chunk=4, rounds=2, own=1, causal=1)),
                                 ("causal_masked", (2, 30, 1, 4), dict(chunk=5, rounds=2, own=0, causal=1))):
        batch, time, heads, dim = shape
        layer = reformer.ReformerAttention(chunk_size=options["chunk"], bits=4, rounds=options["rounds"],
                                           masked=not options["own"], attention_dropout=0.0)
        mask = TriangularCausalMask(time) if options["causal"] else FullMask(time)
        lengths = LengthMask(torch.full((batch,), time))
        hashes = []

        def argsort(x, dim, original=torch.argsort):
            hashes.append(x)
            return original(x, dim=dim, stable=True)

        def attend(q, v):
            with unittest.mock.patch.object(reformer.torch, "argsort", argsort):
                return layer(q, q, v, mask, lengths, lengths)

        c.add(case, attend, {"q": normal(*shape), "v": normal(*shape)}, **options)
        c.tensors[f"{case}.hashes"] = torch.stack(hashes, -1).to(torch.int32)
    save("lsh_attention.safetensors", c.tensors, c.texts)


# ---------------------------------------------------------------------------------------------------------------------
# Shapes in the formulas: q, k, v (batch, heads, time, dim), groups (batch, heads, queries).

def clustered(q, k, v, groups, clusters, key_mask, topk, causal, constant_mass=False):
    member = torch.nn.functional.one_hot(groups, clusters).to(q.dtype)                     # (batch, heads, queries, clusters)
    means = torch.einsum("bhic,bhid->bhcd", member, q) / member.sum(2).clamp(min=1)[..., None]
    scale = q.shape[-1] ** -0.5
    logits = scale * means @ k.transpose(2, 3) + torch.where(key_mask, 0.0, -torch.inf)[:, None, None].to(q.dtype)
    shared = logits.softmax(-1)
    if topk == 0:
        return member @ shared @ v
    top = torch.zeros_like(shared).scatter_(-1, logits.topk(topk, -1).indices, 1.0)        # (batch, heads, clusters, keys)
    own = member @ top > 0
    if causal:
        own = own & torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
    p = (scale * q @ k.transpose(2, 3)).masked_fill(~own, -torch.inf).softmax(-1).nan_to_num()
    if causal:
        return p @ v
    mass = (shared * top).sum(-1, keepdim=True)
    if constant_mass:
        mass = mass.detach()
    return (member @ mass) * (p @ v) + member @ (shared * (1 - top)) @ v


def clusters():
    c = Cases()
    for case, kind, queries, keys, options in (
            ("plain", ClusteredAttention, 20, 26, dict(clusters=4, topk=0, causal=0)),
            ("improved", ImprovedClusteredAttention, 20, 26, dict(clusters=4, topk=5, causal=0)),
            ("causal", ImprovedClusteredCausalAttention, 24, 24, dict(clusters=4, topk=7, causal=1))):
        batch, heads, dim = 2, 2, 5
        lengths = [keys, keys - 9]
        key_mask = torch.arange(keys)[None] < torch.tensor(lengths)[:, None]
        groups = torch.randint(options["clusters"], (batch, heads, queries))

        def formula(q, k, v, **more):
            parts = (x.transpose(1, 2) for x in (q, k, v))
            return clustered(*parts, groups, options["clusters"], key_mask, options["topk"], options["causal"],
                             **more).transpose(1, 2)

        inputs = {"q": normal(batch, queries, heads, dim), "k": normal(batch, keys, heads, dim),
                  "v": normal(batch, keys, heads, dim)}
        c.add(case, formula, inputs, {"groups": groups.transpose(1, 2).to(torch.int32),
                                      "lengths": torch.tensor(lengths, dtype=torch.int32)}, **options)
        check_package(kind, inputs, c.tensors[f"{case}.dy"], groups, lengths, options, formula)
    save("clustered_attention.safetensors", c.tensors, c.texts)


def check_package(kind, inputs, dy, groups, lengths, options, formula):
    """The package in float32, given these clusters, agrees with the formula."""
    layer = kind(options["clusters"], attention_dropout=0.0, **({"topk": options["topk"]} if options["topk"] else {}))
    ordered, order = groups.to(torch.int32).sort(dim=-1, stable=True)
    counts = torch.nn.functional.one_hot(groups, options["clusters"]).sum(2).to(torch.int32)
    layer._create_query_groups = lambda q, query_lengths: ((ordered, counts), order)
    queries, keys = inputs["q"].shape[1], inputs["k"].shape[1]
    mask = TriangularCausalMask(queries) if options["causal"] else FullMask(queries, keys)
    query_lengths = LengthMask(torch.full((len(lengths),), queries))
    torch.set_default_dtype(torch.float32)
    single = {name: x.float().requires_grad_() for name, x in inputs.items()}
    y = layer(*single.values(), mask, query_lengths, LengthMask(torch.tensor(lengths), max_len=keys))
    y.backward(dy.float())
    torch.set_default_dtype(torch.float64)
    double = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    wanted = formula(*double.values(), constant_mass=True)
    wanted.backward(dy)
    for name, got, want in [("y", y, wanted)] + [(name, single[name].grad, double[name].grad) for name in inputs]:
        difference = (got.double() - want).abs().max() / want.abs().max().clamp(min=1)
        assert difference < 1e-5, (kind.__name__, name, difference)


if __name__ == "__main__":
    torch.manual_seed(21)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    lsh()
    clusters()
