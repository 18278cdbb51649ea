#!/usr/bin/env python3
"""What an allocate/free pair costs in the pool alone, without a door and a driver.

`pair` frees at once what it allocated, beside so many live blocks; `replace` frees a random one, so
that every record it needs is cold.
"""
import bench


def main():
    trace = bench.pathlib.Path(__file__).parents[1] / "traces/pangu_2.6B.csv"
    results = bench.run([bench.PROGRAMS / "pool_hot", trace], False)
    bench.report([(name, ns, "ns", 100 if name.startswith("pair") else None)
                  for name, ns in results.items()])


if __name__ == "__main__":
    main()
