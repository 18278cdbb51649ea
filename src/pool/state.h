/* The pool's own state, shared by the files that implement pool.h and by nobody else. */
#pragma once

#include <pthread.h>

#include "pool/address_map.h"
#include "pool/backing.h"
#include "pool/lane.h"
#include "pool/pool.h"
#include "pool/space.h"

struct spw_pool {
    pthread_mutex_t lock;
    pthread_cond_t waited; /* a thread came back from waiting for a fence */
    struct spw_pool_config config;
    const struct spw_vm_ops *ops;
    void *vm;
    struct spw_counters *counters;
    struct spw_lanes lanes;
    struct spw_backing backing;
    struct spw_space space;
    struct spw_address_map blocks;
    uint64_t next_id;
    uint64_t own_live_bytes; /* blocks only, without foreign charges */
    uint32_t pressure;       /* frees that are still watched for a fence, since memory was short */
};

/* Learns what the device has done on every lane but `except` and makes it idle. With `record`, work
 * that no fence covers yet gets one first. Caller holds the lock. */
void spw_pool_settle(struct spw_pool *pool, const struct spw_lane *except, bool record);

/* Counts blocks, or charges, that begin or end. Caller holds the lock. */
void spw_pool_count_live(struct spw_pool *pool, int64_t change, bool ordered);
