#!/usr/bin/env python3
"""Checks of the tree that no compiler makes; prints one line per offence and exits 1 if there is any.

    lint.py [--root DIR] layering | sizes | first_lines | headers | flags | names
    lint.py libm OBJECT_LIST_FILE      no object file asks libm for a function
    lint.py registry ASSAY_PROGRAM     ops, kernels and modes in the tree are those that the program lists
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

PARTS = ["oracle", "cases", "kernels", "plugin", "failure_catalog", "reports", "fuzz", "cli", "tests"]

# What each part may include, besides itself. Two arrows must not exist: oracle -> kernels, and kernels -> cases or fuzz.
ARROWS = {
    "oracle": set(),
    "cases": {"oracle"},
    "kernels": {"oracle"},
    "plugin": {"oracle", "kernels"},
    "failure_catalog": {"oracle", "cases"},
    "reports": {"oracle", "cases", "failure_catalog"},
    "fuzz": set(PARTS) - {"cli", "tests"},
    "cli": set(PARTS) - {"tests"},
    "tests": set(PARTS),
}
# All a kernel may see of the oracle, at any depth: nothing that says what the answer is or how far off it may be.
KERNELS_MAY = re.compile(
    r"oracle/((format|tensor|params|arithmetic|arithmetic_json|json_field|semantics|mma|simd|error)\.h|ops/(\w+)/\3\.h)")
# The second evaluation of attention shares no mask, head-map, length or class code with the first.
INDEPENDENT = "tests/oracle/independent_attention.h"
INDEPENDENT_MAY = re.compile(r"oracle/((op|tensor|truth|format|params|semantics|error|arithmetic)\.h|ops/attention/attention\.h)")
BIG_NUMBERS = re.compile(r"(boost/multiprecision/|flint/|(gmp|gmpxx|mpfr|arb|arf|mag|flint)\.h)")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)
MAX_LINES, MAX_MEDIAN = 600, 150


DEVICE = (".cu", ".cuh")


def sources(root, *endings):
    return sorted(p for part in PARTS for p in (root / part).rglob("*") if p.suffix in endings and p.is_file())


def includes(path):
    """(ours, theirs): names in quotes and in angle brackets."""
    found = INCLUDE.findall(path.read_text())
    return [a for a, _ in found if a], [b for _, b in found if b]


def reachable(root, name, seen):
    """Every file of ours that `name` includes, at any depth."""
    for inner in includes(root / name)[0] if (root / name).exists() else []:
        if inner not in seen:
            seen.add(inner)
            reachable(root, inner, seen)
    return seen


def is_mutant(name):
    return re.fullmatch(r"failure_catalog/(\w+/mutant\.cc|mutants/.*)", name) is not None


def layering(root):
    for path in sources(root, ".h", ".cc", *DEVICE):
        name = path.relative_to(root).as_posix()
        part = name.split("/")[0]
        ours, theirs = includes(path)
        for other in ours:
            target = other.split("/")[0]
            allowed = {"kernels", "failure_catalog"} if is_mutant(name) else ARROWS[part] | {part}
            if target in PARTS and target not in allowed:
                yield f"{name}: includes {other}; {part} may include {', '.join(sorted(allowed))} only"
        if part == "kernels":
            for other in sorted(reachable(root, name, set())):
                if other.startswith("oracle/") and not KERNELS_MAY.fullmatch(other):
                    yield f"{name}: reaches {other}, which a kernel may not see"
        if part == "oracle" and not re.fullmatch(r"oracle/real\.(h|cc)", name):
            for other in theirs:
                if BIG_NUMBERS.match(other):
                    yield f"{name}: includes <{other}>; only oracle/real.* may"
        if name == INDEPENDENT:
            for other in ours:
                if not INDEPENDENT_MAY.fullmatch(other):
                    yield f"{name}: includes {other}; the independent check shares no code with the oracle"


def written_files(root):
    """Source text in our own hand: code, build files, scripts."""
    files = sources(root, ".h", ".cc", ".c", ".py", *DEVICE) + sorted((root / "cmake").glob("*.cmake")) + [root / "CMakeLists.txt", root / "dev"]
    files += sorted(p for part in ("include", "examples") for p in (root / part).glob("*.*"))
    return [p for p in files if p.exists()]


def sizes(root):
    lines = {p: len(p.read_text().splitlines()) for p in written_files(root)}
    for path, count in lines.items():
        if count > MAX_LINES:
            yield f"{path.relative_to(root)}: {count} lines; at most {MAX_LINES}"
    median = statistics.median(lines.values())
    print(f"{len(lines)} files, median {median:g} lines, largest {max(lines.values())}")
    if median > MAX_MEDIAN:
        yield f"the median file has {median:g} lines; at most {MAX_MEDIAN}"


def first_lines(root):
    """The first line says what the file is: it opens a comment whose first sentence ends before the code begins."""
    for path in written_files(root):
        lines = path.read_text().splitlines()
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        mark = {".h": "// ", ".cc": "// ", ".c": "// ", ".cu": "// ", ".cuh": "// ", ".py": '"""'}.get(path.suffix, "# ")
        block = []
        for line in lines:
            if not line.startswith(mark) and (path.suffix != ".py" or not block):
                break
            block.append(line.removeprefix(mark))
            if re.search(r"\.(\s|\"|$)", line):
                break
        if not re.match(r"\S+ \S+.*?\.(\s|\"|$)", " ".join(block)):
            yield f"{path.relative_to(root)}: the first line is no sentence: {lines[0] if lines else '(empty)'}"


