#!/usr/bin/env python3
"""Writes what another program's attention would dump for `assay judge`: q, k, v, o, lse computed by NumPy in float32.

    python3 tests/cli/numpy_dump.py OUT.safetensors [--fault zero_row|drop_last] [--dtype bf16|fp16] [--seed N] ...

Shares no code with assay: its own random numbers, rounding and file writer. Tensors are named by role and lie in C order
in their logical shapes (q [b,hq,sq,d], k and v [b,hkv,skv,d], o like q, lse fp32 [b,hq,sq]); `__metadata__.case` is the
op and its parameters, the sources of the inputs do not matter. Masked to causal, bottom-right. Faults: the last row of
the last head zero; the last key left out of every row that may see it.
"""

import argparse
import json
import struct

import numpy as np


def round_to_bf16(x):
    """float32 -> (codes, the same values as float32), to nearest even; finite values only."""
    bits = x.astype("<f4").view("<u4").astype(np.uint64)
    codes = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return codes, (codes.astype("<u4") << 16).view("<f4")


def round_to_fp16(x):
    half = x.astype("<f2")
    return half.view("<u2"), half.astype("<f4")


ROUND = {"bf16": ("BF16", round_to_bf16), "fp16": ("F16", round_to_fp16)}


def attention(q, k, v, causal, keys):
    """float32 throughout: o [b,hq,sq,d] and lse [b,hq,sq] over the first `keys` keys. P stays in float32."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(t, group, axis=1) for t in (k, v))
    scores = np.matmul(q, k.transpose(0, 1, 3, 2)) * np.float32(1 / np.sqrt(q.shape[-1]))
    len_q, len_kv = scores.shape[-2:]
    admitted = np.broadcast_to(np.arange(len_kv)[None, :] < keys, (len_q, len_kv))
    if causal:
        admitted = admitted & (np.arange(len_kv)[None, :] <= np.arange(len_q)[:, None] + len_kv - len_q)
    scores = np.where(admitted, scores, np.float32(-np.inf))
    top = scores.max(axis=-1, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(axis=-1, keepdims=True)
    return np.matmul(p, v) / total, (top + np.log(total))[..., 0]


def write_safetensors(path, tensors, metadata):
    """tensors: name -> (dtype name, array). Header padded to 8 bytes, data without gaps."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name, (dtype, array) in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--fault", choices=["zero_row", "drop_last"])
    parser.add_argument("--dtype", choices=sorted(ROUND), default="bf16")
    parser.add_argument("--seed", type=int, default=1)
    for name, default in {"b": 2, "hq": 4, "hkv": 2, "sq": 33, "skv": 65, "d": 64}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--mask", choices=["none", "causal"], default="causal")
    a = parser.parse_args()
    if a.hq % a.hkv or (a.mask == "causal" and a.sq > a.skv) or a.skv < 2:
        parser.error("hq must be a multiple of hkv, and every row must keep a key (sq <= skv, skv >= 2)")

    dtype, rounding = ROUND[a.dtype]
    rng = np.random.default_rng(a.seed)
    shapes = {"q": (a.b, a.hq, a.sq, a.d), "k": (a.b, a.hkv, a.skv, a.d), "v": (a.b, a.hkv, a.skv, a.d)}
    inputs = {role: rounding(rng.standard_normal(shape, dtype=np.float32)) for role, shape in shapes.items()}
    keys = a.skv - 1 if a.fault == "drop_last" else a.skv
    o, lse = attention(*(inputs[role][1] for role in "qkv"), a.mask == "causal", keys)
    codes = rounding(o)[0]
    if a.fault == "zero_row":
        codes[-1, -1, -1, :] = 0
    tensors = {role: (dtype, inputs[role][0]) for role in "qkv"}
    tensors |= {"o": (dtype, codes), "lse": ("F32", lse.astype("<f4"))}
    case = (f"attention b={a.b} hq={a.hq} hkv={a.hkv} sq={a.sq} skv={a.skv} d={a.d} dtype={a.dtype} mask={a.mask} "
            "align=br lse=e")
    write_safetensors(a.out, tensors, {"case": case, "writer": f"numpy {np.__version__}"})


if __name__ == "__main__":
    main()
