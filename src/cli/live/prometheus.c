#include "cli/live/views.h"

#include "common/utf8.h"
#include "system/create.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GAUGE, PEAK, TOTAL };

/* A counter: name, kind and meaning from counters.def, and its offset in struct spw_counters. */
struct counter {
    const char *name;
    int kind;
    const char *help;
    size_t offset;
};

static const struct counter counters[] = {
#define SPW_COUNTER(name, kind, help) {#name, kind, help, offsetof(struct spw_counters, name)},
#include "common/counters.def"
#undef SPW_COUNTER
};

/* Writes a label's value. Backslashes and quotes are escaped, as the format requires. */
static void put_value(FILE *file, const char *text)
{
    char plain[SPW_STATS_PATH];

    snprintf(plain, sizeof(plain), "%s", text);
    spw_utf8_plain(plain, /* keep */ "");
    for (const char *at = plain; *at != '\0'; at++) {
        if (*at == '\\' || *at == '"') {
            fputc('\\', file);
        }
        fputc(*at, file);
    }
}

static void put_labels(FILE *file, const struct spw_cli_watched *watched, int device)
{
    fprintf(file, "{device=\"%d\",pid=\"%d\",rank=\"", device, watched->pid);
    if (watched->rank >= 0) {
        fprintf(file, "%" PRId64, watched->rank);
    }
    fprintf(file, "\",simulated=\"%s\",mode=\"", watched->simulated ? "true" : "false");
    put_value(file, watched->mode);
    fputs("\",process=\"", file);
    put_value(file, watched->process);
    fputs("\"} ", file);
}

/* The name of a metric. Prometheus counts time in seconds, and a counter's name ends in _total. */
static void write_name(const struct counter *counter, bool is_time, char *ret_name, size_t capacity)
{
    int length = (int)strlen(counter->name) - (is_time ? (int)strlen("_ns") : 0);

    snprintf(ret_name, capacity, "spillway_%.*s%s%s", length, counter->name,
             is_time ? "_seconds" : "", counter->kind == TOTAL ? "_total" : "");
}

static void put_metric(FILE *file, const struct counter *counter,
                       struct spw_cli_watched *const *list, int count)
{
    size_t length = strlen(counter->name);
    bool is_time = length > 3 && strcmp(counter->name + length - 3, "_ns") == 0;
    bool nano = strncmp(counter->help, "nano", strlen("nano")) == 0; /* the metric is in seconds */
    char name[128];

    write_name(counter, is_time, name, sizeof(name));
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, counter->help + (nano ? strlen("nano") : 0),
            name, counter->kind == TOTAL ? "counter" : "gauge");
    for (int i = 0; i < count; i++) {
        for (int device = 0; device < list[i]->device_count; device++) {
            const char *base = (const char *)&list[i]->now.counters[device];
            uint64_t value = spw_counter_get((const _Atomic uint64_t *)(base + counter->offset));

            if (!spw_cli_watched_uses(list[i], device)) {
                continue;
            }
            fputs(name, file);
            put_labels(file, list[i], device);
            if (is_time) {
                fprintf(file, "%.9g\n", (double)value / 1e9);
            } else {
                fprintf(file, "%" PRIu64 "\n", value);
            }
        }
    }
}

static void put_all(FILE *file, struct spw_cli_watched *const *list, int count)
{
    fprintf(file,
            "# HELP spillway_processes processes under spillway that use CUDA\n"
            "# TYPE spillway_processes gauge\nspillway_processes %d\n",
            count);
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        put_metric(file, &counters[i], list, count);
    }
}

bool spw_cli_prometheus_write(const char *path, struct spw_cli_watched *const *list, int count)
{
    char temporary[PATH_MAX];
    int fd = spw_create_beside(path, 0666, temporary, sizeof(temporary));
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good;
    int saved;

    if (file == NULL) {
        saved = errno;
        if (fd >= 0) {
            close(fd);
            (void)unlink(temporary);
        }
        errno = saved;
        return false;
    }
    put_all(file, list, count);
    good = ferror(file) == 0;
    good = fclose(file) == 0 && good && rename(temporary, path) == 0;
    if (!good) {
        saved = errno;
        (void)unlink(temporary);
        errno = saved;
    }
    return good;
}
