/* What the user is told about the host tier, and what the debug log has of the program's accesses.
 */
#include "migrate/migrate.h"

#include <stdlib.h>
#include <time.h>

#include "folder.h"
#include "tier_fixture.h"
#include "system/log.h"

/* ---- what the user is told ---- */

static const char *errors;
static void (*told_by)(void);

static void redirect_and_run(void)
{
    redirect_errors(errors);
    told_by();
}

/* Runs `body` in a child and compares what it wrote to stderr. */
static void expect_told(void (*body)(void), const char *expected)
{
    errors = in_folder("errors.txt");
    told_by = body;
    in_child(redirect_and_run);
    assert_string_equal(content(errors), expected);
}

static void evict_twice(void)
{
    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    (void)tier_take(BLOCK);
    (void)tier_take(BLOCK);
}

static void place_twice(void)
{
    tier_open(tier_usual());
    tier_fill_and_age(0);
    (void)tier_take(3);
    (void)tier_take(BLOCK);
}

/* The device has room after all. */
static void place_on_the_device(void)
{
    const struct spw_request request = {.bytes = GRANULE, .stream = &stream_a};
    struct spw_result result;

    tier_open(tier_usual());
    CHECK(spw_migrate_alloc(tier.tier, &request, SPW_E_LIMIT, &result) == SPW_OK);
}

static void run_out_of_everything(void)
{
    uint64_t address;

    tier_open(tier_usual());
    tier.pool.vm.no_host = tier.pool.vm.no_pinned = true;
    tier_fill_and_age(0);
    (void)tier_try(1, &address);
    (void)tier_try(1, &address);
}

static void use_pinned_memory(void)
{
    tier_open(tier_usual());
    tier.pool.vm.no_host = true;
    tier_fill_and_age(0);
    (void)tier_take(1);
    (void)tier_take(1);
}

static void use_memory_that_stays(void)
{
    tier_open(tier_usual());
    tier.pool.vm.no_moves = true;
    tier_fill_and_age(0);
    (void)tier_take(1);
    (void)tier_take(1);
}

static void run_short(void)
{
    const struct timespec later = {.tv_nsec = 25 * 1000 * 1000};
    struct spw_migrate_config config = tier_usual();

    config.host_room = tier_host_room;
    tier_open(config);
    tier.room = 3 * GRANULE;
    tier_fill_and_age(0);
    for (int i = 0; i < 2; i++) {
        (void)tier_take(1);
        nanosleep(&later, NULL);
    }
}

static enum spw_host_bound wall_of(uint64_t wall_bytes)
{
    CHECK(wall_bytes == 12 * GRANULE);
    return SPW_HOST_BOUND_WSL;
}

static void run_into_a_wall(void)
{
    const struct timespec later = {.tv_nsec = 25 * 1000 * 1000};
    struct spw_migrate_config config = tier_usual();
    uint64_t address;

    config.host_wall = wall_of;
    tier_open(config);
    tier.pool.vm.most_host_chunks = 12;
    tier_fill_and_age(0);
    for (int i = 0; i < 20; i++) {
        (void)tier_try(1, &address);
        nanosleep(&later, NULL);
    }
}

