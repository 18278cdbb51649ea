/* Chunks of several sizes: what they are created as, and that they are stolen and moved whole. */
#include "pool/pool.h"
#include "pool_fixture.h"

/* A chunk is at most 1/512 of the memory that the pool has, and of the room that is left. */
enum { LARGEST = 32, SHARE = 512, BASE = LARGEST * SHARE, ROOMY = 4 * BASE, HOST = 4 * BASE };

/* Opens a pool whose limit allows chunks of any size. */
static void open_empty(struct pool_fixture *f, uint32_t growth)
{
    pool_open_as(f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                              .chunk_bytes = (uint64_t)LARGEST * GRANULE,
                                              .arena_bytes = 4ull * ROOMY * GRANULE,
                                              .limit_bytes = (uint64_t)ROOMY * GRANULE,
                                              .growth_permille = growth});
}

/* Opens a pool whose limit and size allow chunks of any size, with a host tier of that kind. */
static void open_chunks(struct pool_fixture *f, uint32_t growth)
{
    const struct spw_block_attributes fix = {.fix = SPW_FIXED_BY_PROGRAM};
    bool moves = false;
    uint64_t base;

    open_empty(f, growth);
    assert_int_equal(spw_pool_open_host(f->pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f->vm.immediate = true;
    base = pool_alloc(f, (uint64_t)BASE * GRANULE, &stream_a);
    assert_int_equal(spw_pool_set_attributes(f->pool, base, 1, &fix), 1);
}

/* Sets the limit to so many granules besides the base. */
static void set_limit(struct pool_fixture *f, size_t granules)
{
    spw_pool_set_limit(f->pool, (BASE + granules) * GRANULE);
}

/* The granules of chunks on the device, besides the base. */
static uint64_t committed(const struct pool_fixture *f)
{
    return spw_counter_get(&f->counters.committed_bytes) / GRANULE - BASE;
}

/* Trims to so many granules besides the base. Returns how many were released. */
static uint64_t trim(struct pool_fixture *f, size_t keep)
{
    return spw_pool_trim(f->pool, (BASE + keep) * GRANULE) / GRANULE;
}

static void test_sizes(void **state)
{
    const struct {
        size_t granules, creates;
    } rows[] = {{1, 1}, {2, 1}, {3, 2}, {31, 5}, {32, 1}, {33, 2}, {100, 4}};
    struct pool_fixture f;

    open_chunks(&f, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f.vm.calls[FAKE_CREATE] = f.vm.calls[FAKE_MAP] = 0;
        (void)pool_alloc(&f, rows[i].granules * GRANULE, &stream_a);
        assert_int_equal(f.vm.calls[FAKE_CREATE], rows[i].creates);
        assert_int_equal(f.vm.calls[FAKE_MAP], rows[i].creates);
    }
    assert_int_equal(committed(&f), 1 + 2 + 3 + 31 + 32 + 33 + 100);
    pool_close(&f);
}

/* The less room is left, the smaller are the chunks. (The base is made of large chunks.) */
static void test_sizes_by_room(void **state)
{
    const struct {
        size_t limit, creates;
    } rows[] = {{ROOMY, 1}, {8192 + 32, 2}, {2048 + 32, 8}, {1024 + 32, 16}, {512, 32}, {33, 32}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pool_fixture f;

        open_chunks(&f, 0);
        set_limit(&f, rows[i].limit);
        f.vm.calls[FAKE_CREATE] = 0;
        (void)pool_alloc(&f, LARGEST * GRANULE, &stream_a);
        assert_int_equal(f.vm.calls[FAKE_CREATE], rows[i].creates);
        pool_close(&f);
    }
}

/* A small pool has small chunks. */
static void test_sizes_by_pool(void **state)
{
    struct pool_fixture f;

    open_empty(&f, 0);
    (void)pool_alloc(&f, 100 * GRANULE, &stream_a);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 100);
    (void)pool_alloc(&f, 2ull * SHARE * GRANULE, &stream_a);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 100 + SHARE);
    pool_close(&f);
}

/* The device refuses a large chunk: smaller ones fill what is left of it. */
static void test_sizes_by_device(void **state)
{
    struct pool_fixture f;

    open_chunks(&f, 0);
    f.vm.most_chunks = BASE + 23;
    (void)pool_alloc(&f, 23 * GRANULE, &stream_a);
    assert_int_equal(f.vm.chunks, BASE + 23);
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_NO_MEMORY);
    pool_close(&f);
}

