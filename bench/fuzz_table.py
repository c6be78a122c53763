#!/usr/bin/env python3
"""Renders what `assay bench fuzz --json` measured as Markdown tables. Usage: fuzz_table.py JSON..."""
import json
import statistics
import sys


def speed(entries):
    yield "| mix | verified cases/s | scores/s | Python loop, cases/s | ratio | kernel's share | oracle's share |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for e in entries:
        yield (f"| {e['name']} | {e['cases_per_second']:,.0f} | {e['scores_per_second']:,.0f} | {e['python_cases_per_second']:,.0f} | "
               f"{e['ratio']:.2f} | {e['kernel_share']:.0%} | {e['oracle_share']:.0%} |")


def summaries(entries):
    yield "| search | mutants | median below 10 s | below the limit | median of medians, s | median executions | not found |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for e in entries:
        s = e["summary"]
        middle = statistics.median(m["median_seconds"] for m in e["mutants"])
        runs = [run["executions"] for m in e["mutants"] for run in m["searches"] if run["found"]]
        yield (f"| {e['name']} | {s['mutants']} | {s['median_below_10_s']} | {s['median_below_limit']} | {middle:.1f} | "
               f"{statistics.median(runs) if runs else 0:.0f} | {', '.join(s['not_found']) or 'none'} |")


def slowest(entry, count=20):
    yield "| mutant | seconds, by seed | executions |"
    yield "| --- | --- | --- |"
    for m in sorted(entry["mutants"], key=lambda m: -m["median_seconds"])[:count]:
        seconds = ", ".join(f"{run['seconds']:.1f}" if run["found"] else f"> {entry['limit_seconds']:.0f}" for run in m["searches"])
        yield f"| {m['mutant']} | {seconds} | {', '.join(str(run['executions']) for run in m['searches'])} |"


def main():
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            document = json.load(file)
        if "speed" in document:
            print("\n".join(speed(document["speed"])), end="\n\n")
        if "find" in document:
            print("\n".join(summaries(document["find"])), end="\n\nThe slowest:\n\n")
            print("\n".join(slowest(document["find"][0])), end="\n\n")


if __name__ == "__main__":
    main()
