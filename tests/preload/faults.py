"""Runs programs whose driver calls are made to fail, one after the other."""
import concurrent.futures
import os

import harness

# After these functions fail, the state of the driver's own memory is undefined.
UNRELIABLE = ("cuMemRelease", "cuMemUnmap")


def told(fault, result):
    """The description of a run that is not as it should be."""
    return f"SPILLWAY_SIM_FAIL={fault}\n{result.stdout}{result.stderr}"


class Case(harness.Case):
    def run_with(self, fault, options, *command):
        """The result of the program, and what the simulated driver logged; anything may be said."""
        path = self.folder / f"log-{fault}"
        options = options | {"SIM_LOG": path, "STATS": self.folder / f"stats-{fault}.json"}
        if fault is not None:
            options["SIM_FAIL"] = fault
        result = self.run_program(*command, status=None, allow=[r"."], **options)
        log = path.read_text()
        path.unlink()
        return result, log

    def sweep_each(self, names, sweep):
        """Fails the calls of every function in turn; returns the number of faults."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            sweeps = {name: pool.submit(sweep, name) for name in names}
        for name, done in sweeps.items():
            with self.subTest(name):
                print(f"{name}: {done.result()} faults")
