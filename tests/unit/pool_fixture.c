#include "pool_fixture.h"

#include <string.h>

#include "system/lock.h"

static char handles[3];
const struct spw_stream stream_a = {.id = 1, .handle = &handles[0]};
const struct spw_stream stream_b = {.id = 2, .handle = &handles[1]};
const struct spw_stream stream_c = {.id = 3, .handle = &handles[2]};

void pool_open_as(struct pool_fixture *fixture, const struct spw_pool_config *config)
{
    memset(fixture, 0, sizeof(*fixture));
    fake_vm_init(&fixture->vm);
    assert_int_equal(spw_pool_create(config, &fixture->vm.seam, &fixture->counters, &fixture->pool),
                     SPW_OK);
    pool_check(fixture);
}

void pool_open(struct pool_fixture *fixture, uint32_t growth)
{
    pool_open_as(fixture, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                    .arena_bytes = 64ull << 30,
                                                    .limit_bytes = 1ull << 40,
                                                    .growth_permille = growth});
}

void pool_open_small(struct pool_fixture *fixture, uint64_t arena_granules, uint64_t limit_granules,
                     uint32_t growth)
{
    pool_open_as(fixture, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                    .arena_bytes = arena_granules * GRANULE,
                                                    .limit_bytes = limit_granules * GRANULE,
                                                    .growth_permille = growth});
}

void pool_close(struct pool_fixture *fixture)
{
    pool_check(fixture);
    pool_close_unchecked(fixture);
}

void pool_close_unchecked(struct pool_fixture *fixture)
{
    fake_vm_complete(&fixture->vm); /* a pool ends after its work */
    spw_pool_destroy(fixture->pool);
    assert_int_equal(fixture->vm.chunks, 0);
    assert_int_equal(fixture->vm.host_chunks, 0);
    assert_int_equal(fixture->vm.pinned_bytes, 0);
    assert_int_equal(fixture->vm.live_fences, 0);
    assert_int_equal(fixture->vm.violations, 0);
    assert_int_equal(atomic_load(&spw_locks.disorders), 0);
    fake_vm_fini(&fixture->vm);
}

void pool_check(struct pool_fixture *fixture)
{
    const char *broken = spw_pool_check(fixture->pool);

    if (broken != NULL) {
        fail_msg("%s", broken);
    }
    assert_int_equal(fixture->vm.violations, 0);
}

enum spw_err pool_try(struct spw_pool *pool, uint64_t bytes, const struct spw_stream *stream,
                      void *context, uint64_t *ret_address)
{
    const struct spw_request request = {.bytes = bytes, .stream = stream, .context = context};
    struct spw_result result;
    enum spw_err err = spw_pool_alloc(pool, &request, &result);

    if (err == SPW_OK) {
        *ret_address = result.address;
    }
    return err;
}

uint64_t pool_alloc(struct pool_fixture *fixture, uint64_t bytes, const struct spw_stream *stream)
{
    uint64_t address = 0;

    assert_int_equal(pool_try(fixture->pool, bytes, stream, NULL, &address), SPW_OK);
    pool_check(fixture);
    assert_int_equal(address % 512, 0);
    assert_true(fake_vm_usable(&fixture->vm, address, bytes));
    return address;
}

void pool_refuse(struct pool_fixture *fixture, uint64_t bytes, const struct spw_stream *stream,
                 enum spw_err expected)
{
    uint64_t live = spw_counter_get(&fixture->counters.live_bytes), address = 4711;
    uint64_t allocs = spw_counter_get(&fixture->counters.allocs);

    assert_int_equal(pool_try(fixture->pool, bytes, stream, NULL, &address), expected);
    pool_check(fixture);
    assert_int_equal(address, 4711);
    assert_int_equal(spw_counter_get(&fixture->counters.live_bytes), live);
    assert_int_equal(spw_counter_get(&fixture->counters.allocs), allocs);
}

enum spw_err pool_try_anywhere(struct pool_fixture *fixture, uint64_t bytes,
                               const struct spw_stream *stream, uint64_t *ret_address,
                               uint64_t *ret_host_bytes)
{
    const struct spw_request request = {.bytes = bytes, .stream = stream, .may_spill = true};
    struct spw_result result = {.address = *ret_address};
    enum spw_err err = spw_pool_alloc(fixture->pool, &request, &result);

    *ret_address = result.address;
    *ret_host_bytes = result.host_bytes;
    pool_check(fixture);
    return err;
}

void pool_leave_spare(struct pool_fixture *fixture, size_t granules)
{
    uint64_t address;

    fixture->vm.fail_call = FAKE_MAP;
    fixture->vm.fail_after = 0;
    assert_true(pool_try(fixture->pool, granules * GRANULE, &stream_c, NULL, &address) != SPW_OK);
    fixture->vm.fail_call = -1;
    pool_check(fixture);
}

void pool_free(struct pool_fixture *fixture, uint64_t address, const struct spw_stream *stream)
{
    assert_int_equal(spw_pool_free(fixture->pool, address, stream), SPW_OK);
    pool_check(fixture);
}

size_t pool_memory_calls(struct pool_fixture *fixture)
{
    size_t calls = fake_vm_memory_calls(&fixture->vm);

    for (int i = FAKE_CREATE; i <= FAKE_UNMAP; i++) {
        fixture->vm.calls[i] = 0;
    }
    return calls;
}

void pool_expect(struct pool_fixture *fixture, uint64_t address, uint64_t granules, uint64_t value,
                 size_t on_host)
{
    assert_true(fake_vm_usable(&fixture->vm, address, granules * GRANULE));
    assert_int_equal(fake_vm_differs(&fixture->vm, address, granules * GRANULE, value), 0);
    assert_int_equal(fake_vm_on_host(&fixture->vm, address, granules * GRANULE), on_host);
}

void pool_close_empty(struct pool_fixture *fixture)
{
    (void)spw_pool_trim(fixture->pool, 0);
    (void)spw_pool_trim_host(fixture->pool);
    pool_check(fixture);
    assert_int_equal(fixture->vm.chunks, 0);
    assert_int_equal(fixture->vm.host_chunks, 0);
    pool_close(fixture);
}

void pool_sweep(bool (*run)(int call, size_t after, size_t more), enum fake_call call, size_t more)
{
    size_t after = 0;

    while (run((int)call, after, more)) {
        after++;
    }
    assert_true(after > 0); /* else the run tests nothing */
}
