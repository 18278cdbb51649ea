#include "tier/tier.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/size.h"

enum state { UNOPENED, OPEN, CLOSED };

struct spw_host_tier {
    struct spw_host_tier_config config;
    pthread_mutex_t lock;
    enum state state;
    bool moves;     /* memory can be moved, not only placed */
    bool announced; /* the first spill was told */
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
        if (err != SPW_OK) {
            spw_say("device %d is full, and its memory cannot go on on the host (%s): `spillway "
                    "doctor` says what is missing",
                    tier->config.ordinal, spw_err_name(err));
        }
    }
    return tier->state == OPEN;
}

static void announce(struct spw_host_tier *tier, const struct spw_host_tier_request *request,
                     uint64_t host_bytes)
{
    char went[SPW_SIZE_TEXT], block[SPW_SIZE_TEXT], most[SPW_SIZE_TEXT], who[256];

    if (tier->announced) {
        return;
    }
    tier->announced = true;
    request->describe(who, sizeof(who));
    spw_say("device %d is full: %s of a block of %s (%s) is on the host now; up to %s of host "
            "memory may be used",
            tier->config.ordinal, spw_size_text(host_bytes, went),
            spw_size_text(request->bytes, block), who,
            spw_size_text(tier->config.limit_bytes, most));
}

static enum spw_err place(struct spw_host_tier *tier, const struct spw_host_tier_request *request,
                          uint64_t *ret_address)
{
    uint64_t host_bytes = 0;
    enum spw_err err =
        spw_pool_alloc_anywhere(tier->config.pool, request->bytes, request->stream,
                                request->context, ret_address, &host_bytes);

    if (err == SPW_OK && host_bytes > 0) {
        spw_counter_add(&tier->config.counters->placed_bytes, host_bytes);
        spw_counter_add(&tier->config.counters->spilled_bytes, host_bytes);
        announce(tier, request, host_bytes);
    }
    return err;
}

enum spw_err spw_host_tier_alloc(struct spw_host_tier *tier,
                                 const struct spw_host_tier_request *request,
                                 uint64_t *ret_address)
{
    enum spw_err err = request->err;
    bool open;

    pthread_mutex_lock(&tier->lock);
    open = open_tier(tier);
    pthread_mutex_unlock(&tier->lock);
    if (open) {
        err = place(tier, request, ret_address);
    }
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY ? request->err : err;
}
