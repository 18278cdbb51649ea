#!/usr/bin/env python3
"""How fast a pause writes its file and reads it back, beside the disk itself: the best of five
runs of 1 GiB. TMPDIR names the folder."""
import tempfile

import bench


def main():
    best = {}
    for _ in range(5):
        measured = bench.run([bench.PROGRAMS / "file_speed", tempfile.gettempdir(), "1024"], False)
        for name, speed in measured.items():
            best[name] = max(speed, best.get(name, speed))
    bench.report([(name, speed, "GB/s", None) for name, speed in best.items()])


if __name__ == "__main__":
    main()
