#include "tier/tier.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/size.h"
#include "tier/mover.h"

enum state { UNOPENED, OPEN, CLOSED };

enum {
    PATIENCE = 10,       /* times the wait that is set, for room that is needed */
    YIELD_BYTES = 64 << 20, /* moved when somebody else needs memory */
    COLD_AGE = 64,       /* blocks freed since a block was last used that make it cold */
    SHARE_AT_ONCE = 64,  /* part of the limit that is moved at once, at least */
    SHARE_KEPT_FREE = 16 /* part of the limit that is not filled by promotion */
};

struct spw_host_tier {
    struct spw_host_tier_config config;
    pthread_mutex_t lock;
    enum state state;
    bool moves;     /* memory can be moved, not only placed */
    bool pins;      /* blocks are placed in page-locked memory: no chunks can be had */
    struct spw_mover mover;
    atomic_flag announced; /* the first spill was told */
    _Atomic uint64_t steps; /* as the program has marked them */
};

enum spw_err spw_host_tier_create(const struct spw_host_tier_config *config,
                                  struct spw_host_tier **ret_tier)
{
    struct spw_host_tier *tier = calloc(1, sizeof(*tier));

    if (tier == NULL) {
        return SPW_E_NO_HOST;
    }
    tier->config = *config;
    pthread_mutex_init(&tier->lock, NULL);
    tier->mover = (struct spw_mover){.pool = config->pool,
                                     .counters = config->counters,
                                     .ordinal = config->ordinal,
                                     .wait_ns = config->move_wait_ns,
                                     .overlap = config->overlap,
                                     .verify = config->verify,
                                     .next_skip = 1};
    *ret_tier = tier;
    return SPW_OK;
}

void spw_host_tier_destroy(struct spw_host_tier *tier)
{
    free(tier);
}

/* Finds out at the first shortage whether the device can use the host's memory. */
static bool open_tier(struct spw_host_tier *tier)
{
    enum spw_err err;

    if (tier->state == UNOPENED) {
        err = spw_pool_open_host(tier->config.pool, tier->config.limit_bytes, &tier->moves);
        if (err == SPW_E_AGAIN) {
            return false;
        }
        tier->state = err == SPW_OK ? OPEN : CLOSED;
        tier->pins = err == SPW_OK && spw_pool_pins(tier->config.pool);
        if (tier->pins) {
            spw_say("device %d cannot map memory of the host as its own: new blocks go to "
                    "page-locked memory and stay there; `spillway doctor` says what is missing",
                    tier->config.ordinal);
        }
        if (err != SPW_OK) {
            spw_say("device %d is full, and its memory cannot go on on the host (%s): `spillway "
                    "doctor` says what is missing",
                    tier->config.ordinal, spw_err_name(err));
        }
    }
    return tier->state == OPEN;
}

void spw_host_tier_announce(struct spw_host_tier *tier,
                            const struct spw_host_tier_request *request, uint64_t host_bytes,
                            bool moved)
{
    char went[SPW_SIZE_TEXT], block[SPW_SIZE_TEXT], most[SPW_SIZE_TEXT], who[256];

    if (atomic_flag_test_and_set(&tier->announced)) {
        return;
    }
    request->describe(request->site, who, sizeof(who));
    spw_say("device %d is full: for a block of %s (%s), %s %s on the host now; up to %s of host "
            "memory may be used",
            tier->config.ordinal, spw_size_text(request->bytes, block), who,
            spw_size_text(host_bytes, went), moved ? "of older blocks are" : "of it are",
            spw_size_text(tier->config.limit_bytes, most));
}

static enum spw_err alloc(const struct spw_host_tier *tier,
                          const struct spw_host_tier_request *request, bool anywhere,
                          uint64_t *ret_address, uint64_t *ret_host_bytes)
{
    return spw_pool_alloc_wish(tier->config.pool, request->bytes, request->stream, request->context,
                               request->site, request->wish, anywhere, ret_address, ret_host_bytes);
}

