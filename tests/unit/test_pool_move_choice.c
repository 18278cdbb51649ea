/* Which granules a move takes, in which parts it copies them, and what it asks the device for. */
#include "pool_fixture.h"

#include "pool/pool.h"

enum { DEVICE = 8, HOST = 16 };

static struct pool_fixture f;
static struct spw_account accounts[SPW_ACCOUNTS];
static _Atomic uint64_t host_chunks;

static void open_limited(uint64_t device, uint64_t host)
{
    host_chunks = 0;
    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 4 * (device + host) * GRANULE,
                                               .limit_bytes = device * GRANULE,
                                               .host_limit_bytes = host * GRANULE,
                                               .accounts = accounts,
                                               .host_chunks = &host_chunks});
    f.vm.immediate = true;
}

static enum spw_err begin(const struct spw_move_request *request)
{
    enum spw_err err = spw_pool_move_begin(f.pool, request, &f.move);

    pool_check(&f);
    return err;
}

static void end(void)
{
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_check(&f);
}

/* Copies, commits and ends the move. Returns the granules that moved. */
static uint64_t finish(void)
{
    uint64_t bytes = 0;

    assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_OK);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_commit(f.pool, f.move, &bytes), SPW_OK);
    end();
    return bytes / GRANULE;
}

/* Moves so many granules of the pool's choice. Returns how many moved. */
static uint64_t move(enum spw_tier to, uint64_t granules)
{
    const struct spw_move_request request = {.to = to, .bytes = granules * GRANULE};

    return begin(&request) == SPW_OK ? finish() : 0;
}

/* Moves these granules. Returns how many moved. */
static uint64_t move_places(const struct spw_move_place *places, size_t count)
{
    const struct spw_move_request request = {.places = places, .count = count};

    return begin(&request) == SPW_OK ? finish() : 0;
}

static size_t on_host(uint64_t address, uint64_t granules)
{
    return fake_vm_on_host(&f.vm, address, granules * GRANULE);
}

static uint64_t alloc_placed(uint64_t granules, const struct spw_pool_placement *placement)
{
    const struct spw_request request = {
        .bytes = granules * GRANULE, .stream = &stream_a, .placement = placement};
    struct spw_result result = {0};

    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    return result.address;
}

/* ---- the pool's choice ---- */

/* Blocks that were used at the same time go by address, and come back in the opposite order. */
static void test_equal_blocks(void **state)
{
    uint64_t blocks[3];

    open_limited(DEVICE, HOST);
    for (size_t i = 0; i < 3; i++) {
        blocks[i] = pool_alloc(&f, GRANULE, &stream_a);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(move(SPW_TIER_HOST, 1), 1);
        assert_int_equal(on_host(blocks[0], 3), i + 1);
        assert_int_equal(on_host(blocks[i], 1), 1);
    }
    for (size_t i = 3; i-- > 0;) {
        assert_int_equal(move(SPW_TIER_DEVICE, 1), 1);
        assert_int_equal(on_host(blocks[i], 1), 0);
    }
    pool_close(&f);
}

/* A part of a granule counts as one, and 0 bytes move nothing. */
static void test_bytes(void **state)
{
    struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = 2 * GRANULE + 1};
    uint64_t block;

    open_limited(DEVICE, HOST);
    block = pool_alloc(&f, 5 * GRANULE, &stream_a);
    assert_int_equal(begin(&request), SPW_OK);
    assert_int_equal(finish(), 3);
    assert_int_equal(on_host(block, 3), 3);
    request.bytes = 0;
    assert_int_equal(begin(&request), SPW_E_NOTHING);
    pool_close(&f);
}

/* Only blocks of the account move, if one is asked for. */
static void test_account(void **state)
{
    const struct spw_pool_placement first = {.limit_bytes = UINT64_MAX, .account = 1};
    const struct spw_pool_placement second = {.limit_bytes = UINT64_MAX, .account = 2};
    const struct spw_move_request request = {
        .to = SPW_TIER_HOST, .bytes = DEVICE * GRANULE, .only.account = 2};
    uint64_t blocks[3];

    open_limited(DEVICE, HOST);
    blocks[0] = alloc_placed(2, &first);
    blocks[1] = alloc_placed(2, &second);
    blocks[2] = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(begin(&request), SPW_OK);
    assert_int_equal(finish(), 2);
    assert_int_equal(on_host(blocks[0], 2), 0);
    assert_int_equal(on_host(blocks[1], 2), 2);
    assert_int_equal(on_host(blocks[2], 2), 0);
    assert_int_equal(spw_counter_get(&accounts[0].spilled), 0);
    assert_int_equal(spw_counter_get(&accounts[1].spilled), 2 * GRANULE);
    assert_int_equal(move(SPW_TIER_DEVICE, 2), 2);
    assert_int_equal(spw_counter_get(&accounts[1].promoted), 2 * GRANULE);
    assert_int_equal(spw_counter_get(&accounts[1].spilled), 2 * GRANULE);
    pool_close(&f);
}

