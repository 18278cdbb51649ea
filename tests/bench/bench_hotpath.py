#!/usr/bin/env python3
"""What an allocate/free pair that needs no driver call costs at the driver door.

On the simulated driver: the door, the lock and the pool are the real ones, and neither makes a
driver call. The bare figure is the simulator's own and says nothing of a GPU.
"""
import bench


def main():
    pool = {}
    for _ in range(5):
        for name, ns in bench.run([bench.PROGRAMS / "pair_speed"], True, sim=True).items():
            pool[name] = min(ns, pool.get(name, ns))
    bench.report([(name, ns, "ns", 100) for name, ns in pool.items()])


if __name__ == "__main__":
    main()
