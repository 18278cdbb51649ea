"""The results of test_features.py, from which docs/dev/results/pytorch-features.md is made: one run
for each version of PyTorch and of CPython."""
import datetime
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests/torch/results/features.json"


def commit():
    """The commit of the tree; with a plus if files of it have changed, other than documents."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, text=True, capture_output=True)
    changed = git("diff", "--quiet", "HEAD", "--", ".", ":!*.md", ":!docs",
                  f":!{RESULTS.relative_to(ROOT)}").returncode != 0
    return git("rev-parse", "--short=10", "HEAD").stdout.strip() + ("+" if changed else "")


def row(versions, names, found):
    """A run as it is kept: of each mode what is not the same, and what is not here in any."""
    absent = {name: text.removeprefix("not here: ") for verdicts in found.values()
              for name, text in verdicts.items() if text.startswith(("not here", "fails bare"))}
    return {**versions, "commit": commit(), "date": datetime.date.today().isoformat(),
            "names": names, "absent": absent,
            "modes": {mode: {name: text for name, text in verdicts.items()
                             if text != "same" and name not in absent}
                      for mode, verdicts in found.items()}}


def order(run):
    return [[int(part) for part in run[key].rstrip("t").split(".")]
            for key in ("version", "python")]


def save(run):
    """Puts a run into the file, in the place of an older one."""
    runs = json.loads(RESULTS.read_text())["runs"] if RESULTS.exists() else []
    runs = [old for old in runs
            if (old["version"], old["python"]) != (run["version"], run["python"])] + [run]
    RESULTS.parent.mkdir(exist_ok=True)
    lines = ",\n".join("  " + json.dumps(one) for one in sorted(runs, key=order))
    RESULTS.write_text('{"runs": [\n' + lines + "\n]}\n")