/* Only blocks of the call sites move, if some are asked for, in both directions. */
static void test_sites(void **state)
{
    enum { SITES = 130 };
    static const uint32_t numbers[] = {1, 64, 65, SITES - 1, SITES, 0};
    const uint64_t sites[] = {UINT64_C(1) << 1, UINT64_C(1) << 0, UINT64_C(1) << 1};
    const struct spw_block_filter only = {.sites = sites, .site_count = SITES};
    const struct spw_move_request out = {
        .to = SPW_TIER_HOST, .bytes = DEVICE * GRANULE, .only = only};
    const struct spw_move_request back = {
        .to = SPW_TIER_DEVICE, .bytes = DEVICE * GRANULE, .only = only};
    uint64_t blocks[6];

    open_limited(DEVICE, HOST);
    for (size_t i = 0; i < 6; i++) {
        const struct spw_request request = {
            .bytes = GRANULE, .stream = &stream_a, .site = numbers[i]};
        struct spw_result result;

        assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
        blocks[i] = result.address;
    }
    assert_int_equal(begin(&out), SPW_OK);
    assert_int_equal(finish(), 3);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(on_host(blocks[i], 1), i == 0 || i == 1 || i == 3);
    }
    assert_int_equal(begin(&out), SPW_E_NOTHING);
    assert_int_equal(move(SPW_TIER_HOST, 3), 3);
    assert_int_equal(begin(&back), SPW_OK);
    assert_int_equal(finish(), 3);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(on_host(blocks[i], 1), !(i == 0 || i == 1 || i == 3));
    }
    pool_close(&f);
}

/* A block that a placement put on the host does not come to the device. */
static void test_placed_block_stays(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_host = true};
    struct spw_move_place place = {.to = SPW_TIER_DEVICE};

    open_limited(DEVICE, HOST);
    place.block = place.granule = alloc_placed(1, &placement);
    assert_int_equal(move(SPW_TIER_DEVICE, 1), 0);
    assert_int_equal(move_places(&place, 1), 0);
    assert_int_equal(on_host(place.block, 1), 1);
    pool_close(&f);
}

/* A move has so many granules at most, of the pool's choice or of the caller's. */
static void test_most_granules(void **state)
{
    enum { BLOCK = SPW_MOVE_GRANULES + 10 };
    static struct spw_move_place places[BLOCK];
    uint64_t block;

    open_limited(BLOCK, BLOCK);
    block = pool_alloc(&f, (uint64_t)BLOCK * GRANULE, &stream_a);
    for (size_t i = 0; i < BLOCK; i++) {
        places[i] = (struct spw_move_place){block, block + i * GRANULE, SPW_TIER_DEVICE};
    }
    assert_int_equal(move(SPW_TIER_HOST, BLOCK), SPW_MOVE_GRANULES);
    assert_int_equal(on_host(block, BLOCK), SPW_MOVE_GRANULES);
    assert_int_equal(move(SPW_TIER_HOST, BLOCK), BLOCK - SPW_MOVE_GRANULES);
    assert_int_equal(on_host(block, BLOCK), BLOCK);
    assert_int_equal(move_places(places, BLOCK), SPW_MOVE_GRANULES);
    assert_int_equal(on_host(block, SPW_MOVE_GRANULES), 0);
    assert_int_equal(on_host(block, BLOCK), BLOCK - SPW_MOVE_GRANULES);
    pool_close(&f);
}

/* ---- the caller's choice ---- */

/* Granules that do not lie under the block that is named, or are there already, are left out; one
 * that is named twice moves once. */
