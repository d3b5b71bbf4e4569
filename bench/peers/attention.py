"""Causal linear attention, forward and backward, 8 heads: ours beside pytorch-fast-transformers', as installed and at
its strongest."""
from compare import Case, Peer, main


def cases(quick):
    for time in [64] if quick else [512, 4096, 65536]:
        for dim in [32] if quick else [32, 64]:
            ours = f"both/contiguous/N:{time}/D:{dim}"
            sizes = {"kind": "linear", "batch": 1, "time": time, "heads": 8, "dim": dim}
            yield Case(f"N:{time}/D:{dim}", [ours], [
                Peer("fast-transformers, installed", "Attention", sizes, ours),
                Peer("fast-transformers, strongest", "Attention", sizes, ours, strongest=True)])


def work():
    from causal import Attention
    return {"Attention": Attention}


if __name__ == "__main__":
    main(__doc__, cases, work)
