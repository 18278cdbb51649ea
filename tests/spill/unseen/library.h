/* What the library of library.c offers. */
#pragma once

#include <cuda.h>
#include <stddef.h>

struct unseen_work {
    CUcontext context;
    CUfunction add; /* spw_add */
    const CUdeviceptr *blocks;
    int count;    /* of blocks */
    size_t words; /* of each */
};

/* Begins to add 1 to every word of the blocks, again and again, from a thread of the library. */
typedef void begin_unseen_function(const struct unseen_work *work);

/* Ends that. Returns how often 1 was added to each word. */
typedef unsigned end_unseen_function(void);

begin_unseen_function begin_unseen;
end_unseen_function end_unseen;
