#!/usr/bin/env python3
"""Breaks a small tree in every way that lint.py looks for, and sees each one reported."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import lint

GOOD = "// Says what the file is, in one sentence.\n#pragma once\n"


class Lint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("oracle/format.h", GOOD)
        self.write("CMakeLists.txt", "# Builds the small tree of this test.\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def offences(self, check, *arguments):
        with contextlib.redirect_stdout(io.StringIO()):
            return list(check(*(arguments or (self.root,))))

    def assert_red(self, check, text):
        self.assertTrue(any(text in line for line in self.offences(check)), f"{text}: {self.offences(check)}")

    def test_a_good_tree_is_clean(self):
        for check in (lint.layering, lint.sizes, lint.first_lines, lint.headers, lint.flags, lint.names):
            self.assertEqual(self.offences(check), [])

    def test_every_forbidden_arrow_is_red(self):
        allowed = {(a, b) for a, some in lint.ARROWS.items() for b in some | {a}}
        for a in lint.PARTS:
            for b in lint.PARTS:
                path = self.write(f"{a}/one.cc", f'{GOOD}#include "{b}/format.h"\n')
                self.assertEqual(bool(self.offences(lint.layering)), (a, b) not in allowed, f"{a} -> {b}")
                path.unlink()

    def test_a_kernel_that_sees_the_answer_is_red_even_through_a_header(self):
        self.write("oracle/op.h", f'{GOOD}#include "oracle/truth.h"\n')
        self.write("oracle/truth.h", GOOD)
        self.write("oracle/tensor.h", GOOD)
        self.write("kernels/one.h", f'{GOOD}#include "oracle/tensor.h"\n')
        self.write("kernels/one.cc", f'{GOOD}#include "kernels/one.h"\n')
        self.assertEqual(self.offences(lint.layering), [])
        self.write("oracle/tensor.h", f'{GOOD}#include "oracle/op.h"\n')
        self.assert_red(lint.layering, "kernels/one.cc: reaches oracle/truth.h")

    def test_a_kernel_may_see_its_ops_parameters_and_no_other_file_of_the_op(self):
        self.write("kernels/one.cc", f'{GOOD}#include "oracle/ops/attention/attention.h"\n')
        self.assertEqual(self.offences(lint.layering), [])
        self.write("kernels/one.cc", f'{GOOD}#include "oracle/ops/attention/problem.h"\n')
        self.assert_red(lint.layering, "reaches oracle/ops/attention/problem.h")

    def test_mutants_include_kernels_and_not_the_oracle(self):
        self.write("failure_catalog/some_mode/mutant.cc", f'{GOOD}#include "kernels/kernel.h"\n')
        self.assertEqual(self.offences(lint.layering), [])
        self.write("failure_catalog/some_mode/mutant.cc", f'{GOOD}#include "oracle/truth.h"\n')
        self.assert_red(lint.layering, "some_mode/mutant.cc: includes oracle/truth.h")

    def test_big_numbers_outside_real_are_red(self):
        self.write("oracle/real.cc", f"{GOOD}#include <arb.h>\n")
        self.assertEqual(self.offences(lint.layering), [])
        self.write("oracle/ops/attention/fast.cc", f"{GOOD}#include <mpfr.h>\n")
        self.assert_red(lint.layering, "fast.cc: includes <mpfr.h>")

    def test_shared_code_in_the_independent_check_is_red(self):
        for header in ("problem.h", "reference.h", "layouts.h"):
            self.write(lint.INDEPENDENT, f'{GOOD}#include "oracle/ops/attention/{header}"\n')
            self.assert_red(lint.layering, f"includes oracle/ops/attention/{header}")

    def test_a_long_file_is_red(self):
        self.write("cases/long.cc", GOOD + "\n" * (lint.MAX_LINES - 2))
        self.assertEqual(self.offences(lint.sizes), [])
        self.write("cases/long.cc", GOOD + "\n" * (lint.MAX_LINES - 1))
        self.assert_red(lint.sizes, "cases/long.cc: 601 lines")

    def test_a_first_line_that_is_no_sentence_is_red(self):
        for text in ("#pragma once\n", "// Tensors\n#pragma once\n", "\n" + GOOD, "/* Says what the file is. */\n", ""):
            self.write("cases/one.h", text)
            self.assert_red(lint.first_lines, "cases/one.h: the first line is no sentence")
        self.write("cases/one.h", "// Says what the file is, over more\n// than one line.\n")
        self.assertEqual(self.offences(lint.first_lines), [])

    def test_a_header_without_guard_or_behind_others_is_red(self):
        self.write("cases/one.h", "// A header.\n")
        self.assert_red(lint.headers, "cases/one.h: has no #pragma once")
        self.write("cases/one.h", "// A header.\n#pragma once\n")
        self.write("cases/one.cc", '// A source.\n#include <string>\n#include "cases/one.h"\n')
        self.assert_red(lint.headers, "cases/one.cc: does not include cases/one.h first")
        self.write("cases/one.cc", '// A source.\n#include "cases/one.h"\n#include <string>\n')
        self.assertEqual(self.offences(lint.headers), [])

    def test_flags_that_change_arithmetic_are_red(self):
        for flag in ("-march=native", "-ffast-math", "-Ofast", "-ffp-contract=fast"):
            self.write("cmake/one.cmake", f"# Adds a flag that must not be.\nadd_compile_options({flag})\n")
            self.assert_red(lint.flags, f"cmake/one.cmake:2: {flag}")
        self.write("cmake/one.cmake", "# Adds good flags.\nadd_compile_options(-fno-fast-math -ffp-contract=off)\n")
        self.assertEqual(self.offences(lint.flags), [])

    def test_names_and_marks_of_unfinished_work_are_red(self):
        self.write("cases/OneCase.h", GOOD)
        self.write("cases/two.h", GOOD + "// TO" + "DO later\n")
        self.assert_red(lint.names, "cases/OneCase.h: not snake_case")
        self.assert_red(lint.names, "cases/two.h:3: unfinished")

    def test_an_object_that_calls_libm_is_red(self):
        source = self.write("one.c", "double exp(double); double sqrt(double); double f(double x) { return exp(x) + sqrt(x); }\n")
        good = self.write("two.c", "double sqrt(double); double f(double x) { return sqrt(x); }\n")
        for path in (source, good):
            subprocess.run(["cc", "-c", str(path), "-o", f"{path}.o"], check=True)
        listed = self.write("objects", f"{source}.o\n{good}.o\n")
        self.assertEqual(self.offences(lint.libm, listed), [f"{source}.o: calls exp of libm"])
        self.assertTrue(self.offences(lint.libm, self.write("empty", "")))

    def test_a_registration_that_is_missing_or_too_many_is_red(self):
        self.write("kernels/attention/one.cc", 'RegisterKernel k{{.name = "one_bf16"}};\n')
        mode = 'RegisterKernel k{mutant_of<"one_bf16", Fault::kOne>(\n    "one_broken", "summary")};\n'
        for name, text in {"mode.cc": "", "entry.md": "", "witness.case": "", "mutant.cc": mode}.items():
            self.write(f"failure_catalog/broken/{name}", text)
        self.write("oracle/ops/attention/attention.h", GOOD)
        listed = {"kernels": [{"name": "one_bf16", "mutant": False}, {"name": "one_broken", "mutant": True}],
                  "modes": [{"name": "broken"}], "ops": [{"name": "attention"}]}

        def program(document):
            path = self.write("program", f"#!{sys.executable}\nprint({json.dumps(json.dumps(document))})\n")
            path.chmod(0o755)
            return path

        self.assertEqual(self.offences(lint.registry, self.root, program(listed)), [])
        for what in listed:
            without = self.offences(lint.registry, self.root, program(listed | {what: []}))
            self.assertTrue(any("not listed" in line for line in without), what)
            extra = self.offences(lint.registry, self.root, program(listed | {what: listed[what] + [{"name": "x", "mutant": False}]}))
            self.assertTrue(any("not in the tree" in line for line in extra), what)
        self.write("failure_catalog/mutants/cuda/one.cc", 'const RegisterKernel k{one_mutant<Device::kOne>(\n    "one_cuda_broken", "")};\n')
        on_device = {"name": "one_cuda_broken", "mutant": True, "device": "cuda"}
        with_device = program(listed | {"kernels": [*listed["kernels"], on_device]})
        self.assertEqual(self.offences(lint.registry, self.root, with_device), [])
        (self.root / "failure_catalog/broken/witness.case").unlink()
        self.assertIn("failure_catalog/broken: witness.case is missing", self.offences(lint.registry, self.root, program(listed)))


if __name__ == "__main__":
    unittest.main()
