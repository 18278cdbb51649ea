#!/usr/bin/env python3
"""Small cubins and fat binaries as nvcc writes them, for tests; see src/sim/driver/code/fatbin.h
and layouts.h.

    fatbins.py FOLDER     writes those of tests/sim/test_layouts.c
    fatbins.py --corpus   prints those that tests/fuzz begins with, as lines of its corpus

Compressed ones are left out where the library is not installed.
"""
import ctypes
import pathlib
import struct
import sys

PLAIN, LZ4, ZSTD = "plain", "lz4", "zstd"
FLAGS = {PLAIN: 0x11, LZ4: 0x2011, ZSTD: 0x8011}
EXACT = 0x100000

# Kernels and their parameters, as (offset, size).
KERNELS = {
    "_Z5scalePfi": [(0, 8), (8, 4)],                        # scale(float*, int)
    "_Z3mulIfEvPT_8MetadataILi2EL4Kind3EEPKS0_": [(0, 8), (8, 16), (24, 8)],
    "_Z3box6Struct": [(0, 8)],                              # box(Struct): one pointer in a struct
    "_Z4nonev": [],
    "_Z5otherPfS_": [(0, 40)],                              # the code does not fit the name
    "plain": [(0, 8), (8, 8), (16, 24)],                    # no types in the name
    "large": [(0, 8), (8, 4800)],
}


def record(kind, value):
    """One with a value of its own length."""
    return struct.pack("<BBH", 4, kind, len(value)) + value


def info(params):
    """The content of a section .nv.info.NAME; parameters are in reverse order."""
    data = record(0x37, struct.pack("<I", 130)) + struct.pack("<BBH", 3, 0x1b, 255)
    large = sum(size for _, size in params) > 4096
    for ordinal, (offset, size) in reversed(list(enumerate(params))):
        head = struct.pack("<IHH", 0, ordinal, offset)
        data += (record(0x45, head + struct.pack("<HH", size, 0)) if large else
                 record(0x17, head + struct.pack("<I", size << 18 | 0x1f000)))
    return data + struct.pack("<BBH", 1, 0x35, 0) + struct.pack("<BBH", 2, 0x4c, 1)


def cubin(kernels, change=lambda name, data: data):
    """An ELF file; `change` may replace the content of a section."""
    names, texts, symbols = b"\0", b"\0", bytes(24)
    parts = []  # (name, type, flags, content)
    for index, (name, params) in enumerate(kernels.items()):
        symbols += struct.pack("<IBBHQQ", len(texts), 0x12, 0, 4 + 2 * index, 0, 16)
        texts += name.encode() + b"\0"
        parts += [(".text." + name, 1, 6, bytes(16)), (".nv.info." + name, 0x70000000, 0,
                                                      info(params))]
    parts = [(".shstrtab", 3, 0, None), (".strtab", 3, 0, texts), (".symtab", 2, 0, symbols),
             *parts]
    names += b"".join(part[0].encode() + b"\0" for part in parts)
    offset, heads, content, place = 64, bytes(64), b"", 1
    for name, kind, flags, data in parts:
        data = change(name, names if data is None else data)
        heads += struct.pack("<IIQQQQIIQQ", place, kind, flags, 0, offset + len(content), len(data),
                             2 if kind == 2 else 0, 0, 1, 24 if kind == 2 else 0)
        content += data
        place += len(name) + 1
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, offset + len(content), 0, 64, 56, 0, 64, len(parts) + 1,
        1)
    return head + content + heads


def packed(data, packing):
    """None where the library is missing."""
    if packing == PLAIN:
        return data
    try:
        library = ctypes.CDLL("libzstd.so.1" if packing == ZSTD else "liblz4.so.1")
    except OSError:
        return None
    room = ctypes.create_string_buffer(2 * len(data) + 1024)
    if packing == ZSTD:
        library.ZSTD_compress.restype = ctypes.c_size_t
        count = library.ZSTD_compress(room, ctypes.c_size_t(len(room)), data,
                                      ctypes.c_size_t(len(data)), 19)
    else:
        count = library.LZ4_compress_default(data, room, len(data), len(room))
    return room.raw[:count]


def entry(data, arch, packing=PLAIN, kind=2, flags=0, full=None):
    """One for an architecture; None where the library is missing. The later ones have longer heads,
    and `full` is a false size of what is packed."""
    payload = packed(data, packing)
    if payload is None:
        return None
    padded = payload.ljust(-(-len(payload) // 8) * 8, b"\0")
    head_bytes = 112 if arch >= 100 else 64
    is_plain = packing == PLAIN
    head = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, head_bytes, len(padded),
                       0 if is_plain else len(payload), 0, 8, 1, arch, 0, 0, FLAGS[packing] | flags,
                       0, 0 if is_plain else full or len(data))
    return head.ljust(head_bytes, b"\0") + padded


def fatbin(*entries):
    """None where one of the entries is."""
    if None in entries:
        return None
    data = b"".join(entries)
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(data)) + data


def for_arch(number, packing=PLAIN, **more):
    """An entry whose kernel tells the architecture by the place of its parameter."""
    arch = int(number.rstrip("a"))
    return entry(cubin({"where": [(0, 4), (arch, 4)], number: []}), arch, packing,
                 flags=EXACT if number.endswith("a") else 0, **more)


def files():
    whole = cubin(KERNELS)
    yield "cubin", whole
    for packing in FLAGS:
        yield packing, fatbin(entry(whole, 90, packing), entry(b".version 9.0\n", 90, kind=1))
    yield "choice", fatbin(*map(for_arch, ("75", "80", "90", "90a", "86", "100a", "120")))
    yield "elsewhere", fatbin(for_arch("120"))
    yield "later", fatbin(for_arch("120"), entry(b".version 9.0\n", 80, kind=1),
                          entry(b".version 9.0\n", 75, kind=1))
    yield "text", fatbin(entry(b".version 9.0\n", 90, kind=1))
    yield "too_short", fatbin(entry(whole, 90, ZSTD, full=100))
    yield "too_long", fatbin(entry(whole, 90, ZSTD, full=1 << 62))
    yield "not_packed", fatbin(entry(whole, 90)[:40] + struct.pack("<Q", FLAGS[ZSTD]) +
                               entry(whole, 90)[48:])


def twice(name, data):
    """Ordinal 0 of a kernel's parameters twice."""
    return data.replace(struct.pack("<HH", 1, 8), struct.pack("<HH", 0, 8)) \
        if "info" in name else data


def corpus():
    small = {"_Z5scalePfi": [(0, 8), (8, 4)], "k": []}
    yield cubin(small)
    yield cubin(small, twice)
    yield cubin({"l": [(0, 8), (8, 4800)]})
    for packing in FLAGS:
        yield fatbin(entry(cubin(small), 90, packing))
    yield fatbin(for_arch("80"), for_arch("90a", ZSTD), for_arch("100", LZ4))
    yield fatbin(entry(cubin(small), 90, ZSTD, full=1 << 40), entry(b"?", 90, kind=1))


def main():
    if sys.argv[1:] == ["--corpus"]:
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))
        import fuzz  # pylint: disable=import-outside-toplevel
        print("".join(fuzz.encode(data) for data in corpus() if data), end="")
        return
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files():
        if data:
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
