"""Causal attention alone: pytorch-fast-transformers' linear attention, and PyTorch's own softmax attention."""
import torch
import torch.nn.functional as F
from fast_transformers.attention import CausalLinearAttention
from fast_transformers.masking import LengthMask, TriangularCausalMask

from compare import difference


class Softmax(torch.nn.Module):
    """The interface of fast-transformers' attentions, the work by PyTorch's fused kernel."""

    def forward(self, queries, keys, values, attn_mask=None, query_lengths=None, key_lengths=None):
        q, k, v = (x.transpose(1, 2) for x in (queries, keys, values))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).contiguous()


class Attention:
    """Forward and backward for q, k, v (batch, time, heads, dim), given or random."""

    def __init__(self, sizes, inputs):
        self.ours = inputs
        batch, time, heads, dim = (sizes[key] for key in ("batch", "time", "heads", "dim"))
        if inputs and "qkv" in inputs:
            leaves = list(inputs["qkv"].unbind(2))
        elif inputs:
            leaves = [inputs[name] for name in "qkv"]
        else:
            leaves = [torch.randn(batch, time, heads, dim) for _ in range(3)]
        self.leaves = [leaf.contiguous().requires_grad_() for leaf in leaves]
        self.seed = inputs["seed"] if inputs else torch.randn(batch, time, heads, dim)
        self.attention = CausalLinearAttention(dim) if sizes["kind"] == "linear" else Softmax()
        self.mask = TriangularCausalMask(time)
        self.lengths = LengthMask(torch.full((batch,), time, dtype=torch.int64))

    def run(self):
        for leaf in self.leaves:
            leaf.grad = None
        self.out = self.attention(*self.leaves, self.mask, self.lengths, self.lengths)
        self.out.backward(self.seed)

    def check(self):
        self.run()
        grads = [leaf.grad for leaf in self.leaves]
        pairs = {"out": (self.out, self.ours["out"])}
        if "dqkv" in self.ours:
            pairs["dqkv"] = (torch.stack(grads, 2), self.ours["dqkv"])
        else:
            pairs.update({"d" + name: (grad, self.ours["d" + name]) for name, grad in zip("qkv", grads)})
        return {name: difference(*pair) for name, pair in pairs.items()}
