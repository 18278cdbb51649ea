#include "migrate/host/host_tier.h"

#include "common/size.h"
#include "system/clock.h"
#include "system/log.h"

enum { ROOM_VALID_NS = 20 * 1000 * 1000 };

void spw_migrate_host_tier_probe(struct spw_host_tier *host)
{
    enum spw_err err;

    if (host->state != SPW_HOST_TIER_UNKNOWN) {
        return;
    }
    err = spw_pool_open_host(host->pool, host->limit_bytes, &host->can_migrate);
    if (err == SPW_E_AGAIN) {
        return;
    }
    host->state = err == SPW_OK ? SPW_HOST_TIER_OPEN : SPW_HOST_TIER_UNUSABLE;
    host->pins = err == SPW_OK && spw_pool_uses_pinned(host->pool);
    host->refused = err;
}

bool spw_migrate_host_tier_open(struct spw_host_tier *host)
{
    spw_migrate_host_tier_probe(host);
    if (host->state == SPW_HOST_TIER_UNKNOWN || host->needed) {
        return host->state == SPW_HOST_TIER_OPEN;
    }
    host->needed = true;
    if (host->state == SPW_HOST_TIER_UNUSABLE) {
        spw_log_always(
            "device %d is full and cannot spill to host memory (%s): `spillway doctor` says "
            "what is missing",
            host->ordinal, spw_err_name(host->refused));
    } else if (host->pins) {
        spw_log_always(
            "device %d cannot map host memory as its own: new blocks go to page-locked host "
            "memory and stay there; `spillway doctor` says what is missing",
            host->ordinal);
    } else if (!host->can_migrate) {
        spw_log_always(
            "device %d cannot be seen at rest by this driver (before CUDA 12.5): new blocks go to "
            "host memory and stay there",
            host->ordinal);
    }
    return host->state == SPW_HOST_TIER_OPEN;
}

void spw_migrate_host_tier_refresh(struct spw_host_tier *host)
{
    char taken[SPW_SIZE_TEXT], more[SPW_SIZE_TEXT], most[SPW_SIZE_TEXT];
    uint64_t now = spw_clock_ns(), held, room, limit;

    if (host->room == NULL || host->state != SPW_HOST_TIER_OPEN ||
        now - host->asked_ns < ROOM_VALID_NS) {
        return;
    }
    host->asked_ns = now;
    held = spw_counter_get(&host->counters->host_bytes);
    room = host->room();
    if (room >= host->limit_bytes || held + room >= host->limit_bytes) {
        limit = host->limit_bytes;
    } else {
        limit = held + room > 0 ? held + room : 1; /* a limit of 0 would close the tier */
    }
    spw_pool_set_host_limit(host->pool, limit);
    if (limit < host->limit_bytes && !host->reported_short) {
        host->reported_short = true;
        spw_log_always("the machine is short of host memory: device %d has spilled %s and may take "
                       "%s more now, less than its budget of %s; the rest stays free",
                       host->ordinal, spw_size_text(held, taken), spw_size_text(room, more),
                       spw_size_text(host->limit_bytes, most));
    }
}

void spw_migrate_host_tier_announce(struct spw_host_tier *host, uint64_t bytes, uint64_t host_bytes,
                                    bool moved, uint32_t site,
                                    void (*describe)(uint32_t site, char *text, size_t capacity))
{
    char went[SPW_SIZE_TEXT], block[SPW_SIZE_TEXT], most[SPW_SIZE_TEXT], who[256];

    if (atomic_flag_test_and_set(&host->announced)) {
        return;
    }
    describe(site, who, sizeof(who));
    spw_log_always(
        "device %d is full: for a block of %s (%s), %s %s on the host now; up to %s of host "
        "memory may be used",
        host->ordinal, spw_size_text(bytes, block), who, spw_size_text(host_bytes, went),
        moved ? "of older blocks are" : "of it are", spw_size_text(host->limit_bytes, most));
}
