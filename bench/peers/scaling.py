"""Time and memory of attention, forward and backward, as sequences grow: linear and softmax, ours beside the peers'.
Shorter sequences come in larger batches."""
from compare import Case, Peer, main


def cases(quick):
    tokens = 64 if quick else 65536
    for time in [16, 32] if quick else [2 ** n for n in range(9, 17)]:
        sizes = {"batch": tokens // time, "time": time, "heads": 8, "dim": 32}
        linear, softmax = f"linear/N:{time}", f"softmax/N:{time}"
        yield Case(f"N:{time}", [linear, softmax], [
            Peer("fast-transformers, installed", "Attention", {"kind": "linear", **sizes}, linear),
            Peer("fast-transformers, strongest", "Attention", {"kind": "linear", **sizes}, linear, strongest=True),
            Peer("PyTorch softmax", "Attention", {"kind": "softmax", **sizes}, softmax),
        ], checked=time <= 4096)


def work():
    from causal import Attention
    return {"Attention": Attention}


if __name__ == "__main__":
    main(__doc__, cases, work)
