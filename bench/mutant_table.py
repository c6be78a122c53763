#!/usr/bin/env python3
"""Prints the mutant table of numerics.md 2.13 as Markdown: what T0, T1, T2, the LSE and allclose see of each planted fault.

    python3 bench/mutant_table.py [--assay build/release/assay] [--inputs 15] [--lines NAME,...]

Every entry is the percentage of output elements outside the rule, of rows for the LSE (at the highest level that the declaration
reaches), as median (smallest to largest) over inputs of other seeds, 1,024 elements each. A level includes those below it. The "2.13"
columns hold the published figures: one input of 1,024 elements, a simulated kernel. The gain is that of the highest level where it
lies beyond six standard errors in every input.
"""

import argparse
import json
import re
import statistics
import subprocess

FLAT = "attention sq=8 skv=4096 d=128 q=normal@1 k=normal@2 v=normal@3"
LINES = {
    "flat": ("N(0,1)", FLAT),
    "flat4095": ("N(0,1), 4,095 keys", FLAT.replace("4096", "4095")),
    "flat1023": ("N(0,1), 1,023 keys", FLAT.replace("4096", "1023")),
    "equal": ("equal logits below one larger", "attention sq=8 skv=4096 d=128 q=probe@1 k=constant v=ties@3 set=k[0,0,4095,0]:0.0177"),
    "peaked": ("logits of sd 4", FLAT.replace("q=normal@1", "q=normal(4)@1")),
    "mean": ("V of mean 2", FLAT.replace("v=normal@3", "v=normal(1,2)@3")),
    "causal": ("N(0,1), causal, 256 keys", "attention sq=256 d=128 mask=causal rows=8 q=normal@1 k=normal@2 v=normal@3"),
    "split": ("N(0,1), 2,048 keys in 8 splits", FLAT.replace("4096", "2048")),
    # Parts as 512 keys of N(0,1) inputs leave them.
    "merge": ("merge of 8 fp32 parts into bf16",
              "merge parts=8 rows=8 dv=128 dtype=fp32 out=bf16 o_parts=normal(0.073)@1 lse_parts=normal(0.058,6.74)@2"),
}
LINES |= {f"fp8 {name}": (LINES[name][0], LINES[name][1] + " dtype=e4m3") for name in ("flat", "equal", "peaked", "mean")}

# kernel, line, published figures: T0, T1, LSE rows, allclose 1e-2, 1e-3.
BF16 = [
    ("fa2_bf16", "flat", "0", "0", "0", "0", "0"),
    ("fa2_bf16", "equal", "0", "0", "0", "0", "0.3-65"),
    ("fa2_bf16", "peaked", "0", "0", "0", "0", "0.3-65"),
    ("fa2_bf16", "mean", "0", "0", "0", "0", "0.3-65"),
    ("fa2_bf16_scale_off_1e-3", "flat", "0", "52", "100", "0", "0"),
    ("fa2_bf16_scale_off_1e-4", "flat", "0", "21", "100", "0", "0"),
    ("fa2_bf16_last_key_dropped", "flat", "0", "71", "100", "0", "0.6"),
    ("fa2_bf16_key_of_128_dropped", "flat", "9", "97", "100", "0", "56"),
    ("fa2_bf16_accumulator_not_rescaled", "flat", "85", "100", "0", "52", "95"),
    ("fa2_bf16_alpha_in_bf16", "flat", "0", "15", "0", "0", "0"),
    ("fa2_bf16_score_in_bf16", "flat", "0", "63", "25", "0", "0"),
    ("fa2_bf16_score_in_fp16", "flat", "0", "40", "0", "0", "0"),
    ("fa2_bf16_p_truncated", "flat", "0", "63", "0", "0", "0"),
    ("fa2_bf16_sum_in_bf16", "flat", "0", "25", "100", "0", "0"),
    ("fa2_bf16_accumulator_in_bf16", "flat", "0", "71", "0", "0", "0.1"),
    ("fa2_bf16_accumulator_in_fp16", "flat", "0", "38", "0", "0", "0"),
    ("fa2_bf16_exponential_alternates", "flat", "0", "44", "0", "0", "0"),
    ("fa2_bf16_cubic_exponentials", "flat", "0", "13", "0", "0", "0"),
    ("fa2_bf16_output_truncated", "flat", "0", "42", "0", "0", "0"),
    ("fa2_bf16_padded_key_leaks", "flat4095", "0", "0", "100", "0", "0"),
    ("fa2_bf16_padded_key_leaks", "flat1023", "", "9", "", "", ""),
    ("fa2_bf16_sum_of_rounded_p", "flat", "0", "0", "25", "0", "0"),
    ("fa2_bf16_scale_off_1e-3", "mean", "", "0", "", "", ""),
    ("fa2_bf16_score_in_fp16", "mean", "", "0", "", "", ""),
    ("fa2_bf16_exponential_alternates", "mean", "", "0", "", "", ""),
    ("fa2_bf16_last_key_dropped", "peaked", "0", "0", "", "0", ""),
    ("fa2_bf16_mask_shifted_by_one", "causal", "", "", "", "", ""),
    ("split_bf16", "split", "", "", "", "", ""),
    ("split_bf16_partial_lse_in_bf16", "split", "", "", "", "", ""),
    ("split_bf16_partial_output_in_bf16", "split", "", "", "", "", ""),
    ("split_bf16_split_lost", "split", "", "", "", "", ""),
    ("merge_two_pass_fp32", "merge", "0", "", "", "0", "0"),
    ("merge_two_pass_fp32_lse_in_bf16", "merge", "79", "", "", "0", "0"),
    ("merge_two_pass_fp32_parts_in_bf16", "merge", "40", "", "", "0", "0"),
    ("merge_two_pass_fp32_part_lost", "merge", "99", "", "", "14", "87"),
]
# kernel, line, published figures: T0, T1, T2, allclose 1e-2.
E4M3 = [
    ("fa3_e4m3", "fp8 flat", "0", "0", "0", "0"),
    ("fa3_e4m3", "fp8 peaked", "0", "0", "0", "0.2-0.8"),
    ("fa3_e4m3", "fp8 equal", "0", "0", "0", "56"),
    ("fa3_e4m3_single", "fp8 equal", "0", "0", "0", "78"),
    ("fa3_e4m3_lazy_maximum", "fp8 flat", "0", "4", "71", "3"),
    ("fa3_e4m3_lazy_maximum", "fp8 peaked", "15", "8", "70", "40"),
    ("fa3_e4m3_promotion_missing", "fp8 flat", "0", "0", "0", "0"),
    ("fa3_e4m3_promotion_missing", "fp8 mean", "16", "100", "100", "100"),
    ("fa3_e4m3_key_of_128_dropped", "fp8 flat", "0", "0", "68", "0"),
]


