#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_replay_order(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;

    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    if (x->is_alloc != y->is_alloc) {
        return x->is_alloc - y->is_alloc;
    }
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static void add(struct trace *trace, uint64_t lower, uint64_t upper, uint64_t size)
{
    size_t i = trace->buffer_count++;

    trace->sizes = realloc(trace->sizes, trace->buffer_count * sizeof(*trace->sizes));
    trace->events = realloc(trace->events, trace->buffer_count * 2 * sizeof(*trace->events));
    trace->sizes[i] = size;
    trace->events[2 * i] = (struct trace_event){lower, (uint32_t)i, 1};
    trace->events[2 * i + 1] = (struct trace_event){upper, (uint32_t)i, 0};
    trace->event_count = trace->buffer_count * 2;
}

int trace_read(const char *path, struct trace *ret_trace)
{
    struct trace trace = {0};
    uint64_t id, lower, upper, size, live = 0;
    FILE *file = fopen(path, "r");
    char line[256];

    if (file == NULL) {
        return 1;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64, &id, &lower, &upper,
                   &size) == 4) {
            add(&trace, lower, upper, size);
        }
    }
    fclose(file);
    qsort(trace.events, trace.event_count, sizeof(*trace.events), by_replay_order);
    for (size_t i = 0; i < trace.event_count; i++) {
        uint64_t bytes = (trace.sizes[trace.events[i].buffer] + 511) / 512 * 512;

        live = trace.events[i].is_alloc ? live + bytes : live - bytes;
        trace.peak_live = live > trace.peak_live ? live : trace.peak_live;
    }
    *ret_trace = trace;
    return 0;
}

void trace_free(struct trace *trace)
{
    free(trace->events);
    free(trace->sizes);
    memset(trace, 0, sizeof(*trace));
}
