/* Migrations whose copies are wrong, or whose switch is refused in part. */
#include "migrate/move/migration.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "migrator_fixture.h"

enum { DEVICE = 16, HOST = 32, BLOCK = 2 * GRANULE };

struct fixture {
    struct pool_fixture pool;
    struct spw_access_log log;
    struct spw_migrator migrator;
    uint64_t block;
};

static void open_fixture(struct fixture *f, bool overlap, bool verify)
{
    migrator_open_pool(&f->pool, DEVICE, HOST);
    f->pool.vm.immediate = true;
    f->block = pool_alloc(&f->pool, BLOCK, &stream_a);
    fake_vm_write(&f->pool.vm, f->block, BLOCK, 100);
    assert_true(spw_migrate_access_log_open(&f->log, f->pool.pool, &f->pool.counters));
    f->migrator = (struct spw_migrator){.pool = f->pool.pool,
                                        .counters = &f->pool.counters,
                                        .ordinal = 3,
                                        .granule_bytes = GRANULE,
                                        .wait_ns = 100000,
                                        .overlap = overlap,
                                        .verify = verify,
                                        .log = &f->log};
}

static void close_fixture(struct fixture *f)
{
    migrator_close(&f->pool, &f->log, &f->migrator);
}

static void begin(struct fixture *f)
{
    const struct spw_move_request wish = {.to = SPW_TIER_HOST, .bytes = BLOCK};

    assert_int_equal(spw_migrate_migration_begin(&f->migrator, &wish, SPW_MIGRATION_PLANNED, NULL),
                     SPW_OK);
}

/* Finishes the migration. What is told meanwhile is in `ret_told`. */
static enum spw_err finish(struct fixture *f, uint64_t *ret_bytes, char ret_told[1024])
{
    FILE *file = tmpfile();
    int usual = dup(STDERR_FILENO);
    enum spw_err err;

    assert_non_null(file);
    assert_true(usual >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    err = spw_migrate_migration_finish(&f->migrator, 0, ret_bytes);
    assert_true(dup2(usual, STDERR_FILENO) >= 0);
    (void)close(usual);
    rewind(file);
    ret_told[fread(ret_told, 1, 1023, file)] = '\0';
    (void)fclose(file);
    pool_check(&f->pool);
    return err;
}

/* The copies on the host are not what was copied. */
static void spoil_copies(struct fixture *f)
{
    size_t spoilt = 0;

    for (size_t i = 0; i < f->pool.vm.chunk_numbers; i++) {
        if (f->pool.vm.chunk_used[i] != 0 && f->pool.vm.chunk_tier[i] == SPW_TIER_HOST) {
            f->pool.vm.chunk_value[i] += 1000;
            spoilt++;
        }
    }
    assert_true(spoilt > 0);
}

/* It is spillway's own error: all that helps to find it is told. */
static void test_changed_content(void **state)
{
    char told[1024], expected[1024];
    struct spw_block block;
    struct fixture f;
    uint64_t bytes;

    open_fixture(&f, /* overlap */ true, /* verify */ true);
    begin(&f);
    spoil_copies(&f);
    assert_true(spw_pool_find(f.pool.pool, f.block, &block));
    assert_int_equal(finish(&f, &bytes, told), SPW_OK);
    assert_int_equal(bytes, BLOCK);
    (void)snprintf(expected, sizeof(expected),
                   "spillway: SPILLWAY_VERIFY: BUG: content changed in a migration of device 3: "
                   "granule 0x%" PRIx64 ", block %" PRIu64 " at 0x%" PRIx64 " of %d bytes, "
                   "migration 0 of %d bytes, pre-copied only, 0 submissions so far\n",
                   f.block, block.id, f.block, BLOCK, BLOCK);
    assert_string_equal(told, expected);
    close_fixture(&f);

    open_fixture(&f, /* overlap */ true, /* verify */ true);
    begin(&f);
    assert_int_equal(finish(&f, &bytes, told), SPW_OK);
    assert_string_equal(told, "");
    close_fixture(&f);
}

/* With submissions held back the content is copied and switched in parts. Where a part is refused,
 * the block is made accessible again. */
static void test_part_is_refused(void **state)
{
    char told[1024];
    struct fixture f;
    uint64_t bytes;

    for (int more = 0; more < 2; more++) {
        open_fixture(&f, /* overlap */ false, /* verify */ false);
        begin(&f);
        f.pool.vm.fail_call = FAKE_MAP;
        f.pool.vm.fail_more = (size_t)more; /* neither the new chunk nor the old one */
        assert_int_not_equal(finish(&f, &bytes, told), SPW_OK);
        assert_string_equal(told, "");
        assert_true(fake_vm_usable(&f.pool.vm, f.block, BLOCK));
        assert_int_equal(fake_vm_differs(&f.pool.vm, f.block, BLOCK, 100), 0);
        assert_int_equal(spw_counter_get(&f.pool.counters.abandoned_moves), 1);
        f.pool.vm.fail_call = -1;
        close_fixture(&f);
    }
}

/* The driver does not give the memory back: that is said, and the program may be lucky later. */
static void test_lost_for_good(void **state)
{
    char told[1024], expected[256];
    struct fixture f;
    uint64_t bytes;

    open_fixture(&f, /* overlap */ false, /* verify */ false);
    begin(&f);
    f.pool.vm.fail_call = FAKE_MAP;
    f.pool.vm.fail_more = SIZE_MAX;
    assert_int_not_equal(finish(&f, &bytes, told), SPW_OK);
    (void)snprintf(expected, sizeof(expected),
                   "does not give back access to 2 MiB at 0x%" PRIx64 ":", f.block);
    assert_non_null(strstr(told, expected));
    assert_false(fake_vm_usable(&f.pool.vm, f.block, BLOCK));
    f.pool.vm.fail_call = -1;
    assert_int_equal(spw_pool_move_remap_lost(f.pool.pool), SPW_OK);
    assert_true(fake_vm_usable(&f.pool.vm, f.block, BLOCK));
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.block, BLOCK, 100), 0);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_content),
        cmocka_unit_test(test_part_is_refused),
        cmocka_unit_test(test_lost_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
