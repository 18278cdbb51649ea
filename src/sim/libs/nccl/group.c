/* Grouped calls and splits. A split completes when all ranks have called it. */
#include <stdlib.h>

#include "sim/libs/nccl/absent.h"
#include "sim/libs/nccl/comm.h"

/* The header declares these functions with (), which is a prototype only in C++. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

struct deferred {
    struct deferred *next;
    ncclResult_t (*finish)(void *arg);
    void *arg;
};

static _Thread_local unsigned int depth;
static _Thread_local unsigned long number; /* of the last group */
static _Thread_local struct deferred *first;
static _Thread_local struct deferred **last;

static ncclResult_t defer(ncclResult_t (*finish)(void *arg), void *arg)
{
    struct deferred *entry;

    if (depth == 0) {
        return finish(arg);
    }
    entry = malloc(sizeof(*entry));
    if (entry == NULL) {
        return sim_nccl_fail(ncclSystemError, "out of host memory");
    }
    *entry = (struct deferred){.finish = finish, .arg = arg};
    if (first == NULL) {
        last = &first;
    }
    *last = entry;
    last = &entry->next;
    return ncclSuccess;
}

unsigned long sim_nccl_group(void)
{
    return depth > 0 ? number : 0;
}

SIM_SHIM_EXPORT ncclResult_t ncclGroupStart(void)
{
    if (depth++ == 0) {
        number++;
    }
    return ncclSuccess;
}

SIM_SHIM_EXPORT ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t result = ncclSuccess;

    if (depth == 0) {
        return sim_nccl_fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    }
    if (--depth > 0) {
        return ncclSuccess;
    }
    while (first != NULL) {
        struct deferred *entry = first;
        ncclResult_t own = entry->finish(entry->arg);

        result = result == ncclSuccess ? own : result;
        first = entry->next;
        free(entry);
    }
    return result;
}

SIM_SHIM_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    if (simInfo != NULL) {
        simInfo->estimatedTime = 0.0F;
    }
    return ncclGroupEnd();
}

/* A split whose entry is published. */
struct split {
    struct ncclComm *parent;
    uint32_t number;
    int color;
    int key;
    ncclComm_t *ret_comm;
};

/* The order of ranks in the new communicator: by key, then by old rank. */
static bool comes_before(const struct sim_nccl_board_entry *a, int key, int rank)
{
    return a->key < key || (a->key == key && a->rank < rank);
}

