#include "common/err.h"

/* Numbers of the CUresult enumeration in cuda.h; common/ includes no CUDA header. */
enum { RESULT_INVALID_VALUE = 1, RESULT_OUT_OF_MEMORY = 2, RESULT_NOT_READY = 600 };
enum { RESULT_NOT_SUPPORTED = 801 };

int spw_err_to_driver(enum spw_err err)
{
    switch (err) {
    case SPW_OK:
        return 0;
    case SPW_E_INVAL:
    case SPW_E_NOT_OURS:
        return RESULT_INVALID_VALUE;
    case SPW_E_NO_MEMORY:
    case SPW_E_NOTHING:
    case SPW_E_LIMIT:
    case SPW_E_METADATA_NOMEM:
    case SPW_E_QUOTA:
    case SPW_E_RANGE:
        return RESULT_OUT_OF_MEMORY;
    case SPW_E_AGAIN:
        return RESULT_NOT_READY;
    case SPW_E_UNSUPPORTED:
        return RESULT_NOT_SUPPORTED;
    case SPW_E_DRIVER:
        break;
    }
    return err < SPW_E_DRIVER ? SPW_E_DRIVER - (int)err : RESULT_INVALID_VALUE;
}

const char *spw_err_name(enum spw_err err)
{
    switch (err) {
    case SPW_OK:
        return "ok";
    case SPW_E_INVAL:
        return "invalid argument";
    case SPW_E_NOT_OURS:
        return "not a block of the pool";
    case SPW_E_NO_MEMORY:
        return "no device memory";
    case SPW_E_LIMIT:
        return "limit reached";
    case SPW_E_METADATA_NOMEM:
        return "no host memory for own records";
    case SPW_E_AGAIN:
        return "not ready";
    case SPW_E_UNSUPPORTED:
        return "not supported";
    case SPW_E_QUOTA:
        return "limit of a policy's rule reached";
    case SPW_E_NOTHING:
        return "nothing to do";
    case SPW_E_RANGE:
        return "the addresses that were reserved for it are used up";
    case SPW_E_DRIVER:
        break;
    }
    return "driver error";
}
