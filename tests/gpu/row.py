#!/usr/bin/env python3
"""Runs one row in the current folder, where its findings, output and evidence go.

    row.py ROW SETTING SECONDS [--cut]

With --cut the call ends after so many seconds, before the row's own bound.
"""
import os
import pathlib
import sys
import time

import bounded
import faults
from rows import TABLE
from session import OutOfTime, Session
from setting import Setting


def main():
    name, setting, seconds, *cut = sys.argv[1:]
    bounded.limit_self()
    session = Session(Setting.load(setting), pathlib.Path.cwd(),
                      time.monotonic() + float(seconds), bool(cut))
    kind = faults.asked(os.environ.get(faults.VARIABLE, ""), name)
    try:
        if kind:
            faults.commit(kind, session)
        else:
            TABLE[name].function(session)
    except OutOfTime as program:
        session.note("cut", "no time left", str(program))
    session.note("end", "end")


if __name__ == "__main__":
    main()
