/* A random program with many streams on the pool, judged by the happens-before oracle.
 *
 *     stream_order [--operations N] [--seed S] [--runs R] [--check N] [--finding]
 *
 * Streams are created and destroyed and their handles reused. Blocks are allocated and freed with
 * and without a stream and used on other streams behind events. Meanwhile the device falls behind,
 * captures forbid fences, calls fail, and limits, charges and trims change. Refusing memory that
 * was available is a finding too. The pool's invariants are checked after every operation, or every
 * N operations. Exit code 0: no finding; 1: a finding, with its seed. With --finding the opposite,
 * for pools that are broken on purpose. */
#include "oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool/pool.h"

enum {
    BLOCKS_MOST = 512,
    ARENA_GRANULES = 2048,
};

struct block {
    uint64_t address, bytes;
    int home; /* slot of the allocation; -1: without a stream */
    void *context;
    struct oracle_clock needs; /* items that must be before its free */
};

struct program {
    struct oracle oracle;
    struct spw_counters counters;
    struct spw_pool *pool;
    struct block blocks[BLOCKS_MOST];
    size_t block_count;
    uint64_t limit, charged;
    uint64_t unordered;  /* percent of allocations and frees without a stream */
    size_t most_blocks;  /* drifts, so that memory fills and empties */
    int stuck;           /* slot whose work does not complete by itself */
    size_t capture_left; /* operations until the capture ends */
    struct {
        bool open; /* a thread of the program waits for the device */
        bool all;  /* for all of it, else for one stream */
        struct spw_stream stream;
        struct oracle_clock covers;
        uint64_t clock; /* of the pool, before the wait */
    } wait;
    uint64_t allocs, refusals;
};

static uint64_t draw(struct program *program, uint64_t bound)
{
    return oracle_random(&program->oracle, bound);
}

/* ---- streams ---- */

static int any_stream(struct program *program)
{
    int first = (int)draw(program, ORACLE_SLOTS);

    for (int i = 0; i < ORACLE_SLOTS; i++) {
        int slot = (first + i) % ORACLE_SLOTS;

        if (program->oracle.slots[slot].live) {
            return slot;
        }
    }
    return oracle_stream_create(&program->oracle);
}

static void *any_context(struct program *program)
{
    static char contexts[2];

    return &contexts[draw(program, 2)];
}

static void create_stream(struct program *program)
{
    int slot = oracle_stream_create(&program->oracle);

    if (slot >= 0) {
        program->oracle.slots[slot].stream.context = any_context(program);
    }
}

static size_t count_streams(const struct program *program)
{
    size_t count = 0;

    for (int i = 0; i < ORACLE_SLOTS; i++) {
        count += program->oracle.slots[i].live;
    }
    return count;
}

/* Creates or destroys a stream, or destroys all but one, since a process with one stream is treated
 * specially. */
static void change_streams(struct program *program)
{
    size_t kind = draw(program, 5), target = count_streams(program);

    target = kind == 0 ? 1 : kind < 3 ? target + 1 : target - (target > 1);
    while (count_streams(program) > target) {
        int slot = any_stream(program);

        spw_pool_retire_stream(program->pool, &program->oracle.slots[slot].stream);
        oracle_stream_destroy(&program->oracle, slot);
    }
    if (count_streams(program) < target) {
        create_stream(program);
    }
}

/* Orders the use of a block in another stream, as a correct program must: by events where it can,
 * by a host wait where the other stream is gone. */
static void order_after(struct program *program, int slot, const struct oracle_clock *needs)
{
    struct oracle *oracle = &program->oracle;

    for (int i = 0; i < ORACLE_SLOTS; i++) {
        if (needs->at[i] <= oracle->slots[i].completed ||
            needs->at[i] <= oracle->slots[slot].now.at[i]) {
            continue;
        }
        if (oracle->slots[i].live) {
            oracle_order(oracle, slot, i);
        } else {
            oracle_complete(oracle, i, needs->at[i]);
        }
    }
}

/* ---- blocks ---- */

