#!/usr/bin/env python3
"""Judges a folder of dumps with `assay judge` and prints a Markdown table, one row per backend and dtype.

    python3 bench/judge_dumps.py FOLDER [--assay build/release/assay]

Each dump is judged twice: with nothing declared (the union over the family), and at level T0 by the arithmetic of
fa2_<dtype>, whose tiles are not theirs. A second table
lists the structure that `assay judge` infers from the bits of each output where nothing is declared.
"""

import argparse
import collections
import json
import pathlib
import subprocess


def judge(assay, dump, *options):
    run = subprocess.run([assay, "judge", dump, "--json", *options], capture_output=True, text=True)
    if run.returncode not in (0, 1, 6):
        raise SystemExit(f"{dump}: assay judge exits with {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)["records"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--assay", default="build/release/assay")
    arguments = parser.parse_args()
    rows, findings, structures = collections.defaultdict(lambda: collections.Counter()), [], []
    for dump in sorted(arguments.folder.glob("*.safetensors")):
        backend, dtype = dump.name.split("_")[:2]
        row = rows[backend, dtype]
        for level, options in (("undeclared", []), ("declared", ["--as", f"fa2_{dtype}", "--level", "t0"])):
            record = judge(arguments.assay, dump, *options)
            kind = record["verdict"]["kind"]
            row[level, kind] += 1
            if found := record.get("inferred"):
                shares = " | ".join(f"{found[share]:.1%}" for share in ("bit_equal", "runner_up", "rounded_truth"))
                structures.append(f"| {dump.stem} | {found['structure']} | {shares} | {len(record.get('warnings', []))} |")
            if kind in ("finding", "unclassified"):
                findings.append(f"{dump.name} ({level}): {record['verdict'].get('mode', kind)}: {record['verdict']['evidence']}")
        o = record["measurement"]["outputs"][0]
        row["judged"] += o["judged"]
        row["equal"] += o["bit_equal"]
        row["used"] = max(row["used"], float(o["worst"]["used"]) if kind == "clean" else 0)
    print("| backend | dtype | cases | nothing declared | as fa2 declares | worst used, clean | equal to the rounded truth |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (backend, dtype), row in rows.items():
        texts = [", ".join(f"{count} {kind}" for (at, kind), count in ((k, c) for k, c in row.items() if isinstance(k, tuple)) if at == level)
                 for level in ("undeclared", "declared")]
        cases = sum(count for key, count in row.items() if isinstance(key, tuple) and key[0] == "declared")
        print(f"| {backend} | {dtype} | {cases} | {texts[0]} | {texts[1]} | {row['used']:.3g} | {row['equal'] / row['judged']:.1%} |")
    print()
    for finding in findings:
        print(f"- {finding}")
    print("\n| dump | inferred structure | bit-equal to its replay | to the runner-up | to the rounded truth | warnings at its T1 |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("\n".join(structures))


if __name__ == "__main__":
    main()
