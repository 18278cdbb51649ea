#include "pool/accounts.h"

void spw_pool_charges_move(struct spw_charges *charges, uint32_t site, int64_t change)
{
    struct spw_charge *charge = spw_pool_charge_of(charges, site);
    uint64_t live = spw_counter_get(&charge->live);
    uint64_t peaks = spw_counter_get(&charges->peaks);

    if (spw_counter_get(&charge->seen) != peaks) {
        spw_counter_set(&charge->at_peak, live);
        spw_counter_set(&charge->seen, peaks);
    }
    live += (uint64_t)change;
    spw_counter_set(&charge->live, live);
    if (change < 0) {
        spw_counter_shift(&charge->frees, 1);
        return;
    }
    spw_counter_shift(&charge->allocs, 1);
    spw_counter_shift(&charge->total, change);
    if (live > spw_counter_get(&charge->peak)) {
        spw_counter_set(&charge->peak, live);
    }
}

void spw_pool_account_move(struct spw_account *account, int64_t live, int64_t host)
{
    spw_counter_shift(&account->live, live);
    spw_counter_peak(&account->live_peak, &account->live);
    spw_counter_shift(&account->host, host);
    spw_counter_peak(&account->host_peak, &account->host);
}
