/* A move as spillway makes it: new chunks, staged at other addresses, filled by copies, mapped at
 * the old addresses, and the old chunks released. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define CHUNKS_MAX 256

struct move {
    size_t bytes; /* of a chunk */
    size_t count;
    bool kept; /* every chunk stays mapped at a second address: staging needs no call */
    CUdeviceptr range, second[2];
    CUmemGenericAllocationHandle chunks[2][CHUNKS_MAX]; /* by tier */
};

static void show(const struct move *move, enum tier to, const char *step, double begin)
{
    char subject[96];

    snprintf(subject, sizeof(subject), "%zu x %zu MiB%s to the %s: %s", move->count,
             move->bytes / MIB, move->kept ? ", kept" : "", memory_tier(to), step);
    probe_time(subject, (probe_now() - begin) / 1e3, "ms");
}

static void map_all(const struct move *move, CUdeviceptr at, enum tier tier)
{
    for (size_t i = 0; i < move->count; i++) {
        memory_map(at + i * move->bytes, move->bytes, move->chunks[tier][i]);
    }
    memory_allow(at, move->count * move->bytes);
}

static void create_all(struct move *move, enum tier tier)
{
    double begin = probe_now();

    for (size_t i = 0; i < move->count; i++) {
        move->chunks[tier][i] = memory_create(tier, move->bytes);
    }
    show(move, tier, "create", begin);
}

static void unmap_range(const struct move *move, CUdeviceptr at)
{
    if (cuMemUnmap(at, move->count * move->bytes) == CUDA_SUCCESS) {
        return;
    }
    for (size_t i = 0; i < move->count; i++) {
        MUST(cuMemUnmap(at + i * move->bytes, move->bytes));
    }
}

static void move_to(struct move *move, enum tier to)
{
    const size_t bytes = move->count * move->bytes;
    double begin = probe_now();

    if (!move->kept) {
        map_all(move, move->second[to], to);
        show(move, to, "stage", begin);
    }
    begin = probe_now();
    MUST(cuMemcpyDtoDAsync(move->second[to], move->range, bytes, NULL));
    MUST(cuCtxSynchronize());
    show(move, to, "copy", begin);
    double closed = probe_now();
    begin = closed;
    unmap_range(move, move->range);
    show(move, to, "commit: unmap", begin);
    begin = probe_now();
    map_all(move, move->range, to);
    show(move, to, "commit: map and set access", begin);
    show(move, to, "commit, all", closed);
    begin = probe_now();
    if (!move->kept) {
        unmap_range(move, move->second[to]);
        show(move, to, "unstage", begin);
    }
}

static void check(const struct move *move, const char *when, uint32_t value)
{
    uint64_t wrong = kernels_differ(move->range, move->count * move->bytes / 4, value);
    char detail[64];

    snprintf(detail, sizeof(detail), "%llu words differ", (unsigned long long)wrong);
    probe_verdict(wrong == 0, when, detail);
}

void section_move(const char *argument)
{
    static struct move move;
    size_t mib = argument == NULL ? 2 : (size_t)atoi(argument);
    const size_t bytes = probe.tiny ? 64 * MIB : 512 * MIB;

    if (!memory_find_host() || mib == 0) {
        return;
    }
    move.kept = argument != NULL && strstr(argument, "kept") != NULL;
    move.bytes = mib * MIB;
    move.count = bytes / move.bytes;
    move.range = memory_reserve(bytes);
    for (enum tier tier = ON_DEVICE; tier <= ON_HOST; tier++) {
        create_all(&move, tier);
        move.second[tier] = memory_reserve(bytes);
        if (move.kept) {
            map_all(&move, move.second[tier], tier);
        }
    }
    map_all(&move, move.range, ON_DEVICE);
    kernels_fill(move.range, bytes / 4, 3, NULL);
    MUST(cuCtxSynchronize());
    move_to(&move, ON_HOST);
    check(&move, "content after the move to the host", 3);
    kernels_add(move.range, bytes / 4, 4, NULL);
    move_to(&move, ON_DEVICE);
    check(&move, "content after the move back", 7);
}
