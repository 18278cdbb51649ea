"""PyTorch's own caching allocator as a contestant: torch_steps.py, and how to talk to it."""
import json
import subprocess

import bench

# The settings a user would choose; empty: as it comes.
KINDS = {"PyTorch": "", "PyTorch expandable": "expandable_segments:True"}


class Replayer:
    """One kind of the allocator, ready to replay traces on devices of any size."""

    def __init__(self, interpreter, kind, **options):
        env = bench.clean_environment(**options)
        if KINDS[kind]:
            env["PYTORCH_ALLOC_CONF"] = KINDS[kind]
        self.process = subprocess.Popen(
            [bench.COMMAND, "sim", "--no-pool", "--", interpreter, bench.HERE / "torch_steps.py"],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)

    def __call__(self, trace, memory, steps):
        request = {"memory": memory, "trace": str(trace), "steps": steps}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
