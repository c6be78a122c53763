#!/usr/bin/env python3
"""Prints what N(0,1) inputs can prove, and what probes can, as Markdown (the last paragraph of numerics.md 2.14).

    python3 bench/n01_table.py [--assay build/release/assay] [--keys 2048,16384,131072] [--rows 8]

Three faults: a softmax scale off by 1e-4, one ghost key (logit 0, value 0), one key dropped. Planted: `assay tolerance` finds the
smallest size that an otherwise perfect kernel cannot hide in some element. Mutants: the share of elements rejected. Two declarations:
fa2_bf16 sums a row in N / 4-long chains, split_bf16 in chains of 64 or 128 and a merge.
"""

import argparse
import json
import subprocess

DECLARATIONS = {"fa2_bf16": "chains of N / 4", "split_bf16": "splits and a merge"}
FAULTS = {"scale error": ("scale off by 1e-4", 1e-4), "ghost key": ("one ghost key", 1.0), "dropped key": ("one dropped key", 1.0)}
MUTANTS = {"scale error": "scale_off_1e-4", "ghost key": "padded_key_leaks", "dropped key": "last_key_dropped"}


def normal(keys, rows, fault):
    count = keys - 1 if fault == "ghost key" else keys  # a ghost needs padding
    return f"attention sq={rows} skv={count} d=128 q=normal@1 k=normal@2 v=normal@3"


def probe(keys, rows, fault):
    """Inputs built to show the fault at any number of keys."""
    if fault == "scale error":  # each row sees one key: LSE = scale q . k
        return f"attention sq={rows} skv={keys} d=128 window=0,0 q=normal@1 k=normal@2 v=normal@3"
    if fault == "ghost key":  # the true logits lie near -20
        return f"attention sq={rows} skv={keys - 1} d=128 q=probe@1 k=logit_offset(-20)@2 v=normal@3"
    # Row i holds the keys j = i mod 128, a 128th of all, and the last key is row 7's.
    return f"attention sq=8 skv={keys + 8} d=128 q=one_hot(16)@1 k=one_hot(16)@2 v=normal@3"


def answer(assay, *arguments):
    run = subprocess.run([assay, *arguments, "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: exit {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def floors(assay, line, kernel):
    """fault -> {(level, output): smallest visible size, or None}"""
    document = answer(assay, "tolerance", line, "--kernel", kernel, "--level", "t2")
    return {entry["fault"]: {(level["level"], output["output"]): output["size"] if output["state"] == "visible" else None
                             for level in entry["floors"] for output in level["outputs"]}
            for entry in document["detection_floors"]}


def shares(assay, line, kernels):
    """kernel -> {(level, output): percentage rejected}, and the environment."""
    document = answer(assay, "bench", "mutants", line, *(a for k in kernels for a in ("--kernel", k)))
    return {kernel["kernel"]: {(at["level"], output["role"]): 100 * at["rejected"] / output["judged"]
                               for output in kernel["outputs"] for at in output["levels"]}
            for kernel in document["kernels"]}, document["environment"]


def number(share):
    return "0" if share == 0 else f"{share:.1f}" if share < 9.95 else f"{share:.0f}"


def planted_table(assay, keys, rows):
    print("## Planted\n\nSmallest visible size; bold where the whole fault is visible.\n")
    outputs = [(level, output) for output in ("o", "lse") for level in ("T1", "T2")]
    heads = [f"{output} {level}, {text}" for text in DECLARATIONS.values() for level, output in outputs]
    print(f"| fault | keys | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 2)}")
    found = {(n, kernel): floors(assay, normal(n, rows, ""), kernel) for n in keys for kernel in DECLARATIONS}
    for fault, (text, size) in FAULTS.items():
        for n in keys:
            cells = []
            for kernel in DECLARATIONS:
                for at in outputs:
                    floor = found[n, kernel][fault].get(at)
                    cell = "none" if floor is None else f"{floor:.2g}"
                    cells.append(f"**{cell}**" if floor is not None and floor <= size else cell)
            print(f"| {text} | {n:,} | {' | '.join(cells)} |")
    print()


def mutant_table(assay, keys, rows, inputs, title):
    print(f"## {title}\n\nPercent of elements of o, of rows of the LSE, that are rejected.\n")
    heads = [f"{output}, {text}" for text in DECLARATIONS.values() for output in ("o T1", "o T2", "LSE T1", "LSE T2")]
    print(f"| mutant | keys | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 2)}")
    environment = {}
    for fault, mutant in MUTANTS.items():
        for n in keys:
            mutants = [f"{kernel}_{mutant}" for kernel in DECLARATIONS]
            seen, environment = shares(assay, inputs(n, rows, fault), mutants + list(DECLARATIONS))
            for kernel in DECLARATIONS:
                if any(seen[kernel].values()):
                    print(f"FALSE FAILURE: {kernel} on {inputs(n, rows, fault)}")
            cells = [number(seen[m][level, output]) for m in mutants for output in ("o", "lse") for level in ("T1", "T2")]
            print(f"| {FAULTS[fault][0]} | {n:,} | {' | '.join(cells)} |")
    print("\nInputs for the first number of keys:\n")
    for fault in MUTANTS:
        print(f"- {FAULTS[fault][0]}: `{inputs(keys[0], rows, fault)}`")
    print()
    return environment


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="build/release/assay")
    parser.add_argument("--keys", default="2048,16384,131072")
    parser.add_argument("--rows", type=int, default=8)
    arguments = parser.parse_args()
    keys = [int(n) for n in arguments.keys.split(",")]
    planted_table(arguments.assay, keys, arguments.rows)
    mutant_table(arguments.assay, keys, arguments.rows, normal, "Mutants on N(0,1)")
    environment = mutant_table(arguments.assay, keys, arguments.rows, probe, "Mutants on probes")
    build = environment["build"]
    print(f"Commit {build['commit']}{' and uncommitted changes' if build['dirty'] != 'no' else ''}, {environment['date'][:10]}.")


if __name__ == "__main__":
    main()
