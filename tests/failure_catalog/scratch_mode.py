#!/usr/bin/env python3
"""Shows that adding a failure mode is adding one folder: adds one to a temporary tree, builds it, and sees it listed and named.

    scratch_mode.py SOURCE BUILD

The tree is made of links to SOURCE and one real folder. CMake configures it as it configures BUILD; only the two objects of the folder are
compiled, and linked with those of BUILD by BUILD's own link commands. Exits with 77 (skipped) if BUILD was not made by Ninja.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

MODE = '''// A mode for a test: names every rejected output.
#include "failure_catalog/mode.h"

namespace assay {
namespace {

std::optional<Diagnosis> detect(const Scene&) { return Diagnosis{.confidence = 1.0, .evidence = "scratch evidence"}; }

const RegisterMode kRegister({.name = "scratch_mode", .id = "M98", .title = "A mode for a test", .detect = detect});

}  // namespace
}  // namespace assay
'''
MUTANT = '''// A mutant for a test.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kScaleOff, 300000>("fa2_bf16_scratch", "a mutant for a test", "scratch_mode")};

}  // namespace
}  // namespace assay
'''
FILES = {"entry.md": "# M98 scratch_mode\n", "mode.cc": MODE, "witness.case": "attention sq=4 skv=40\n", "mutant.cc": MUTANT}
OBJECTS = {"assay": "CMakeFiles/assay_failure_catalog.dir/failure_catalog/scratch_mode/mode.cc.o",
           "assay_mutants": "CMakeFiles/assay_mutant_kernels.dir/failure_catalog/scratch_mode/mutant.cc.o"}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    return done.returncode, done.stdout, done.stderr


def must(*command, **options):
    code, out, err = run(*command, **options)
    if code != 0:
        raise SystemExit(f"{command[0]} ... exits with {code}:\n{out[-3000:]}\n{err[-3000:]}")
    return out


def cached(build, name):
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def plant(source, tree):
    """The tree with one folder more."""
    catalog = tree / "failure_catalog"
    catalog.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name not in ("failure_catalog", "build", ".git"):
            (tree / entry.name).symlink_to(entry)
    for entry in (source / "failure_catalog").iterdir():
        (catalog / entry.name).symlink_to(entry)
    folder = catalog / "scratch_mode"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)


def link(build, program, extra, output):
    """BUILD's link command of `program` with one object more."""
    command = must("ninja", "-C", build, "-t", "commands", "-s", program).strip().splitlines()[-1]
    command = re.sub(rf" -o {program} ", f" {shlex.quote(str(extra))} -o {shlex.quote(str(output))} ", command)
    if str(output) not in command:
        raise SystemExit(f"the link command of {program} has no '-o {program}': {command[:500]}")
    must("sh", "-c", command, cwd=build)


def main():
    source, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    if cached(build, "CMAKE_GENERATOR") != "Ninja":
        print("skipped: the build is not Ninja's")
        return 77
    with tempfile.TemporaryDirectory(prefix="assay_scratch_") as name:
        root = pathlib.Path(name)
        plant(source, root / "tree")
        same = [f"-D{key}={cached(build, key)}" for key in ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "ASSAY_SANITIZE")]
        must("cmake", "-S", root / "tree", "-B", root / "build", "-G", "Ninja", "-DASSAY_TESTS=OFF", "-DASSAY_CUDA=OFF", *same)
        must("ninja", "-C", root / "build", *OBJECTS.values())
        for program, extra in OBJECTS.items():
            link(build, program, root / "build" / extra, root / program)
        assay, environment = root / "assay", {**os.environ, "ASSAY_DATA": str(root / "tree")}
        environment.pop("ASSAY_MUTANTS", None)
        modes = json.loads(must(assay, "list", "modes", "--json", env=environment))["modes"]
        if not any(mode["name"] == "scratch_mode" and mode["id"] == "M98" for mode in modes):
            raise SystemExit(f"scratch_mode is not listed: {modes}")
        code, out, err = run(assay, "check", "fa2_bf16_scratch", "--case", FILES["witness.case"].strip(), "--json", env=environment)
        verdict = json.loads(out)["records"][0]["verdict"] if code == 1 else {}
        if verdict.get("mode") != "scratch_mode" or verdict.get("evidence") != "scratch evidence":
            raise SystemExit(f"the mutant's mode is not named: exit {code}, {verdict}\n{err}")
    print("scratch_mode was built from one folder, listed and named")
    return 0


if __name__ == "__main__":
    sys.exit(main())
