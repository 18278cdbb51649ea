/* A program's request for a block, from its arrival until it is answered. One thread. */
#pragma once

#include "track/process.h"
#include "track/ledger.h"

struct spw_request {
    struct spw_device *device;
    struct spw_pool *pool;           /* the device's, once it was asked */
    const struct spw_stream *stream; /* NULL: without a stream */
    CUcontext context;
    uint64_t bytes;
    const char *api;           /* the function asked, without its version */
    enum spw_ledger_kind kind; /* how it is entered in the ledger if it passes */
    uint32_t site;
};
