/* A trace: when each buffer of a program is allocated and freed, read from a CSV file.
 *
 * The format is described in tests/traces/README.md. No locking: a trace is read once and then
 * only looked at. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_buffer {
    uint64_t id;
    uint64_t lower; /* logical time of the allocation */
    uint64_t upper; /* logical time of the free, after lower */
    uint64_t bytes; /* more than 0 */
};

struct trace_event {
    uint64_t time;
    uint32_t buffer; /* index into the buffers */
    bool alloc;
};

struct trace {
    struct trace_buffer *buffers;
    size_t count;
    struct trace_event *events; /* two for each buffer, in the order of replay */
    uint64_t peak_bytes;        /* highest sum of live buffers, each rounded up to 512 bytes */
};

/* Reads the file. If it cannot be read or is no trace, returns false after one line on stderr with
 * the file and the first bad line; nothing is allocated then. */
bool trace_read(const char *path, struct trace *ret_trace);

void trace_free(struct trace *trace);

/* The size of a buffer as an allocator with an alignment of 512 bytes counts it. */
uint64_t trace_rounded(uint64_t bytes);