/* The number of the new communicator; all of its ranks compute the same number. */
static uint64_t mix(uint64_t communicator, uint32_t split, int color)
{
    uint64_t words[] = {communicator, split, (uint64_t)color + 1};
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        hash = (hash ^ words[i]) * 0x100000001b3;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Adds to *ret_ranks the number of ranks with the same color, and to *ret_rank how many of them
 * come before this rank. */
static ncclResult_t count_ranks(const struct split *split, int *ret_ranks, int *ret_rank)
{
    struct ncclComm *parent = split->parent;
    struct sim_nccl_board_entry *entries =
        sim_nccl_board_collect(parent->board, parent->number, split->number, (size_t)parent->ranks);

    if (entries == NULL) {
        return sim_nccl_fail(ncclRemoteError, "other ranks did not split the communicator");
    }
    for (int i = 0; i < parent->ranks; i++) {
        if (entries[i].color == split->color) {
            (*ret_ranks)++;
            *ret_rank += comes_before(&entries[i], split->key, parent->rank);
        }
    }
    free(entries);
    return ncclSuccess;
}

/* Like count_ranks(), when the other ranks are absent. PyTorch's key is the rank in the new
 * communicator. */
static ncclResult_t assume_ranks(const struct split *split, int *ret_ranks, int *ret_rank)
{
    *ret_ranks = sim_nccl_absent_split();
    *ret_rank = split->key;
    return split->color == NCCL_SPLIT_NOCOLOR || (split->key >= 0 && split->key < *ret_ranks)
               ? ncclSuccess
               : sim_nccl_fail(
                     ncclInvalidUsage,
                     "the other ranks are absent (SPILLWAY_SIM_WORLD), so nobody can tell "
                     "how many of them are in the new communicator");
}

static ncclResult_t finish_split(void *arg)
{
    struct split split = *(struct split *)arg;
    struct ncclComm *parent = split.parent;
    struct ncclComm *comm;
    ncclResult_t result;
    int ranks = 0;
    int rank = 0;

    free(arg);
    result = sim_nccl_others_are_absent() ? assume_ranks(&split, &ranks, &rank)
                                          : count_ranks(&split, &ranks, &rank);
    if (result != ncclSuccess || split.color == NCCL_SPLIT_NOCOLOR) {
        return result;
    }
    comm = sim_nccl_comm_create(ranks, rank);
    if (comm == NULL) {
        return sim_nccl_fail(ncclSystemError, "out of host memory");
    }
    comm->context = parent->context;
    comm->device = parent->device;
    comm->board = sim_nccl_board_ref(parent->board);
    comm->number = mix(parent->number, split.number, split.color);
    *split.ret_comm = comm;
    return ncclSuccess;
}

SIM_SHIM_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                                           ncclConfig_t *config)
{
    struct sim_nccl_board_entry entry;
    struct split *split;

    if (comm == NULL || newcomm == NULL || (color < 0 && color != NCCL_SPLIT_NOCOLOR)) {
        return sim_nccl_fail(ncclInvalidArgument, "invalid communicator or color");
    }
    if (comm->board == NULL && !sim_nccl_others_are_absent()) {
        return sim_nccl_fail(ncclSystemError, "the process that made the unique id is not on this "
                                              "machine, or gone: cannot split");
    }
    entry = (struct sim_nccl_board_entry){comm->number, comm->splits++, comm->rank, color, key};
    split = malloc(sizeof(*split));
    if (split == NULL || (comm->board != NULL && !sim_nccl_board_post(comm->board, &entry))) {
        free(split);
        return sim_nccl_fail(ncclSystemError, "too many splits, or out of host memory");
    }
    *newcomm = NCCL_COMM_NULL;
    *split = (struct split){comm, entry.split, color, key, newcomm};
    return defer(finish_split, split);
}

/* The arguments name the ranks that leave the communicator, so no rank waits for another rank. */
SIM_SHIM_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList,
                                            int excludeRanksCount, ncclComm_t *newcomm,
                                            ncclConfig_t *config, int shrinkFlags)
{
    struct ncclComm *smaller;
    int before = 0;

    if (comm == NULL || newcomm == NULL || excludeRanksList == NULL || excludeRanksCount < 1 ||
        excludeRanksCount >= comm->ranks) {
        return sim_nccl_fail(ncclInvalidArgument, "invalid communicator or list of ranks");
    }
    for (int i = 0; i < excludeRanksCount; i++) {
        if (excludeRanksList[i] == comm->rank) {
            return sim_nccl_fail(ncclInvalidArgument, "an excluded rank may not call this");
        }
        before += excludeRanksList[i] < comm->rank;
    }
    smaller = sim_nccl_comm_create(comm->ranks - excludeRanksCount, comm->rank - before);
    if (smaller == NULL) {
        return sim_nccl_fail(ncclSystemError, "out of host memory");
    }
    smaller->context = comm->context;
    smaller->device = comm->device;
    smaller->board = sim_nccl_board_ref(comm->board);
    smaller->number = mix(comm->number, comm->splits++, -2);
    *newcomm = smaller;
    return ncclSuccess;
}

SIM_NCCL_ALIAS(GroupStart)
SIM_NCCL_ALIAS(GroupEnd)
SIM_NCCL_ALIAS(GroupSimulateEnd)
SIM_NCCL_ALIAS(CommSplit)
SIM_NCCL_ALIAS(CommShrink)
