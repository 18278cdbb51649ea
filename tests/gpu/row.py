#!/usr/bin/env python3
"""Runs one row in the current folder, where its findings, output and evidence go.

    row.py ROW SETTING SECONDS
"""
import os
import pathlib
import sys
import time

import bounded
import faults
from rows import TABLE
from session import Session
from setting import Setting


def main():
    name, setting, seconds = sys.argv[1:]
    bounded.limit_self()
    session = Session(Setting.load(setting), pathlib.Path.cwd(),
                      time.monotonic() + float(seconds))
    kind = faults.asked(os.environ.get(faults.VARIABLE, ""), name)
    if kind:
        faults.commit(kind, session)
    else:
        TABLE[name].function(session)
    session.note("end", "end")


if __name__ == "__main__":
    main()
