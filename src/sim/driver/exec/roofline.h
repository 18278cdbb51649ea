/* The time of a kernel on a card: that of its arithmetic or that of its memory, whichever is
 * longer, and a time for each kernel. This is the roofline model.
 *
 * The rates are those of the card's profile (gpu/rate.h). A product of any size reaches the rate
 * that the card sustains, after the constant time: the share of the rate that it reaches grows with
 * its size in this way. Other kinds of work reach a constant part of the rates.
 *
 * Locking: none. */
#pragma once

#include "gpu/rate.h"
#include "sim/demand.h"

/* Times in nanoseconds, at the parts of the rates that a kind of work reaches. */
struct sim_roofline {
    double ns;        /* of the kernel */
    double computing; /* of its arithmetic */
    double moving;    /* of its memory, during the arithmetic */
    double besides;   /* of its memory, before it or after it */
};

/* The time of a kernel with this demand on a card. */
struct sim_roofline sim_roofline_of(const struct sim_demand *demand,
                                    const struct spw_gpu_profile *profile);
