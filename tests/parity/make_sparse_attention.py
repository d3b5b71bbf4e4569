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
import contextlib
import functools
import math
import unittest.mock

import torch
from fast_transformers.attention import reformer_attention as reformer
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


if __name__ == "__main__":
    torch.manual_seed(21)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    lsh()
