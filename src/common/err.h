/* The one error type of spillway's own layers.
 *
 * Zero is success, everything else is negative. A failure of the driver is kept without loss as
 * SPW_E_DRIVER - CUresult, so that the entry wrappers can hand the program exactly what the driver
 * said. No locking: values only. */
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
    SPW_E_DRIVER = -10000, /* SPW_E_DRIVER - CUresult */
};

/* Wraps a CUresult; 0 becomes SPW_OK and CUDA_ERROR_OUT_OF_MEMORY (2) becomes SPW_E_NO_MEMORY. */
static inline enum spw_err spw_err_from_driver(int result)
{
    if (result == 0) {
        return SPW_OK;
    }
    return result == 2 ? SPW_E_NO_MEMORY : (enum spw_err)(SPW_E_DRIVER - result);
}

/* The CUresult to answer for `err`: the driver's own where there is one, else the nearest. */
int spw_err_to_driver(enum spw_err err);

/* A short English word for logs; static storage. */
const char *spw_err_name(enum spw_err err);
