"""The same work as bench_gpu by PyTorch, and by flash-linear-attention where it is installed: causal linear attention
(batch x heads 64, N 16384, elu + 1, normaliser) forward and backward, and the copy task's training step with PyTorch's
softmax attention. Medians of several, in milliseconds."""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F


class TrainingStep:
    """The copy task's step: post-norm layers of PyTorch's own, the loss on the second half, RAdam."""

    def __init__(self, device, layers, heads, dim, hidden, batch, time, vocab=12):
        nn = torch.nn
        self.embed, self.head = nn.Embedding(vocab, dim, device=device), nn.Linear(dim, vocab, device=device)
        self.positions = nn.Parameter(torch.randn(time, dim, device=device) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, hidden, dropout=0, batch_first=True, device=device)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.mask = nn.Transformer.generate_square_subsequent_mask(time, device=device)
        parameters = [*self.embed.parameters(), *self.head.parameters(), *self.encoder.parameters(), self.positions]
        self.optimizer = torch.optim.RAdam(parameters, lr=1e-3, foreach=True)
        self.inputs = torch.randint(vocab, (batch, time), device=device)
        self.targets = self.inputs.roll(-1, 1)
        self.targets[:, :time // 2] = -100

    def __call__(self):
        x = self.encoder(self.embed(self.inputs) + self.positions, mask=self.mask, is_causal=True)
        F.cross_entropy(self.head(x).flatten(0, 1), self.targets.flatten(), ignore_index=-100).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def median_ms(device, work, rounds):
    def wait():
        if device == "cuda":
            torch.cuda.synchronize()
    times = []
    for i in range(rounds + 2):  # the first two take memory and compile
        wait()
        start = time.perf_counter()
        work()
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[2:])


def chunked(q, k, v, chunk=64):
    """PyTorch alone: products of matrices within chunks, cumulative sums of states between them."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    b, n, h, d = q.shape
    q, k, v = (x.reshape(b, n // chunk, chunk, h, -1).transpose(2, 3) for x in (q, k, v))
    states = (k.transpose(-1, -2) @ v).cumsum(1).roll(1, 1)
    sums = k.sum(-2, keepdim=True).cumsum(1).roll(1, 1)
    first = torch.ones(states.shape[1], device=q.device)
    first[0] = 0
    states, sums = states * first.view(1, -1, 1, 1, 1), sums * first.view(1, -1, 1, 1, 1)
    scores = (q @ k.transpose(-1, -2)).tril()
    den = scores.sum(-1, keepdim=True) + (q * sums).sum(-1, keepdim=True)
    return ((scores @ v + q @ states) / den).transpose(2, 3).reshape(b, n, h, -1)


def flash_linear_attention():
    try:
        from fla.ops.linear_attn import chunk_linear_attn
    except ImportError:
        return None
    def attend(q, k, v):
        out = chunk_linear_attn(F.elu(q) + 1, F.elu(k) + 1, v, scale=1.0, normalize=True)
        return out[0] if isinstance(out, tuple) else out
    return attend


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    rounds = 2 if options.quick else 11
    length, batch = (128, 1) if options.quick else (16384, 8)
    peers = {"PyTorch, chunks of 64": (chunked, torch.float32)}
    if fla := flash_linear_attention():
        peers["flash-linear-attention, f32"] = (fla, torch.float32)
        peers["flash-linear-attention, bf16"] = (fla, torch.bfloat16)
    else:
        print("flash-linear-attention is not installed (pip install flash-linear-attention): left out")
    for dim in (32, 64, 128):
        for name, (attend, dtype) in peers.items():
            leaves = [torch.randn(batch, length, 8, dim, device=options.device, dtype=dtype, requires_grad=True)
                      for _ in range(3)]
            seed = torch.randn(batch, length, 8, dim, device=options.device, dtype=dtype)
            with torch.no_grad():
                forward = median_ms(options.device, lambda: attend(*leaves), rounds)
            both = median_ms(options.device, lambda: torch.autograd.grad(attend(*leaves), leaves, seed), rounds)
            print(f"D:{dim:<4} {name:32} forward {forward:8.3f} ms   backward {both - forward:8.3f} ms")
    sizes = dict(layers=4, heads=8, dim=256, hidden=1024, batch=64, time=128)
    if options.quick:
        sizes = dict(layers=1, heads=2, dim=32, hidden=32, batch=2, time=16)
    step = median_ms(options.device, TrainingStep(options.device, **sizes), rounds)
    print(f"training step, PyTorch softmax: {step:.3f} ms")


if __name__ == "__main__":
    main()
