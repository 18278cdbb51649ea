/* Groups of allocations that the rules of a policy can tell apart: all kinds of one place (where.h)
 * and one size, or of a place with many sizes. One thread. */
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
    uint64_t highest;     /* bytes that it ever held */
    uint64_t at_peak;     /* bytes that it held when most was live */
    bool seen;            /* calls used some of it */
    double rate;          /* bytes over the link in a step, if it is on the host, by byte held */
    double link_bytes;    /* in a step, if it is on the host */
    double allocated;     /* bytes in a step */
    /* The plan's: */
    uint64_t cost_ns; /* of a step, if it is on the host */
    unsigned percent; /* of each block on the host, as a rule says it: 0 to 100 */
    double share;     /* the same in whole granules: 0 to 1 */
};

struct spw_cli_advise_groups {
    const struct spw_cli_advise_history *history;
    struct spw_cli_advise_group *list; /* the first holds most */
    size_t count;
    int *of_kind;       /* -1: no rule can name it, or there are larger groups enough */
    double *link_bytes; /* in a step, if it is on the host; by kind */
};

/* Makes at most `most` groups, those that hold most. A kind that no call was seen to use is charged
 * as others of its group are; a group without any that was seen is left out, since a library may
 * use its workspace, such as cuBLAS's, by addresses that no argument names. False without memory.
 * The caller calls spw_cli_advise_groups_fini in any case. */
bool spw_cli_advise_groups_make(const struct spw_cli_advise_history *history, size_t most,
                                struct spw_cli_advise_groups *ret_groups);
void spw_cli_advise_groups_fini(struct spw_cli_advise_groups *groups);

/* The part of a figure of the group that is on the host. */
static inline uint64_t spw_cli_advise_group_part(const struct spw_cli_advise_group *group,
                                                 uint64_t figure)
{
    return (uint64_t)((double)figure * group->share);
}
