"""cuDNN's own words: its description of the device, and the engines that are tried."""
import contextlib
import ctypes
import re

SUCCESS = 0
# cudnn_graph.h
DEVICE_DESCRIPTOR = 38
DEVICE_ID, JSON_TEXT = 2700, 2702
TYPE_INT32, TYPE_CHAR = 23, 24
INFO = 1 << 3
TEXT_BYTES = 1 << 16
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
PLAN = re.compile(r"function cudnnBackendFinalize\(\) called:\s+descriptor: "
                  r"type=CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:")
ENGINE = re.compile(r"engine_id: type=int; val=(\d+);")


def library():
    """The libcudnn that PyTorch has loaded."""
    return ctypes.CDLL("libcudnn.so.9")


def check(status, what):
    if status != SUCCESS:
        raise RuntimeError(f"{what}: cuDNN's status {status}")


def descriptor_of_device(cudnn, attribute, kind, count, value):
    """A description of a device, made of its number or of a text."""
    found = ctypes.c_void_p()
    check(cudnn.cudnnBackendCreateDescriptor(DEVICE_DESCRIPTOR, ctypes.byref(found)), "create")
    check(cudnn.cudnnBackendSetAttribute(found, attribute, kind, ctypes.c_int64(count), value),
          "set the device")
    check(cudnn.cudnnBackendFinalize(found), "finalise the description of the device")
    return found


def text_of(cudnn, descriptor):
    """The description as JSON."""
    count, text = ctypes.c_int64(), ctypes.create_string_buffer(TEXT_BYTES)
    check(cudnn.cudnnBackendGetAttribute(descriptor, JSON_TEXT, TYPE_CHAR,
                                         ctypes.c_int64(TEXT_BYTES), ctypes.byref(count), text),
          "get the description of the device")
    return text.value.decode()


def description():
    """What cuDNN knows of device 0, as the JSON that it takes for a device that is not there."""
    cudnn = library()
    device = descriptor_of_device(cudnn, DEVICE_ID, TYPE_INT32, 1,
                                  ctypes.byref(ctypes.c_int32(0)))
    return text_of(cudnn, device)


def message(address):
    """The text of a message: lines that each end with a zero, and an empty one."""
    lines = []
    while True:
        line = ctypes.string_at(address)
        if not line:
            return "\n".join(lines)
        lines.append(line.decode(errors="replace"))
        address += len(line) + 1


def engine_of(text):
    """The number of the engine whose plan is about to be made, or None for another message."""
    found = ENGINE.search(text) if PLAN.search(text) else None
    return int(found.group(1)) if found else None


@contextlib.contextmanager
def engines():
    """A list that gets the number of each engine for which a plan is made meanwhile."""
    found = []

    def hear(severity, data, about, text):
        engine = engine_of(message(text))
        if engine is not None:
            found.append(engine)
    heard = CALLBACK(hear)
    cudnn = library()
    check(cudnn.cudnnSetCallback(ctypes.c_uint(INFO), None, heard), "set the callback")
    try:
        yield found
    finally:
        cudnn.cudnnSetCallback(ctypes.c_uint(0), None, CALLBACK(0))
