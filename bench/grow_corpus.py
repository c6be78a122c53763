#!/usr/bin/env python3
"""Grows fuzz/corpus/<op>: one input for each planted fault, found by the fuzz program from an empty corpus and made small.

Usage: bench/grow_corpus.py BUILD_FOLDER [--seconds S] [--jobs N] [--only NAME]...
An input is a case line; the file is named after the mutant that it was found on. Files that are there already are kept.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def found(build, mutant, seconds):
    """The case line that stopped the fuzz program, or None."""
    for seed in range(1, 4):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([build / "assay_mutants_fuzz", mutant["op"], f"--kernel={mutant['name']}", f"-seed={seed}",
                                  f"-max_total_time={seconds}", f"-artifact_prefix={folder}/", "-verbosity=0"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            if line := re.search(rf"'({mutant['op']}\b[^']*)'", run.stderr):
                return line[1]
    return None


def smallest(build, mutant, line):
    """The line made small, judged as the fuzz program judges it."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "smallest.case"
        subprocess.run([build / "assay", "minimize", line, "--kernel", mutant["name"], "--level", "t2", "--repeat", "2",
                        "--out", out], stdout=subprocess.DEVNULL, check=False)  # 1: it still fails there
        return out.read_text().strip() if out.exists() else line  # it needed the runs before it: a race, a state


def grow(build, mutant, seconds):
    file = ROOT / "fuzz/corpus" / mutant["op"] / mutant["name"]
    if file.exists():
        return f"{mutant['name']}: kept"
    line = found(build, mutant, seconds)
    if line is None:
        return f"{mutant['name']}: NOT FOUND"
    file.write_text(smallest(build, mutant, line))
    return f"{mutant['name']}: {file.read_text()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    a = parser.parse_args()
    build = a.build.resolve()
    listed = json.loads(subprocess.run([build / "assay", "list", "--json"], capture_output=True, text=True, check=True).stdout)
    mutants = [k for k in listed["kernels"] if k["mutant"] and not k["device"] and (not a.only or k["name"] in a.only)]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for line in pool.map(lambda m: grow(build, m, a.seconds), mutants):
            print(line, flush=True)


if __name__ == "__main__":
    main()
