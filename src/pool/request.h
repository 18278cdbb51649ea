/* A request for memory and its result, in one form from the driver call down to the heaps.
 *
 * The pool reads a request only during the call. It does not interpret `site`, `context` and `api`.
 * Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct spw_stream;

/* Heaps that a request can choose by number, from 1 to this. */
enum { SPW_POOL_HEAPS = 8 };

/* The requested place of a block, and its account. */
struct spw_pool_placement {
    uint64_t limit_bytes;   /* most bytes of the account on the device; UINT64_MAX: no limit */
    int32_t priority;       /* blocks of higher priority stay on the device longer */
    uint32_t host_permille; /* share of the block on the host, rounded to whole granules */
    uint8_t account;        /* number of the account, from 1; 0: none */
    uint8_t heap;           /* number of a numbered heap, from 1; 0: none */
    bool fixed;             /* never moved */
    bool lazy;              /* backed when spw_pool_commit is called */
    bool uncounted;         /* with `lazy`: counts as live only when backed */
    bool on_host;           /* all of the block is on the host */
    bool on_device;         /* callers must not set `may_spill`, nor take the host instead */
};

struct spw_request {
    uint64_t bytes;                  /* more than 0 */
    const struct spw_stream *stream; /* NULL: without a stream */
    void *context;                   /* current at the call */
    const char *api;                 /* the function that was called, without its version */
    uint32_t site;                   /* call site that is charged; 0: none */
    const struct spw_pool_placement *placement; /* NULL: the pool chooses */
    bool may_spill; /* bytes that do not fit on the device may be on the host, up to its limit; the
                     * placement's tier is ignored */
    bool may_move;  /* other blocks may be moved to make room, but not by the pool */
};

/* Set on success only. */
struct spw_result {
    uint64_t address;
    uint64_t host_bytes; /* bytes of the block on the host */
    bool uncounted;      /* the block does not count as live yet */
};
