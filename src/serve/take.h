/* The pool's answer to a request, from the driver's functions or from PyTorch. */
#pragma once

#include "call/call.h"

enum spw_serve_outcome {
    SPW_SERVE_TAKEN,
    SPW_SERVE_REFUSED,
    SPW_SERVE_PASSED, /* to the real driver */
};

/* Serves a request, by the policy, and accounts it. Also accounts a refusal, unless the caller asks
 * again in another way (`repeated`). Called with a lease and without a lock. */
enum spw_serve_outcome spw_serve_take(struct spw_call *call, CUdeviceptr *ret_address);

/* Frees a block of call->pool in the order of call->asked.stream; NULL: after all work that was
 * submitted to the device. Called with a lease and without a lock. */
CUresult spw_serve_free_block(const struct spw_call *call, CUdeviceptr address);