static enum spw_err place(struct spw_host_tier *tier, const struct spw_host_tier_request *request,
                          uint64_t *ret_address)
{
    uint64_t host_bytes = 0;
    enum spw_err err = alloc(tier, request, /* anywhere */ true, ret_address, &host_bytes);

    if (err == SPW_OK && host_bytes > 0) {
        spw_counter_add(&tier->config.counters->placed_bytes, host_bytes);
        spw_counter_add(&tier->config.counters->spilled_bytes, host_bytes);
        spw_host_tier_announce(tier, request, host_bytes, /* moved */ false);
    }
    return err;
}

/* Moves cold blocks to the host until there should be room. False when nothing was moved. */
static bool make_room(struct spw_host_tier *tier, const struct spw_host_tier_request *request)
{
    bool must = request->wish != NULL && request->wish->on_device;
    struct spw_move_wish wish = {.to = SPW_TIER_HOST, .least_age = must ? 0 : COLD_AGE};
    uint64_t share = spw_counter_get(&tier->config.counters->limit_bytes) / SHARE_AT_ONCE;
    uint64_t wanted = request->bytes > share ? request->bytes : share, moved = 0, bytes;
    enum spw_err err = SPW_OK;

    while (moved < wanted && err == SPW_OK) {
        wish.bytes = wanted - moved;
        err = spw_mover_move(&tier->mover, &wish, PATIENCE * tier->config.move_wait_ns, &bytes);
        moved += bytes;
    }
    if (moved > 0) {
        spw_host_tier_announce(tier, request, moved, /* moved */ true);
    }
    return moved > 0;
}

void spw_host_tier_mark_step(struct spw_host_tier *tier)
{
    atomic_fetch_add_explicit(&tier->steps, 1, memory_order_relaxed);
}

bool spw_host_tier_ready(struct spw_host_tier *tier)
{
    bool ready;

    pthread_mutex_lock(&tier->lock);
    ready = open_tier(tier) && !tier->pins;
    pthread_mutex_unlock(&tier->lock);
    return ready;
}

bool spw_host_tier_yield(struct spw_host_tier *tier)
{
    struct spw_move_wish wish = {.to = SPW_TIER_HOST, .bytes = YIELD_BYTES};
    uint64_t bytes = 0;

    pthread_mutex_lock(&tier->lock);
    if (open_tier(tier) && tier->moves) {
        (void)spw_mover_move(&tier->mover, &wish, PATIENCE * tier->config.move_wait_ns, &bytes);
    }
    pthread_mutex_unlock(&tier->lock);
    return bytes > 0;
}

void spw_host_tier_rest(struct spw_host_tier *tier)
{
    const struct spw_counters *counters = tier->config.counters;
    struct spw_move_wish wish = {.to = SPW_TIER_DEVICE};
    struct spw_pool_usage usage;
    uint64_t used, kept, bytes;

    if (spw_counter_get(&counters->host_used_bytes) == 0 ||
        pthread_mutex_trylock(&tier->lock) != 0) {
        return;
    }
    spw_pool_usage(tier->config.pool, &usage);
    used = usage.live - (usage.host < usage.live ? usage.host : usage.live);
    kept = usage.limit / SHARE_KEPT_FREE;
    if (tier->moves && used + kept < usage.limit) {
        wish.bytes = usage.limit - used - kept;
        (void)spw_mover_move(&tier->mover, &wish, tier->config.move_wait_ns, &bytes);
    }
    pthread_mutex_unlock(&tier->lock);
}

enum spw_err spw_host_tier_alloc(struct spw_host_tier *tier,
                                 const struct spw_host_tier_request *request,
                                 uint64_t *ret_address)
{
    enum spw_err err = request->err;
    bool open, room = false;
    uint64_t host_bytes;

    pthread_mutex_lock(&tier->lock);
    open = open_tier(tier);
    if (open && tier->moves && request->may_move) {
        room = make_room(tier, request);
    }
    pthread_mutex_unlock(&tier->lock);
    if (room) {
        err = alloc(tier, request, /* anywhere */ false, ret_address, &host_bytes);
    }
    if (open && (err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY) &&
        (request->wish == NULL || !request->wish->on_device)) {
        err = place(tier, request, ret_address);
    }
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY ? request->err : err;
}
