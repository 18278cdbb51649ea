/* A request for memory and its result have the same form from the driver call down to the heaps.
 *
 * The pool reads a request only during the call. It does not interpret `site`, `context` and `api`.
 * Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct spw_stream;

/* Numbered heaps that a request can choose, from 1 to this number. */
enum { SPW_POOL_HEAPS = 8 };

/* The place that is requested for a block, and the block's account. */
struct spw_pool_placement {
    uint64_t limit_bytes;   /* most bytes of the account on the device; UINT64_MAX: no limit */
    int32_t priority;       /* blocks of higher priority stay on the device longer */
    uint32_t host_permille; /* share of the block that is on the host, rounded to whole granules */
    uint8_t account;        /* number of the account, from 1; 0: none */
    uint8_t heap;           /* number of a numbered heap, from 1; 0: none */
    bool fixed;             /* never moved */
    bool lazy;              /* gets its memory when spw_pool_commit is called */
    bool uncounted;         /* with `lazy`: counts as live only when it has memory */
    bool on_host;           /* the whole block is on the host */
    bool on_device;         /* callers must not set `may_spill`, and must not use the host
                               instead */
};

struct spw_request {
    uint64_t bytes;                  /* more than 0 */
    const struct spw_stream *stream; /* NULL: without a stream */
    void *context;                   /* the context that is current at the call */
    const char *api;                 /* name of the function that was called, without its version */
    uint32_t site;                   /* call site that is charged; 0: none */
    const struct spw_pool_placement *placement; /* NULL: the pool chooses */
    bool may_spill; /* bytes that do not fit on the device may be on the host, up to the host's
                       limit; the tier of the placement is ignored */
    bool may_move;  /* other blocks may be moved to make room; the pool itself does not do this */
};

/* Set only on success. */
struct spw_result {
    uint64_t address;
    uint64_t host_bytes; /* the part of the block that is on the host */
    bool uncounted;      /* the block does not count as live yet */
};
