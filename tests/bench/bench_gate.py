#!/usr/bin/env python3
"""The cost of the submit barrier for each call that submits work: its read side, in one thread."""
import bench


def main():
    best = {}
    for _ in range(5):
        for name, ns in bench.run([bench.PROGRAMS / "gate_speed"], False).items():
            best[name] = min(ns, best.get(name, ns))
    bench.report([(name, ns, "ns", 25) for name, ns in best.items()])


if __name__ == "__main__":
    main()
