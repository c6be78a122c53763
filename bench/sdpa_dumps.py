#!/usr/bin/env python3
"""Runs PyTorch's attention backends on a GPU and writes what `assay judge` reads: inputs, o, LSE where the operator returns it.

    python3 bench/sdpa_dumps.py OUT        # writes OUT/<backend>_<dtype>.tar.gz, one safetensors file per case

Backends: flash (FlashAttention-2), cudnn, efficient (memory-efficient), math (no LSE). Inputs: MiniLM-L6 activations of layer 5
(cases/real), and generated ones (seed 7): decode, causal squares, peaked logits, values with a mean, an outlier channel, and
values near the bottom of the format. Needs torch and a GPU; `bench/judge_dumps.py` judges the dumps anywhere.
"""

import io
import json
import os
import struct
import sys
import tarfile

import torch
from dump_file import dump_bytes

ATEN = torch.ops.aten
DTYPES = {"bf16": (torch.bfloat16, "BF16"), "fp16": (torch.float16, "F16")}


def activations(name):
    with open(f"cases/real/minilm_l6_{name}.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    for role in "qkv":
        entry = header[f"layer5.{role}"]
        begin, end = entry["data_offsets"]
        yield torch.frombuffer(bytearray(data[begin:end]), dtype=DTYPES[name][0]).reshape(entry["shape"])


def cases(name):
    """Yields (case name, q, k, v, causal)."""
    dtype = DTYPES[name][0]
    generator = torch.Generator().manual_seed(7)

    def normal(*shape, std=1.0, mean=0.0):
        return (torch.randn(*shape, generator=generator) * std + mean).to(dtype)

    real = list(activations(name))
    for causal in (False, True):
        yield "minilm_layer5", *real, causal
    for d in (64, 128):
        yield f"prefill_d{d}", normal(1, 1, 64, d), normal(1, 1, 1024, d), normal(1, 1, 1024, d), False
        yield f"square_d{d}", normal(1, 1, 256, d), normal(1, 1, 256, d), normal(1, 1, 256, d), True
        yield f"decode_d{d}", normal(1, 1, 1, d), normal(1, 1, 2048, d), normal(1, 1, 2048, d), False
        yield f"peaked_d{d}", normal(1, 1, 64, d, std=4), normal(1, 1, 512, d, std=4), normal(1, 1, 512, d), False
        yield f"mean2_d{d}", normal(1, 1, 32, d), normal(1, 1, 700, d), normal(1, 1, 700, d, mean=2), False
        outlier = torch.randn(1, 1, 256, d, generator=generator)
        outlier[..., 3] *= 30
        yield f"outlier_d{d}", normal(1, 1, 32, d), outlier.to(dtype), normal(1, 1, 256, d), False
    yield "tiny_v", normal(1, 1, 16, 64), normal(1, 1, 128, 64), normal(1, 1, 128, 64, std=1e-39 if name == "bf16" else 1e-6), False


def run(backend, q, k, v, causal):
    if backend == "flash":
        return ATEN._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)[:2]
    if backend == "efficient":
        o, lse = ATEN._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal)[:2]
        return o, lse[..., : q.shape[2]]
    if backend == "cudnn":
        return ATEN._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)[:2]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), None


def main(out):
    where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
    for backend in ("flash", "cudnn", "efficient", "math"):
        for name in DTYPES:
            with tarfile.open(f"{out}/{backend}_{name}.tar.gz", "w:gz") as tar:
                for case, q, k, v, causal in cases(name):
                    (b, h, s, d), keys = q.shape, k.shape[2]
                    o, lse = run(backend, q.cuda(), k.cuda(), v.cuda(), causal)
                    tensors = {"q": q, "k": k, "v": v, "o": o}
                    if lse is not None:
                        tensors["lse"] = lse.reshape(b, h, s).float()
                    line = f"attention b={b} hq={h} sq={s} skv={keys} d={d} dtype={name}" + (" mask=causal align=tl" if causal else "")
                    data = dump_bytes(tensors, {"case": line, "backend": backend, "where": where})
                    entry = tarfile.TarInfo(f"{backend}_{name}_{case}{'_causal' if causal else ''}.safetensors")
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))
    print(where)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    main(sys.argv[1])
