/* Wishes: what a rule of a policy says of a block when it is allocated; and tallies: what the
 * blocks of each rule come to.
 *
 * A rule is a number from 1 on that whoever allocates gives; the pool knows no more of it. Wishes
 * are read only while the call lasts. Tallies are written with the pool's lock held, `unmet` by
 * anybody; all of it may be read at any time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"

struct spw_pool;
struct spw_stream;

enum { SPW_RULES = 64, SPW_REGIONS = 8 };

struct spw_pool_placement {
    uint64_t most_bytes;    /* of the rule's blocks on the device; UINT64_MAX: no limit */
    int32_t priority;       /* see extent.h */
    uint32_t host_permille; /* of the block that is to be on the host, in whole granules */
    uint8_t rule;
    uint8_t region; /* from 1; 0: none */
    bool fixed;     /* never moved */
    bool lazy;      /* backed when the device is first given work */
    bool on_host;   /* all of it is to be on the host */
    bool on_device; /* nothing of it may be, by spw_pool_alloc_wish's caller */
};

/* Figures of one rule on one device, in bytes where they do not count. */
struct spw_tally {
    _Atomic uint64_t matched; /* allocations that the rule decided and that were had */
    _Atomic uint64_t refused; /* that its limit refused */
    _Atomic uint64_t live;    /* blocks, rounded up to 512 bytes, on any tier */
    _Atomic uint64_t live_peak;
    _Atomic uint64_t host; /* the part of live that was placed on the host */
    _Atomic uint64_t host_peak;
    _Atomic uint64_t spilled;  /* moved to the host since */
    _Atomic uint64_t promoted; /* and back */
    _Atomic uint64_t unmet;    /* allocations that did not get what the rule wishes */
};

/* Allocates like spw_pool_alloc_for what a rule has wishes for (NULL: none does). With `anywhere`,
 * what the device has no room for is on the host, as far as the host's limit goes: *ret_host_bytes
 * of the block; where the rule wishes it to be does not matter then. SPW_E_QUOTA when the rule's
 * limit refuses, SPW_E_NO_MEMORY when what is to be on the host has no room there. */
enum spw_err spw_pool_alloc_wish(struct spw_pool *pool, uint64_t bytes,
                                 const struct spw_stream *stream, void *context, uint32_t site,
                                 const struct spw_pool_placement *placement, bool anywhere,
                                 uint64_t *ret_address, uint64_t *ret_host_bytes);

/* Enters memory that is the program's own (its cuMemCreate) in the tally of a rule, or takes it out
 * again. SPW_E_QUOTA when the rule's limit refuses; the memory is not charged here. */
enum spw_err spw_pool_tally_add(struct spw_pool *pool, const struct spw_pool_placement *placement,
                                uint64_t bytes, bool host);
void spw_pool_tally_remove(struct spw_pool *pool, uint8_t rule, uint64_t bytes, bool host);

/* What was entered as on the host is on the device after all, whatever the rule's limit. */
void spw_pool_tally_return(struct spw_pool *pool, uint8_t rule, uint64_t bytes);
