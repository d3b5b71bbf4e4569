"""Generation, 16 tokens with the paper's MNIST model: ours beside pytorch-fast-transformers' recurrent encoder."""
from compare import Case, Peer, main


def cases(quick):
    sizes = {"vocab": 256, "activation": "relu", "tokens": 16}
    if quick:
        sizes.update(layers=1, heads=2, dim=32, hidden=32, positions=48)
    else:
        sizes.update(layers=8, heads=8, dim=256, hidden=1024, positions=10016)
    for batch in [1, 64]:
        ours = f"token:10/batch:{batch}"
        yield Case(f"batch:{batch}", [ours], [
            Peer("fast-transformers, installed", "Generation", {"batch": batch, **sizes}, ours),
            Peer("fast-transformers, strongest", "Generation", {"batch": batch, **sizes}, ours, strongest=True)])


def work():
    from models import Generation
    return {"Generation": Generation}


if __name__ == "__main__":
    main(__doc__, cases, work)
