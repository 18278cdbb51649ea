/* A running process under spillway whose statistics are read repeatedly and are not trusted. One
 * thread. */
#pragma once

#include "cli/inspect/process.h"
#include "common/counters.h"
#include "stats/stats.h"

/* The counters of all devices at one time. */
struct spw_cli_look {
    uint64_t time_ms; /* CLOCK_MONOTONIC */
    struct spw_counters counters[SPW_DEVICES_MAX];
};

struct spw_cli_watched {
    int pid;
    uint64_t start; /* of the process, in ticks; shows if the pid is reused */
    int stats_file; /* whose content may change at any time */
    int64_t rank;   /* in a distributed job; -1: none */
    enum spw_control_state control;
    bool simulated; /* the GPU is simulated */
    int device_count;
    char mode[SPW_STATS_NAME];
    char process[SPW_STATS_PATH];
    char policy[SPW_STATS_PATH];
    char sites[SPW_CLI_PROCESS_PATH]; /* path of the call sites' file; "": there is none */
    struct spw_cli_look before, now;
};

enum spw_cli_watch {
    SPW_CLI_WATCH_OPENED,
    SPW_CLI_WATCH_NO_PROCESS, /* there is no such process */
    SPW_CLI_WATCH_DENIED,     /* this user may not read it */
    SPW_CLI_WATCH_NOTHING,    /* it does not run under spillway, or does not use CUDA yet */
    SPW_CLI_WATCH_PRIVATE,    /* only its user and root may open its statistics */
    SPW_CLI_WATCH_FOREIGN,    /* the file of its statistics belongs to another user */
    SPW_CLI_WATCH_CLOSED,     /* the file cannot be opened */
    SPW_CLI_WATCH_VERSION,    /* it runs another version of spillway, or the file is damaged */
    SPW_CLI_WATCH_OTHER,      /* the statistics belong to another process */
};

/* Finds the statistics of a process and reads them. If OPENED, the caller closes the process. */
enum spw_cli_watch spw_cli_watched_open(int pid, struct spw_cli_watched *ret_watched);
void spw_cli_watched_close(struct spw_cli_watched *watched);

/* Writes a line on stderr about a process that could not be opened. */
void spw_cli_watched_complain(const char *command, int pid, enum spw_cli_watch problem);

/* Reads the statistics again. False when they can no longer be read. */
bool spw_cli_watched_read(struct spw_cli_watched *watched);

/* False when the process has ended, even if another process has its pid. */
bool spw_cli_watched_lives(const struct spw_cli_watched *watched);

/* True if the process has executed another program, so that the statistics are out of date. */
bool spw_cli_watched_replaced(const struct spw_cli_watched *watched);

/* The rise of a counter per second between the last two readings; 0 when it fell. */
uint64_t spw_cli_watched_rate(const struct spw_cli_watched *watched, const _Atomic uint64_t *now,
                              const _Atomic uint64_t *before);

/* The rate of the counter `name` of one device. */
#define SPW_CLI_RATE(watched, device, name)                                                        \
    spw_cli_watched_rate((watched), &(watched)->now.counters[device].name,                         \
                         &(watched)->before.counters[device].name)

/* True when the process has used memory of the device, or tried to. */
bool spw_cli_watched_uses(const struct spw_cli_watched *watched, int device);
