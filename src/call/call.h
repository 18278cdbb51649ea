/* A call that allocates or frees, from its arrival to its answer. It does not know the handlers of
 * calls.
 *
 *   arrival   finds stream, context and block of a call, before its handler runs
 *   call      the facts of the call, for its handler
 *   site      the call site of a call
 *
 * arrival.h fills in the struct of this header; handlers take these facts only from it. One
 * thread. */
#pragma once

#include "device/state.h"
#include "process/caller.h"
#include "program/ledger.h"

struct spw_call {
    struct spw_driver *driver;
    struct spw_device *device; /* that answers; NULL: unknown, or a free of other memory */
    struct spw_pool *pool;     /* of the device; NULL: none, or not asked for yet */
    struct spw_request asked;  /* of the pool. Its stream and context are those of the call */
    CUresult unusable;         /* the driver's error: the stream may not be used now */
    unsigned rule;             /* number of the policy's rule that decided, from 1; 0: none */
    enum spw_caller caller : 8;
    enum spw_ledger_kind kind : 8; /* how the ledger records it if it passes to the driver */
    bool observed;                 /* the driver allocates in any case (SPILLWAY_MODE=observe) */
    bool ruled;                    /* a policy is in force */
    bool recorded;                 /* the recording follows new and freed blocks */
    /* A capture is open that the call would become a part of, or that forbids it: the driver
     * answers. */
    bool capturing;
    bool denied;        /* the program reached the share that it gave PyTorch: no segment */
    bool stays_on_host; /* a rule has placed all of the block there, for good */
    bool repeated;      /* after a refusal the caller asks in another way */
};
