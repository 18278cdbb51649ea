"""What PyTorch's libraries take on this card: memory beyond their results, and time."""
import json

from rows import row, told

POLICY = {"version": 1, "rules": [{"name": "host", "match": {"tag": "host"},
                                   "action": {"placement": "host", "movable": False}}]}


def peaks(session, found):
    """The largest peak of the convolutions of each program, as a figure."""
    largest = {}
    for entry in found.get("convolutions", ()):
        key = entry["of"], entry["benchmark"]
        for beyond, _ in (entry[direction] for direction in ("forward", "data", "filter")):
            if isinstance(beyond, int):
                largest[key] = max(largest.get(key, 0), beyond)
    for (source, benchmark), most in sorted(largest.items()):
        session.figure(f"{source}{', benchmark' if benchmark else ''}: the largest peak beyond "
                       "tensors", most)


@row(order=52, seconds=90, cost=20, depends="tests/gpu/scripts/convolutions.py "
     "tests/gpu/scripts/cudnn_log.py tests/gpu/scripts/measured.py", again=False,
     decides="the simulator's workspaces of convolutions, and what cuDNN can be asked without a "
             "card")
def cudnn(session):
    """cuDNN's description of this card; engines and memory of convolutions as PyTorch has them."""
    python = session.torch()
    if python is None:
        return
    asked = [] if session.setting.simulated else ["--asked"]
    both = {}
    for what, seconds, flags in (("convolutions", 7, []),
                                 ("convolutions, benchmark", 10, ["--benchmark"])):
        run = told.run(session, python, "convolutions.py", seconds, *flags, *asked)
        for name, list_ in told.collect(session, what, run).items():
            both.setdefault(name, []).extend(list_)
        session.data(both)
    if not session.setting.simulated:
        for device in both.get("device", ())[:1]:
            session.figure("cuDNN's description of the card", json.dumps(device["description"]))
        peaks(session, both)


@row(order=54, seconds=90, cost=20, again=False,
     depends="tests/gpu/scripts/workspaces.py tests/gpu/scripts/measured.py",
     decides="the simulator's sizes of recurrent layers, of attention and of cuBLAS")
def workspaces(session):
    """Memory of cuBLAS, of recurrent layers and of attention beyond their results."""
    python = session.torch()
    if python is not None:
        run = told.run(session, python, "workspaces.py", 17)
        session.data(told.collect(session, "workspaces", run))


@row(order=56, seconds=90, cost=20, again=False,
     depends="tests/gpu/scripts/kernel_times.py tests/gpu/scripts/measured.py",
     decides="the curves of a model of step times")
def cost_table(session):
    """Times of products, convolutions, attention, operations by element, and of their launches."""
    python = session.torch()
    if python is None:
        return
    found = told.collect(session, "times", told.run(session, python, "kernel_times.py", 17))
    session.data(found)
    for entry in found.get("submissions", ()):
        session.timing(f"{entry['call']}: time of the CPU", f"{entry['us']:.2f} us")


@row(order=46, seconds=90, cost=15, again=False,
     depends="library python tests/gpu/scripts/on_host.py tests/gpu/scripts/measured.py",
     decides="how much the planner and the simulator charge for an operand that stays on the host")
def in_place_torch(session):
    """Products, softmax and the like with operands on host chunks: time, and how often each is
    read."""
    python = session.torch()
    if python is None:
        return
    policy = session.folder / "host.json"
    policy.write_text(json.dumps(POLICY))
    found = told.collect(session, "operations", told.run(
        session, python, "on_host.py", 12, preload=True, options={"SPILLWAY_POLICY": str(policy)}))
    session.data(found)
    for entry in found.get("operations", ()):
        what = f"{entry['operation']}, {' and '.join(entry['on_host'])} on the host"
        session.check(entry["placed"] >= entry["bytes"], f"{what}: where it is",
                      f"{entry['placed']} of {entry['bytes']} bytes there")
        if session.setting.simulated:
            session.unmeasurable(what)
            continue
        session.check(entry["same"], f"{what}: result")
        times = (entry["host_us"] - entry["device_us"]) / max(entry["once_us"], 1e-3)
        session.figure(what, f"{entry['host_us']:.1f} us, on the device "
                       f"{entry['device_us']:.1f} us, one pass {entry['once_us']:.1f} us: "
                       f"{times:.2f} passes more")
