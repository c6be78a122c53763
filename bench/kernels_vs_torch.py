#!/usr/bin/env python3
"""Times our device kernels beside PyTorch's attention backends, in one process on one GPU. Run by `assay bench kernels`.

    python3 bench/kernels_vs_torch.py LIBRARY [--kernel fa2_cuda_bf16 ...] [--seconds 0.5] > kernels.json

Shapes: regimes 3 to 5 of suites/regimes.txt, full and causal. Inputs are normal, drawn on the device, in as many sets as fill eight times
the L2; sets take turns, and so do the contestants. Every figure is a median over rounds, every ratio one of medians of the same rounds:
above 1, ours is faster. Before the timing each output is compared with the flash backend's, so that nothing wrong is timed.
"""

import argparse
import ctypes
import json
import statistics
import sys

try:
    import torch
except ImportError as error:
    print(f"assay: bench kernels: {error}: name a Python with torch by --python", file=sys.stderr)
    raise SystemExit(3)

ATEN = torch.ops.aten
REGIMES = {3: (4, 32, 4096, 128), 4: (1, 8, 8192, 128), 5: (2, 16, 16384, 64)}  # batch, heads, tokens, head size
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
PEERS = {
    "flash": lambda q, k, v, causal: ATEN._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)[0],
    "cudnn": lambda q, k, v, causal: ATEN._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)[0],
}
CACHES = 8  # times the L2 that the input sets fill


class Library:
    """The C entry of bench/device_forward.cc."""

    def __init__(self, path):
        self.forward = ctypes.CDLL(path).assay_device_forward
        pointer, size = ctypes.c_void_p, ctypes.c_int64
        self.forward.argtypes = [ctypes.c_char_p] + [pointer] * 5 + [size] * 4 + [ctypes.c_int, pointer]
        self.forward.restype = ctypes.c_char_p

    def __call__(self, kernel, q, k, v, o, lse, causal):
        batch, heads, tokens, d = q.shape
        error = self.forward(kernel.encode(), q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr(), lse.data_ptr(), batch, heads,
                             tokens, d, causal, torch.cuda.current_stream().cuda_stream)
        if error:
            raise SystemExit(f"{kernel}: {error.decode()}")


def sets_of(shape, dtype, generator):
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    bytes_of_one = 4 * 2 * shape[0] * shape[1] * shape[2] * shape[3]
    count = max(2, -(-CACHES * cache // bytes_of_one))
    return [[torch.randn(shape, device="cuda", generator=generator).to(dtype) for _ in range(3)] for _ in range(count)]


def milliseconds(run, sets, first, launches):
    """Per launch, over `launches` launches on sets from `first` on."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for n in range(launches):
        run(*sets[(first + n) % len(sets)])
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / launches


def compare(regime, kernel, library, causal, rounds):
    batch, heads, tokens, d = shape = REGIMES[regime]
    dtype = DTYPES[kernel.rsplit("_", 1)[1]]
    sets = sets_of(shape, dtype, torch.Generator("cuda").manual_seed(regime))
    o = torch.empty(shape, device="cuda", dtype=dtype)
    lse = torch.empty(shape[:3], device="cuda")
    runs = {kernel: lambda q, k, v: library(kernel, q, k, v, o, lse, causal)}
    runs |= {name: lambda q, k, v, peer=peer: peer(q, k, v, causal) for name, peer in PEERS.items()}
    library(kernel, *sets[0], o.fill_(float("nan")), lse, causal)
    apart = (o.float() - PEERS["flash"](*sets[0], causal).float()).abs()
    if not apart.max().item() <= 2e-2:
        raise SystemExit(f"{kernel} regime {regime}: {apart.max().item()} apart from the flash backend; not timed")
    once = max(1e-3, milliseconds(runs[kernel], sets, 0, 2))
    launches = max(1, min(64, int(20 / once)))
    times = {name: [] for name in runs}
    for n in range(rounds + 2):
        for name, run in runs.items():
            time = milliseconds(run, sets, n * launches, launches)
            if n >= 2:  # two rounds warm up
                times[name].append(time)
    medians = {name: statistics.median(values) for name, values in times.items()}
    operations = 4 * batch * heads * tokens * tokens * d * (0.5 if causal else 1)
    return {"name": f"{kernel} regime {regime}{' causal' if causal else ''}", "kernel": kernel, "regime": regime, "shape": list(shape),
            "causal": causal, "sets": len(sets), "rounds": rounds, "launches_per_round": launches,
            "largest_difference_from_flash": apart.max().item(),
            "milliseconds": medians, "spread": {k: (max(t) - min(t)) / statistics.median(t) for k, t in times.items()},
            "teraflops": {name: operations / time / 1e9 for name, time in medians.items()},
            "ratios": {name: medians[name] / medians[kernel] for name in PEERS}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--kernel", action="append")
    parser.add_argument("--rounds", type=int, default=21)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("assay: bench kernels: no CUDA device", file=sys.stderr)
        raise SystemExit(3)
    library = Library(arguments.library)
    entries = []
    for kernel in arguments.kernel or ["fa2_cuda_bf16", "fa2_cuda_fp16", "fa4_cuda_bf16"]:
        for regime in REGIMES:
            for causal in (False, True):
                entries.append(compare(regime, kernel, library, causal, arguments.rounds))
                e = entries[-1]
                print(f"{e['name']:<34} {e['milliseconds'][kernel]:8.3f} ms {e['teraflops'][kernel]:6.0f} TFLOP/s, flash / ours "
                      f"{e['ratios']['flash']:.3f}, cudnn / ours {e['ratios']['cudnn']:.3f}", file=sys.stderr)
    json.dump({"version": 1, "tool": "assay bench kernels", "device": torch.cuda.get_device_name(0), "torch": torch.__version__,
               "cuda": torch.version.cuda, "entries": entries}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
