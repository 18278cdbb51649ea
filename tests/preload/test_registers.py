#!/usr/bin/env python3
"""Libraries that memory is registered with get the calls that they get without spillway, through
the libraries that intercept them."""
import re

import harness
from harness import PROGRAMS


class Registers(harness.Case):
    def both(self, *command):
        """The output, the same bare and under spillway. Addresses differ between runs."""
        outputs = []
        for preload in (False, True):
            env = harness.environment(preload=preload, sim=False)
            env["SPW_TEST_VERBS"] = str(PROGRAMS / "libibverbs.so.1")
            result = self.run_command(command, env)
            self.assertEqual(result.status, 0, result.stderr)
            self.assertEqual(result.stderr, "")
            outputs.append(self.relative(result.stdout))
        self.assertEqual(outputs[0], outputs[1])
        return outputs[1]

    @staticmethod
    def relative(text):
        """The text with each address replaced by its distance from the lowest."""
        found = [int(word, 16) for word in re.findall(r"0x(\w{4,})", text)]
        return re.sub(r"0x(\w{4,})", lambda word: f"+{int(word[1], 16) - min(found)}", text)

    def test_linked(self):
        output = self.both(PROGRAMS / "registers_linked")
        self.assertEqual(output.count(": +0 "), 12, output)
        self.assertIn("ibv_reg_mr of 1.1: +0 12 3\n+15\n", output)
        self.assertIn("ibv_reg_mr_ex: (nil) 100 3\n", output)

    def test_looked_up(self):
        output = self.both(PROGRAMS / "registers", "dlsym", PROGRAMS)
        self.assertIn("ibv_reg_mr of 1.1: +0 12 3\n+15\n", output)

    def test_versions(self):
        """Each version is a function of its own; a wrapper of one is not taken for another."""
        output = self.both(PROGRAMS / "registers", "dlvsym", PROGRAMS)
        self.assertEqual(output.count("ibv_reg_mr of 1.0: "), 2)
        self.assertEqual(output.count("ibv_reg_mr of 1.1: "), 1)
        self.assertEqual(output.count("nothing"), 3)

    def test_a_library_in_front_of_another(self):
        """A library with the same name, which looks up the next one."""
        output = self.both(PROGRAMS / "registers_shim")
        self.assertEqual(output, "handed on\nibv_reg_mr of 1.1: +0 12 4\n+16\n" * 2)

    def test_libraries_that_are_not_there(self):
        output = self.both(PROGRAMS / "registers", "absent")
        for line in output.splitlines():
            self.assertRegex(line, r"^\w+: \(nil\) an error \(nil\) \(nil\)$")

    def test_spillway_stands_in_front(self):
        """Of every one but what registers a file and what is of an old version."""
        env = harness.environment(sim=False)
        result = self.run_command([PROGRAMS / "registers", "doors", PROGRAMS], env)
        self.assertEqual(result.status, 0, result.stderr)
        homes = dict(line.split(": ") for line in result.stdout.splitlines())
        self.assertEqual(homes.pop("ibv_reg_dmabuf_mr"), "nowhere")
        self.assertEqual(homes.pop("1.0"), "libibverbs.so.1")
        self.assertEqual(set(homes.values()), {"libspillway.so"}, homes)
        env["SPILLWAY"] = "off"
        result = self.run_command([PROGRAMS / "registers", "doors", PROGRAMS], env)
        self.assertNotIn("libspillway.so", result.stdout)


if __name__ == "__main__":
    harness.main()
