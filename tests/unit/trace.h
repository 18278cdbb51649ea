/* Reads the lifetime traces of tests/traces as a list of events in replay order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct trace_event {
    uint64_t time;
    uint32_t buffer; /* row number */
    int is_alloc;
};

struct trace {
    struct trace_event *events;
    uint64_t *sizes; /* per buffer, bytes */
    size_t event_count, buffer_count;
    uint64_t peak_live; /* bytes, sizes rounded up to 512 */
};

/* 0 on success. */
int trace_read(const char *path, struct trace *ret_trace);
void trace_free(struct trace *trace);
