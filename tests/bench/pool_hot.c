/* Nanoseconds of an allocate/free pair in the pool alone, on a device in plain memory: lines of
 * "name number". Sizes are those of a trace. `pair`: a block is freed right after it was allocated,
 * beside so many live ones. `replace`: a random live block is freed and another one allocated, so
 * that neither its record nor its neighbours are in the cache. The best mean of several runs, in
 * time of the processor, as other work on the machine would disturb it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake_vm.h"
#include "pool/pool.h"
#include "trace.h"

enum { ROUNDS = 50000, REPEATS = 20, WARM_UP = 300000 };

struct bench {
    struct fake_vm vm;
    struct spw_counters counters;
    struct spw_pool *pool;
    struct trace trace;
    uint64_t *blocks;
    size_t live;
    uint64_t random;
};

static const struct spw_stream stream = {.id = 1};

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static uint64_t draw(struct bench *bench, uint64_t bound)
{
    bench->random = bench->random * 6364136223846793005ull + 1442695040888963407ull;
    return (bench->random >> 33) % bound;
}

static uint64_t allocate(struct bench *bench)
{
    uint64_t bytes = bench->trace.sizes[draw(bench, bench->trace.buffer_count)], address = 0;

    if (spw_pool_alloc(bench->pool, bytes, &stream, NULL, &address) != SPW_OK) {
        fputs("pool_hot: an allocation failed\n", stderr);
        exit(1);
    }
    return address;
}

static void pairs(struct bench *bench, size_t rounds)
{
    for (size_t i = 0; i < rounds; i++) {
        (void)spw_pool_free(bench->pool, allocate(bench), &stream);
    }
}

static void replacements(struct bench *bench, size_t rounds)
{
    for (size_t i = 0; i < rounds; i++) {
        uint64_t *block = &bench->blocks[draw(bench, bench->live)];

        (void)spw_pool_free(bench->pool, *block, &stream);
        *block = allocate(bench);
    }
}

static void measure(struct bench *bench, const char *name,
                    void (*work)(struct bench *bench, size_t rounds))
{
    double best = 1e9;

    work(bench, WARM_UP);
    for (int i = 0; i < REPEATS; i++) {
        double begin = now_ns(), mean;

        work(bench, ROUNDS);
        mean = (now_ns() - begin) / ROUNDS;
        best = mean < best ? mean : best;
    }
    printf("%s, %zu live %.3f\n", name, bench->live, best);
}

int main(int argc, char **argv)
{
    static const size_t live_counts[] = {10, 1000, 10000, 100000};
    static struct bench bench = {.random = 1};
    struct spw_pool_config config = {.granule_bytes = FAKE_GRANULE,
                                     .arena_bytes = 4ull << 40,
                                     .limit_bytes = 4ull << 40,
                                     .growth_permille = 1000};

    if (argc != 2 || trace_read(argv[1], &bench.trace) != 0) {
        fputs("usage: pool_hot TRACE.csv\n", stderr);
        return 2;
    }
    fake_vm_init(&bench.vm);
    bench.vm.immediate = true;
    bench.blocks = calloc(live_counts[3], sizeof(uint64_t));
    if (spw_pool_create(&config, &fake_vm_ops, &bench.vm, &bench.counters, &bench.pool) != SPW_OK) {
        return 1;
    }
    for (size_t i = 0; i < sizeof(live_counts) / sizeof(live_counts[0]); i++) {
        while (bench.live < live_counts[i]) {
            bench.blocks[bench.live++] = allocate(&bench);
        }
        measure(&bench, "pair", pairs);
        measure(&bench, "replace", replacements);
    }
    spw_pool_destroy(bench.pool);
    free(bench.blocks);
    trace_free(&bench.trace);
    fake_vm_fini(&bench.vm);
    return 0;
}
