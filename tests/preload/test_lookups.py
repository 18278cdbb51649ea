#!/usr/bin/env python3
"""dlsym and dlvsym of libspillway.so return to others what glibc's return."""
import re

import harness


BEFORE = str(harness.PROGRAMS / "liblayer_before.so")
AFTER = str(harness.PROGRAMS / "liblayer_after.so")


class Lookups(harness.Case):
    def lookups(self, *preload):
        env = harness.environment(preload=False, sim=False)
        env["LD_PRELOAD"] = ":".join(preload)
        result = self.run_command([harness.PROGRAMS / "lookups"], env)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        # Who looks for the next one of these two, by its version, finds ours.
        next_one = r"^(versioned, next, (?:dlsym|dlvsym)): (.*)"
        found = [home for _, home in re.findall(next_one, result.stdout, re.MULTILINE)]
        if str(harness.OBJECT) in preload:
            self.assertEqual(found, 2 * [harness.OBJECT.name])
        return re.sub(next_one, r"\1: somewhere", result.stdout, flags=re.MULTILINE)

    def test_same_answers(self):
        self.assertEqual(self.lookups(), self.lookups(str(harness.OBJECT)))

    def test_same_answers_in_a_chain_of_interposers(self):
        """Other interposers, before and after ours, that look up the next one's symbol."""
        bare = self.lookups(BEFORE, AFTER)
        self.assertIn("layers: 2", bare)
        self.assertEqual(bare, self.lookups(BEFORE, str(harness.OBJECT), AFTER))
        self.assertEqual(bare, self.lookups(str(harness.OBJECT), BEFORE, AFTER))
        self.assertEqual(bare, self.lookups(BEFORE, AFTER, str(harness.OBJECT)))


if __name__ == "__main__":
    harness.main()