/* Each of these once. */
static void test_told(void **state)
{
    static const char full[] =
        "spillway: device 3 is full: for a block of 2 MiB (site 7), 2 MiB of it are on the host "
        "now; up to 256 MiB of host memory may be used (SPILLWAY_HOST_LIMIT sets the limit)\n";
    char expected[1024];

    expect_told(evict_twice,
                "spillway: device 3 is full: for a block of 4 MiB (site 7), 4 MiB of older blocks "
                "are on the host now; up to 256 MiB of host memory may be used "
                "(SPILLWAY_HOST_LIMIT sets the limit)\n");
    expect_told(place_twice,
                "spillway: device 3 is full: for a block of 6 MiB (site 7), 6 MiB of it are on the "
                "host now; up to 256 MiB of host memory may be used (SPILLWAY_HOST_LIMIT sets the "
                "limit)\n");
    expect_told(place_on_the_device, "");
    expect_told(run_out_of_everything,
                "spillway: device 3 is full and cannot spill to host memory (not supported): "
                "`spillway doctor` says what is missing\n");
    snprintf(expected, sizeof(expected),
             "spillway: device 3 cannot map host memory as its own: new blocks go to page-locked "
             "host memory and stay there; `spillway doctor` says what is missing\n%s",
             full);
    expect_told(use_pinned_memory, expected);
    snprintf(expected, sizeof(expected),
             "spillway: device 3 cannot be seen at rest by this driver (before CUDA 12.5): new "
             "blocks go to host memory and stay there\n%s",
             full);
    expect_told(use_memory_that_stays, expected);
    snprintf(expected, sizeof(expected),
             "spillway: the machine is short of host memory: device 3 has spilled 0 B and may take "
             "6 MiB more now, less than its budget of 256 MiB; the control group sets the limit, "
             "and the rest stays free\n%s",
             full);
    expect_told(run_short, expected);
    snprintf(expected, sizeof(expected),
             "%sspillway: the driver refused more page-locked memory: device 3 has spilled 24 MiB "
             "and may take 0 B more now, less than its budget of 256 MiB; the cause is WSL2's "
             "limit on page-locked memory, and the rest is for the program\n",
             full);
    expect_told(run_into_a_wall, expected);
}

/* ---- recording ---- */

static void record_everything(void)
{
    uint64_t other = tier.blocks[1] + 512, addresses[2];

    addresses[0] = tier.blocks[0];
    addresses[1] = other;
    spw_migrate_allocated(tier.tier, tier.blocks[BLOCKS - 1], GRANULE, 9);
    spw_migrate_freed(tier.tier, tier.blocks[BLOCKS - 2]);
    spw_migrate_use(tier.tier, addresses, 2, /* kernel */ true);
    spw_migrate_use(tier.tier, addresses, 1, /* kernel */ false);
    spw_migrate_use_among(tier.tier, addresses + 1, 1);
    spw_migrate_mark_step(tier.tier);
}

static void log_records(void)
{
    setenv("SPILLWAY_LOG", "debug", 1);
    spw_log_init();
    tier_open(tier_usual());
    tier_fill_and_age(0);
    record_everything(); /* nobody listens */
    redirect_errors(errors);
    assert_true(spw_migrate_evict(tier.tier));
    redirect_errors(errors);
    record_everything();
}

/* From the first shortage on, what the program does is in the debug log. */
static void test_records(void **state)
{
    char expected[2048];
    int pid;

    errors = in_folder("errors.txt");
    tier_open(tier_usual()); /* the addresses are the same in the child */
    tier_fill_and_age(0);
    tier_close();
    pid = in_child(log_records);
    snprintf(expected, sizeof(expected),
             "spillway: access free %#llx\n"
             "spillway: access alloc %#llx+%u 9\n"
             "spillway: access free %#llx\n"
             "spillway: access use %#llx\nspillway: access use %#llx\n"
             "spillway: access kernel %d\n"
             "spillway: access use %#llx\nspillway: access other %d\n"
             "spillway: access use %#llx\nspillway: access partial %d\n"
             "spillway: access step\n",
             (unsigned long long)tier.blocks[BLOCKS - 1],
             (unsigned long long)tier.blocks[BLOCKS - 1], GRANULE,
             (unsigned long long)tier.blocks[BLOCKS - 2], (unsigned long long)tier.blocks[0],
             (unsigned long long)tier.blocks[1], pid, (unsigned long long)tier.blocks[0], pid,
             (unsigned long long)tier.blocks[1], pid);
    assert_string_equal(content(errors), expected);
}

static int make_folder(void **state)
{
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)unlink(in_folder("errors.txt"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_records),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
