/* The bytes that each site holds, and held at the device's peak: compared with a copy taken at
 * every peak. */
#include "pool/accounts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SITES = 20, STEPS = 20000, BLOCKS = 64 };

static struct spw_charge room[SITES + 1];

static struct spw_charges fresh(void)
{
    memset(room, 0, sizeof(room));
    return (struct spw_charges){.sites = room, .most = SITES};
}

static void test_random_programs(void **state)
{
    uint64_t live[SITES + 1] = {0}, at_peak[SITES + 1] = {0}, peak[SITES + 1] = {0};
    struct block {
        uint32_t site;
        int64_t bytes;
    } blocks[BLOCKS] = {{0}};
    struct spw_charges charges = fresh();
    uint64_t device = 0, device_peak = 0;

    srandom(7);
    for (int step = 0; step < STEPS; step++) {
        struct block *block = &blocks[random() % BLOCKS];

        if (block->bytes > 0) {
            spw_pool_charges_move(&charges, block->site, -block->bytes);
            live[block->site] -= (uint64_t)block->bytes;
            device -= (uint64_t)block->bytes;
            block->bytes = 0;
        } else {
            *block = (struct block){(uint32_t)(random() % (SITES + 1)), 512 * (random() % 99 + 1)};
            spw_pool_charges_move(&charges, block->site, block->bytes);
            live[block->site] += (uint64_t)block->bytes;
            device += (uint64_t)block->bytes;
        }
        for (uint32_t i = 0; i <= SITES; i++) {
            peak[i] = live[i] > peak[i] ? live[i] : peak[i];
        }
        if (device > device_peak) {
            device_peak = device;
            spw_pool_charges_peak(&charges);
            memcpy(at_peak, live, sizeof(live));
        }
        for (uint32_t i = 0; i <= SITES; i++) {
            assert_int_equal(room[i].live, live[i]);
            assert_int_equal(room[i].peak, peak[i]);
            assert_int_equal(spw_pool_charge_at_peak(&charges, &room[i]), at_peak[i]);
        }
    }
}

static void test_what_is_beyond_counts_as_not_known(void **state)
{
    struct spw_charges charges = fresh();

    spw_pool_charges_move(&charges, SITES + 1, 512);
    spw_pool_charges_move(&charges, UINT32_MAX, 512);
    assert_int_equal(room[0].live, 1024);
    assert_int_equal(room[0].allocs, 2);
    assert_int_equal(room[0].total, 1024);
    spw_pool_charges_move(&charges, SITES + 1, -512);
    assert_int_equal(room[0].frees, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_what_is_beyond_counts_as_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
