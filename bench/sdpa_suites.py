#!/usr/bin/env python3
"""Judges PyTorch's attention backends on every case of a saved `assay check` document that they can be asked: no code in common with ours.

    python3 bench/sdpa_suites.py RECORDS.json [--assay bin/assay] [--scratch DIR] [--findings FILE] > sdpa_suites.md

Each 16-bit attention case is taken without the options that scaled_dot_product_attention lacks (paged or ragged keys, windows, sinks, soft
caps, ALiBi, 8-bit factors, ...), so that its shapes and recipes remain; causal masks only where they are square. Inputs come from `assay
repro --dump` (a host kernel, on the same bits), go through the flash, cuDNN, memory-efficient and math backends, and the outputs through
`assay judge`, with nothing declared. For a GPU.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import tempfile

import torch
from dump_file import dump_bytes, read_dump

ATEN = torch.ops.aten
BACKEND = torch.nn.attention.SDPBackend
SELECTED = {"flash": BACKEND.FLASH_ATTENTION, "cudnn": BACKEND.CUDNN_ATTENTION, "efficient": BACKEND.EFFICIENT_ATTENTION, "math": BACKEND.MATH}
# Parameters that leave what SDPA computes alone, or that its arguments say.
EXPRESSIBLE = {"b", "hq", "hkv", "sq", "skv", "d", "dv", "dtype", "mask", "align", "scale", "layout", "pad_rows", "pad_dim", "offset", "poison",
               "expand", "rows", "rows_seed", "q", "k", "v", "set", "mask.data"}
JUDGED = ("clean", "finding", "unclassified", "vacuous", "out_of_range", "uncertain")


def fields_of(line):
    return dict(word.split("=", 1) for word in line.split()[1:] if not word.startswith("set="))


def asked(line):
    """The case as SDPA can be asked it, or None."""
    if not line.startswith("attention "):
        return None
    words = [word for word in line.split()[1:] if word.split("=", 1)[0] in EXPRESSIBLE]
    fields = fields_of(line)
    if fields.get("dtype", "bf16") not in ("bf16", "fp16") or fields.get("kv", "") or "prefix" in fields:
        return None
    mask, square = fields.get("mask", "none"), fields.get("sq", "1") == fields.get("skv", fields.get("sq", "1"))
    kept = "bool" if mask == "bool" else "causal" if mask.startswith("causal") and square else ""
    words = [word for word in words if not word.startswith(("mask=", "mask.data=", "align="))]
    words += ["mask=" + kept] if kept else []
    words += ["mask.data=" + fields["mask.data"]] if kept == "bool" and "mask.data" in fields else []
    return " ".join(["attention", *words])


def run(backend, q, k, v, mask, causal, scale):
    """o, and the LSE or None; raises RuntimeError where the backend refuses. A boolean mask goes through the front end, as users pass it."""
    if mask is not None or backend == "math":
        allowed = None if mask is None else (mask != 0).expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        with torch.nn.attention.sdpa_kernel(SELECTED[backend]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, allowed, is_causal=causal, scale=scale), None
    if backend == "flash":
        return ATEN._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)[:2]
    if backend == "efficient":
        o, lse = ATEN._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal, scale=scale)[:2]
        return o, lse[..., : q.shape[2]]
    return ATEN._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False, scale=scale)[:2]


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
    for backend in SELECTED:
        try:
            o, lse = run(backend, q, k, v, mask, fields.get("mask") == "causal", scale)
            torch.cuda.synchronize()
        except (RuntimeError, NotImplementedError) as error:
            made.append((backend, str(error).splitlines()[0]))
            continue
        if o is None:
            made.append((backend, "returns None instead of a tensor"))
            continue
        outputs = {"o": o} | ({} if lse is None or "lse" not in tensors else {"lse": lse.reshape(tensors["lse"].shape).float()})
        made.append((backend, dump_bytes(inputs | outputs, {"case": line, "backend": backend})))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records")
    parser.add_argument("--assay", default="bin/assay")
    parser.add_argument("--scratch")
    parser.add_argument("--findings", help="write findings with their case lines to this JSON file, the smallest dumps beside it")
    arguments = parser.parse_args()
    with open(arguments.records) as file:
        records = json.load(file)["records"]
    cases = {line: record["suite"] for record in reversed(records) if (line := asked(record["case"])) is not None}
    counts, refusals, findings = collections.defaultdict(collections.Counter), collections.Counter(), []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def dump(numbered):
            number, line = numbered
            path = os.path.join(folder, f"{number}.safetensors")
            command = [arguments.assay, "repro", line, "--kernel", f"naive_{fields_of(line).get('dtype', 'bf16')}", "--dump", path]
            subprocess.run(command, capture_output=True)
            return line, path

        def keep(backend, line, verdict, path):
            """The smallest dump of each backend and mode, beside the findings."""
            if arguments.findings:
                kept = os.path.join(os.path.dirname(arguments.findings), f"{backend}_{verdict.get('mode') or verdict['level']}.safetensors")
                if not os.path.exists(kept) or os.path.getsize(path) < os.path.getsize(kept):
                    shutil.copy(path, kept)

        def judge(job):
            line, backend, path = job
            answer = subprocess.run([arguments.assay, "judge", path, "--json"], capture_output=True, text=True)
            if answer.returncode not in (0, 1, 6):
                raise SystemExit(f"{backend} on {line}: assay judge exits with {answer.returncode}: {answer.stderr.strip()}")
            record = json.loads(answer.stdout)["records"][0]
            verdict = record["verdict"]
            if verdict["kind"] in ("finding", "unclassified"):
                keep(backend, line, verdict, path)
                verdict["worst"] = {o["role"]: {key: o["worst"][key] for key in ("element", "value", "mid", "tau")} for o in record["measurement"]["outputs"]}
            os.remove(path)
            return line, backend, verdict

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
