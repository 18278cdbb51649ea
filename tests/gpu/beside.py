"""Runs rows that say nothing of times at the same time, each in a check of its own."""
import concurrent.futures
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import page

CHECK = pathlib.Path(__file__).resolve().parent / "check.py"
END_SECONDS = 12  # for a check to note that it was told to end


class Lanes:
    """arguments: of each check; begin(row) tells how many seconds a row may take, or 0;
    done(row, entry, folder) gets what came of it, entry being None if nothing did."""

    def __init__(self, arguments, output, begin, done):
        self.arguments = arguments
        self.output = output
        self.begin = begin
        self.done = done
        self.lock = threading.Lock()
        self.children = {}
        self.ended = False

    def run(self, rows, at_once):
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            futures = [pool.submit(self.run_one, row) for row in rows]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self.end()
                raise

    def end(self):
        """Tells all checks to end; none begins any more."""
        with self.lock:
            self.ended = True
            for child in self.children.values():
                child.send_signal(signal.SIGTERM)

    def run_one(self, row):
        folder = self.output / f"beside-{row.name}"
        with self.lock:
            seconds = 0 if self.ended else self.begin(row)
            child = self.start(row, folder, seconds) if seconds > 0 else None
        if child is None:
            return
        try:
            child.wait(seconds + END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
        with self.lock:
            del self.children[row.name]
            _, rows = page.read(folder)
            self.done(row, rows[0] if rows else None, folder)
            shutil.rmtree(folder, ignore_errors=True)

    def start(self, row, folder, seconds):
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier check
        folder.mkdir()
        with open(folder / "output.txt", "w") as out:
            child = subprocess.Popen(
                [sys.executable, "-B", CHECK, *self.arguments, "--part", "--output", folder,
                 "--seconds", f"{seconds:.1f}", "--only", row.name],
                stdout=out, stderr=subprocess.STDOUT)
        self.children[row.name] = child
        return child