/* A chunk is stolen only when all of it is free. */
static void test_steals_whole_chunks(void **state)
{
    struct pool_fixture f;
    uint64_t block, parts[2];

    open_chunks(&f, 0);
    block = pool_alloc(&f, 32 * GRANULE, &stream_a);
    pool_free(&f, block, &stream_a);
    parts[0] = pool_alloc(&f, 16 * GRANULE, &stream_a);
    parts[1] = pool_alloc(&f, 16 * GRANULE, &stream_a);
    assert_int_equal(committed(&f), 32);
    pool_free(&f, parts[1], &stream_a);
    set_limit(&f, 32);
    pool_refuse(&f, 17 * GRANULE, &stream_b, SPW_E_LIMIT);
    assert_int_equal(spw_counter_get(&f.counters.steals), 0);
    pool_free(&f, parts[0], &stream_a);
    block = pool_alloc(&f, 32 * GRANULE, &stream_b);
    assert_int_equal(committed(&f), 32);
    pool_free(&f, block, &stream_b);
    pool_close(&f);
}

/* When a part of a chunk is to be released, smaller ones take its place. */
static void test_splits(void **state)
{
    struct pool_fixture f;

    open_chunks(&f, 0);
    pool_free(&f, pool_alloc(&f, 32 * GRANULE, &stream_a), &stream_a);
    f.vm.calls[FAKE_CREATE] = 0;
    assert_int_equal(trim(&f, 31), 1);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 6);
    assert_int_equal(f.vm.chunks, BASE + 31);
    (void)pool_alloc(&f, 25 * GRANULE, &stream_a);
    (void)pool_alloc(&f, 6 * GRANULE, &stream_a);
    assert_int_equal(committed(&f), 31);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 6);
    pool_close(&f);
}

/* Trimming releases what is asked for, and no more, whatever the sizes of the chunks. */
static void test_trims_exactly(void **state)
{
    for (size_t keep = 0; keep <= 40; keep++) {
        struct pool_fixture f;

        open_chunks(&f, 0);
        pool_free(&f, pool_alloc(&f, 40 * GRANULE, &stream_a), &stream_a);
        assert_int_equal(trim(&f, keep), 40 - keep);
        assert_int_equal(committed(&f), keep);
        pool_check(&f);
        pool_close(&f);
    }
}

/* ---- moves ---- */

static uint64_t finish_move(struct pool_fixture *f)
{
    uint64_t bytes = 0;

    if (spw_pool_move_copy(f->pool, f->move, true) == SPW_OK &&
        spw_pool_move_poll(f->pool, f->move) == SPW_OK &&
        spw_pool_move_drain(f->pool, f->move) == SPW_OK) {
        (void)spw_pool_move_commit(f->pool, f->move, &bytes);
        pool_check(f);
    }
    for (int i = 0; i < 3 && spw_pool_move_end(f->pool, f->move) != SPW_OK; i++) {
        pool_check(f);
    }
    pool_check(f);
    return bytes / GRANULE;
}

/* Moves the chunks of some granules of a block. Returns how many granules moved. */
static uint64_t move_part(struct pool_fixture *f, uint64_t block, size_t first, size_t count,
                          enum spw_tier to)
{
    struct spw_move_place places[64];
    const struct spw_move_request request = {.places = places, .count = count};

    for (size_t i = 0; i < count; i++) {
        places[i] = (struct spw_move_place){
            .block = block, .granule = block + (first + i) * GRANULE, .to = to};
    }
    return spw_pool_move_begin(f->pool, &request, &f->move) == SPW_OK ? finish_move(f) : 0;
}

static void test_moves_whole_chunks(void **state)
{
    struct pool_fixture f;
    uint64_t block;

    open_chunks(&f, 0);
    block = pool_alloc(&f, 24 * GRANULE, &stream_a); /* 16 and 8 granules */
    fake_vm_write(&f.vm, block, 24 * GRANULE, 100);
    f.vm.calls[FAKE_MAP] = 0;
    assert_int_equal(move_part(&f, block, 17, 1, SPW_TIER_HOST), 8);
    pool_expect(&f, block, 24, 100, 8);
    assert_int_equal(f.vm.calls[FAKE_MAP], 2); /* at the second address, and in place */
    assert_int_equal(move_part(&f, block, 0, 1, SPW_TIER_HOST), 16);
    pool_expect(&f, block, 24, 100, 24);
    assert_int_equal(move_part(&f, block, 23, 1, SPW_TIER_DEVICE), 8);
    pool_expect(&f, block, 24, 100, 16);
    pool_close(&f);
}

/* A host that has room for granules, but not for the chunk that is left, is full; a device with
 * nothing on it has nothing to move. */
