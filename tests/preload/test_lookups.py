#!/usr/bin/env python3
"""dlsym and getenv return to other libraries what glibc's return."""
import harness


BEFORE = str(harness.PROGRAMS / "liblayer_before.so")
AFTER = str(harness.PROGRAMS / "liblayer_after.so")


class Lookups(harness.Case):
    def lookups(self, *preload):
        env = harness.environment(preload=False, sim=False)
        env |= {"SPW_TEST_SET": "value", "SPW_TEST_EMPTY": "", "LD_PRELOAD": ":".join(preload)}
        result = self.run_command([harness.PROGRAMS / "lookups"], env)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_same_answers(self):
        self.assertEqual(self.lookups(), self.lookups(str(harness.OBJECT)))

    def test_same_answers_in_a_chain_of_interposers(self):
        """Other libraries that look up the next definition, preloaded before spillway and after
        it."""
        bare = self.lookups(BEFORE, AFTER)
        self.assertIn("layers: 2", bare)
        self.assertEqual(bare, self.lookups(BEFORE, str(harness.OBJECT), AFTER))
        self.assertEqual(bare, self.lookups(str(harness.OBJECT), BEFORE, AFTER))
        self.assertEqual(bare, self.lookups(BEFORE, AFTER, str(harness.OBJECT)))


if __name__ == "__main__":
    harness.main()
