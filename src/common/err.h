/* The error type of all layers of spillway. 0 is success, errors are negative.
 *
 * An error of the driver is kept without loss as SPW_E_DRIVER - CUresult, so that the program gets
 * exactly the driver's answer. No locking: values only. */
#pragma once

#include <stdbool.h>

enum spw_err {
    SPW_OK = 0,
    SPW_E_INVAL = -1,          /* an argument is out of its range */
    SPW_E_NOT_OURS = -2,       /* the address belongs to no block of this pool */
    SPW_E_NO_MEMORY = -3,      /* no device memory: the device is full */
    SPW_E_LIMIT = -4,          /* the limit refuses: final, never passed on to the driver */
    SPW_E_METADATA_NOMEM = -5, /* malloc failed: no host memory for spillway's own records */
    SPW_E_AGAIN = -6,          /* not yet: an event is pending, a capture forbids the question */
    SPW_E_UNSUPPORTED = -7,
    SPW_E_QUOTA = -8,      /* the limit of a policy's rule refuses */
    SPW_E_NOTHING = -9,    /* the call has nothing to work on */
    SPW_E_RANGE = -10,     /* memory for all of a range that should never be filled */
    SPW_E_DRIVER = -10000, /* SPW_E_DRIVER - CUresult */
};

/* Converts a CUresult. CUDA_ERROR_OUT_OF_MEMORY (2) becomes SPW_E_NO_MEMORY. */
static inline enum spw_err spw_err_from_driver(int result)
{
    if (result == 0) {
        return SPW_OK;
    }
    return result == 2 ? SPW_E_NO_MEMORY : (enum spw_err)(SPW_E_DRIVER - result);
}

/* Converts back to a CUresult: the driver's own, or the nearest one for spillway's errors. */
int spw_err_to_driver(enum spw_err err);

/* A few words for logs; static storage. */
const char *spw_err_name(enum spw_err err);