static void test_no_room_for_a_chunk(void **state)
{
    const struct spw_move_request all = {.to = SPW_TIER_HOST, .bytes = 64 * GRANULE};
    struct pool_fixture f;
    uint64_t block;

    open_chunks(&f, 0);
    spw_pool_set_host_limit(f.pool, 20 * GRANULE);
    block = pool_alloc(&f, 24 * GRANULE, &stream_a); /* 16 and 8 granules */
    assert_int_equal(spw_pool_move_begin(f.pool, &all, &f.move), SPW_OK);
    assert_int_equal(finish_move(&f), 16);
    assert_int_equal(spw_pool_move_begin(f.pool, &all, &f.move), SPW_E_NO_MEMORY);
    spw_pool_set_host_limit(f.pool, 24 * GRANULE);
    assert_int_equal(move_part(&f, block, 16, 1, SPW_TIER_HOST), 8);
    assert_int_equal(spw_pool_move_begin(f.pool, &all, &f.move), SPW_E_NOTHING);
    pool_close(&f);
}

/* Neighbours that move together are one chunk from then on. */
static void test_joins_neighbours(void **state)
{
    struct pool_fixture f;
    uint64_t block;

    open_chunks(&f, 0);
    set_limit(&f, 33);
    f.vm.calls[FAKE_CREATE] = 0;
    block = pool_alloc(&f, 19 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 19 * GRANULE, 100);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 19);
    set_limit(&f, ROOMY);
    f.vm.calls[FAKE_MAP] = 0;
    assert_int_equal(move_part(&f, block, 0, 19, SPW_TIER_HOST), 19);
    assert_int_equal(f.vm.calls[FAKE_MAP], 2 * 3); /* 16, 2 and 1 */
    pool_expect(&f, block, 19, 100, 19);
    f.vm.calls[FAKE_MAP] = 0;
    assert_int_equal(move_part(&f, block, 5, 1, SPW_TIER_DEVICE), 16);
    assert_int_equal(f.vm.calls[FAKE_MAP], 2);
    pool_expect(&f, block, 19, 100, 3);
    pool_close(&f);
}

/* A large chunk comes to the device when there are only small ones left: they are replaced. */
static void test_merges(void **state)
{
    struct pool_fixture f;
    uint64_t block, other;

    open_chunks(&f, 0);
    block = pool_alloc(&f, 32 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 32 * GRANULE, 100);
    set_limit(&f, 32 + 33);
    other = pool_alloc(&f, 33 * GRANULE, &stream_a);
    assert_int_equal(move_part(&f, block, 0, 1, SPW_TIER_HOST), 32);
    assert_int_equal(trim(&f, 33), 32);
    set_limit(&f, 33);
    pool_free(&f, other, &stream_a);
    f.vm.calls[FAKE_CREATE] = 0;
    assert_int_equal(move_part(&f, block, 0, 1, SPW_TIER_DEVICE), 32);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 1);
    pool_expect(&f, block, 32, 100, 0);
    assert_int_equal(committed(&f), 33);
    pool_close(&f);
}

/* When memory for large chunks is short, those that are needed first come first. */
static void test_urgent_first(void **state)
{
    struct pool_fixture f;
    uint64_t block;
    struct spw_move_place places[2];
    const struct spw_move_request request = {.places = places, .count = 2};

    open_chunks(&f, 0);
    block = pool_alloc(&f, 48 * GRANULE, &stream_a); /* 32 and 16 granules */
    fake_vm_write(&f.vm, block, 48 * GRANULE, 100);
    assert_int_equal(move_part(&f, block, 0, 48, SPW_TIER_HOST), 48);
    assert_int_equal(trim(&f, 0), 48);
    set_limit(&f, 33);
    places[0] = (struct spw_move_place){block, block + 40 * GRANULE, SPW_TIER_DEVICE};
    places[1] = (struct spw_move_place){block, block, SPW_TIER_DEVICE};
    assert_int_equal(spw_pool_move_begin(f.pool, &request, &f.move), SPW_OK);
    assert_int_equal(finish_move(&f), 16);
    pool_expect(&f, block, 32, 100, 32);
    pool_expect(&f, block + 32 * GRANULE, 16, 132, 0);
    pool_close(&f);
}

/* A block that must stay keeps the whole chunk. */
static void test_fixed_blocks_keep_chunks(void **state)
{
    const struct spw_block_attributes fix = {.fix = SPW_FIXED_BY_PROGRAM},
                                      unfix = {.unfix = SPW_FIXED_BY_PROGRAM};
    struct pool_fixture f;
    uint64_t block, parts[2];

    open_chunks(&f, 0);
    block = pool_alloc(&f, 32 * GRANULE, &stream_a);
    pool_free(&f, block, &stream_a);
    parts[0] = pool_alloc(&f, 16 * GRANULE, &stream_a);
    parts[1] = pool_alloc(&f, 16 * GRANULE, &stream_a);
    assert_int_equal(committed(&f), 32);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(spw_pool_set_attributes(f.pool, parts[i], 1, &fix), 1);
        assert_int_equal(move_part(&f, parts[!i], 0, 1, SPW_TIER_HOST), 0);
        assert_int_equal(spw_pool_set_attributes(f.pool, parts[i], 1, &unfix), 1);
    }
    assert_int_equal(move_part(&f, parts[0], 0, 1, SPW_TIER_HOST), 32);
    pool_close(&f);
}

