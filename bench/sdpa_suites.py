#!/usr/bin/env python3
"""Judges PyTorch's attention backends on every case of a saved `assay check` document that they can be asked: no code in common with ours.

    python3 bench/sdpa_suites.py RECORDS.json [--assay bin/assay] [--scratch DIR] [--findings FILE] > sdpa_suites.md

A case counts if it is dense, of 16 bits, with no mask, a square causal one or a boolean one, and without conventions that
scaled_dot_product_attention lacks. Its inputs come from `assay repro --dump` (a host kernel, on the same bits), go through the flash, cuDNN,
memory-efficient and math backends, and the outputs through `assay judge`, with nothing declared. For a GPU.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import tempfile

import torch
from dump_file import dump_bytes, read_dump

ATEN = torch.ops.aten
# Parameters that leave what SDPA computes alone, or that its arguments say.
EXPRESSIBLE = {"b", "hq", "hkv", "sq", "skv", "d", "dv", "dtype", "mask", "align", "scale", "layout", "pad_rows", "pad_dim", "offset", "poison",
               "expand", "rows", "rows_seed", "q", "k", "v", "set", "mask.data", "empty", "empty_lse", "lse"}
JUDGED = ("clean", "finding", "unclassified", "vacuous", "out_of_range", "uncertain")


def fields_of(line):
    return dict(word.split("=", 1) for word in line.split()[1:] if not word.startswith("set="))


def expressible(line):
    fields = fields_of(line)
    if not line.startswith("attention ") or not set(fields) <= EXPRESSIBLE:
        return False
    if fields.get("dtype", "bf16") not in ("bf16", "fp16") or fields.get("lse") == "2" or fields.get("empty") == "mean":
        return False
    mask = fields.get("mask", "none")
    return mask in ("none", "bool") or (mask == "causal" and fields.get("sq") == fields.get("skv", fields.get("sq")))


def run(backend, q, k, v, mask, causal, scale):
    """o, and the LSE or None; raises RuntimeError where the backend refuses."""
    bias = None
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=q.dtype, device="cuda").masked_fill(mask == 0, float("-inf"))
        bias = bias.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    if backend == "flash":
        if bias is not None:
            raise RuntimeError("takes no mask")
        return ATEN._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)[:2]
    if backend == "efficient":
        o, lse = ATEN._scaled_dot_product_efficient_attention(q, k, v, bias, True, 0.0, causal, scale=scale)[:2]
        return o, lse[..., : q.shape[2]]
    if backend == "cudnn":
        return ATEN._scaled_dot_product_cudnn_attention(q, k, v, bias, True, 0.0, causal, False, scale=scale)[:2]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, bias, is_causal=causal, scale=scale), None


def outputs_of(path):
    """[(backend, bytes of a dump for judge, or the reason why there is none)]"""
    tensors, line = read_dump(path)
    fields = fields_of(line)
    heads = tensors["q"].shape[1] // tensors["k"].shape[1]
    q, k, v = tensors["q"].cuda(), *(tensors[role].cuda().repeat_interleave(heads, 1) for role in "kv")
    mask = tensors["mask"].cuda() if "mask" in tensors else None
    scale = float(fields["scale"]) if "scale" in fields else None
    inputs = {role: tensor for role, tensor in tensors.items() if role not in ("o", "lse")}
    made = []
    for backend in ("flash", "cudnn", "efficient", "math"):
        try:
            o, lse = run(backend, q, k, v, mask, fields.get("mask") == "causal", scale)
            torch.cuda.synchronize()
        except (RuntimeError, NotImplementedError) as error:
            made.append((backend, str(error).splitlines()[0]))
            continue
        outputs = {"o": o} | ({} if lse is None or "lse" not in tensors else {"lse": lse.reshape(tensors["lse"].shape).float()})
        made.append((backend, dump_bytes(inputs | outputs, {"case": line, "backend": backend})))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records")
    parser.add_argument("--assay", default="bin/assay")
    parser.add_argument("--scratch")
    parser.add_argument("--findings", help="write findings with their case lines to this JSON file")
    arguments = parser.parse_args()
    with open(arguments.records) as file:
        cases = {record["case"]: record["suite"] for record in json.load(file)["records"] if expressible(record["case"])}
    counts, refusals, findings = collections.defaultdict(collections.Counter), collections.Counter(), []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def dump(numbered):
            number, line = numbered
            path = os.path.join(folder, f"{number}.safetensors")
            command = [arguments.assay, "repro", line, "--kernel", f"naive_{fields_of(line).get('dtype', 'bf16')}", "--dump", path]
            subprocess.run(command, capture_output=True)
            return line, path

        def judge(job):
            line, backend, path = job
            answer = subprocess.run([arguments.assay, "judge", path, "--json"], capture_output=True, text=True)
            if answer.returncode not in (0, 1, 6):
                raise SystemExit(f"{backend} on {line}: assay judge exits with {answer.returncode}: {answer.stderr.strip()}")
            os.remove(path)
            return line, backend, json.loads(answer.stdout)["records"][0]["verdict"]

        jobs = []
        for number, (line, path) in enumerate(pool.map(dump, enumerate(cases))):
            if not os.path.exists(path):
                refusals["no dump: the host kernel does not take the case"] += 1
                continue
            for backend, made in outputs_of(path):
                if isinstance(made, str):
                    refusals[f"{backend}: {made}"] += 1
                    continue
                answer = os.path.join(folder, f"{number}_{backend}.safetensors")
                with open(answer, "wb") as file:
                    file.write(made)
                jobs.append((line, backend, answer))
            os.remove(path)
        for line, backend, verdict in pool.map(judge, jobs):
            counts[backend, cases[line]][verdict["kind"]] += 1
            if verdict["kind"] in ("finding", "unclassified"):
                findings.append({"backend": backend, "suite": cases[line], "case": line} | verdict)
    print("| backend | suite | " + " | ".join(JUDGED) + " |\n|" + " --- |" * (2 + len(JUDGED)))
    for (backend, suite), kinds in sorted(counts.items()):
        print(f"| {backend} | {suite} | " + " | ".join(str(kinds[kind]) for kind in JUDGED) + " |")
    print("\nNot asked:\n")
    for reason, count in refusals.most_common():
        print(f"- {count}: {reason}")
    print(f"\n{len(findings)} findings. {torch.cuda.get_device_name(0)}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}.")
    if arguments.findings:
        with open(arguments.findings, "w") as file:
            json.dump(findings, file, indent=1)


if __name__ == "__main__":
    main()
