"""A plugin of pytest: tests that must fit into the memory of a GPU, on a machine without a GPU.

    @pytest.mark.gpu_memory("24 GB")
    def test_training_fits(): ...

Each such test runs in a separate process under `spillway sim --memory "24 GB" --require fit`. If
the test does not fit, it fails, and the failure shows the verdict. docs/recipes/integrations.md
explains the options and limits.
"""
from __future__ import annotations

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from ._command import environment, find_command

MARK = "gpu_memory"
# In the process of a test: the folder for its reports. Programs that the test starts do not get it.
REPORTS = os.environ.pop("PYTEST_SPILLWAY_REPORTS", None)
TOGETHER = ("-n", "0")  # pytest-xdist: one process, whatever the configuration has


class Reporter:
    """Writes each report of this process to a numbered file in REPORTS."""

    def __init__(self, config: pytest.Config, folder: str) -> None:
        self._config = config
        self._folder = folder
        self._numbers = itertools.count()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self._folder, delete=False,
                                         prefix=f"{next(self._numbers):06}-") as file:
            file.write(json.dumps(data))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(size, **options): the test runs on a simulated GPU "
                            "with so much memory, and fails if it does not fit (spillway)")
    if REPORTS is not None:
        config.pluginmanager.register(Reporter(config, REPORTS))


def _flags(item: pytest.Item, mark: pytest.Mark) -> list[str]:
    """Returns the options of `spillway sim`: devices=2 is --devices 2."""
    if len(mark.args) > 1 or not mark.args and "profile" not in mark.kwargs:
        raise pytest.UsageError(f'{item.nodeid}: expected {MARK}("24 GB"), or {MARK}(profile='
                                f'"rtx4090-24g"), with more options of spillway sim by name')
    options = {"require": "fit", **mark.kwargs}
    if mark.args:
        options["memory"] = mark.args[0]
    return [word for name, value in options.items()
            for word in (f"--{name.replace('_', '-')}", str(value))]


def _command(item: pytest.Item) -> list[str]:
    """Returns the command that runs only this test. It ignores -k and -m of the configuration,
    because the test is already selected."""
    config = item.config
    names = [node.name for node in item.listchain()
             if isinstance(node, (pytest.Class, pytest.Item))]
    command = [sys.executable, "-m", "pytest", "::".join([str(item.path), *names]),
               "-p", __name__, "--rootdir", str(config.rootpath), "-k", "", "-m", ""]
    if config.inipath is not None:
        command += ["-c", str(config.inipath)]
    if config.pluginmanager.hasplugin("xdist"):
        command += TOGETHER
    return command


def _run(item: pytest.Item, mark: pytest.Mark) -> tuple[list[pytest.TestReport], int, str, str]:
    """Runs the test. Returns its reports, and the exit code, the output and the verdict of its
    process."""
    command = find_command()
    if command is None:
        raise FileNotFoundError("the command `spillway` is not found")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [command, "sim", *_flags(item, mark), "--", *_command(item)], check=False,
            env={**environment(), "PYTEST_SPILLWAY_REPORTS": folder}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", cwd=item.config.invocation_params.dir)
        texts = [file.read_text() for file in sorted(pathlib.Path(folder).iterdir())]
    verdict = re.findall(r"^spillway: (verdict: .*|  .*)$", done.stderr, re.MULTILINE)
    return ([_read(item.config, text) for text in texts], done.returncode,
            done.stdout + done.stderr, "\n".join(verdict[-3:]))


def _read(config: pytest.Config, text: str) -> pytest.TestReport:
    data = json.loads(text)
    if data["outcome"] == "skipped" and isinstance(data["longrepr"], list):
        data["longrepr"] = tuple(data["longrepr"])  # JSON has no tuples
    hook: Any = config.hook
    report: pytest.TestReport = hook.pytest_report_from_serializable(config=config, data=data)
    return report


def _judge(item: pytest.Item, mark: pytest.Mark) -> list[pytest.TestReport]:
    """Returns the reports of the test. A test that does not fit has failed."""
    reports, status, output, verdict = _run(item, mark)
    if not reports or reports[-1].when != "teardown":
        raise RuntimeError(f"the process of the test ended with {status}:\n{output}")
    call = next((report for report in reports if report.when == "call"), None)
    if call is not None and status != 0 and all(report.passed for report in reports):
        call.outcome = "skipped" if hasattr(call, "wasxfail") else "failed"  # it failed as expected
        call.longrepr = verdict
    elif call is not None:
        call.sections.append(("spillway", verdict))
    return reports


def _failed(item: pytest.Item, reason: str) -> pytest.TestReport:
    call = pytest.CallInfo.from_call(lambda: pytest.fail(reason, pytrace=False), "call")
    return pytest.TestReport.from_item_and_call(item, call)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Runs a marked test in a separate process, and passes the reports of that process on."""
    mark = item.get_closest_marker(MARK)
    if mark is None or REPORTS is not None:
        return None
    hook: Any = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    problem, reports = "", []
    try:
        reports = _judge(item, mark)
    except (OSError, RuntimeError, pytest.UsageError) as error:
        problem = str(error)
    for report in reports or [_failed(item, problem)]:
        report.nodeid = item.nodeid
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
