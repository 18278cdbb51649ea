/* A call that allocates or frees, from its arrival to its answer. It does not know the handlers of
 * calls.
 *
 *   arrival   finds stream, context and block of a call, before its handler runs
 *   call      the facts of the call, for its handler
 *   site      the call site of a call
 *
 * arrival.h fills in the struct of this header. Handlers take the facts of a call only from this
 * struct, which belongs to one thread. */
#pragma once

#include "device/state.h"
#include "process/caller.h"
#include "program/ledger.h"

struct spw_call {
    struct spw_driver *driver;
    struct spw_device
        *device; /* the device that answers; NULL: unknown, or a free of memory that is not ours */
    struct spw_pool *pool;    /* the device's pool; NULL: none, or not looked up yet */
    struct spw_request asked; /* the request to the pool, with stream and context of the call */
    CUresult unusable;        /* the driver's error if the stream may not be used now */
    unsigned rule;            /* number of the policy's rule that decided, from 1; 0: none */
    enum spw_caller caller : 8;
    enum spw_ledger_kind kind : 8; /* how the ledger records the call if the driver serves it */
    bool observed;                 /* the driver allocates in any case (SPILLWAY_MODE=observe) */
    bool ruled;                    /* a policy is in force */
    bool recorded;                 /* the recording follows new and freed blocks */
    /* An open capture would include the call, or forbids it: the driver answers. */
    bool capturing;
    bool denied;        /* PyTorch reached the share of memory that the program set: no segment */
    bool stays_on_host; /* a rule placed the whole block on the host, for good */
    bool repeated;      /* if this is refused, the caller asks in another way */
};
