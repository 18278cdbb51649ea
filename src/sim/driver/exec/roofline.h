/* The time of a kernel on a card, by the roofline model: the time of its arithmetic or the time of
 * its memory accesses, whichever is longer, plus a constant time for each kernel.
 *
 * The rates are those of the card's profile (gpu/rate.h). Matrix products reach the sustained
 * rate of the card, apart from the constant time. So small products reach a smaller share of the
 * rate than large ones. Other kinds of work reach a constant part of the rates.
 *
 * Locking: none. */
#pragma once

#include "gpu/rate.h"
#include "sim/demand.h"

/* Times in nanoseconds, at the rates that the kind of work reaches. */
struct sim_roofline {
    double ns;        /* of the kernel */
    double computing; /* of its arithmetic */
    double moving;    /* of its memory, during the arithmetic */
    double besides;   /* of its memory, before or after the arithmetic */
};

/* The time of a kernel with this demand on a card. */
struct sim_roofline sim_roofline_of(const struct sim_demand *demand,
                                    const struct spw_gpu_profile *profile);
