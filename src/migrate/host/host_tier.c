#include "migrate/host/host_tier.h"

#include "common/minmax.h"
#include "common/size.h"
#include "system/clock.h"
#include "system/log.h"

enum { ROOM_VALID_NS = 20 * 1000 * 1000, WALL_SHARE = 8 };

static const uint64_t WALL_VALID_NS = UINT64_C(60) * 1000 * 1000 * 1000;

void spw_migrate_host_tier_probe(struct spw_host_tier *host)
{
    enum spw_err err;

    if (host->state != SPW_HOST_TIER_UNKNOWN) {
        return;
    }
    err = spw_pool_open_host(host->pool, host->limit.bytes, &host->can_migrate);
    if (err == SPW_E_AGAIN) {
        return;
    }
    host->state = err == SPW_OK ? SPW_HOST_TIER_OPEN : SPW_HOST_TIER_UNUSABLE;
    spw_counter_set(&host->counters->host_bound, host->limit.bound);
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

/* ---- the limit ---- */

/* Notices that the driver refused host memory that the limit allowed. A wall is forgotten after a
 * while, because another program may have let go of its page-locked memory. */
static void look_for_wall(struct spw_host_tier *host, uint64_t now)
{
    uint64_t refusals = spw_counter_get(&host->counters->host_refusals);

    if (refusals != host->refusals) {
        host->refusals = refusals;
        host->wall_ns = now;
        host->wall.bytes = spw_counter_get(&host->counters->host_wall_bytes);
        host->wall.bound =
            host->wall_of != NULL ? host->wall_of(host->wall.bytes) : SPW_HOST_BOUND_DRIVER;
    } else if (now - host->wall_ns >= WALL_VALID_NS) {
        host->wall_ns = 0;
    }
}

/* Returns what blocks may have below the wall. The program's page-locked memory and an eighth of
 * the wall, for more of it, are left to the program. */
static struct spw_host_limit below_wall(const struct spw_host_tier *host)
{
    uint64_t most = host->wall.bytes - host->wall.bytes / WALL_SHARE;
    uint64_t pinned = spw_counter_get(&host->counters->pinned_bytes);

    return (struct spw_host_limit){.bytes = most > pinned ? most - pinned : 0,
                                   .bound = host->wall.bound};
}

/* Returns the smallest of the limits. */
static struct spw_host_limit least_of(struct spw_host_tier *host)
{
    uint64_t held = spw_counter_get(&host->counters->host_bytes);
    struct spw_host_limit least = host->limit;

    if (host->room != NULL) {
        struct spw_host_limit room = host->room();

        if (room.bytes < UINT64_MAX - held) {
            room.bytes += held;
            least = spw_host_limit_least(least, room);
        }
    }
    return host->wall_ns != 0 ? spw_host_limit_least(least, below_wall(host)) : least;
}

static void tell_less(struct spw_host_tier *host, struct spw_host_limit limit)
{
    uint64_t held = spw_counter_get(&host->counters->host_bytes);
    uint64_t more = limit.bytes > held ? limit.bytes - held : 0;
    char taken[SPW_SIZE_TEXT], room[SPW_SIZE_TEXT], most[SPW_SIZE_TEXT];

    host->reported_short = true;
    (void)spw_size_text(held, taken);
    (void)spw_size_text(more, room);
    (void)spw_size_text(host->limit.bytes, most);
    if (limit.bound == SPW_HOST_BOUND_MACHINE || limit.bound == SPW_HOST_BOUND_GROUP) {
        spw_log_always("the machine is short of host memory: device %d has spilled %s and may take "
                       "%s more now, less than its budget of %s; %s sets the limit, and the rest "
                       "stays free",
                       host->ordinal, taken, room, most, spw_host_bound_text(limit.bound));
    } else {
        spw_log_always("the driver refused more page-locked memory: device %d has spilled %s and "
                       "may take %s more now, less than its budget of %s; the cause is %s, and the "
                       "rest is for the program",
                       host->ordinal, taken, room, most, spw_host_bound_text(limit.bound));
    }
}

static void set_limit(struct spw_host_tier *host, struct spw_host_limit limit)
{
    spw_pool_set_host_limit(host->pool, spw_max(limit.bytes, 1)); /* 0 would close the tier */
    spw_counter_set(&host->counters->host_bound, limit.bound);
}

void spw_migrate_host_tier_refresh(struct spw_host_tier *host)
{
    uint64_t now = spw_clock_ns();
    struct spw_host_limit limit;

    if (host->state != SPW_HOST_TIER_OPEN ||
        (now - host->asked_ns < ROOM_VALID_NS &&
         spw_counter_get(&host->counters->host_refusals) == host->refusals)) {
        return;
    }
    host->asked_ns = now;
    look_for_wall(host, now);
    limit = least_of(host);
    set_limit(host, limit);
    if (limit.bytes < host->limit.bytes && !host->reported_short) {
        tell_less(host, limit);
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
        "memory may be used (%s sets the limit)",
        host->ordinal, spw_size_text(bytes, block), who, spw_size_text(host_bytes, went),
        moved ? "of older blocks are" : "of it are", spw_size_text(host->limit.bytes, most),
        spw_host_bound_text(host->limit.bound));
}