def headers(root):
    """A header guards itself, and stands alone: its own source includes it before anything else (cmake/tests.cmake compiles the others)."""
    for path in written_files(root):
        if path.suffix not in (".h", ".cuh"):
            continue
        name, text = path.relative_to(root), path.read_text()
        if "#pragma once" not in text and "#ifndef" not in text:
            yield f"{name}: has no #pragma once"
        source = path.with_suffix(".cc")
        if source.exists():
            first = re.search(r'^#include (.*)$', source.read_text(), re.MULTILINE)
            if first is None or first[1] != f'"{name}"':
                yield f"{source.relative_to(root)}: does not include {name} first"


def flags(root):
    """No build file asks for the build machine's instruction set or for other arithmetic than was written."""
    files = [root / "CMakeLists.txt", root / "CMakePresets.json", root / "dev", *(root / "cmake").glob("*")]
    for path in files:
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
            found = re.search(r"-march=native|-mtune=native|-ffast-math|-Ofast|-funsafe-math\S*|-fassociative-math|-ffp-contract=(fast|on)|-use_fast_math|-fmad=true", line)
            if found:
                yield f"{path.relative_to(root)}:{number}: {found[0]}"


def names(root):
    """Files are snake_case; no marks of unfinished work."""
    for path in written_files(root):
        name = path.relative_to(root).as_posix()
        if name not in ("CMakeLists.txt",) and not re.fullmatch(r"[a-z0-9_/]+(\.[a-z]+)?", name):
            yield f"{name}: not snake_case"
        if name.startswith("tests/lint/"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
                yield f"{name}:{number}: unfinished: {line.strip()}"


def libm(list_file):
    """Undefined symbols that libm defines. sqrt is allowed: the call stands behind the instruction, for errno only."""
    library = subprocess.run(["cc", "-print-file-name=libm.so.6"], capture_output=True, text=True, check=True).stdout.strip()
    table = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    banned = {line.split()[-1].split("@")[0] for line in table.splitlines()} - {"sqrt", "sqrtf", "__isnan", "__isinf"}
    if not {"exp", "expf", "fma", "round"} <= banned:
        yield f"{library}: not the mathematics library"
    objects = pathlib.Path(list_file).read_text().split()
    print(f"{len(objects)} object files against {len(banned)} functions")
    if not objects:
        yield f"{list_file}: names no object file"
    for file in objects:
        undefined = subprocess.run(["nm", "--undefined-only", file], capture_output=True, text=True, check=True).stdout
        for line in undefined.splitlines():
            symbol = line.split()[-1].split("@")[0]
            if symbol in banned:
                yield f"{file}: calls {symbol} of libm"


def literal_names(files):
    """Names given to RegisterKernel, as a field or as the first argument of a mutant template (mutant_of, fa2_mutant)."""
    texts = [path.read_text() for path in files]
    return {name for text in texts if "RegisterKernel" in text
            for name in re.findall(r'(?:\.name = |mutant\w*<[^>]*>\(\s*)"([\w-]+)"', text)}


def registry(root, program):
    """The tree's registrations against `assay list --json`; device code counts where the program has any."""
    listed = json.loads(subprocess.run([program, "list", "--json"], capture_output=True, text=True, check=True).stdout)
    catalogue = root / "failure_catalog"
    host, mutants = [*(root / "kernels").glob("*/*.cc")], [*catalogue.glob("*/*.cc")]
    if any(k.get("device") for k in listed["kernels"]):
        host += (root / "kernels").glob("*/cuda/*.c[cu]")
        mutants += catalogue.glob("mutants/cuda/*.cc")
    wanted = [
        ("kernels", literal_names(host), [k["name"] for k in listed["kernels"] if not k["mutant"]]),
        ("mutants", literal_names(mutants), [k["name"] for k in listed["kernels"] if k["mutant"]]),
        ("modes", {p.parent.name for p in catalogue.glob("*/mode.cc")}, [m["name"] for m in listed["modes"]]),
        ("ops", {p.name for p in (root / "oracle/ops").iterdir()}, [o["name"] for o in listed["ops"]]),
    ]
    for what, tree, program_lists in wanted:
        print(f"{what}: {len(tree)} in the tree, {len(program_lists)} listed")
        if not tree:
            yield f"{what}: the tree has none"
        for name in sorted(tree.symmetric_difference(program_lists)):
            yield f"{what}: {name} is {'in the tree but not listed' if name in tree else 'listed but not in the tree'}"
    for path in catalogue.glob("*/mutant.cc"):
        if not literal_names([path]):
            yield f"{path.relative_to(root)}: registers no kernel"
    for mode in catalogue.glob("*/mode.cc"):
        for name in ("entry.md", "witness.case", "mutant.cc"):
            if not (mode.parent / name).exists():
                yield f"{mode.parent.relative_to(root)}: {name} is missing"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("check", choices=["layering", "sizes", "first_lines", "headers", "flags", "names", "libm", "registry"])
    parser.add_argument("argument", nargs="?")
    a = parser.parse_args()
    run = {
        "libm": lambda: libm(a.argument),
        "registry": lambda: registry(a.root, a.argument),
    }.get(a.check, lambda: globals()[a.check](a.root))
    offences = list(run())
    for line in offences:
        print(line)
    print(f"{a.check}: {len(offences)} offences" if offences else f"{a.check}: clean")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