static void test_places(void **state)
{
    uint64_t block;

    open_limited(DEVICE, HOST);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    block = pool_alloc(&f, 2 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    {
        const struct spw_move_place wrong[] = {
            {block, block - GRANULE, SPW_TIER_HOST},
            {block, block + 2 * GRANULE, SPW_TIER_HOST},
            {block + GRANULE, block + GRANULE, SPW_TIER_HOST},
            {block, block, SPW_TIER_DEVICE},
        };
        const struct spw_move_place right[] = {
            {block, block + GRANULE, SPW_TIER_HOST},
            {block, block + GRANULE, SPW_TIER_HOST},
        };

        assert_int_equal(move_places(wrong, 4), 0);
        assert_int_equal(move_places(right, 0), 0);
        assert_int_equal(move_places(right, 2), 1);
    }
    assert_int_equal(on_host(block - GRANULE, 4), 1);
    assert_int_equal(on_host(block + GRANULE, 1), 1);
    pool_close(&f);
}

/* One move goes in both directions, and lists where each granule goes. */
static void test_both_directions(void **state)
{
    struct spw_move_place listed[SPW_MOVE_GRANULES];
    uint64_t block;

    open_limited(DEVICE, HOST);
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 4 * GRANULE, 100);
    assert_int_equal(move(SPW_TIER_HOST, 2), 2);
    {
        const struct spw_move_place places[] = {
            {block, block + 3 * GRANULE, SPW_TIER_HOST},
            {block, block, SPW_TIER_DEVICE},
            {block, block + 2 * GRANULE, SPW_TIER_HOST},
        };
        const struct spw_move_request request = {.places = places, .count = 3};

        assert_int_equal(begin(&request), SPW_OK);
    }
    assert_int_equal(spw_pool_move_places(f.pool, f.move, listed), 3);
    assert_int_equal(listed[0].granule, block);
    assert_int_equal(listed[0].to, SPW_TIER_DEVICE);
    assert_int_equal(listed[1].granule, block + 2 * GRANULE);
    assert_int_equal(listed[1].to, SPW_TIER_HOST);
    assert_int_equal(listed[2].granule, block + 3 * GRANULE);
    assert_int_equal(finish(), 3);
    pool_expect(&f, block, 4, 100, 3);
    assert_int_equal(on_host(block, 1), 0);
    assert_int_equal(spw_counter_get(&f.counters.spilled_bytes), 4 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.promoted_bytes), GRANULE);
    pool_close(&f);
}

/* One granule is left out of a move; those beside it move. */
static void test_left_out(void **state)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = 3 * GRANULE};
    uint64_t block;

    open_limited(DEVICE, HOST);
    block = pool_alloc(&f, 3 * GRANULE, &stream_a);
    assert_int_equal(begin(&request), SPW_OK);
    spw_pool_move_leave_out(f.pool, f.move, block + GRANULE);
    assert_int_equal(finish(), 2);
    assert_int_equal(on_host(block, 1), 1);
    assert_int_equal(on_host(block + GRANULE, 1), 0);
    assert_int_equal(on_host(block + 2 * GRANULE, 1), 1);
    pool_close(&f);
}

/* ---- chunks ---- */

/* Free memory is stolen for what comes to the device, but only what spare chunks do not cover. */
static void test_free_memory_makes_room(void **state)
{
    uint64_t block, free;

    open_limited(DEVICE, HOST);
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(move(SPW_TIER_HOST, 4), 4);
    assert_int_equal(host_chunks, 4);
    free = pool_alloc(&f, 7 * GRANULE, &stream_a);
    pool_free(&f, free, &stream_a);
    assert_int_equal(f.vm.chunks, 7);
    spw_pool_set_limit(f.pool, 7 * GRANULE);
    (void)pool_memory_calls(&f);
    assert_int_equal(move(SPW_TIER_DEVICE, 3), 3);
    assert_int_equal(on_host(block, 4), 1);
    (void)pool_memory_calls(&f);
    assert_int_equal(pool_alloc(&f, 4 * GRANULE, &stream_a), free);
    assert_int_equal(pool_memory_calls(&f), 0);
    assert_int_equal(host_chunks, 4);
    assert_int_equal(spw_pool_trim_host(f.pool), 3 * GRANULE);
    assert_int_equal(host_chunks, 1);
    pool_close(&f);
    assert_int_equal(host_chunks, 0);
}

/* Spare chunks are enough: nothing is stolen, and no fence is looked at. */
static void test_spare_chunks_are_enough(void **state)
{
    uint64_t other;

    open_limited(DEVICE, HOST);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(move(SPW_TIER_HOST, 4), 4); /* leaves 4 */
    spw_pool_set_limit(f.pool, 8 * GRANULE);
    other = pool_alloc(&f, 2 * GRANULE, &stream_a);
    pool_free(&f, other, &stream_a);
    f.vm.calls[FAKE_FENCE] = 0;
    f.vm.immediate = false;
    {
        const struct spw_move_request request = {.to = SPW_TIER_DEVICE, .bytes = 2 * GRANULE};

        assert_int_equal(begin(&request), SPW_OK);
    }
    assert_int_equal(f.vm.calls[FAKE_FENCE], 0);
    end();
    (void)pool_memory_calls(&f);
    assert_int_equal(pool_alloc(&f, 2 * GRANULE, &stream_a), other);
    assert_int_equal(pool_memory_calls(&f), 0);
    pool_close(&f);
}

