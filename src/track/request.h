/* A program's request for a block, from its arrival until it is answered. One thread. */
#pragma once

#include "track/ledger.h"
#include "track/process.h"

struct spw_track_request {
    struct spw_request asked; /* what the pool is asked for */
    struct spw_device *device;
    struct spw_pool *pool;     /* of the device; set when it is first needed */
    enum spw_ledger_kind kind; /* how the ledger records it if it passes to the driver */
    unsigned rule;             /* of the policy, that has decided, by its number from 1; 0: none */
    bool stays_on_host;        /* it has placed all of the block there, for good */
    bool repeated;             /* a refusal is not the program's: it is asked in another way then */
};
