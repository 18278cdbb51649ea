/* Chooses the modules that are recomputed, so that a program fits in a budget at the least cost. A
 * module is recomputed in each of its passes, or in none. Memory that still does not fit has a cost
 * for each byte. The search first adds one module after another, always the one with the least cost
 * for each byte at the peak. Then it looks for a cheaper set, depth first. It ends when its choice
 * is proven, or after SPW_CLI_ADVISE_ASKED peaks. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_CLI_ADVISE_ASKED = 200000 };

struct spw_cli_advise_modules_problem {
    size_t count;
    const uint64_t *costs; /* of recomputing each module, in nanoseconds a step */
    uint64_t limit;        /* bytes that fit */
    double excess_ns;      /* the cost of each byte of the peak beyond the limit */
    /* Returns the peak if the modules `again` are recomputed. Writes the bytes that each other
     * module would free at this peak, unless the output is NULL. The modules in `maybe` (NULL:
     * none) may be recomputed or not: the peak is then a lower bound for all these cases. */
    uint64_t (*peak)(const void *context, const bool *again, const bool *maybe,
                     uint64_t *ret_gains);
    const void *context;
};

/* Writes the choice, an element for each module, and whether it is proven that no other choice
 * costs 3 % less. Returns false if memory runs out. */
bool spw_cli_advise_modules_choose(const struct spw_cli_advise_modules_problem *problem,
                                   bool *ret_again, bool *ret_proven);

/* The peak with a number of recomputed modules. */
struct spw_cli_advise_point {
    size_t count;           /* of modules */
    uint64_t peak, cost_ns; /* of a step */
};

/* Writes the points of the first search, beginning without any module. Leaves out points whose peak
 * is not lower than all peaks before. `ret_points` has room for the number of modules plus one.
 * Returns the number of points, 0 if memory runs out. Ignores the limit of the problem. */
size_t spw_cli_advise_modules_curve(const struct spw_cli_advise_modules_problem *problem,
                                    struct spw_cli_advise_point *ret_points);

/* Returns the cost of recomputing a set of modules. */
uint64_t spw_cli_advise_modules_cost(const struct spw_cli_advise_modules_problem *problem,
                                     const bool *again);
