/* Asks a process that runs under spillway to pause or to resume. One thread.
 *
 * The request and the answer are stored in the statistics that the process shares (stats/stats.h).
 * The answer is not trusted. Its numbers are clamped to their valid ranges. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/inspect/watched.h"
#include "stats/stats.h"

/* A process that receives requests. */
struct spw_cli_control {
    struct spw_stats_control *shared; /* in the statistics of the process */
    void *mapping;
    size_t bytes;
    uint32_t number; /* of the newest request */
};

struct spw_cli_answer {
    enum spw_control_outcome outcome;
    uint64_t moved_bytes, left_bytes;
    bool host_full;
    int error; /* errno of the file; 0: none */
};

/* Opens a process for requests. The caller closes *ret_control. Returns false if the statistics of
 * the process are not writable. */
bool spw_cli_control_open(const struct spw_cli_watched *watched,
                          struct spw_cli_control *ret_control);
void spw_cli_control_close(struct spw_cli_control *control);

/* Waits at most half a second until the process has started the thread that answers requests. The
 * thread starts after the statistics have been created. Returns false if the thread has not started
 * in time. */
bool spw_cli_control_await_listener(const struct spw_cli_control *control);

/* A request. */
struct spw_cli_request {
    enum spw_control_action action;
    enum spw_control_part part; /* the memory that moves */
    const char *name;   /* name of the part, shorter than SPW_STATS_PART; NULL: all memory */
    const char *folder; /* memory is moved to a file in this folder, shorter than SPW_STATS_PATH;
                         * NULL: memory is moved to the host */
    uint32_t wait_ms;
};

/* Sends a request. */
void spw_cli_control_send(struct spw_cli_control *control, const struct spw_cli_request *request);

/* Waits at most `most_ms` for the answer to the last request. Returns false if there is no answer
 * in time or if the process has ended. */
bool spw_cli_control_await(struct spw_cli_control *control, const struct spw_cli_watched *watched,
                           uint32_t most_ms, struct spw_cli_answer *ret_answer);
