/* Pauses: the device memory of the process goes to the host, and comes back to the same addresses.
 *
 * Meanwhile the program waits, when it submits work or requests memory; or it goes on and uses its
 * memory on the host.
 *
 * Locking: those of migrate/ and pool/, inside. One thread at a time, which is not inside a call of
 * the driver; the thread that held the program ends the pause as well. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spw_pause_outcome {
    SPW_PAUSE_DONE,
    SPW_PAUSE_UNUSED,     /* no device memory is in use */
    SPW_PAUSE_IMPOSSIBLE, /* memory cannot move to the host: spilling is off or does not work */
    SPW_PAUSE_CAPTURING,  /* a capture is open, or a library submits work that is not seen */
    SPW_PAUSE_BUSY,       /* the device did not become idle in time */
};

/* The result of a pause, or of its end. */
struct spw_pause_result {
    enum spw_pause_outcome outcome;
    uint64_t moved_bytes; /* to the host, or back */
    uint64_t left_bytes;  /* that stay on the devices, or on the host */
    bool host_full;       /* more would have moved */
    bool undone;          /* it failed halfway: all memory was brought back */
};

/* Moves memory, of one rule of the policy or with 0 of all, to the host and gives what is free to
 * the driver. Waits at most `wait_ns` for the program's calls and for each device. `arrived`
 * (barrier.h): the program is held until spw_serve_pause_end; NULL: it goes on. Unless the outcome
 * is DONE, nothing has changed, but that earlier pauses have ended too if it was undone. */
struct spw_pause_result spw_serve_pause_begin(uint8_t rule, uint64_t wait_ns,
                                              void (*arrived)(void));

/* Brings memory back as far as the devices have room, and lets the program go on. What has no room
 * stays usable on the host. `held`: the program was held. */
struct spw_pause_result spw_serve_pause_end(uint64_t wait_ns, bool held);
