"""Tables for documents from a page: scripts/docs puts those of committed pages into docs/.

Each function returns (columns, lines), with no lines where the page has nothing of it."""
import re
import statistics

import costs
from reading import NUMBER, Unreadable

TABLES = {}
FIGURE = re.compile(r"([\d.]+( [mun]?s)?)?")


def table(function):
    """Enters a table under its function's name."""
    TABLES[function.__name__.replace("_", "-")] = function
    return function


def time(seconds):
    """A time as people read it, with three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else \
                f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def number(text):
    """The first number in a text, or None."""
    found = re.search(NUMBER.pattern, text or "")
    return float(found.group()) if found else None


@table
def chunks(page):
    """The calls on virtual memory by chunk."""
    lines = []
    for tier in costs.TIERS if "call-cost" in page.rows else ():
        lines.append((f"{tier}, one of many of 2 MiB", *(
            time(costs.of_many(page, tier, call)) for call in costs.FUNCTIONS.values())))
        mib = costs.sizes(page, tier)
        for size in [size for size in (2, 64) if size in mib] + mib[-1:]:
            lines.append((f"{tier}, {size} MiB, alone", *(
                time(costs.of_one(page, tier, call, size)) for call in costs.FUNCTIONS.values())))
    return ("a chunk", *costs.FUNCTIONS.values()), lines


@table
def rates(page):
    """What the link and the memory carry."""
    return ("what", "GB/s"), [(match.group(), f"{number(value):.3g}" if number(value) < 1000
                               else f"{number(value):.0f}")
                              for match, value in page.matching("link", ".*")
                              if value.endswith(" GB/s")]


@table
def small_calls(page):
    """Calls that wait for nothing."""
    return ("call", "time"), [(match.group(), time(page.seconds("small-calls", match.group())))
                              for match, value in page.matching("small-calls", ".*")
                              if value.endswith(" ns")]


def steps_of(page, row):
    """{name of a training: [(how it ran, step in ms, times the plain one)]} of one row."""
    found, plain = {}, None
    for match, value in page.matching(row, "(.*)"):
        subject = match.group(1)
        if subject.startswith("plain: step time: "):
            plain = number(subject)
        ran = re.fullmatch(r"(.*), ((?:backend:.*|under spillway)): step", subject)
        if ran and plain:
            name = ran.group(1)
            found.setdefault(name, [("without spillway", plain, 1.0)])
            found[name].append((ran.group(2).replace("backend:", "PyTorch's "), number(value),
                                number(value) / plain))
    return found


@table
def training(page):
    """The rows of training without a limit."""
    lines = []
    for name, ways in steps_of(page, "training").items():
        lines += [(name, how, f"{ms:.1f} ms", f"{times:.2f}") for how, ms, times in ways]
    return ("training", "how", "a step", "times plain"), lines


@table
def spilling(page):
    """The row of training under a limit."""
    plain = [number(match.group()) for match, _ in page.matching("spill", "plain: step time: .*")]
    lines = [("plain", f"{plain[0]:.1f} ms", "1.00")] if plain else []
    for match, value in page.matching("spill", "(.*): step"):
        ms = number(value)
        if plain and ms:
            lines.append((match.group(1), f"{ms:.1f} ms", f"{ms / plain[0]:.2f}"))
    return ("GPT-2 small, bf16", "a step", "times plain"), lines


def median(steps, key):
    """The median of a figure over the second half of a run's steps; 0 where none has it."""
    return statistics.median(step.get(key, 0) for step in steps[len(steps) // 2:])


@table
def steps(page):
    """The rows spill-short: one step by what it did."""
    lines = []
    for row in ("spill-short-90", "spill-short-75"):
        for how, found in page.rows.get(row, {}).get("data", {}).items():
            lines.append((f"{row[-2:]} %" if how != "all memory" else "100 %", how, *(
                f"{median(found, key) / scale:.{digits}f}" for key, scale, digits in (
                    ("step_ms", 1, 1), ("closed_ns", 1e6, 1), ("spilled_bytes", 1e9, 2),
                    ("promoted_bytes", 1e9, 2), ("freed_on_host_bytes", 1e9, 2), ("moves", 1, 1)))))
    return ("memory", "mode", "step, ms", "held back, ms", "out, GB", "in, GB",
            "freed on the host, GB", "moves"), lines


@table
def varying(page):
    """The row varying-lengths: medians of the first and of the second half of the steps."""
    lines = []
    data = page.rows.get("varying-lengths", {}).get("data", {})
    plain = data.get("plain", [])
    for how, found in data.items():
        ratios = [step["step_ms"] / other["step_ms"] for step, other in zip(found, plain)]
        half = len(ratios) // 2
        if half:
            lines.append((how, f"{statistics.median(ratios[:half]):.2f}",
                          f"{statistics.median(ratios[half:]):.2f}", len(ratios)))
    return ("how", "first half, times plain", "second half", "steps"), lines


@table
def products(page):
    """The row cost-table: what products reach, in TFLOP/s."""
    by_size, kinds = {}, []
    for entry in page.data("cost-table", "products"):
        size = f"{entry['m']} x {entry['n']} x {entry['k']}"
        rate = 2e-6 * entry["m"] * entry["n"] * entry["k"] / entry["us"]
        by_size.setdefault(size, {})[entry["kind"]] = f"{rate:.3g}"
        kinds += [entry["kind"]] if entry["kind"] not in kinds else []
    return ("product", *kinds), [(size, *(found.get(kind, "") for kind in kinds))
                                 for size, found in by_size.items()]


@table
def elements(page):
    """The row cost-table: bytes that operations by element move, in GB/s."""
    by_name, counts = {}, []
    for entry in page.data("cost-table", "elements"):
        name = entry["operation"], entry["dtype"]
        by_name.setdefault(name, {})[entry["count"]] = f"{1e-3 * entry['bytes'] / entry['us']:.3g}"
        counts += [entry["count"]] if entry["count"] not in counts else []
    return ("operation", "kind", *(f"{count}" for count in counts)), [
        (*name, *(found.get(count, "") for count in counts)) for name, found in by_name.items()]


@table
def in_place_torch(page):
    """The row in-place-torch: how often an operand on the host crosses the link."""
    return ("operation", "on the host", "device, us", "host, us", "passes"), [
        (entry["operation"], " and ".join(entry["on_host"]), f"{entry['device_us']:.1f}",
         f"{entry['host_us']:.1f}",
         f"{(entry['host_us'] - entry['device_us']) / max(entry['once_us'], 1e-3):.2f}")
        for entry in page.data("in-place-torch", "operations")]


# Rows of the probe whose numbers have names of their own; the unit ends the name.
NUMBERS = ("unmap-then-copy", "fault-kind", "launch-beside-vmm", "in-place", "managed", "poll-cost",
           "both-ways-small", "host-pages")
UNIT = re.compile(r"(.*?)_(gb_s|ns|us|ms|s|times)")


def numbers(page, row):
    """{(name, unit): number} of a row of the probe."""
    data = page.rows.get(row, {}).get("data", {})
    found = {UNIT.fullmatch(name): value for name, value in data.items()}
    return {match.groups(): float(value) for match, value in found.items() if match}


def of_numbers(row):
    return lambda page: (("what", "figure"), [
        (name.replace("_", " "), f"{value:.4g} {unit.replace('gb_s', 'GB/s')}")
        for (name, unit), value in numbers(page, row).items()])


TABLES |= {row: of_numbers(row) for row in NUMBERS}


@table
def launches(page):
    """The row cost-curves: what does not go by size."""
    return ("what", "time"), [(name.replace("_", " "), f"{value:.4g} {unit}")
                              for (name, unit), value in numbers(page, "cost-curves").items()
                              if not name.endswith("_kib")]


@table
def curves(page):
    """The row cost-curves: operations by size, in microseconds."""
    by_name, sizes = {}, set()
    for (name, _), value in numbers(page, "cost-curves").items():
        match = re.fullmatch(r"(.*)_(\d+)_kib", name)
        if match:
            sizes.add(int(match.group(2)))
            by_name.setdefault(match.group(1), {})[int(match.group(2))] = f"{value:.4g}"
    return ("operation", *(f"{size} KiB" for size in sorted(sizes))), [
        (name.replace("_", " "), *(found.get(size, "") for size in sorted(sizes)))
        for name, found in by_name.items()]


def of(page, name):
    """(columns, lines) of a table by its name."""
    if name not in TABLES:
        raise Unreadable(f"no table is called {name}; there are {', '.join(TABLES)}")
    try:
        return TABLES[name](page)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise Unreadable(f"{page.path}: the data of table {name} are not as its row writes them: "
                         f"{type(error).__name__}: {error}") from None


def markdown(columns, lines):
    """A table for a document; numbers stand to the right."""
    align = ["--:" if all(FIGURE.fullmatch(str(line[i])) for line in lines) else "---"
             for i in range(len(columns))]
    return "\n".join(["| " + " | ".join(columns) + " |", "|" + "|".join(align) + "|",
                      *("| " + " | ".join(map(str, line)) + " |" for line in lines)])
