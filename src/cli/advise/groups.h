/* Groups of allocations that the rules of a policy can distinguish. A group contains all kinds
 * (history.h) that have the same place (where.h) and the same size. If a place has many sizes, all
 * of them form one group. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/advise/history.h"
#include "cli/advise/where.h"

struct spw_cli_advise_group {
    struct spw_cli_advise_where where;
    uint64_t least, most; /* smallest and largest size of the group's allocations */
    uint32_t site;        /* one of the group's call sites, for the label */
    uint64_t highest;     /* highest bytes that the group held at one time */
    uint64_t at_peak;     /* bytes that the group held at the device's peak */
    bool seen;            /* recorded calls used some memory of the group */
    double rate;          /* bytes that cross the link per step, for each byte on the host */
    double link_bytes;    /* in a step, if the group is on the host */
    double allocated;     /* bytes in a step */
    /* Set by the plan: */
    uint64_t cost_ns; /* of a step, if the group is on the host */
    unsigned percent; /* part of each block that goes to the host, as in a rule: 0 to 100 */
    double share;     /* part of the bytes that goes to the host, in whole granules: 0 to 1 */
};

struct spw_cli_advise_groups {
    const struct spw_cli_advise_history *history;
    struct spw_cli_advise_group *list; /* the largest group first */
    size_t count;
    int *of_kind;       /* index of the group of each kind; -1: not in the list */
    double *link_bytes; /* in a step, if the kind is on the host; by kind */
};

/* Makes the largest groups, at most `most` of them. A kind without recorded uses has the rate of
 * its group. A group without recorded uses is omitted, because its uses may be hidden. For
 * example, cuBLAS does not pass the address of its workspace as an argument. Returns false if
 * memory runs out. The caller calls spw_cli_advise_groups_fini even on failure. */
bool spw_cli_advise_groups_make(const struct spw_cli_advise_history *history, size_t most,
                                struct spw_cli_advise_groups *ret_groups);
void spw_cli_advise_groups_fini(struct spw_cli_advise_groups *groups);

/* Returns the host's part of a figure of the group. */
static inline uint64_t spw_cli_advise_group_part(const struct spw_cli_advise_group *group,
                                                 uint64_t figure)
{
    return (uint64_t)((double)figure * group->share);
}
