"""The page of a recording, as a file and in a notebook."""
from __future__ import annotations

import html
import os
import pathlib
import subprocess
import tempfile

from ._command import environment, find_command
from ._library import library


class Report:
    """The page that `report` made.

    path     the file; None if there is no page
    problem  the reason if there is no page, or if only a part of the recording could be read;
             otherwise ""
    height   of the frame in a notebook, in pixels

    A Report is true if there is a page."""

    def __init__(self, path: pathlib.Path | None, problem: str = "", height: int = 640) -> None:
        self.path = path
        self.problem = problem
        self.height = height

    def __bool__(self) -> bool:
        return self.path is not None

    def __repr__(self) -> str:
        if self.path is None:
            return f"<spillway.Report: {self.problem}>"
        return f"<spillway.Report {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        """For Jupyter: the page in a separate frame, which needs no server and no network. It is
        saved with the notebook."""
        if self.path is None:
            return f"<p>spillway: {html.escape(self.problem)}</p>"
        page = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        return (f'<iframe srcdoc="{page}" style="width: 100%; height: {self.height:d}px; '
                f'border: 0" title="spillway report"></iframe>')


def _failed(problem: str) -> Report:
    library.say(problem)
    return Report(None, problem)


def _make(command: str, recording: str, output: pathlib.Path) -> str:
    """Writes the page to a temporary file, and then renames it. Returns the messages of the
    command. Raises OSError if there is no page."""
    handle, name = tempfile.mkstemp(prefix=f".{output.name}-", dir=output.parent)
    with os.fdopen(handle, "wb") as file:
        try:
            done = subprocess.run([command, "report", recording, "--html"], stdout=file,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  env=environment(), check=False)
            said = done.stderr.decode(errors="replace").strip()
            if done.returncode != 0:
                raise OSError(said or f"{command} ended with {done.returncode}")
            os.chmod(name, 0o644)
            os.replace(name, output)
        except BaseException:
            os.unlink(name)
            raise
    return said


def report(recording: str | os.PathLike[str] | None = None, *,
           output: str | os.PathLike[str] | None = None, height: int = 640) -> Report:
    """Makes the page of a recording: memory over time by category and call site.

    recording  a file that `--record FILE` wrote; the default is the recording of this process,
               with the events until now
    output     the file of the page, which is replaced; the default is the recording's name with
               .html
    height     of the frame in a notebook, in pixels

    In Jupyter, the result shows the page. If there is no page, one line on stderr says so, and the
    result is false."""
    if recording is None:
        if not library.loaded:
            library.call("spillway_version")
            return Report(None, "spillway is not loaded in this process")
        recording = library.about("recording")
        if not recording:
            return _failed("there is no recording to report: start the program with "
                           "`spillway run --record FILE -- ...`, and use device memory first")
    source = os.fspath(recording)
    command = find_command()
    if command is None:
        return _failed("the command `spillway`, which makes reports, is not found")
    target = pathlib.Path(output if output is not None else source + ".html")
    try:
        os.stat(source)
        return Report(target, _make(command, source, target), height)
    except OSError as error:
        return _failed(f"no report: {error}")
