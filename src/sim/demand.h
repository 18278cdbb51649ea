/* The demand of a kernel: arithmetic and memory. The simulated libraries pass it to the driver. The
 * driver derives the kernel's time from it (driver/exec/roofline.h). No locking. */
#pragma once

#include <stdint.h>

#include "gpu/rate.h"

/* Kinds of work. They reach different parts of a card's rates (driver/exec/roofline.c). */
enum sim_work {
    SIM_WORK_NAMED,            /* work on memory that a library or an operation names */
    SIM_WORK_PRODUCT,          /* of matrices, by the shapes of a library's call */
    SIM_WORK_UNALIGNED,        /* products whose rows do not begin at multiples of 16 bytes */
    SIM_WORK_CONVOLUTION,      /* by the shapes of a library's call */
    SIM_WORK_CONVOLUTION_BACK, /* its two backward passes */
    SIM_WORK_GROUPED,          /* a convolution with few channels in each group */
    SIM_WORK_GROUPED_BACK,
    SIM_WORK_ATTENTION, /* by a kernel's name, and its grid or its arguments */
    SIM_WORK_ELEMENTS,  /* of tensors without gaps, one by one */
    SIM_WORK_CASTS,     /* the same, with another type in memory */
    SIM_WORK_RUNS,    /* of tensors whose neighbours in a row have no gaps, or of broadcast ones */
    SIM_WORK_STRIDED, /* elements of tensors with gaps */
    SIM_WORK_LISTS,   /* elements of lists of tensors */
    SIM_WORK_REDUCTION,
    SIM_WORK_ROWS,  /* normalisation and softmax */
    SIM_WORK_OTHER, /* of an unknown kernel */
    SIM_WORK_MORE,  /* a further part of a launch; it costs nothing */
    SIM_WORKS,
};

/* The demand of a kernel. */
struct sim_demand {
    enum sim_work work;
    enum spw_gpu_type type;
    float operations; /* of products */
    float bytes;      /* read or written in device memory, during the arithmetic */
    float besides;    /* read or written before or after the arithmetic */
    uint32_t guessed; /* 1: the bytes are the sizes of the blocks behind a kernel's arguments */
};
