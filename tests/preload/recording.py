"""Reads a recording (docs/reference/recording-format.md) in Python: written from the document, and
used to check what the process writes and what the command makes of it."""
import collections
import ctypes
import struct
import zlib

HEADER, BLOCK_HEAD, LOST_MARKS = 4096, 40, 648
KINDS = ["end", "alloc", "free", "text", "site", "module", "step", "gauges", "move", "range", "oom",
         "name", "call", "use"]
NAMED = ["rule", "call", "thread", "about", "option", "mark", "tag", "pass"]
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

    def __init__(self, content, time, version):
        self.cursor, self.time, self.version = Cursor(content), time, version
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
            host = 0 if not flags & 8 else number() if self.version > 1 else event["bytes"]
            return event | {"source": SOURCES[flags & 3], "charged": bool(flags & 4),
                            "host_bytes": host, "rule": flags >> 4}
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
            return event | {"native": native, "python": python, "modules": number() if more else 0}
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
        if kind == "use":
            return {"addresses": [self.place() for _ in range(number())], "kernel": more}
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
        assert self.magic == 0x0a0d434552575053 and self.version in (1, 2) and head == HEADER, path
        assert zlib.crc32(data[:64]) == crc, f"{path}: checksum of the header"
        self.lost = dict(zip(("events", "allocs", "alloc_bytes", "frees", "since", "until"), lost))
        (self.lost_marks,) = struct.unpack_from("<Q", data, LOST_MARKS)
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
            yield from Block(body, time, self.version).events()


# ---- writing ----

def encode(number):
    """LEB128."""
    result = bytearray()
    while number >= 0x80:
        result.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(result + bytes([number]))


def zigzag(number):
    return encode(number << 1 if number >= 0 else -number * 2 - 1)


class Writer:
    """A recording made by hand, in plain blocks."""

    def __init__(self, pid=4711, rank=-1, devices=1, version=2):
        self.version = version
        self.fields = [pid, rank, 1_700_000_000_000_000_000, 5_000_000_000, 256 << 20, devices, 100]
        self.blocks, self.events, self.complete, self.loss = [], 0, 1, 0
        self.lost, self.peaks, self.lost_marks = [0] * 6, [0] * 64, 0
        self.begin(0)

    def begin(self, time):
        self.blocks.append([time, bytearray()])
        self.time, self.address = time, 0
        self.gauges = {}

    def event(self, kind, time, body, device=0, stream=0, thread=0, more=False):
        """An event of device, stream and thread as given, which are always written."""
        head = KINDS.index(kind) | 0x70 | (0x80 if more else 0)
        self.blocks[-1][1] += (bytes([head]) + encode(time - self.time) + encode(device) +
                               encode(stream) + encode(thread) + body)
        self.time = time
        self.events += 1

    def place(self, address):
        units, last, self.address = address >> 8, self.address, address >> 8
        return zigzag(units - last)

    def alloc(self, time, address, size, site, flags=0, host=0, **where):
        """A block, `host` bytes of it on the host."""
        low = address & 255
        flags |= 8 if host else 0
        more = bool(flags or low)
        self.event("alloc", time, self.place(address) + encode(size) + encode(site) +
                   (encode(flags) + encode(low) if more else b"") +
                   (encode(host) if host and self.version > 1 else b""), more=more, **where)

    def free(self, time, address, **where):
        low = address & 255
        self.event("free", time, self.place(address) + (encode(low) if low else b""),
                   more=bool(low), **where)

    def use(self, time, *addresses, kernel=True, **where):
        self.event("use", time, encode(len(addresses)) +
                   b"".join(self.place(address) for address in addresses), more=kernel, **where)

    def text(self, number, text):
        self.event("text", self.time, encode(number) + self.bytes(text))

    @staticmethod
    def bytes(text):
        data = text if isinstance(text, bytes) else text.encode()
        return encode(len(data)) + data

    def site(self, number, api, role, python, native=(), modules=0):
        body, last = encode(number) + self.bytes(api) + encode(role) + encode(0), 0
        body += encode(len(native))
        for frame in native:
            body, last = body + zigzag(frame - last), frame
        body += encode(len(python)) + b"".join(encode(value) for line in python for value in line)
        body += encode(modules) if modules else b""
        self.event("site", self.time, body, more=modules != 0)

    def gauge(self, time, device=0, **figures):
        mask, body = 0, b""
        for bit, name in enumerate(GAUGES):
            if name in figures:
                mask |= 1 << bit
                body += zigzag(figures[name] - self.gauges.get((device, name), 0))
                self.gauges[device, name] = figures[name]
        self.event("gauges", time, encode(mask) + body, device=device)

    def name(self, what, number, text):
        self.event("name", self.time, encode(NAMED.index(what)) + encode(number) + self.bytes(text))

    def data(self):
        fixed = struct.pack("<QIIIiqQQQII", 0x0a0d434552575053, self.version, HEADER, 1 << 16,
                            *self.fields)
        head = fixed + struct.pack("<IIIIQ6Q64QQ", zlib.crc32(fixed), self.complete, self.loss, 0,
                                   self.events, *self.lost, *self.peaks, self.lost_marks)
        result = head + bytes(HEADER - len(head))
        for sequence, (time, body) in enumerate(self.blocks):
            values = [0x4b425753, sequence, BLOCK_HEAD + len(body), len(body), len(body), 0, 1,
                      time, 0, 0]
            pack = struct.Struct("<IIIIIHHQII").pack
            values[8] = zlib.crc32(body, zlib.crc32(pack(*values)))
            result += pack(*values) + body
        return result


