#!/usr/bin/env python3
"""Prints what the exact probes prove, as Markdown, from a document of `assay bench floors --json`.

    build/release/assay bench floors --json > floors.json; python3 bench/floors_table.py floors.json
"""

import json
import sys


def number(size):
    return "none" if size is None else f"{size:.2g}"


def cell(output):
    if output is None:
        return "-"
    positions = output.get("positions_proven")
    text = "proven" if output["proven"] else "**not proven**"
    if positions is not None:
        text += f" at {positions:,} positions"
    return f"{text}, seen from {number(output['smallest'])}"


def main():
    document = json.load(open(sys.argv[1]))
    floors = document["floors"]
    print("| fault | keys | declaration | without LSE | by the LSE | o elements that accept one value | false alarms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for f in sorted(floors, key=lambda f: f["fault"]):
        outputs = {o["output"]: o for o in f["outputs"]}
        print(f"| {f['fault']} | {f['keys']:,} | {f['kernel']}, {f['level']} | {cell(outputs.get('o'))} | {cell(outputs.get('lse'))} "
              f"| {f['elements_that_accept_one_value']:,} of {f['elements']:,} | {f['false_alarms']} |")
    print("\n| run with the fault | keys | runs | rejected by o | rejected by the LSE |\n| --- | --- | --- | --- | --- |")
    for f in sorted(floors, key=lambda f: f["fault"]):
        for r in f["runs"]:
            print(f"| {r['what']}, probe of {f['fault']} | {f['keys']:,} | {r['runs']} | {r['rejected_by_o']} | {r['rejected_by_lse']} |")
    print("\nCases:\n")
    for line in dict.fromkeys(f["case"] for f in floors):
        print(f"- `{line}`")
    environment = document["environment"]
    build = environment["build"]
    print(f"\nCommit {build['commit']}{' and uncommitted changes' if build['dirty'] != 'no' else ''}, {environment['date'][:10]}.")


if __name__ == "__main__":
    main()
