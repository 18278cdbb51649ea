/* Pauses: the device memory of the process moves to the host or to a file, and later back to the
 * same addresses.
 *
 * There are two kinds of pauses. Either the program is held: it waits when it submits work or
 * requests memory. Or the program goes on, and uses its memory on the host.
 *
 * Outcomes are those of requests (stats/stats.h), without ALREADY and WHOLE.
 *
 * Locking: takes the locks of migrate/ and pool/. Only one thread at a time calls these functions,
 * and never from inside a call of the driver. The thread that held the program also ends the
 * pause. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "service/part.h"

struct spw_pause_request {
    struct spw_part part;  /* the memory that moves; must be all memory if `arrived` is set */
    const char *folder;    /* folder of the file that the memory moves to; NULL: the memory moves to
                              the host. Only with `arrived` */
    uint64_t wait_ns;      /* longest wait for the program's calls, and for each device */
    void (*arrived)(void); /* called as barrier.h describes; the program is held until the pause
                              ends. NULL: the program goes on */
};

/* The result of a pause, or of its end. */
struct spw_pause_result {
    enum spw_control_outcome outcome;
    uint64_t moved_bytes; /* moved to the host or the file, or back */
    uint64_t left_bytes;  /* bytes that stay on the devices; after the end of a pause, bytes that
                             stay on the host, or in the file with NO_ROOM or UNREADABLE */
    int error; /* errno of the file; 0: none. With DONE: because of this error, less memory moved */
    bool host_full; /* because the host was full, less memory moved */
    bool undone;    /* the pause failed halfway, and all memory was brought back */
    bool goes_on;   /* after an end: other memory is still paused */
};

/* Holds the program, and waits at most `wait_ns` for its calls and for each device. DONE: all are
 * idle, so a pause can begin. BUSY: they are not idle yet. If *ret_held is then true, the program
 * stays held and the caller calls again. With any other outcome the program is not held. `step`
 * lets one call of the program pass first, because devices may be waiting for work that the program
 * has not submitted yet. */
enum spw_control_outcome spw_service_pause_hold(const struct spw_pause_request *request, bool step,
                                                bool *ret_held);

/* Lets a program go on that is held but not paused. */
void spw_service_pause_let_go(void);

/* Moves memory, and gives free memory back to the driver. If the outcome is not DONE, all memory is
 * where it was, and the program is no longer held. If the pause was undone, earlier pauses have
 * also ended. */
struct spw_pause_result spw_service_pause_begin(const struct spw_pause_request *request);

/* Moves the memory of a part back as long as the devices have room. Memory without room stays
 * usable on the host. If the part is all memory, or the last paused part, this ends the pause: the
 * program goes on, and the memory on the host moves back later. `held`: the program was held, and
 * the part is all memory. NO_ROOM, UNREADABLE: some memory is still in the file, and the program is
 * still held; the caller calls again. */
struct spw_pause_result spw_service_pause_end(const struct spw_part *part, uint64_t wait_ns,
                                              bool held);

/* In a child after fork: forgets the file. */
void spw_service_pause_forget(void);