static uint64_t draw_bytes(struct program *program)
{
    uint64_t granule = program->oracle.granule_bytes, unit = program->oracle.unit_bytes;
    uint64_t most = 4 * unit;
    uint64_t kind = draw(program, 100);

    if (kind >= 98) {
        most = granule * 48;
    } else if (kind >= 85) {
        most = granule * 8;
    } else if (kind >= 40) {
        most = granule;
    }
    return unit + draw(program, most / unit) * unit - (unit == 512 ? draw(program, 512) : 0);
}

/* Finds refusals that were not needed: waiting would have freed every chunk without a block, and
 * with that many chunks the block would have fitted anywhere. */
static void judge_refusal(struct program *program, uint64_t bytes)
{
    struct oracle *oracle = &program->oracle;
    size_t granules = (size_t)(bytes / oracle->granule_bytes) + 2;
    size_t pinned = oracle_pinned(oracle);
    size_t most = (size_t)((program->limit - program->charged) / oracle->granule_bytes);

    program->refusals++;
    most = program->charged > program->limit ? 0 : most;
    most = oracle->most_chunks < most ? oracle->most_chunks : most;
    if (oracle->failure_odds == 0 && !oracle->capturing && pinned + granules <= most) {
        oracle_find(oracle, "%" PRIu64 " bytes refused with %zu of %zu chunks under blocks", bytes,
                    pinned, most);
    }
}

static void allocate(struct program *program)
{
    struct oracle *oracle = &program->oracle;
    int slot = draw(program, 100) < program->unordered ? -1 : any_stream(program);
    struct block block = {
        .bytes = draw_bytes(program), .home = slot, .context = any_context(program)};
    const struct spw_stream *stream = slot >= 0 ? &oracle->slots[slot].stream : NULL;
    const struct spw_request request = {
        .bytes = block.bytes, .stream = stream, .context = block.context};
    struct spw_result result;

    if (spw_pool_alloc(program->pool, &request, &result) != SPW_OK) {
        judge_refusal(program, block.bytes);
        return;
    }
    block.address = result.address;
    program->allocs++;
    oracle_judge_alloc(oracle, block.address, block.bytes, slot);
    if (slot >= 0) {
        block.needs.at[slot] = oracle_submit(oracle, slot);
    }
    program->blocks[program->block_count++] = block;
}

static void use(struct program *program)
{
    struct block *block = &program->blocks[draw(program, program->block_count)];
    int slot = any_stream(program);

    if (block->home >= 0 && block->home != slot) {
        order_after(program, slot, &block->needs);
    }
    block->needs.at[slot] = oracle_submit(&program->oracle, slot);
}

static void give_back(struct program *program)
{
    struct oracle *oracle = &program->oracle;
    size_t i = draw(program, program->block_count);
    struct block *block = &program->blocks[i];
    int slot = draw(program, 100) < program->unordered ? -1 : any_stream(program);
    uint64_t number = 0;

    if (slot >= 0 && block->home >= 0 && draw(program, 2) == 0 && oracle->slots[block->home].live) {
        slot = block->home;
    }
    if (slot >= 0) {
        order_after(program, slot, &block->needs);
        number = oracle_submit(oracle, slot);
    }
    oracle_note_free(oracle, block->address, block->bytes, slot, number);
    if (spw_pool_free(program->pool, block->address,
                      slot >= 0 ? &oracle->slots[slot].stream : NULL) != SPW_OK) {
        oracle_find(oracle, "a block cannot be freed");
    }
    *block = program->blocks[--program->block_count];
}

/* ---- other operations ---- */

static void trim(struct program *program)
{
    uint64_t keep = draw(program, program->limit), released;

    released = spw_pool_trim(program->pool, draw(program, 2) == 0 ? 0 : keep);
    if (released % program->oracle.granule_bytes != 0) {
        oracle_find(&program->oracle, "trim released a part of a chunk");
    }
}

static void charge(struct program *program)
{
    uint64_t bytes = program->oracle.granule_bytes * (1 + draw(program, 32));

    if (program->charged > 0 && draw(program, 2) == 0) {
        spw_pool_discharge(program->pool, program->charged, /* site */ 0);
        program->charged = 0;
    } else if (spw_pool_charge(program->pool, bytes, /* site */ 0, false) == SPW_OK) {
        program->charged += bytes;
    }
}

