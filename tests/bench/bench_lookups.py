#!/usr/bin/env python3
"""How much a dlsym and a getenv that are none of spillway's business cost more under LD_PRELOAD."""
import bench

BOUNDS = {"dlsym": 20, "getenv": 5}


def main():
    bare, pool = bench.compare([bench.PROGRAMS / "lookup_speed"], repeats=9)
    rows = []
    for name in bare:
        rows.append((f"{name}, bare", bare[name], "ns", None))
        rows.append((f"{name}, more under LD_PRELOAD", pool[name] - bare[name], "ns",
                     BOUNDS[name.split()[0]]))
    bench.report(rows)


if __name__ == "__main__":
    main()
