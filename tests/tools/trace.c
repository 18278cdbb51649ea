#include "trace.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 512, LINE_MAX_BYTES = 256, FIELDS = 4 };

static const char header[] = "id,lower,upper,size";

uint64_t trace_rounded(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Four unsigned decimal numbers with commas between them, and nothing else. */
static bool parse_row(const char *line, struct trace_buffer *ret_buffer)
{
    uint64_t field[FIELDS];
    char *end = NULL;

    for (int i = 0; i < FIELDS; i++) {
        if (!isdigit((unsigned char)*line)) {
            return false;
        }
        errno = 0;
        field[i] = strtoull(line, &end, 10);
        if (errno != 0 || *end != (i < FIELDS - 1 ? ',' : '\0')) {
            return false;
        }
        line = end + 1;
    }
    if (field[1] >= field[2] || field[3] == 0 || field[3] > INT64_MAX) {
        return false;
    }
    *ret_buffer = (struct trace_buffer){field[0], field[1], field[2], field[3]};
    return true;
}

static bool append(struct trace *trace, size_t *capacity, struct trace_buffer buffer)
{
    if (trace->count == *capacity) {
        size_t wanted = *capacity == 0 ? 1024 : *capacity * 2;
        struct trace_buffer *grown = realloc(trace->buffers, wanted * sizeof(*grown));

        if (grown == NULL) {
            return false;
        }
        trace->buffers = grown;
        *capacity = wanted;
    }
    trace->buffers[trace->count++] = buffer;
    return true;
}

static bool read_rows(FILE *file, const char *path, struct trace *trace)
{
    char line[LINE_MAX_BYTES];
    size_t capacity = 0;
    unsigned number = 0;

    while (fgets(line, sizeof(line), file) != NULL) {
        struct trace_buffer buffer;

        number++;
        line[strcspn(line, "\r\n")] = '\0';
        if (number == 1 && strcmp(line, header) == 0) {
            continue;
        }
        if (number == 1 || !parse_row(line, &buffer)) {
            fprintf(stderr, "%s: line %u: not a trace: expected %s\n", path, number, header);
            return false;
        }
        if (!append(trace, &capacity, buffer)) {
            fprintf(stderr, "%s: out of memory after %zu buffers\n", path, trace->count);
            return false;
        }
    }
    if (ferror(file)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    if (trace->count == 0) {
        fprintf(stderr, "%s: line %u: not a trace: expected %s\n", path, number + 1, header);
        return false;
    }
    return true;
}

/* At the same time frees go first, then allocations, each in the order of the rows. */
static int compare_events(const void *a, const void *b)
{
    const struct trace_event *x = a;
    const struct trace_event *y = b;

    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    if (x->alloc != y->alloc) {
        return x->alloc ? 1 : -1;
    }
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static bool order_events(struct trace *trace)
{
    uint64_t live_bytes = 0;

    trace->events = calloc(trace->count, 2 * sizeof(*trace->events));
    if (trace->events == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < trace->count; i++) {
        trace->events[2 * (size_t)i] = (struct trace_event){trace->buffers[i].lower, i, true};
        trace->events[2 * (size_t)i + 1] = (struct trace_event){trace->buffers[i].upper, i, false};
    }
    qsort(trace->events, 2 * trace->count, sizeof(*trace->events), compare_events);

    for (size_t i = 0; i < 2 * trace->count; i++) {
        uint64_t bytes = trace_rounded(trace->buffers[trace->events[i].buffer].bytes);

        live_bytes = trace->events[i].alloc ? live_bytes + bytes : live_bytes - bytes;
        if (live_bytes > trace->peak_bytes) {
            trace->peak_bytes = live_bytes;
        }
    }
    return true;
}

bool trace_read(const char *path, struct trace *ret_trace)
{
    struct trace trace = {0};
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    if (!read_rows(file, path, &trace)) {
        goto err_free_trace;
    }
    if (!order_events(&trace)) {
        fprintf(stderr, "%s: out of memory after %zu buffers\n", path, trace.count);
        goto err_free_trace;
    }
    fclose(file);
    *ret_trace = trace;
    return true;

err_free_trace:
    trace_free(&trace);
    fclose(file);
    return false;
}

void trace_free(struct trace *trace)
{
    free(trace->buffers);
    free(trace->events);
    *trace = (struct trace){0};
}
