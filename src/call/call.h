/* A call that allocates or frees, from its arrival to its answer. It does not know the handlers of
 * calls.
 *
 *   arrival   finds stream, context and block of a call, before its handler runs
 *   call      the facts of the call, for its handler
 *   site      the call site of a call
 *
 * arrival.h fills in the struct of this header. Handlers read the facts of a call only from this
 * struct. The struct belongs to one thread. */
#pragma once

#include "device/state.h"
#include "process/caller.h"
#include "program/ledger.h"

struct spw_call {
    struct spw_driver *driver;
    struct spw_device *device; /* the device that serves the call; NULL: unknown, or the call frees
                                * memory of another allocator */
    struct spw_pool *pool;     /* the device's pool; NULL: none, or not looked up yet */
    struct spw_request asked;  /* the request to the pool; its stream and context are the call's */
    CUresult unusable;         /* the driver's error if the stream must not be used now */
    unsigned rule;             /* number of the policy rule that decided, from 1; 0: none */
    enum spw_caller caller : 8;
    enum spw_ledger_kind kind : 8; /* how the ledger records the call if the driver serves it */
    bool observed;                 /* the driver allocates in every case (SPILLWAY_MODE=observe) */
    bool ruled;                    /* a policy is in force */
    bool recorded;                 /* new and freed blocks are recorded */
    /* An open capture would include the call, or forbids it. The driver serves the call. */
    bool capturing;
    bool denied; /* PyTorch has used up the share of memory that the program set: no segment */
    bool stays_on_host; /* a rule placed the whole block on the host permanently */
    bool repeated;      /* after a refusal, the caller makes another request */
};
