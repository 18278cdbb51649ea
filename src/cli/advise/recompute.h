/* Chooses the modules that are recomputed, so that a program fits in a budget at the least cost. A
 * module is recomputed in each of its passes, or in none. What does not fit then has a cost for
 * each byte. The search first takes the module with the least cost for each byte at the peak, again
 * and again. Then it looks for a cheaper set, depth first, until it has proven its choice, or has
 * asked for SPW_CLI_ADVISE_ASKED peaks. Pure. */
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
    /* Returns the peak if the modules `again` are recomputed, and writes the bytes at this peak
     * that each other module would free. NULL: they are not needed. Modules that are in `maybe`
     * instead (NULL: none) may be recomputed or not: the peak is a lower bound of all these peaks.
     */
    uint64_t (*peak)(const void *context, const bool *again, const bool *maybe,
                     uint64_t *ret_gains);
    const void *context;
};

/* Writes the choice, an element for each module, and whether it is proven that no other choice
 * costs 3 % less. Returns false if memory runs out. */
bool spw_cli_advise_modules_choose(const struct spw_cli_advise_modules_problem *problem,
                                   bool *ret_again, bool *ret_proven);

/* The peak with more and more modules recomputed. */
struct spw_cli_advise_point {
    size_t count;           /* of modules */
    uint64_t peak, cost_ns; /* of a step */
};

/* Writes the points of the first search that have a lower peak than all before, from no module on.
 * `ret_points` has room for one more than there are modules. Returns their number, 0 if memory runs
 * out. The limit of the problem has no meaning here. */
size_t spw_cli_advise_modules_curve(const struct spw_cli_advise_modules_problem *problem,
                                    struct spw_cli_advise_point *ret_points);

/* Returns the cost of recomputing a set of modules. */
uint64_t spw_cli_advise_modules_cost(const struct spw_cli_advise_modules_problem *problem,
                                     const bool *again);
