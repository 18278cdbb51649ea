#!/usr/bin/env python3
"""The functions that spillway intercepts, calls and looks up are those of NVIDIA's library."""
import os
import re
import sys

import libraries
import machine

sys.path.insert(0, str(libraries.SOURCE / "src/driver"))
import submit_rows  # noqa: E402

HEADERS = os.environ["CUDA_HEADERS"]


def called():
    """Symbol -> the version of CUDA that brings it, of the functions that spillway calls for itself
    and that are no rows."""
    text = (libraries.SOURCE / "src/driver/calls.def").read_text()
    symbols = re.findall(r"^SPW_CALL\((\w+)\)", text, re.MULTILINE)
    since = submit_rows.versions(HEADERS, submit_rows.prototypes(HEADERS))
    return {symbol: since[symbol] for symbol in symbols}


def asked_by_doctor():
    text = (libraries.SOURCE / "src/cli/doctor/cuda_api.def").read_text()
    return re.findall(r"^SPW_CLI_CUDA\((\w+)\)", text, re.MULTILINE)


def asked_of_nvml():
    text = (libraries.SOURCE / "src/service/nvml.c").read_text()
    return re.findall(r'"(nvml\w+)"', text)


class Rows(machine.Case):
    def check(self, branch, since):
        """Each symbol is exported if, and only if, the driver has the version that brings it."""
        there = machine.exports(libraries.driver_folder(branch) / "libcuda.so.1")
        expected = {symbol for symbol, version in since.items() if version <= branch.cuda}
        self.assertEqual(sorted(expected - there.keys()), [], "not in the library")
        self.assertEqual(sorted((since.keys() & there.keys()) - expected), [],
                         "in the library, but listed with a later version")
        return len(expected)

    def test_each_row_is_a_symbol_of_its_version(self):
        rows = {row.symbol: row.since for row in machine.rows()}
        counts = []
        for branch in libraries.drivers():
            with self.of(branch):
                counts.append(self.check(branch, rows))
        self.assertEqual(counts, sorted(counts))
        self.assertGreater(counts[0], 200)

    def test_each_call_is_a_symbol_of_its_version(self):
        calls = called()
        for branch in libraries.drivers():
            with self.of(branch):
                self.assertGreater(self.check(branch, calls), 25)

    def test_the_doctor_needs_nothing_that_the_oldest_driver_lacks(self):
        for branch in libraries.drivers():
            with self.of(branch):
                there = machine.exports(libraries.driver_folder(branch) / "libcuda.so.1")
                self.assertEqual(sorted(set(asked_by_doctor()) - there.keys()), [])

    def test_nvml_has_what_is_asked_of_it(self):
        self.assertGreater(len(asked_of_nvml()), 4)
        for branch in libraries.drivers():
            with self.of(branch):
                there = machine.exports(libraries.driver_folder(branch) / "libnvidia-ml.so.1")
                self.assertEqual(sorted(set(asked_of_nvml()) - there.keys()), [])


if __name__ == "__main__":
    machine.main()
