/* Groups of allocations that the rules of a policy can distinguish: all kinds of one place
 * (where.h) and one size, or of a place with many sizes. One thread. */
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
    uint64_t highest;     /* most bytes that it held */
    uint64_t at_peak;     /* bytes that it held when most was live */
    bool seen;            /* calls used some of it */
    double rate;          /* bytes over the link in a step for each byte held, if on the host */
    double link_bytes;    /* in a step, if it is on the host */
    double allocated;     /* bytes in a step */
    /* The plan's: */
    uint64_t cost_ns; /* of a step, if it is on the host */
    unsigned percent; /* of each block on the host, as in a rule: 0 to 100 */
    double share;     /* the same in whole granules: 0 to 1 */
};

struct spw_cli_advise_groups {
    const struct spw_cli_advise_history *history;
    struct spw_cli_advise_group *list; /* the first holds most */
    size_t count;
    int *of_kind;       /* -1: no rule can name it, or its group has no room in the list */
    double *link_bytes; /* in a step, if it is on the host; by kind */
};

/* Makes the largest groups, at most `most`. A kind that no recorded call uses is charged at the
 * rate of its group. A group without any recorded use is left out: libraries such as cuBLAS use
 * their workspace by addresses that are no argument. False without memory. The caller calls
 * spw_cli_advise_groups_fini in any case. */
bool spw_cli_advise_groups_make(const struct spw_cli_advise_history *history, size_t most,
                                struct spw_cli_advise_groups *ret_groups);
void spw_cli_advise_groups_fini(struct spw_cli_advise_groups *groups);

/* The part of a figure of the group that is on the host. */
static inline uint64_t spw_cli_advise_group_part(const struct spw_cli_advise_group *group,
                                                 uint64_t figure)
{
    return (uint64_t)((double)figure * group->share);
}
