/* The format of the recording file (docs/reference/recording-format.md), shared by the process that
 * writes it and the command that reads it. All numbers are little-endian. No code. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "common/bounds.h"

#define SPW_RECORD_MAGIC UINT64_C(0x0a0d434552575053) /* "SPWREC", carriage return, line feed */

enum {
    SPW_RECORD_VERSION = 2,
    SPW_RECORD_VERSION_LEAST = 1,        /* oldest version that can be read; it does not record
                                            bytes on the host */
    SPW_RECORD_BLOCK_MAGIC = 0x4b425753, /* "SWBK" */
    SPW_RECORD_HEADER = 4096,            /* bytes before the first block */
    SPW_RECORD_BLOCK = 64 << 10,         /* bytes of a block as a process writes it */
    SPW_RECORD_GROUP = 1 << 20,          /* most bytes of blocks that are compressed together */
    SPW_RECORD_TEXT = 1024,              /* most bytes of a text */
    SPW_RECORD_UNIT_NS = 100,            /* nanoseconds in a unit of time */
    SPW_RECORD_MARK_SHARE = 8,           /* marks and steps may use at most 1/SHARE of the file */
};

/* The reason why the recording is not complete. */
enum spw_record_loss {
    SPW_RECORD_LOSS_NONE,
    SPW_RECORD_LOSS_FULL, /* the file has reached its largest size */
    SPW_RECORD_LOSS_DISK, /* the file system has no room, or refuses to allocate it */
};

/* The events that did not fit. All events from the first lost one on are counted. */
struct spw_record_lost {
    _Atomic uint64_t events;
    _Atomic uint64_t allocs, alloc_bytes, frees;
    _Atomic uint64_t since; /* time of the first lost event, in units */
    _Atomic uint64_t until; /* time of the last lost event */
};

/* The first bytes of the file. The members up to `crc` do not change after the file was created. */
struct spw_record_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* SPW_RECORD_HEADER */
    uint32_t block_bytes;  /* SPW_RECORD_BLOCK */
    int32_t pid;
    int64_t rank;         /* rank in a distributed job; -1: none */
    uint64_t began_ns;    /* nanoseconds from 1970 to time 0 of the recording (CLOCK_REALTIME) */
    uint64_t began_mono;  /* the same moment in CLOCK_MONOTONIC, in nanoseconds */
    uint64_t limit_bytes; /* most bytes of the file */
    uint32_t devices;
    uint32_t unit_ns;          /* SPW_RECORD_UNIT_NS */
    uint32_t crc;              /* CRC-32 of the members before it */
    _Atomic uint32_t complete; /* 1: the process has ended the recording */
    _Atomic uint32_t loss;     /* enum spw_record_loss */
    uint32_t padding;
    _Atomic uint64_t events; /* number of events written */
    struct spw_record_lost lost;
    _Atomic uint64_t live_peak[SPW_DEVICES_MAX]; /* in bytes; includes lost events */
    _Atomic uint64_t lost_marks; /* marks and steps beyond their share of the file; not included in
                                    `lost` */
};

/* How the bytes of a block are stored. */
enum spw_record_codec {
    SPW_RECORD_PLAIN, /* events */
    SPW_RECORD_ZSTD,  /* whole plain blocks, compressed together (RFC 8878) */
};

/* The header of a block, in front of its content. */
struct spw_record_block {
    uint32_t magic;
    uint32_t sequence;     /* number of the block: 0, 1, 2, ... */
    uint32_t stride;       /* bytes from this block to the next one */
    _Atomic uint32_t used; /* bytes of content, as stored */
    uint32_t content;      /* bytes of content after decompression; equal to `used` in a plain
                              block */
    uint16_t codec;        /* enum spw_record_codec */
    uint16_t closed;       /* 1: `crc` is valid; 0: the process was still writing to the block */
    uint64_t time;         /* the time of the first event is relative to this time, in units */
    uint32_t crc;          /* CRC-32 of this header, with 0 as crc, and of the content as stored */
    uint32_t padding;
};

/* An event begins with a byte that contains its kind, and flags for the following members. A member
 * without a flag has the value that it had in the previous event of the block. Before the first
 * event of a block, all values are 0. Numbers are LEB128. Signed numbers are first mapped to
 * unsigned ones (zigzag). */
enum {
    SPW_RECORD_KIND = 0x0f,
    SPW_RECORD_HAS_DEVICE = 0x10,
    SPW_RECORD_HAS_STREAM = 0x20,
    SPW_RECORD_HAS_THREAD = 0x40,
    SPW_RECORD_HAS_MORE = 0x80, /* meaning depends on the kind */
};

/* The kinds of events. Each event begins with its time and the members above. The comments list the
 * values that follow. "address" is the signed difference to the previous address, in units of 256
 * bytes. */