/* ---- anything, in any order ---- */

enum { BLOCKS = 24, STEPS = 250, SEEDS = 40 };

struct random_program {
    struct pool_fixture f;
    uint64_t seed;
    struct {
        uint64_t address, granules, value;
    } blocks[BLOCKS];
};

static uint64_t draw(struct random_program *p, uint64_t bound)
{
    p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (p->seed >> 33) % bound;
}

static void draw_block(struct random_program *p, size_t i)
{
    const struct spw_stream *stream = draw(p, 2) == 0 ? &stream_a : &stream_b;
    uint64_t host;

    if (p->blocks[i].address != 0) {
        assert_int_equal(spw_pool_free(p->f.pool, p->blocks[i].address, stream), SPW_OK);
        p->blocks[i].address = 0;
        return;
    }
    p->blocks[i].granules = 1 + draw(p, draw(p, 3) == 0 ? 70 : 8);
    p->blocks[i].value = (p->seed >> 20) % 1000000 * 1000;
    if (pool_try_anywhere(&p->f, p->blocks[i].granules * GRANULE, stream, &p->blocks[i].address,
                          &host) != SPW_OK) {
        p->blocks[i].address = 0;
    } else {
        fake_vm_write(&p->f.vm, p->blocks[i].address, p->blocks[i].granules * GRANULE,
                      p->blocks[i].value);
    }
}

static void draw_move(struct random_program *p, size_t i)
{
    enum spw_tier to = draw(p, 2) == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE;
    const struct spw_move_request any = {.to = to, .bytes = draw(p, 100) * GRANULE};

    if (draw(p, 3) == 0) {
        (void)(spw_pool_move_begin(p->f.pool, &any, &p->f.move) == SPW_OK && finish_move(&p->f));
    } else if (p->blocks[i].address != 0) {
        size_t first = draw(p, p->blocks[i].granules);
        size_t most = p->blocks[i].granules - first;

        (void)move_part(&p->f, p->blocks[i].address, first, 1 + draw(p, most < 64 ? most : 64), to);
    }
}

/* Makes a call fail that is not far away. */
static void draw_fault(struct random_program *p)
{
    static const enum fake_call calls[] = {FAKE_CREATE, FAKE_RELEASE, FAKE_MAP, FAKE_ACCESS,
                                           FAKE_UNMAP};

    p->f.vm.fail_call = (int)calls[draw(p, 5)];
    p->f.vm.fail_after = (int)draw(p, 12);
    p->f.vm.fail_more = (int)draw(p, 3);
}

static void check_blocks(struct random_program *p)
{
    uint64_t lost;

    pool_check(&p->f);
    for (int i = 0; i < 5 && spw_pool_move_lost(p->f.pool, &lost) != 0; i++) {
        (void)spw_pool_move_remap_lost(p->f.pool);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        uint64_t bytes = p->blocks[i].granules * GRANULE;

        if (p->blocks[i].address != 0) {
            assert_true(fake_vm_usable(&p->f.vm, p->blocks[i].address, bytes));
            assert_int_equal(
                fake_vm_differs(&p->f.vm, p->blocks[i].address, bytes, p->blocks[i].value), 0);
        }
    }
}

static void run_random(uint64_t seed, bool faults)
{
    struct random_program p = {.seed = seed};

    open_chunks(&p.f, seed % 3 == 0 ? 0 : 100);
    for (size_t step = 0; step < STEPS; step++) {
        uint64_t what = draw(&p, 100);
        size_t block = draw(&p, BLOCKS);

        p.f.vm.fail_call = -1;
        if (faults && draw(&p, 8) == 0) {
            draw_fault(&p);
        }
        if (what < 55) {
            draw_block(&p, block);
        } else if (what < 90) {
            draw_move(&p, block);
        } else if (what < 95) {
            (void)trim(&p.f, draw(&p, 400));
        } else {
            set_limit(&p.f, draw(&p, 2) == 0 ? ROOMY : 64 + draw(&p, 4096));
        }
        p.f.vm.fail_call = -1;
        check_blocks(&p);
    }
    pool_close(&p.f);
}

static void test_random(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_random(seed, /* faults */ false);
    }
}

static void test_random_faults(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_random(seed, /* faults */ true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sizes_by_room),
        cmocka_unit_test(test_sizes_by_pool),
        cmocka_unit_test(test_sizes_by_device),
        cmocka_unit_test(test_steals_whole_chunks),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_trims_exactly),
        cmocka_unit_test(test_moves_whole_chunks),
        cmocka_unit_test(test_no_room_for_a_chunk),
        cmocka_unit_test(test_joins_neighbours),
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_urgent_first),
        cmocka_unit_test(test_fixed_blocks_keep_chunks),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_random_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
