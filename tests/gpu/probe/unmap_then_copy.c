/* The loud move: the home address of a chunk is unmapped first, and then the chunk is copied
 * through its alias, a second address. So nothing can write between the copy and the switch. */
#include <stdio.h>

#include "background.h"
#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define CHUNKS     27
#define ROUNDS     100
#define SECONDS    9.0 /* no round begins later */
#define HOST_EVERY 10  /* the content on the host is checked in one of so many rounds */

enum step { UNMAP, OUT, BACK, MAP, STEPS };

static struct {
    size_t bytes; /* of a chunk */
    CUdeviceptr home, alias[2];
    CUmemGenericAllocationHandle chunks[CHUNKS]; /* of the device */
    CUstream stream;
    double times[STEPS][ROUNDS];
    double slower[ROUNDS];
    uint64_t wrong[2]; /* words, by tier */
} move;

static void set_up(void)
{
    const size_t all = CHUNKS * move.bytes;

    MUST(cuStreamCreate(&move.stream, CU_STREAM_NON_BLOCKING));
    move.home = memory_reserve(all);
    move.alias[ON_DEVICE] = memory_reserve(all);
    move.alias[ON_HOST] = memory_new_range((const enum tier[]){ON_HOST}, 1, move.bytes, CHUNKS);
    for (size_t i = 0; i < CHUNKS; i++) {
        move.chunks[i] = memory_create(ON_DEVICE, move.bytes);
        memory_map(move.home + i * move.bytes, move.bytes, move.chunks[i]);
        memory_map(move.alias[ON_DEVICE] + i * move.bytes, move.bytes, move.chunks[i]);
    }
    memory_allow(move.home, all);
    memory_allow(move.alias[ON_DEVICE], all);
}

static uint64_t wrong_words(CUdeviceptr range, uint32_t first)
{
    uint64_t wrong = 0;

    for (uint32_t i = 0; i < CHUNKS; i++) {
        wrong += kernels_differ(range + i * move.bytes, move.bytes / 4, first + i);
    }
    return wrong;
}

static void copy(enum tier to, size_t count)
{
    const size_t from = to == ON_HOST ? ON_DEVICE : ON_HOST;

    for (size_t i = 0; i < count; i++) {
        MUST(cuMemcpyDtoDAsync(move.alias[to] + i * move.bytes, move.alias[from] + i * move.bytes,
                               move.bytes, move.stream));
    }
}

static void map(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        memory_map(move.home + i * move.bytes, move.bytes, move.chunks[i]);
    }
    memory_allow(move.home + first * move.bytes, count * move.bytes);
}

static double lap(double *begin)
{
    double now = probe_now();
    double took = now - *begin;

    *begin = now;
    return took;
}

/* In every second round the last chunk is used again while it is copied: it is mapped back at once
 * and does not come back. */
static void run_round(size_t round)
{
    const uint32_t first = (uint32_t)(round * CHUNKS) + 1;
    const size_t moved = CHUNKS - round % 2;
    double begin;

    for (uint32_t i = 0; i < CHUNKS; i++) {
        kernels_fill(move.home + i * move.bytes, move.bytes / 4, first + i, move.stream);
    }
    MUST(cuStreamSynchronize(move.stream));
    background_begin(75e3);
    double all = begin = probe_now();
    for (size_t i = 0; i < CHUNKS; i++) {
        MUST(cuMemUnmap(move.home + i * move.bytes, move.bytes));
    }
    move.times[UNMAP][round] = lap(&begin);
    copy(ON_HOST, CHUNKS);
    if (moved < CHUNKS) {
        map(moved, CHUNKS - moved);
    }
    MUST(cuStreamSynchronize(move.stream));
    move.times[OUT][round] = lap(&begin);
    /* What comes back can only be what the host has. */
    MUST(cuMemsetD32Async(move.alias[ON_DEVICE], 0, moved * move.bytes / 4, move.stream));
    MUST(cuStreamSynchronize(move.stream));
    lap(&begin);
    copy(ON_DEVICE, moved);
    MUST(cuStreamSynchronize(move.stream));
    move.times[BACK][round] = lap(&begin);
    map(0, moved);
    move.times[MAP][round] = lap(&begin);
    move.slower[round] = background_end(begin - all);
    if (round % HOST_EVERY == 0) {
        move.wrong[ON_HOST] += wrong_words(move.alias[ON_HOST], first);
    }
    move.wrong[ON_DEVICE] += wrong_words(move.home, first);
}

static void show(size_t rounds)
{
    static const char *const names[STEPS] = {"unmap the home addresses, a GiB", "copy out, a GiB",
                                             "copy back, a GiB", "map and set access, a GiB"};
    static const char *const where[] = {"content at home", "content on the host"};
    const double gib = (double)(CHUNKS * move.bytes) / (double)GIB;
    char detail[64];

    for (enum tier tier = ON_DEVICE; tier <= ON_HOST; tier++) {
        snprintf(detail, sizeof(detail), "%zu rounds, %llu words differ", rounds,
                 (unsigned long long)move.wrong[tier]);
        probe_verdict(move.wrong[tier] == 0, where[tier], detail);
    }
    for (enum step step = UNMAP; step < STEPS; step++) {
        probe_time(names[step], probe_median(move.times[step], rounds) / 1e3 / gib, "ms");
    }
    probe_time("an unrelated kernel beside it, slower", probe_median(move.slower, rounds), "times");
}

void section_unmap_then_copy(const char *argument)
{
    const size_t most = probe_repeat(ROUNDS);
    const double end = probe_now() + SECONDS * 1e6;
    size_t rounds = 0;

    if (!memory_find_host()) {
        return;
    }
    move.bytes = probe.tiny ? 2 * MIB : 64 * MIB;
    background_open();
    kernels_warm_up();
    set_up();
    while (rounds < most && probe_now() < end) {
        run_round(rounds++);
    }
    show(rounds);
}