/* ---- copying ---- */

/* A move is copied in parts of about the same size, as many as there may be. */
static void test_parts(void **state)
{
    const struct {
        size_t granules, parts, sizes[SPW_MOVE_PARTS];
    } rows[] = {
        {1, 1, {1}},
        {3, 3, {1, 1, 1}},
        {8, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
        {16, 8, {2, 2, 2, 2, 2, 2, 2, 2}},
        {10, 8, {2, 1, 1, 1, 2, 1, 1, 1}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct spw_move_request request = {.to = SPW_TIER_HOST,
                                                 .bytes = rows[i].granules * GRANULE};
        size_t parts = 0;
        uint64_t bytes;

        open_limited(16, 16);
        (void)pool_alloc(&f, rows[i].granules * GRANULE, &stream_a);
        assert_int_equal(begin(&request), SPW_OK);
        f.vm.calls[FAKE_COPY] = 0;
        assert_int_equal(spw_pool_move_copy_parts(f.pool, f.move, &parts), SPW_OK);
        assert_int_equal(parts, rows[i].parts);
        assert_int_equal(f.vm.calls[FAKE_COPY], parts);
        for (size_t part = 0; part < parts; part++) {
            assert_int_equal(spw_pool_move_poll_part(f.pool, f.move, part), SPW_OK);
            assert_int_equal(spw_pool_move_commit_part(f.pool, f.move, part, &bytes), SPW_OK);
            assert_int_equal(bytes, rows[i].sizes[part] * GRANULE);
        }
        end();
        pool_close(&f);
    }
}

/* Copies that cannot be enqueued are an error, in whatever direction. */
static void test_refused_copies(void **state)
{
    uint64_t block;

    open_limited(DEVICE, HOST);
    block = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(move(SPW_TIER_HOST, 1), 1);
    {
        const struct spw_move_place places[] = {
            {block, block, SPW_TIER_DEVICE},
            {block, block + GRANULE, SPW_TIER_HOST},
        };
        const struct spw_move_request request = {.places = places, .count = 2};

        assert_int_equal(begin(&request), SPW_OK);
    }
    for (size_t after = 0; after < 2; after++) {
        f.vm.fail_call = FAKE_COPY;
        f.vm.fail_after = after;
        assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_E_AGAIN);
        assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
    }
    f.vm.fail_call = -1;
    assert_int_equal(finish(), 2);
    pool_close(&f);
}

/* One fence covers what came before the first call; after success the next call is a first one. */
static void test_drain(void **state)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = GRANULE};
    size_t fences;

    open_limited(DEVICE, HOST);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    assert_int_equal(begin(&request), SPW_OK);
    f.vm.immediate = false;
    fences = f.vm.calls[FAKE_FENCE];
    assert_int_equal(spw_pool_move_drain(f.pool, f.move), SPW_E_AGAIN);
    assert_int_equal(spw_pool_move_drain(f.pool, f.move), SPW_E_AGAIN);
    assert_int_equal(f.vm.calls[FAKE_FENCE], fences + 1);
    assert_int_equal(f.vm.fenced_stream, SPW_STREAM_ALL);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_move_drain(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_drain(f.pool, f.move), SPW_E_AGAIN);
    assert_int_equal(f.vm.calls[FAKE_FENCE], fences + 2);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    assert_int_equal(f.vm.live_fences, 0);
    pool_close(&f);
}

/* ---- the end ---- */

/* A move that is left ends when the pool next polls fences, and once. */
static void test_left(void **state)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = 2 * GRANULE};

    open_limited(DEVICE, HOST);
    (void)pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(begin(&request), SPW_OK);
    f.vm.immediate = false;
    assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_OK);
    spw_pool_move_leave(f.pool, f.move);
    assert_int_equal(spw_pool_trim_host(f.pool), 0);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_E_AGAIN);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_trim_host(f.pool), 2 * GRANULE);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    assert_int_equal(f.vm.live_fences, 0);
    pool_close(&f);
}

