#!/usr/bin/env python3
"""The loop that a kernel's author would write without assay: random inputs, the kernel, an fp64 reference, allclose, case by case.

Usage: fuzz_loop.py JOB.json, which is {"seconds": S, "cases": [{b, hq, hkv, sq, skv, d, mask, window, softcap, causal, dtype, page}]}; prints
{"cases": N, "scores": N, "seconds": S}. The kernel under test is the same formula in fp32 over NumPy's BLAS, the cheapest that there is
in Python; inputs are rounded to bf16 and pages gathered by an index array. One case is one call, as with a kernel; heads and batch are
batched, and nothing is done for a convention that the case does not use.
"""
import json
import sys
import time

import numpy as np


def to_bf16(x):
    """Rounds fp32 to the nearest bf16, ties to even."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def attention(q, k, v, case, mask, kind):
    q, k, v = q.astype(kind), k.astype(kind), v.astype(kind)
    s = np.matmul(q, k.transpose(0, 1, 3, 2)) * kind(1 / np.sqrt(case["d"]))
    if case["softcap"]:
        s = case["softcap"] * np.tanh(s / case["softcap"])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    m = s.max(axis=-1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(m), m, 0))
    total = p.sum(axis=-1, keepdims=True)
    o = np.matmul(p, v) / np.where(total == 0, 1, total)
    return o, np.log(np.where(total == 0, 1, total)) + m


def run(case, rng):
    b, hq, hkv, sq, skv, d = (case[key] for key in ("b", "hq", "hkv", "sq", "skv", "d"))
    q = to_bf16(rng.standard_normal((b, hq, sq, d), dtype=np.float32))
    k = to_bf16(rng.standard_normal((b, hkv, skv, d), dtype=np.float32))
    v = to_bf16(rng.standard_normal((b, hkv, skv, d), dtype=np.float32))
    if case["page"]:
        slots = rng.permutation(skv)
        k, v = k[:, :, slots], v[:, :, slots]
    if hq != hkv:
        k, v = np.repeat(k, hq // hkv, axis=1), np.repeat(v, hq // hkv, axis=1)
    mask = None
    if case["causal"] or case["window"]:
        distance = np.arange(skv)[None, :] - (np.arange(sq)[:, None] + skv - sq)
        left, right = case["window"] or (-1, 0)
        mask = (distance <= right) if right >= 0 else np.ones_like(distance, bool)
        if left >= 0:
            mask &= distance >= -left
    elif case["mask"]:
        mask = rng.random((b, hq, sq, skv)) < 0.75
    got, got_lse = attention(q, k, v, case, mask, np.float32)
    want, want_lse = attention(q, k, v, case, mask, np.float64)
    close = np.allclose(to_bf16(got), want, atol=1e-2, rtol=1e-2) and np.allclose(got_lse, want_lse, atol=1e-3, rtol=1e-3)
    return close, b * hq * sq * skv


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    rng = np.random.default_rng(1)
    cases = scores = 0
    start = time.perf_counter()
    with np.errstate(all="ignore"):
        while True:
            for case in job["cases"]:
                _, n = run(case, rng)
                cases += 1
                scores += n
            seconds = time.perf_counter() - start
            if seconds >= job["seconds"]:
                break
    print(json.dumps({"cases": cases, "scores": scores, "seconds": seconds}))


if __name__ == "__main__":
    main()