static void move_limit(struct program *program)
{
    uint64_t most = ARENA_GRANULES / 4 * program->oracle.granule_bytes;

    program->limit = most / 4 + draw(program, most);
    spw_pool_set_limit(program->pool, program->limit);
}

static void capture(struct program *program)
{
    program->oracle.capturing = true;
    program->capture_left = draw(program, 200);
}

/* Begins a host wait of the program; other operations go on meanwhile. */
static void begin_wait(struct program *program)
{
    int slot = any_stream(program);

    program->wait.open = true;
    program->wait.all = draw(program, 2) == 0;
    program->wait.stream = program->oracle.slots[slot].stream;
    program->wait.clock = spw_pool_clock(program->pool);
    program->wait.covers = oracle_submitted(&program->oracle, program->wait.all ? -1 : slot);
}

static void end_wait(struct program *program)
{
    program->wait.open = false;
    oracle_synchronize(&program->oracle, &program->wait.covers);
    spw_pool_synchronized(program->pool, program->wait.all ? NULL : &program->wait.stream,
                          program->wait.clock);
}

/* Destroys a context, with its streams and its blocks without a stream, when the device is idle. */
static void lose_context(struct program *program)
{
    struct oracle *oracle = &program->oracle;
    struct oracle_clock all = oracle_submitted(oracle, -1);
    void *context = any_context(program);
    size_t kept = 0;

    oracle_synchronize(oracle, &all);
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        if (oracle->slots[i].live && oracle->slots[i].stream.context == context) {
            spw_pool_retire_stream(program->pool, &oracle->slots[i].stream);
            oracle_stream_destroy(oracle, i);
        }
    }
    for (size_t i = 0; i < program->block_count; i++) {
        const struct block *block = &program->blocks[i];

        if (block->home < 0 && block->context == context) {
            oracle_note_free(oracle, block->address, block->bytes, -1, 0);
        } else {
            program->blocks[kept++] = *block;
        }
    }
    program->block_count = kept;
    spw_pool_free_context(program->pool, context);
}

static void wait_on_host(struct program *program)
{
    if (!program->wait.open) {
        begin_wait(program);
    }
}

static void jam(struct program *program)
{
    program->stuck = any_stream(program);
}

static void refresh_access(struct program *program)
{
    (void)spw_pool_refresh_access(program->pool);
}

static void fill_or_empty(struct program *program)
{
    program->most_blocks = 1 + draw(program, BLOCKS_MOST - 1);
}

static void rare(struct program *program)
{
    static const struct {
        void (*act)(struct program *program);
        unsigned weight;
    } acts[] = {
        {lose_context, 1},    {trim, 3},           {charge, 3},
        {move_limit, 3},      {capture, 3},        {jam, 6},
        {wait_on_host, 3},    {refresh_access, 3}, {fill_or_empty, 12},
        {change_streams, 12},
    };
    unsigned sum = 0;
    uint64_t drawn;
    size_t i = 0;

    for (size_t k = 0; k < sizeof(acts) / sizeof(acts[0]); k++) {
        sum += acts[k].weight;
    }
    for (drawn = draw(program, sum); drawn >= acts[i].weight; i++) {
        drawn -= acts[i].weight;
    }
    acts[i].act(program);
}

static void operate(struct program *program)
{
    uint64_t kind = draw(program, 1000);

    if (program->oracle.capturing && program->capture_left-- == 0) {
        program->oracle.capturing = false;
    }
    if (program->wait.open && draw(program, 100) == 0) {
        end_wait(program);
    }
    if (kind < 20) {
        rare(program);
    } else if (kind < 100) {
        int slot = (int)draw(program, ORACLE_SLOTS);

        if (slot != program->stuck) {
            oracle_progress(&program->oracle, slot);
        }
    } else if (kind < 120) {
        oracle_order(&program->oracle, any_stream(program), any_stream(program));
    } else if (program->block_count > 0 && kind < 300) {
        use(program);
    } else if (program->block_count > 0 &&
               (program->block_count >= program->most_blocks || kind < 600)) {
        give_back(program);
    } else {
        allocate(program);
    }
}

/* ---- runs ---- */