/* ---- blocks of graphs ---- */

static void set(uint64_t block, const struct spw_block_attributes *attributes)
{
    assert_int_equal(spw_pool_set_attributes(f.pool, block, 1, attributes), 1);
    pool_check(&f);
}

/* What a graph names and does not keep in place moves in the usual order, except while the blocks
 * of graphs may move. */
static void test_blocks_that_graphs_only_name(void **state)
{
    uint64_t graph, other;

    open_limited(DEVICE, HOST);
    graph = pool_alloc(&f, 2 * GRANULE, &stream_a);
    other = pool_alloc(&f, 2 * GRANULE, &stream_a);
    set(graph, &(struct spw_block_attributes){.fix = SPW_NAMED_BY_GRAPH});
    set(other, &(struct spw_block_attributes){.prioritize = true, .priority = 9});
    assert_int_equal(move(SPW_TIER_HOST, 2), 2);
    assert_int_equal(on_host(graph, 2), 2);
    assert_int_equal(move(SPW_TIER_HOST, 2), 2);
    assert_int_equal(move(SPW_TIER_DEVICE, 2), 2);
    assert_int_equal(on_host(other, 2), 0);
    assert_int_equal(move(SPW_TIER_HOST, 2), 2);
    spw_pool_let_graphs_move(f.pool, true);
    assert_int_equal(move(SPW_TIER_DEVICE, 2), 2);
    assert_int_equal(on_host(graph, 2), 0);
    pool_close(&f);
}

/* A move under way goes on when a graph names its block, and not when it keeps it. */
static void test_named_during_a_move(void **state)
{
    static const struct {
        uint8_t fix;
        uint64_t moved;
    } cases[] = {{SPW_NAMED_BY_GRAPH, 2}, {SPW_FIXED_BY_GRAPH, 0}};

    for (size_t i = 0; i < 2; i++) {
        const struct spw_move_request all = {.to = SPW_TIER_HOST, .bytes = 8 * GRANULE};
        uint64_t address;

        open_limited(DEVICE, HOST);
        address = pool_alloc(&f, 2 * GRANULE, &stream_a);
        assert_int_equal(begin(&all), SPW_OK);
        set(address, &(struct spw_block_attributes){.fix = cases[i].fix});
        assert_int_equal(finish(), cases[i].moved);
        pool_close(&f);
    }
}

/* Attributes of a range do not concern the block that begins at its end. */
static void test_block_behind_the_range(void **state)
{
    static const struct spw_block_attributes pinned = {.fix = SPW_FIXED_BY_PROGRAM};
    uint64_t first, second;

    open_limited(DEVICE, HOST);
    first = pool_alloc(&f, 2 * GRANULE, &stream_a);
    second = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(second, first + 2 * GRANULE);
    assert_int_equal(spw_pool_set_attributes(f.pool, first, 2 * GRANULE, &pinned), 1);
    assert_int_equal(move(SPW_TIER_HOST, DEVICE), 2);
    assert_int_equal(on_host(first, 2), 0);
    assert_int_equal(on_host(second, 2), 2);
    pool_close(&f);
}

/* A large chunk is not taken where a move would become larger than moves are. */
static void test_moves_have_a_limit(void **state)
{
    enum { LARGE = 4096, CHUNK = 4 };
    uint64_t granules = 0;

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .chunk_bytes = UINT64_C(1) * CHUNK * GRANULE,
                                               .arena_bytes = UINT64_C(8) * LARGE * GRANULE,
                                               .limit_bytes = UINT64_C(1) * LARGE * GRANULE,
                                               .host_limit_bytes = UINT64_C(1) * LARGE * GRANULE});
    f.vm.immediate = true;
    (void)pool_alloc(&f, GRANULE, &stream_a);
    (void)pool_alloc(&f, UINT64_C(1) * LARGE / 2 * GRANULE, &stream_a);
    while (granules < LARGE / 2) {
        uint64_t moved = move(SPW_TIER_HOST, LARGE);

        assert_in_range(moved, 1, SPW_MOVE_GRANULES);
        granules += moved;
    }
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_have_a_limit),
        cmocka_unit_test(test_blocks_that_graphs_only_name),
        cmocka_unit_test(test_named_during_a_move),
        cmocka_unit_test(test_equal_blocks),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_account),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_placed_block_stays),
        cmocka_unit_test(test_most_granules),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_both_directions),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_free_memory_makes_room),
        cmocka_unit_test(test_spare_chunks_are_enough),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refused_copies),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_block_behind_the_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
