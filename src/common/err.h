/* Tools of all folders that need no operating system: errors, options, counters, sizes, tables,
 * text. It does not know any other folder.
 *
 *   bounds         limits that determine the sizes of tables in several folders
 *   counters       the counters of a device, in memory that other processes read
 *   err            error codes, and how they carry the driver's errors
 *   grow           dynamic arrays
 *   hash           hash functions for tables
 *   host_bound     the names of the limits on host memory for spilled blocks
 *   host_share     the part of a block that a rule's host_share places on the host
 *   layout         the ways to know the layout of a kernel's arguments
 *   likely         marks conditions that nearly always, or nearly never, hold
 *   map            a hash map from 64-bit keys to pointers
 *   minmax         the smaller or larger size
 *   nearest        suggests the name that a misspelt one may mean
 *   newer_cuda     declarations of CUDA 13 that older headers lack
 *   option_words   options whose value is one word of a list
 *   options        the table of options, and the parser of their values
 *   path           the file's name in a path
 *   reserve        the part of a memory of device and host that stays free
 *   size           reads and writes sizes such as 8GiB and 80%
 *   utf8           text of unknown origin: encodes, measures and cleans it
 *
 * The error codes of this header: 0 is success, and errors are negative. An error of the driver is
 * stored without loss as SPW_E_DRIVER - CUresult, so that the program gets exactly the error that
 * the driver returned. No locking: values only. */
#pragma once

#include <stdbool.h>

enum spw_err {
    SPW_OK = 0,
    SPW_E_INVAL = -1,          /* an argument is outside of its range */
    SPW_E_NOT_OURS = -2,       /* the address is in no block of this pool */
    SPW_E_NO_MEMORY = -3,      /* no device memory: the device is full */
    SPW_E_LIMIT = -4,          /* the limit refuses; this is final and is not passed on to the
                                  driver */
    SPW_E_METADATA_NOMEM = -5, /* malloc failed: no host memory for spillway's own records */
    SPW_E_AGAIN = -6,          /* not possible yet: an event is pending, or a capture forbids the
                                  call */
    SPW_E_UNSUPPORTED = -7,
    SPW_E_QUOTA = -8,      /* the limit of a policy rule refuses */
    SPW_E_NOTHING = -9,    /* there is nothing that the call could work on */
    SPW_E_RANGE = -10,     /* the memory would fill a range that is larger than the device */
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

/* Converts back to a CUresult. An error of the driver becomes the original CUresult. An error of
 * spillway becomes the CUresult with the nearest meaning. */
int spw_err_to_driver(enum spw_err err);

/* Returns a few words for logs; static storage. */
const char *spw_err_name(enum spw_err err);
