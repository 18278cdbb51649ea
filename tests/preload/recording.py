"""Reads a recording (docs/recording.md) in Python: written from the document, and used to check
what the process writes and what the command makes of it."""
import collections
import ctypes
import struct
import zlib

HEADER, BLOCK_HEAD = 4096, 40
KINDS = ["end", "alloc", "free", "text", "site", "module", "step", "gauges", "move", "range", "oom",
         "name", "call"]
NAMED = ["rule", "call", "thread", "about", "option"]
SOURCES = ["pool", "passed", "pinned", "created"]
GAUGES = ["committed_bytes", "host_bytes", "steals", "spilled_bytes", "promoted_bytes",
          "limit_bytes", "host_limit_bytes", "passed_bytes", "pinned_bytes", "moves",
          "abandoned_moves", "stall_ns", "closed_ns", "misses", "driver_calls", "driver_ns"]


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        result = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return result & (2 ** 64 - 1)

    def signed(self):
        number = self.number()
        return number >> 1 ^ -(number & 1)

    def bytes(self):
        length = self.number()
        self.at += length
        return self.data[self.at - length:self.at]

    def text(self):
        return self.bytes().decode(errors="replace")


class Block:
    """A block's events: dicts with kind, time (seconds), device, stream, thread, and more."""

    def __init__(self, content, time):
        self.cursor, self.time = Cursor(content), time
        self.device = self.stream = self.thread = self.address = 0
        self.gauges = collections.defaultdict(lambda: collections.defaultdict(int))

    def low(self, more):
        return self.cursor.number() if more else 0

    def place(self):
        self.address = self.address + self.cursor.signed() & (2 ** 56 - 1)
        return self.address << 8

    def body(self, kind, more):
        number, signed, text = self.cursor.number, self.cursor.signed, self.cursor.text
        if kind == "alloc":
            event = {"address": self.place(), "bytes": number(), "site": number()}
            flags = number() if more else 0
            event["address"] += self.low(more)
            return event | {"source": SOURCES[flags & 3], "charged": bool(flags & 4),
                            "on_host": bool(flags & 8), "rule": flags >> 4}
        if kind == "free":
            return {"address": self.place() + self.low(more)}
        if kind == "text":
            return {"number": number(), "text": text()}
        if kind == "site":
            event = {"number": number(), "api": text(), "role": number(), "cut": number()}
            native, last = [], 0
            for _ in range(number()):
                last = last + signed() & (2 ** 64 - 1)
                native.append(last)
            python = [(number(), number(), number()) for _ in range(number())]
            return event | {"native": native, "python": python}
        if kind == "module":
            return {"number": number(), "base": number(), "begin": number(), "end": number(),
                    "dynamic": number(), "id": self.cursor.bytes(), "path": text()}
        if kind == "step":
            return {"number": number()}
        if kind == "gauges":
            mask, gauges = number(), self.gauges[self.device]
            for bit, name in enumerate(GAUGES):
                if mask >> bit & 1:
                    gauges[name] = gauges[name] + signed() & (2 ** 64 - 1)
            return {"gauges": dict(gauges)}
        if kind == "move":
            return {"to_host": number(), "to_device": number(), "ns": number(), "predicted": more}
        if kind == "range":
            return {"address": self.place(), "bytes": number() << 8, "to_host": more}
        if kind == "oom":
            return dict(zip(("bytes", "missing", "site", "live", "committed", "limit"),
                            (number() for _ in range(6))))
        if kind == "name":
            return {"of": NAMED[number()], "number": number(), "text": text()}
        if kind == "call":
            return {"number": number(), "ns": number()}
        raise ValueError(kind)

    def events(self):
        while self.cursor.at < len(self.cursor.data):
            head = self.cursor.data[self.cursor.at]
            self.cursor.at += 1
            self.time += self.cursor.number()
            self.device = self.cursor.number() if head & 0x10 else self.device
            self.stream = self.cursor.number() if head & 0x20 else self.stream
            self.thread = self.cursor.number() if head & 0x40 else self.thread
            kind = KINDS[head & 15]
            yield {"kind": kind, "time": self.time * 1e-7, "device": self.device,
                   "stream": self.stream, "thread": self.thread,
                   **self.body(kind, bool(head & 0x80))}


def decompress(body, size):
    zstd, plain = ctypes.CDLL("libzstd.so.1"), ctypes.create_string_buffer(size)
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t] * 2
    assert zstd.ZSTD_decompress(plain, size, bytes(body), len(body)) == size
    return plain.raw


class Recording:
    def __init__(self, path):
        data = path.read_bytes()
        (self.magic, self.version, head, block, self.pid, self.rank, self.began_ns, self.began_mono,
         self.limit, self.devices, self.unit_ns, crc, self.complete, self.loss, _, self.written,
         *lost) = struct.unpack_from("<QIIIiqQQQIIIIIIQ6Q", data)
        assert self.magic == 0x0a0d434552575053 and self.version == 1 and head == HEADER, path
        assert zlib.crc32(data[:64]) == crc, f"{path}: checksum of the header"
        self.lost = dict(zip(("events", "allocs", "alloc_bytes", "frees", "since", "until"), lost))
        self.blocks = []
        self.plain_bytes = 0
        self.split(data, HEADER)

    def split(self, data, at, count=0):
        """Collects the plain blocks; stops at what is none."""
        while at + BLOCK_HEAD <= len(data):
            (magic, sequence, stride, used, content, codec, closed, time, crc,
             _) = struct.unpack_from("<IIIIIHHQII", data, at)
            if magic != 0x4b425753:
                return
            body = data[at + BLOCK_HEAD:at + BLOCK_HEAD + used]
            head = data[at:at + 32] + bytes(4) + data[at + 36:at + BLOCK_HEAD]
            assert not closed or zlib.crc32(body, zlib.crc32(head)) == crc, f"block {sequence}"
            if codec == 1:
                self.split(decompress(body, content), 0)
            else:
                self.blocks.append((sequence, closed, time, body))
            at += stride

    def events(self):
        for _, _, time, body in self.blocks:
            yield from Block(body, time).events()
