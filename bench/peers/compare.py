"""What all comparisons share: the rounds in turn, the peers' processes, the checks, the table."""
import argparse
import importlib.metadata
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

# Without these a third of the peer's time is page faults.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "268435456"}
MIB = 1 << 20


@dataclass
class Peer:
    """One way to run the peer: a class of the script, what it is made with, and which of our benchmarks it equals."""
    name: str
    work: str
    sizes: dict
    like: str
    strongest: bool = False


@dataclass
class Case:
    """Our benchmarks, the first of which the others are held against, and the peers."""
    name: str
    ours: list
    peers: list
    checked: bool = True
    tolerance: float = 1e-4


def memory(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def difference(mine, theirs):
    """Of two tensors: the norm of their difference as a share of their norm."""
    return ((mine - theirs).norm() / theirs.norm().clamp_min(1e-30)).item()


class Process:
    """A peer in a process of its own, which sleeps while it is not asked."""

    def __init__(self, peer, options, dump=None):
        variant = "strongest" if peer.strongest else "installed"
        environment = dict(os.environ, PYTHONPATH=os.path.join(options.folder, variant),
                           OMP_NUM_THREADS=str(options.threads), **(KEEP_MEMORY if peer.strongest else {}))
        command = [sys.executable, sys.argv[0], "--threads", str(options.threads), "--work", peer.work,
                   "--sizes", json.dumps(peer.sizes)] + (["--inputs", dump] if dump else [])
        self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, question):
        print(question, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"a peer's process ended with {self.process.wait()}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def serve(work, options):
    """The other end of Process: a line with a number of seconds asks for the mean time of a run."""
    import torch
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    classes, inputs = work(), None
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # VmHWM = VmRSS
    start = memory("VmRSS")
    if options.inputs:
        from safetensors.torch import load_file
        inputs = load_file(options.inputs)
    peer = classes[options.work](json.loads(options.sizes), inputs)
    warm = False
    for line in sys.stdin:
        if line.strip() == "check":
            print(json.dumps(peer.check()), flush=True)
            continue
        if not warm:
            peer.run()
        warm = True
        runs, begin = 0, time.perf_counter()
        while runs == 0 or time.perf_counter() - begin < float(line):
            peer.run()
            runs += 1
        seconds = (time.perf_counter() - begin) / runs
        print(json.dumps({"ms": 1e3 * seconds, "start_bytes": start,
                          "peak_bytes": memory("VmHWM")}), flush=True)


def run_ours(options, name, *flags):
    command = [options.program, "--threads", str(options.threads), "--filter", f"^{re.escape(name)}(/|$)",
               *(["--quick"] if options.quick else []), *flags]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")


def time_ours(options, name):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "ours.json")
        run_ours(options, name, "--json", file, "--benchmark_repetitions=1",
                 f"--benchmark_min_time={options.seconds}")
        with open(file) as text:
            result = json.load(text)["benchmarks"][0]
    return dict(result, ms=result["real_time"])


def check(options, case):
    """Runs each peer once on what ours dumped; a difference above the tolerance ends the comparison."""
    largest = {}
    with tempfile.TemporaryDirectory() as folder:
        for ours in case.ours:
            file = os.path.join(folder, "ours.safetensors")
            run_ours(options, ours, "--dump", file)
            for peer in (peer for peer in case.peers if peer.like == ours):
                process = Process(peer, options, file)
                differences = process.ask("check")
                process.end()
                for tensor, far in differences.items():
                    if not far <= case.tolerance:
                        sys.exit(f"{case.name}: {tensor} of {peer.name} differs from ours by {far:.1e} of its norm")
                largest[peer.name] = max(differences.items(), key=lambda item: item[1])
    for name, (tensor, far) in largest.items():
        print(f"{case.name}: ours and {name} differ by at most {far:.1e} of the norm (in {tensor})", flush=True)
    return largest


def measure(options, case):
    """options.rounds times: each of ours and of the peers once, in turn."""
    processes = {peer.name: Process(peer, options) for peer in case.peers}
    results = {name: [] for name in [*case.ours, *processes]}
    for _ in range(options.rounds):
        for name in case.ours:
            results[name].append(time_ours(options, name))
        for name, process in processes.items():
            results[name].append(process.ask(options.seconds))
    for process in processes.values():
        process.end()
    return results


def median(results, key):
    return statistics.median(one[key] for one in results)


def show(case, results):
    print(f"{'case':20} {'':34} {'median ms':>11} {'linnet/it':>9} {'peak MiB':>9} {'growth MiB':>10}")
    ours = median(results[case.ours[0]], "ms")
    for name, rounds in results.items():
        ms = median(rounds, "ms")
        line = f"{case.name:20} {'linnet ' if name in case.ours else ''}{name}".ljust(55)
        line += f" {ms:11.4g} {ours / ms:9.3f}"
        if "peak_bytes" in rounds[-1]:
            peak, start = (max(one[key] for one in rounds) for key in ("peak_bytes", "start_bytes"))
            line += f" {peak / MIB:9.0f} {(peak - start) / MIB:10.0f}"
        print(line, flush=True)


def main(about, cases, work):
    """`work`, called in a peer's process alone, imports the peer and gives its classes by name."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--program", help="our benchmark")
    parser.add_argument("--folder", help="where the peers' variants are installed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of work in each turn, at least one run (1)")
    parser.add_argument("--filter", default="", help="only cases whose name this regular expression finds")
    parser.add_argument("--json", help="write everything into this file")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    for internal in ("--work", "--sizes", "--inputs"):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return serve(work, options)

    everything = {"threads": options.threads, "rounds": options.rounds,
                  "torch": importlib.metadata.version("torch"), "fast_transformers": "0.4.0", "cases": {}}
    chosen = [case for case in cases(options.quick) if re.search(options.filter, case.name)]
    if not chosen:
        sys.exit(f"--filter {options.filter} names no case")
    for case in chosen:
        differences = check(options, case) if case.checked else {}
        results = measure(options, case)
        show(case, results)
        everything["cases"][case.name] = {"differences": differences, "results": results}
        if options.json:
            with open(options.json, "w") as file:
                json.dump(everything, file, indent=1)