def reseeded(line, shift):
    return re.sub(r"@(\d+)", lambda seed: f"@{int(seed[1]) + shift}", line)


def measured(assay, line, kernels):
    """kernel -> {"T0", "T1", "T2", "0.01", "0.001", "lse": percentages, "gain": nothing or the slope}; and the environment."""
    run = subprocess.run([assay, "bench", "mutants", line, "--json", *(a for k in kernels for a in ("--kernel", k))],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{line}: assay exits with {run.returncode}: {run.stderr.strip()}")
    document, result = json.loads(run.stdout), {}
    for kernel in document["kernels"]:
        if kernel["no_outputs"]:
            raise SystemExit(f"{line}: {kernel['kernel']}: {kernel['no_outputs']}")
        o, lse = kernel["outputs"]
        entry = {at["level"]: 100 * at["rejected"] / o["judged"] for at in o["levels"]}
        entry |= {tolerance: 100 * outside / o["judged"] for tolerance, outside in o["allclose_outside"].items()}
        entry["lse"] = 100 * lse["levels"][-1]["rejected"] / lse["judged"]
        top = o["levels"][-1]
        entry["gain"] = top["gain"] if abs(top["gain"]) > 6 * top["gain_error"] else None
        result[kernel["kernel"]] = entry
    return result, document["environment"]


def number(share):
    return "0" if share == 0 else f"{share:.1f}" if share < 9.95 else f"{share:.0f}"


def cell(entries, key):
    """One measured cell: over all inputs of a line."""
    if key == "gain":
        gains = [entry["gain"] for entry in entries]
        return "" if None in gains else f"{statistics.median(gains):+.0e}"
    shares = [entry[key] for entry in entries if key in entry]
    if not shares:
        return ""
    least, most = number(min(shares)), number(max(shares))
    middle = number(statistics.median(shares))
    return middle if least == most else f"{middle} ({least} to {most})"


def table(title, rows, columns, results):
    """columns: (heading, key, index of the published figure or None)."""
    print(f"## {title}\n")
    heads = [head for head, _, published in columns for head in ([head, "2.13"] if published is not None else [head])]
    print(f"| kernel | inputs | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 2)}")
    for kernel, line, *published in rows:
        if line not in results:
            continue
        cells = []
        for _, key, index in columns:
            cells.append(cell([entry[kernel] for entry in results[line]], key))
            if index is not None:
                cells.append(published[index])
        print(f"| {kernel} | {LINES[line][0]} | {' | '.join(cells)} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="build/release/assay")
    parser.add_argument("--inputs", type=int, default=15, help="seeds per line (default 15)")
    parser.add_argument("--lines", default=",".join(LINES), help="names of input lines, default all")
    arguments = parser.parse_args()
    results, environment = {}, {}
    for name in arguments.lines.split(","):
        kernels = sorted({kernel for kernel, line, *_ in BF16 + E4M3 if line == name})
        results[name] = []
        for shift in range(0, 10 * arguments.inputs, 10):
            entry, environment = measured(arguments.assay, reseeded(LINES[name][1], shift), kernels)
            results[name].append(entry)
    table("bf16", BF16, [("T0", "T0", 0), ("T1", "T1", 1), ("T2", "T2", None), ("LSE rows", "lse", 2), ("allclose 1e-2", "0.01", 3),
                         ("1e-3", "0.001", 4), ("gain", "gain", None)], results)
    table("e4m3", E4M3, [("T0", "T0", 0), ("T1", "T1", 1), ("T2", "T2", 2), ("LSE rows", "lse", None), ("allclose 1e-2", "0.01", 3),
                         ("1e-3", "0.001", None), ("gain", "gain", None)], results)
    print(f"## Inputs\n\nSeeds of the first of {arguments.inputs} inputs; the next ones add 10, 20, ... to each.\n")
    for name in results:
        print(f"- {LINES[name][0]}{' (e4m3)' if name.startswith('fp8') else ''}: `{LINES[name][1]}`")
    build = environment["build"]
    print(f"\nCommit {build['commit']}{' and uncommitted changes' if build['dirty'] != 'no' else ''}, {environment['date'][:10]}.")


if __name__ == "__main__":
    main()
