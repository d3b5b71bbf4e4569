"""The copy task's training step: ours, linear and softmax, beside PyTorch's with pytorch-fast-transformers as installed
and at its strongest, and with PyTorch's own softmax attention."""
from compare import Case, Peer, main


def cases(quick):
    sizes = {"vocab": 12, "activation": "relu"}
    if quick:
        sizes.update(layers=1, heads=2, dim=32, hidden=32, batch=2, positions=16)
    else:
        sizes.update(layers=4, heads=8, dim=256, hidden=1024, batch=64, positions=128)
    linear, softmax = {"kind": "linear", **sizes}, {"kind": "softmax", **sizes}
    yield Case("step", ["linear", "softmax"], [
        Peer("fast-transformers, installed", "TrainingStep", linear, "linear"),
        Peer("fast-transformers, strongest", "TrainingStep", linear, "linear", strongest=True),
        Peer("PyTorch softmax", "TrainingStep", softmax, "softmax"),
        Peer("PyTorch softmax, memory kept", "TrainingStep", softmax, "softmax", strongest=True),
        # Of 33 million hidden units a few are so near 0 that rounding decides ReLU's slope.
    ], tolerance=1e-3)


def work():
    from models import TrainingStep
    return {"TrainingStep": TrainingStep}


if __name__ == "__main__":
    main(__doc__, cases, work)
