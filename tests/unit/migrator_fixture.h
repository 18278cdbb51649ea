/* A migrator's pool and what belongs to it, for tests of migrations. Included once by a test
 * program. One thread. */
#pragma once

#include "migrate/move/barrier.h"
#include "migrate/move/migration.h"
#include "pool_fixture.h"

/* Opens a pool of so many granules of each tier, between which memory can move, and arms the
 * barrier. */
static inline void migrator_open_pool(struct pool_fixture *pool, uint64_t device, uint64_t host)
{
    bool moves;

    spw_migrate_barrier_reset();
    spw_migrate_barrier_arm();
    pool_open_small(pool, 256, device, 0);
    assert_int_equal(spw_pool_open_host(pool->pool, host * GRANULE, &moves), SPW_OK);
}

/* Ends what is in flight, and closes all three. */
static inline void migrator_close(struct pool_fixture *pool, struct spw_access_log *log,
                                  struct spw_migrator *migrator)
{
    fake_vm_complete(&pool->vm);
    (void)spw_migrate_migration_release(migrator);
    spw_migrate_access_log_close(log);
    assert_int_equal(pool->vm.violations, 0);
    pool_close(pool);
}
