/* Pauses: the device memory of the process goes to the host or to a file, and comes back to the
 * same addresses.
 *
 * During a pause the program either waits when it submits work or requests memory, or goes on and
 * uses its memory on the host.
 *
 * Outcomes are those of requests (stats/stats.h), without ALREADY and WHOLE.
 *
 * Locking: takes the locks of migrate/ and pool/. Called by one thread at a time, outside of calls
 * of the driver. The thread that held the program also ends the pause. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "service/part.h"

struct spw_pause_request {
    struct spw_part part;  /* the memory that moves; with `arrived`: all memory */
    const char *folder;    /* of the file to move it to; NULL: to the host. Only with `arrived` */
    uint64_t wait_ns;      /* longest time to wait for the program's calls and for each device */
    void (*arrived)(void); /* see barrier.h; the program is held until the end. NULL: it goes on */
};

/* The result of a pause, or of its end. */
struct spw_pause_result {
    enum spw_control_outcome outcome;
    uint64_t moved_bytes; /* to the host or file, or back */
    uint64_t left_bytes;  /* bytes that stay on the devices, or after the end on the host; with
                             NO_ROOM or UNREADABLE: in the file */
    int error; /* errno of the file; 0: none. With DONE: more memory would have moved without it */
    bool host_full; /* the host was full: more memory would have moved */
    bool undone;    /* the pause failed halfway: all memory was brought back */
    bool goes_on;   /* result of an end: other memory is still paused */
};

/* Holds the program, and waits at most `wait_ns` for its calls and for each device: DONE when all
 * are idle, so that a pause can begin. BUSY: not yet; the program stays held if *ret_held, and the
 * caller calls again. `step`: lets one call pass first, since devices may wait for work that is not
 * submitted yet. With any other outcome the program is not held. */
enum spw_control_outcome spw_service_pause_hold(const struct spw_pause_request *request, bool step,
                                                bool *ret_held);

/* Lets a program go on that is held but not paused. */
void spw_service_pause_let_go(void);

/* Moves memory, and gives free memory to the driver. If the outcome is not DONE, memory is as
 * before, and the program is no longer held. If the pause was undone, earlier pauses have also
 * ended. */
struct spw_pause_result spw_service_pause_begin(const struct spw_pause_request *request);

/* Brings memory of a part back while the devices have room. Memory without room stays usable on the
 * host. For all memory, or the last paused part, this ends the pause: memory on the host comes back
 * later, and the program goes on. `held`: the program was held, and the part is all memory.
 * NO_ROOM, UNREADABLE: some memory is still in the file and the program is still held; the caller
 * calls again. */
struct spw_pause_result spw_service_pause_end(const struct spw_part *part, uint64_t wait_ns,
                                              bool held);

/* In a child after fork: forgets the file. */
void spw_service_pause_forget(void);