def sample(version=2):
    """A small recording with an event of every kind: two devices, a move, out of memory."""
    mib, writer = 1 << 20, Writer(rank=3, devices=2, version=version)
    for number, text in {0: "python train.py", 1: "tensor", 2: "node7",
                         5: "NVIDIA H200, simulated"}.items():
        writer.name("about", number, text)
    writer.name("call", 0, "cuMemCreate")
    writer.name("rule", 1, "weights")
    writer.name("thread", 0, "main")
    writer.name("thread", 1, "pt_autograd_0")
    for number, text in {8: "main", 16: "/home/me/train.py", 24: "forward", 32: "step",
                         40: "/lib/python3/site-packages/torch/functional.py", 48: "soft;max",
                         56: "pt_autograd_0", 64: "<module>"}.items():
        writer.text(number, text)
    main = (16, 64, 80)
    writer.site(5, "cudaMallocAsync", 8, [(40, 48, 2159), (16, 24, 39), main])
    writer.site(7, "cudaMallocAsync", 8, [(16, 32, 42), main])
    writer.site(9, "cuMemAlloc", 56, [])
    base = 0x7f0000000000
    writer.gauge(1000, limit_bytes=64 * mib, committed_bytes=16 * mib, driver_calls=9,
                 driver_ns=123456)
    writer.alloc(2000, base, 8 * mib, 5, stream=1)
    writer.alloc(3000, base + 8 * mib, 1000, 7, stream=1)
    writer.event("call", 3500, encode(0) + encode(57000))
    writer.alloc(4000, base + 16 * mib, 4 * mib, 9, flags=1 << 4, host=4 * mib, stream=2, thread=1)
    writer.event("step", 5000, encode(1))
    writer.name("mark", 1, "eval\n1")
    writer.free(6000, base + 8 * mib, stream=1)
    writer.event("move", 7000, encode(8 * mib) + encode(0) + encode(250000))
    writer.event("range", 7000, writer.place(base) + encode(8 * mib >> 8), more=True)
    writer.gauge(7000, host_bytes=8 * mib, spilled_bytes=8 * mib, moves=1, steals=4,
                 closed_ns=250000)
    writer.begin(8000)
    writer.alloc(9000, base + 32 * mib, 2 * mib, 7, device=1, stream=3)
    writer.name("mark", 0, "eval\n1")
    writer.name("mark", 0, "never begun")
    writer.name("mark", 1, "save")
    writer.alloc(9500, 0x555500001010, 3 * mib, 0, flags=3 | 4)
    writer.event("oom", 10000, encode(60 * mib) + encode(5 * mib) + encode(5) + encode(15 * mib) +
                 encode(16 * mib) + encode(64 * mib), stream=1)
    writer.free(11000, base, stream=1)
    writer.free(12000, base + 99 * mib, stream=1)
    writer.free(13000, 0x555500001010)
    writer.alloc(14000, 0x600000, 4096, 0, flags=2)
    writer.complete, writer.loss = 0, 1
    writer.lost, writer.peaks[1] = [5, 2, 3 * mib, 3, 15000, 16000], 7 * mib
    writer.lost_marks = 4
    return writer
