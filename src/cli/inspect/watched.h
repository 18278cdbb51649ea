/* Watches a process that runs under spillway: reads its statistics again and again. The statistics
 * are not trusted. One thread. */
#pragma once

#include "cli/inspect/process.h"
#include "common/counters.h"
#include "stats/stats.h"

/* The counters of all devices at one moment. */
struct spw_cli_look {
    uint64_t time_ms; /* CLOCK_MONOTONIC */
    struct spw_counters counters[SPW_DEVICES_MAX];
};

struct spw_cli_watched {
    int pid;
    uint64_t start; /* start time of the process, in ticks; differs if the pid is reused */
    int stats_file; /* descriptor of a file whose content may change at any time */
    int64_t rank;   /* in a distributed job; -1: none */
    enum spw_control_state control;
    bool simulated; /* the GPU is simulated */
    int device_count;
    char mode[SPW_STATS_NAME];
    char process[SPW_STATS_PATH];
    char policy[SPW_STATS_PATH];
    char sites[SPW_CLI_PROCESS_PATH]; /* path of the file with the call sites; "": there is none */
    struct spw_cli_look before, now;
};

enum spw_cli_watch {
    SPW_CLI_WATCH_OPENED,
    SPW_CLI_WATCH_NO_PROCESS, /* there is no such process */
    SPW_CLI_WATCH_DENIED,     /* this user may not read it */
    SPW_CLI_WATCH_NOTHING,    /* it does not run under spillway, or does not use CUDA yet */
    SPW_CLI_WATCH_PRIVATE,    /* only the process's user and root may open its statistics */
    SPW_CLI_WATCH_FOREIGN,    /* the file of its statistics belongs to another user */
    SPW_CLI_WATCH_CLOSED,     /* the file cannot be opened */
    SPW_CLI_WATCH_VERSION,    /* it runs another version of spillway, or the file is damaged */
    SPW_CLI_WATCH_OTHER,      /* the statistics belong to another process */
};

/* Finds and reads the statistics of a process. If the result is SPW_CLI_WATCH_OPENED, the caller
 * closes *ret_watched. */
enum spw_cli_watch spw_cli_watched_open(int pid, struct spw_cli_watched *ret_watched);
void spw_cli_watched_close(struct spw_cli_watched *watched);

/* Writes a line to stderr that explains why a process could not be opened. */
void spw_cli_watched_complain(const char *command, int pid, enum spw_cli_watch problem);

/* Reads the statistics again. Returns false if they can no longer be read. */
bool spw_cli_watched_read(struct spw_cli_watched *watched);

/* Returns false if the process has ended, even if another process now has the same pid. */
bool spw_cli_watched_lives(const struct spw_cli_watched *watched);

/* Returns true if the process has executed another program. The statistics are then out of date. */
bool spw_cli_watched_replaced(const struct spw_cli_watched *watched);

/* Returns how fast a counter rose between the last two readings, per second. Returns 0 if the
 * counter fell. */
uint64_t spw_cli_watched_rate(const struct spw_cli_watched *watched, const _Atomic uint64_t *now,
                              const _Atomic uint64_t *before);

/* The rate of the counter `name` of one device. */
#define SPW_CLI_RATE(watched, device, name)                                                        \
    spw_cli_watched_rate((watched), &(watched)->now.counters[device].name,                         \
                         &(watched)->before.counters[device].name)

/* Returns true if the process has allocated memory on the device, or tried to. */
bool spw_cli_watched_uses(const struct spw_cli_watched *watched, int device);
