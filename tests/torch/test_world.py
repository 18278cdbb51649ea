#!/usr/bin/env python3
"""Single ranks of a job (`--world`) have the peaks of a job in which every rank runs, to the byte.

    test_world.py [--long]    all shapes on eight ranks, instead of one on four
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import running
import wheel

LONG = "--long" in sys.argv
RANKS = 8 if LONG else 4
RUNS = 4
SHAPES = ("fsdp", "tp", "pp") if LONG else ("tp",)
SCRIPT = str(running.HERE / "ranks.py")
SHARDED = str(running.HERE.parent / "bench/train_sharded.py")


def peaks(flags, command):
    """What each rank printed, and the standard error."""
    done = subprocess.run([running.ROOT / "spillway", "sim", *flags, "--", *command], text=True,
                          capture_output=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.returncode}\n{done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(rows, key=lambda row: row.get("rank", 0)), done.stderr


def least(some, others):
    return [{key: min(value, other[key]) for key, value in row.items()}
            for row, other in zip(some, others)]


class Ranks(unittest.TestCase):
    def together(self, words):
        every = [self.interpreter, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS)]
        rows, _ = peaks(["--devices", str(RANKS)], [*every, SCRIPT, *words])
        self.assertEqual([row["rank"] for row in rows], list(range(RANKS)))
        return rows

    def alone(self, words, ranks):
        rows, err = peaks(["--world", str(RANKS), "--rank", ",".join(map(str, ranks))],
                          [self.interpreter, SCRIPT, *words])
        self.assertNotIn("Error", err)
        self.assertNotIn("Warning", err)
        return rows

    def compare(self, *words):
        """PyTorch's watchdog thread frees what collectives used at a time of its own, so in some
        runs a rank holds more. The least of several runs is compared."""
        ranks = range(RANKS) if LONG else (0, RANKS - 1)
        wanted, found = self.together(words), self.alone(words, ranks)
        for _ in range(RUNS - 1):
            if found == [wanted[rank] for rank in ranks]:
                break
            wanted = least(wanted, self.together(words))
            found = least(found, self.alone(words, ranks))
        self.assertEqual(found, [wanted[rank] for rank in ranks])

    def test_ranks(self):
        for shape in SHAPES:
            for words in ([], ["--eager"]) if LONG else (["--eager"],):
                with self.subTest(shape, words=words):
                    self.compare("--shape", shape, *words)

    def test_files_of_a_job(self):
        """Whatever starts the ranks is none of them: the files of rank 0 are rank 0's."""
        for words in (["torch.distributed.run"], ["accelerate.commands.launch", "--multi_gpu",
                                                  "--num_machines", "1", "--mixed_precision", "no",
                                                  "--dynamo_backend", "no", "--num_processes"]):
            counted = ["--nproc-per-node", "2"] if len(words) == 1 else ["2"]
            with self.subTest(words[0]), tempfile.TemporaryDirectory() as folder:
                peaks(["--devices", "2", "--stats", f"{folder}/d-%r.json",
                       "--record", f"{folder}/d-%r.rec"],
                      [self.interpreter, "-m", *words, *counted, SCRIPT, "--shape", "ddp"])
                names = sorted(path.name for path in pathlib.Path(folder).iterdir())
                self.assertEqual(names, ["d-0.json", "d-0.rec", "d-1.json", "d-1.rec"])
                for kind in ("json", "rec"):
                    done = subprocess.run([running.ROOT / "spillway", "ranks", "--json",
                                           *(f"{folder}/d-{rank}.{kind}" for rank in range(2))],
                                          text=True, capture_output=True, timeout=60)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertEqual([row["rank"] for row in json.loads(done.stdout)["ranks"]],
                                     [0, 1])

    def test_one_of_a_thousand(self):
        """The last rank of a large job, of few layers here."""
        words = ["--job", "--layers", "2", "--steps", "1", "--length", "512"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "out.json")
            rows, _ = peaks(["--world", "1024", "--rank", "1023", "--profile", "h200-141g",
                             "--json", str(path)], [self.interpreter, SHARDED, *words])
            verdict = json.loads(path.read_text())["ranks"][0]
        self.assertEqual((verdict["rank"], verdict["verdict"]), (1023, "fits"))
        self.assertEqual(verdict["devices"][0]["communicator_ranks"], 1024)
        self.assertGreater(rows[-1]["allocated_peak"], 1 << 30)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Ranks))
