/* Groups of allocations that the rules of a policy can distinguish. A group has all kinds of one
 * place (where.h) and one size. A place with many sizes is one group. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/advise/history.h"
#include "cli/advise/where.h"

struct spw_cli_advise_group {
    struct spw_cli_advise_where where;
    uint64_t least, most; /* sizes of its allocations */
    uint32_t site;        /* one of its sites, for the label */
    uint64_t highest;     /* most bytes that it held at once */
    uint64_t at_peak;     /* bytes that it held at the device's peak */
    bool seen;            /* calls used some of it */
    double rate;       /* bytes that cross the link in a step, for each byte that is on the host */
    double link_bytes; /* in a step, if it is on the host */
    double allocated;  /* bytes in a step */
    /* Set by the plan: */
    uint64_t cost_ns; /* of a step, if it is on the host */
    unsigned percent; /* of each block that goes to the host, as in a rule: 0 to 100 */
    double share;     /* of its bytes that go to the host, in whole granules: 0 to 1 */
};

struct spw_cli_advise_groups {
    const struct spw_cli_advise_history *history;
    struct spw_cli_advise_group *list; /* the largest first */
    size_t count;
    int *of_kind;       /* the group of each kind; -1: not in the list */
    double *link_bytes; /* in a step, if it is on the host; by kind */
};

/* Makes the largest groups, at most `most`. A kind that no recorded call uses is charged at the
 * rate of its group. A group without any recorded use is left out, because its use may be hidden:
 * libraries such as cuBLAS do not pass the address of their workspace as an argument. False without
 * memory. The caller calls spw_cli_advise_groups_fini in any case. */
bool spw_cli_advise_groups_make(const struct spw_cli_advise_history *history, size_t most,
                                struct spw_cli_advise_groups *ret_groups);
void spw_cli_advise_groups_fini(struct spw_cli_advise_groups *groups);

/* The part of a figure of the group that is on the host. */
static inline uint64_t spw_cli_advise_group_part(const struct spw_cli_advise_group *group,
                                                 uint64_t figure)
{
    return (uint64_t)((double)figure * group->share);
}
