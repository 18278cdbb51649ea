/* The pool's answer to a request, which comes from a function of the driver or from PyTorch. */
#pragma once

#include "call/call.h"

enum spw_serve_outcome {
    SPW_SERVE_TAKEN,
    SPW_SERVE_REFUSED,
    SPW_SERVE_PASSED, /* the real driver must serve the request */
};

/* Serves a request as the policy decides, and accounts for the result. A refusal is accounted for
 * as well, unless the caller makes another request after it (`repeated`). Called with a lease and
 * without a lock. */
enum spw_serve_outcome spw_serve_take(struct spw_call *call, CUdeviceptr *ret_address);

/* Frees a block of call->pool in the order of call->asked.stream. If the stream is NULL, frees it
 * in the order of all work submitted to the device. Called with a lease and without a lock. */
CUresult spw_serve_free_block(const struct spw_call *call, CUdeviceptr address);
