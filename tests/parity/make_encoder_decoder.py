#!/usr/bin/env python3
"""Makes data/encoder_decoder_{pre,post}_norm.safetensors: what torch.nn.Transformer gives.

    pip install torch numpy safetensors
    python make_encoder_decoder.py      # writes into the folder data beside this file

`weights.*` and `gradients.*` stand under PyTorch's own names: `transformer.encoder.layers.0.self_attn.in_proj_weight`, ...;
`source` (padded to its longest, `lengths`), `target`, `labels` (-1 counts for nothing), `logits`, `loss`. Computed in float64.
The post-norm stacks have no last normalisation, as in Vaswani et al. 2017; torch.nn.Transformer adds one unless it is given
its stacks.
"""
import torch
from torch import nn

from make_reference import normal, save

SIZES = dict(vocab=11, source_vocab=9, dim=16, heads=2, hidden=24, layers=2, max_time=8, max_source_time=9)


class Model(nn.Module):
    def __init__(self, pre_norm):
        super().__init__()
        dim, layers = SIZES["dim"], SIZES["layers"]
        options = dict(d_model=dim, nhead=SIZES["heads"], dim_feedforward=SIZES["hidden"], dropout=0.0, activation="gelu",
                       batch_first=True, norm_first=pre_norm)
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**options), layers, nn.LayerNorm(dim) if pre_norm else None,
                                        enable_nested_tensor=False)
        decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), layers, nn.LayerNorm(dim) if pre_norm else None)
        self.transformer = nn.Transformer(dim, SIZES["heads"], batch_first=True, custom_encoder=encoder, custom_decoder=decoder)
        self.source_embed = nn.Embedding(SIZES["source_vocab"], dim)
        self.target_embed = nn.Embedding(SIZES["vocab"], dim)
        self.source_positions = nn.Embedding(SIZES["max_source_time"], dim)
        self.target_positions = nn.Embedding(SIZES["max_time"], dim)
        self.head = nn.Linear(dim, SIZES["vocab"])

    def forward(self, source, padding, target):
        scale, time = SIZES["dim"] ** 0.5, target.shape[1]
        x = self.source_embed(source) * scale + self.source_positions.weight[:source.shape[1]]
        y = self.target_embed(target) * scale + self.target_positions.weight[:time]
        future = torch.ones(time, time, dtype=torch.bool).triu(1)
        return self.head(self.transformer(x, y, tgt_mask=future, src_key_padding_mask=padding, memory_key_padding_mask=padding))


def encoder_decoder(name, pre_norm, batch=3, source_time=9, time=7):
    model = Model(pre_norm).double()
    with torch.no_grad():
        for key, p in model.named_parameters():
            scale = "norm" in key and key.endswith("weight")
            p.copy_(normal(*p.shape, std=0.2 if p.dim() == 1 else 1.3 * p.shape[1] ** -0.5, mean=1.0 if scale else 0.0))
    lengths = torch.tensor([source_time, 5, 1])
    source = torch.randint(SIZES["source_vocab"], (batch, source_time))
    target, labels = (torch.randint(SIZES["vocab"], (batch, time)) for _ in range(2))
    labels[1, 4:] = -1
    logits = model(source, torch.arange(source_time) >= lengths[:, None], target)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1)
    loss.backward()
    tensors = {k: x.to(torch.int32) for k, x in dict(source=source, lengths=lengths, target=target, labels=labels).items()}
    tensors.update(logits=logits, loss=loss)
    tensors.update({f"weights.{k}": p for k, p in model.named_parameters()})
    tensors.update({f"gradients.{k}": p.grad for k, p in model.named_parameters()})
    save(f"encoder_decoder_{name}.safetensors", tensors, dict(SIZES, pre_norm=int(pre_norm)))


if __name__ == "__main__":
    torch.manual_seed(23)
    torch.set_num_threads(1)
    encoder_decoder("pre_norm", True)
    encoder_decoder("post_norm", False)