enum spw_record_kind {
    SPW_RECORD_END,    /* end of the block: a byte of zero without a time */
    SPW_RECORD_ALLOC,  /* address, bytes, site; more: flags, low byte of the address, and with
                          SPW_RECORD_ON_HOST the bytes on the host */
    SPW_RECORD_FREE,   /* address; more: low byte of the address */
    SPW_RECORD_TEXT_,  /* number, length, and the bytes */
    SPW_RECORD_SITE,   /* number, api, thread, cut, native frames and Python frames; more: the
                        * classes of its modules */
    SPW_RECORD_MODULE, /* number, base, begin, end, dynamic section, and two texts: build
                        * ID and path */
    SPW_RECORD_STEP,   /* number */
    SPW_RECORD_GAUGES, /* mask, and for each bit the signed difference */
    SPW_RECORD_MOVE,   /* bytes to the host, bytes to the device, nanoseconds; more: the move was
                          predicted */
    SPW_RECORD_RANGE,  /* a range that moved: address, size / 256; more: it moved to the host */
    SPW_RECORD_OOM,    /* bytes, missing bytes, site, live, committed, limit */
    SPW_RECORD_NAME,   /* enum spw_record_named, number, length, and the bytes */
    SPW_RECORD_CALL,   /* a driver call that took long: its number, and nanoseconds */
    SPW_RECORD_USE, /* a submitted call: number of addresses that it names, and each address; more:
                       it launches a kernel */
    SPW_RECORD_KINDS
};

/* The kinds of things that have names. */
enum spw_record_named {
    SPW_RECORD_NAMED_RULE,   /* a rule of the policy, from 1 */
    SPW_RECORD_NAMED_CALL,   /* a function of the driver that spillway calls */
    SPW_RECORD_NAMED_THREAD, /* a thread, by the number that events contain */
    SPW_RECORD_NAMED_ABOUT,  /* a fact about the program, by enum spw_record_about */
    SPW_RECORD_NAMED_OPTION, /* an option that was set, as NAME=VALUE */
    SPW_RECORD_NAMED_MARK,   /* a part of the program that begins (1) or ends (0) at this time */
    SPW_RECORD_NAMED_TAG,    /* the tag of a call site, by the site's number; follows the site's
                                event */
    SPW_RECORD_NAMED_PASS,   /* enum spw_record_pass: a forward pass of a module of PyTorch, which
                                has a mark "module NAME" */
    SPW_RECORD_NAMED_KINDS
};

/* The facts about the program and its machine. */
enum spw_record_about {
    SPW_RECORD_ABOUT_PROGRAM,
    SPW_RECORD_ABOUT_MODE,
    SPW_RECORD_ABOUT_HOST,
    SPW_RECORD_ABOUT_POLICY,
    SPW_RECORD_ABOUT_VERSION,
    SPW_RECORD_ABOUT_CARD, /* the driver's name of device 0; a simulated one is said to be so */
    SPW_RECORD_ABOUT_COUNT
};

/* What is known of a pass (SPILLWAY_RECORD_MODULES). The texts are numbers in hexadecimal digits,
 * with spaces between. */
enum spw_record_pass {
    SPW_RECORD_PASS_TENSORS,  /* the pass that has just ended: its number, the addresses of the
                                 tensors that it returns, a '-', and those of its arguments */
    SPW_RECORD_PASS_BACKWARD, /* the backward pass comes to the module: number of the pass */
};

/* The most addresses of a SPW_RECORD_USE event. */
enum { SPW_RECORD_USED = 192 };

/* The flags of an allocation. */
enum {
    SPW_RECORD_SOURCE = 0x3,   /* enum spw_record_source */
    SPW_RECORD_CHARGED = 0x4,  /* not in the pool, but counts as live */
    SPW_RECORD_ON_HOST = 0x8,  /* at least a part of it is on the host */
    SPW_RECORD_RULE_SHIFT = 4, /* the bits from this one on are the number of the rule that decided,
                                  from 1; 0: none */
};

/* The origin of an allocation. */
enum spw_record_source {
    SPW_RECORD_POOL,    /* allocated by spillway's pool */
    SPW_RECORD_PASSED,  /* allocated by the driver */
    SPW_RECORD_PINNED,  /* page-locked host memory, allocated by the driver */
    SPW_RECORD_CREATED, /* cuMemCreate by the program; the address is only a number */
};

/* The figures of SPW_RECORD_GAUGES, by bit. */
enum spw_record_gauge {
#define SPW_RECORD_GAUGE(name) SPW_RECORD_GAUGE_##name,
#include "record/gauges.def"
    SPW_RECORD_GAUGE_COUNT
};