static void start(struct program *program, uint64_t seed)
{
    struct oracle *oracle = &program->oracle;
    struct spw_pool_config config = {.growth_permille = seed % 5 == 0 ? 0 : 150};

    memset(program, 0, sizeof(*program));
    /* Odd seeds: small granules, so that blocks of every size share and span them. Even ones: the
     * real size, with the small heap left out, since units are large. */
    oracle_init(oracle, seed % 2 != 0 ? 64 << 10 : 2 << 20, seed % 2 != 0 ? 512 : 16 << 10, seed);
    oracle->failure_odds = seed % 3 == 0 ? 300 : 0;
    oracle->most_chunks = seed % 4 == 0 ? ARENA_GRANULES / 8 : SIZE_MAX;
    program->limit = ARENA_GRANULES / 6 * oracle->granule_bytes;
    program->most_blocks = BLOCKS_MOST / 2;
    program->unordered = draw(program, 3) * 30;
    config.granule_bytes = oracle->granule_bytes;
    config.arena_bytes = ARENA_GRANULES * oracle->granule_bytes;
    config.limit_bytes = program->limit;
    if (spw_pool_create(&config, &oracle->seam, &program->counters, &program->pool) != SPW_OK) {
        oracle_find(oracle, "the pool cannot be created");
    }
}

/* Frees everything and trims: unless calls fail, nothing may be left. A pool that went wrong is
 * left alone. */
static void finish(struct program *program)
{
    struct oracle *oracle = &program->oracle;

    if (oracle->findings != 0) {
        spw_pool_abandon(program->pool);
        oracle_fini(oracle);
        return;
    }
    oracle->capturing = false;
    while (program->block_count > 0) {
        give_back(program);
    }
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        oracle_complete(oracle, i, oracle->slots[i].submitted);
    }
    (void)spw_pool_trim(program->pool, 0);
    if (oracle->failures == 0 && oracle->chunks != 0) {
        oracle_find(oracle, "%zu chunks are left after everything was freed and trimmed",
                    oracle->chunks);
    }
    oracle->failure_odds = 0;
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        oracle->known.at[i] = oracle->slots[i].completed; /* destroy may rely on it */
    }
    spw_pool_destroy(program->pool);
    oracle_fini(oracle);
}

static size_t run(struct program *program, uint64_t seed, uint64_t operations, uint64_t check_every)
{
    struct oracle *oracle = &program->oracle;
    uint64_t i;

    start(program, seed);
    for (i = 0; i < operations && oracle->findings == 0; i++) {
        operate(program);
        if (i % check_every == 0) {
            const char *broken = spw_pool_check(program->pool);

            if (broken != NULL) {
                oracle_find(oracle, "%s", broken);
            }
        }
    }
    finish(program);
    printf("seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " allocations, %" PRIu64
           " refused, %" PRIu64 " steals, %" PRIu64 " stream waits, %zu host waits, %zu fences, "
           "%zu unmaps, %zu failures\n",
           seed, i, program->allocs, program->refusals, spw_counter_get(&program->counters.steals),
           spw_counter_get(&program->counters.stream_waits), oracle->waits, oracle->fences,
           oracle->unmaps, oracle->failures);
    if (oracle->findings != 0) {
        printf("seed %" PRIu64 ", operation %" PRIu64 ": %s (%zu findings)\n", seed, i,
               oracle->first, oracle->findings);
    }
    return oracle->findings;
}

int main(int argc, char **argv)
{
    uint64_t operations = 100000, seed = (uint64_t)time(NULL), runs = 1, check_every = 1;
    bool finding = false, found = false;
    struct program *program = malloc(sizeof(*program));

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--finding") == 0) {
            finding = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--operations") == 0) {
            operations = strtoull(argv[++i], NULL, 0);
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 0);
        } else if (i + 1 < argc && strcmp(argv[i], "--check") == 0) {
            check_every = strtoull(argv[++i], NULL, 0);
        } else if (i + 1 < argc && strcmp(argv[i], "--runs") == 0) {
            runs = strtoull(argv[++i], NULL, 0);
        } else {
            fprintf(stderr, "stream_order: what is %s?\n", argv[i]);
            return 2;
        }
    }
    for (uint64_t i = 0; i < runs && !found; i++) {
        found = run(program, seed + i, operations, check_every) != 0;
    }
    free(program);
    return found == finding ? 0 : 1;
}
