"""The paper's models as pytorch-fast-transformers builds them, with the weights of ours."""
import torch
import torch.nn.functional as F
from fast_transformers.builders import RecurrentEncoderBuilder, TransformerEncoderBuilder
from fast_transformers.masking import LengthMask, TriangularCausalMask

from causal import Softmax
from compare import difference


# The first step of an optimizer makes PyTorch load its compiler, which is no part of a step's memory.
first = torch.nn.Parameter(torch.zeros(1))
first.grad = torch.zeros(1)
torch.optim.RAdam([first]).step()


class Model(torch.nn.Module):
    """Embedding, learned positions, post-norm encoder, head."""

    def __init__(self, sizes, builder):
        super().__init__()
        dim, heads = sizes["dim"], sizes["heads"]
        self.embed = torch.nn.Embedding(sizes["vocab"], dim)
        self.positions = torch.nn.Parameter(torch.randn(sizes["positions"], dim) * 0.02)
        self.encoder = builder.from_kwargs(
            attention_type="causal-linear", n_layers=sizes["layers"], n_heads=heads, query_dimensions=dim // heads,
            value_dimensions=dim // heads, feed_forward_dimensions=sizes["hidden"], dropout=0,
            activation=sizes["activation"], final_normalization=False).get()
        if sizes.get("kind") == "softmax":
            for layer in self.encoder.layers:
                layer.attention.inner_attention = Softmax()
        self.head = torch.nn.Linear(dim, sizes["vocab"])

    def parts(self):
        """Our names, each with the parameters here that it holds one below the other."""
        names = {"embed.weight": [self.embed.weight], "positions.weight": [self.positions],
                 "head.weight": [self.head.weight], "head.bias": [self.head.bias]}
        for i, layer in enumerate(self.encoder.layers):
            attention = layer.attention
            modules = {"attention.qkv": [attention.query_projection, attention.key_projection,
                                         attention.value_projection],
                       "attention.out": [attention.out_projection], "norm1": [layer.norm1], "norm2": [layer.norm2],
                       "feed_forward.up": [layer.linear1], "feed_forward.down": [layer.linear2]}
            for name, parts in modules.items():
                for kind in ("weight", "bias"):
                    names[f"stack.blocks.{i}.{name}.{kind}"] = [getattr(part, kind) for part in parts]
        return names

    def load(self, tensors):
        with torch.no_grad():
            for name, parts in self.parts().items():
                for part, rows in zip(parts, tensors["before." + name].chunk(len(parts))):
                    part.copy_(rows)


class TrainingStep:
    """The copy task's step: the loss on the second half of 0 w 0 w, RAdam."""

    def __init__(self, sizes, inputs):
        self.ours = inputs
        self.model = Model(sizes, TransformerEncoderBuilder)
        batch, time = sizes["batch"], sizes["positions"]
        if inputs:
            self.model.load(inputs)
            self.inputs, self.targets = inputs["inputs"].long(), inputs["targets"].long()
        else:
            self.inputs = torch.randint(sizes["vocab"], (batch, time))
            self.targets = self.inputs.roll(-1, 1)
            self.targets[:, :time // 2] = -100
        self.mask = TriangularCausalMask(time)
        self.lengths = LengthMask(torch.full((batch,), time, dtype=torch.int64))
        self.optimizer = torch.optim.RAdam(self.model.parameters(), lr=1e-3)

    def forward_backward(self):
        model = self.model
        x = model.encoder(model.embed(self.inputs) + model.positions, self.mask, self.lengths)
        self.logits = model.head(x)
        self.loss = F.cross_entropy(self.logits.flatten(0, 1), self.targets.flatten(), ignore_index=-100)
        self.loss.backward()

    def run(self):
        self.forward_backward()
        self.logits = None
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def check(self):
        self.forward_backward()
        differences = {"logits": difference(self.logits, self.ours["logits"]),
                       "loss": difference(self.loss, self.ours["loss"])}
        for name, parts in self.model.parts().items():
            grad = torch.cat([part.grad for part in parts])
            differences["grad." + name] = difference(grad, self.ours["grad." + name])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for _ in range(7):
            self.run()
        differences["last_loss"] = difference(self.loss, self.ours["last_loss"])
        return differences


class Generation:
    """Token by token, the likeliest each time; a run goes on after ten tokens."""

    def __init__(self, sizes, inputs):
        self.ours, self.batch, self.run_tokens = inputs, sizes["batch"], sizes["tokens"]
        self.model = Model(sizes, RecurrentEncoderBuilder).eval()
        if inputs:
            self.model.load(inputs)
        else:
            tokens = torch.zeros(self.batch, dtype=torch.int64)
            self.state, self.position = None, 0
            for _ in range(10):
                tokens = self.next(tokens)

    @torch.no_grad()
    def step(self, tokens):
        x = self.model.embed(tokens) + self.model.positions[self.position]
        x, self.state = self.model.encoder(x, self.state)
        self.position += 1
        return self.model.head(x)

    def next(self, tokens):
        return self.step(tokens).argmax(-1)

    def run(self):
        self.position = 10
        tokens = torch.zeros(self.batch, dtype=torch.int64)
        for _ in range(self.run_tokens):
            tokens = self.next(tokens)

    def check(self):
        self.state, self.position = None, 0
        return {f"logits.{t}": difference(self.step(tokens.long()), self.ours[f"logits.{t}"])
                for t, tokens in enumerate(self.ours["tokens"])}
