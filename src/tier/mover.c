#include "tier/mover.h"

#include <inttypes.h>
#include <time.h>

#include "base/log.h"
#include "base/size.h"
#include "tier/gate.h"

enum {
    PAUSE_LEAST_NS = 2000,
    PAUSE_MOST_NS = 100000,
    MOST_SKIPPED = 64,
    COPY_NS_PER_KIB = 200, /* 5 GB/s: far less than any link that is worth copying over */
    INSIST_NS = 1000000000 /* held back that long rather than lose content */
};

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Asks until it is done, at most for a while. */
static enum spw_err await(enum spw_err (*ask)(struct spw_pool *pool), struct spw_pool *pool,
                          uint64_t most_ns)
{
    struct timespec pause = {.tv_nsec = PAUSE_LEAST_NS};
    uint64_t begin = now_ns();

    for (;;) {
        enum spw_err err = ask(pool);

        if (err != SPW_E_AGAIN || now_ns() - begin >= most_ns) {
            return err;
        }
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < PAUSE_MOST_NS ? pause.tv_nsec * 2 : pause.tv_nsec;
    }
}

/* A mismatch is a bug of spillway's: everything that is known is told. */
static void report_mismatch(const struct spw_mover *mover, bool copied_twice, uint64_t address)
{
    struct spw_block block = {0};

    (void)spw_pool_find(mover->pool, address, &block);
    spw_say("SPILLWAY_VERIFY: BUG: content changed in a move of device %d: granule "
            "0x%" PRIx64 ", block %" PRIu64 " at 0x%" PRIx64 " of %" PRIu64 " bytes, move %" PRIu64
            ", wish of %" PRIu64 " bytes, overlap %s, copied %s, %" PRIu64 " submissions so far",
            mover->ordinal, address, block.id, block.address, block.bytes,
            spw_counter_get(&mover->counters->moves), mover->bytes,
            mover->overlap ? "on" : "off", copied_twice ? "with the gate closed" : "once",
            spw_gate_submissions());
}

/* After a commit that failed: what cannot be reached is asked of the driver again and again, for
 * the program would fail as soon as it uses it. */
static void insist(struct spw_mover *mover)
{
    char size[SPW_SIZE_TEXT];
    uint64_t address, bytes;

    if (await(spw_pool_move_mend, mover->pool, INSIST_NS) == SPW_OK) {
        return;
    }
    address = spw_pool_move_lost(mover->pool, &bytes);
    spw_say("device %d: the driver does not give back access to %s at 0x%" PRIx64 " after a move: "
            "what uses it will fail; nothing is moved until it does",
            mover->ordinal, spw_size_text(bytes, size), address);
}

/* Whether what moves may have been written to since the copies began. */
static bool is_stale(const struct spw_mover *mover)
{
    uint64_t submissions = spw_gate_submissions();

    return !mover->overlap ||
           (submissions != mover->submissions &&
            (mover->heat == NULL || !spw_heat_is_clean(mover->heat, submissions)));
}

/* With the gate closed and the device at rest: makes sure of the copies, exchanges the chunks. */
static enum spw_err exchange(struct spw_mover *mover, uint64_t *ret_bytes)
{
    bool again = is_stale(mover);
    enum spw_err err = SPW_OK;
    uint64_t wrong;

    if (again) {
        spw_counter_add(&mover->counters->second_copies, mover->overlap);
        err = spw_pool_move_copy(mover->pool, /* after_all */ false);
        if (err == SPW_OK) {
            err = await(spw_pool_move_poll, mover->pool,
                        mover->wait_ns + mover->bytes / 1024 * COPY_NS_PER_KIB);
        }
    }
    if (err == SPW_OK && mover->verify) {
        err = spw_pool_move_hash(mover->pool);
    }
    if (err != SPW_OK) {
        return err;
    }
    err = spw_pool_move_commit(mover->pool, ret_bytes);
    if (err != SPW_OK) {
        insist(mover);
    }
    if (mover->verify) {
        wrong = spw_pool_move_verify(mover->pool);
        if (wrong != 0) {
            report_mismatch(mover, again, wrong);
        }
    }
    return err;
}

/* The closed phase. */
static enum spw_err close_and_exchange(struct spw_mover *mover, uint64_t *ret_bytes)
{
    uint64_t begin = now_ns();
    enum spw_err err = SPW_E_AGAIN;

    if (spw_gate_close(mover->wait_ns)) {
        err = await(spw_pool_move_drain, mover->pool, mover->wait_ns);
        if (err == SPW_OK) {
            err = exchange(mover, ret_bytes);
        }
        spw_gate_open();
    }
    spw_counter_add(&mover->counters->closed_ns, now_ns() - begin);
    return err;
}

/* Moves that are abandoned cost time and gain nothing: the next ones are left out. */
static void note_outcome(struct spw_mover *mover, enum spw_err err)
{
    if (err == SPW_OK) {
        spw_counter_add(&mover->counters->moves, 1);
        mover->next_skip = 1;
        return;
    }
    spw_counter_add(&mover->counters->abandoned_moves, 1);
    mover->skip = mover->next_skip;
    mover->next_skip =
        mover->next_skip < MOST_SKIPPED ? 2 * mover->next_skip + 1 : mover->next_skip;
}

bool spw_mover_clear(struct spw_mover *mover)
{
    bool held = mover->to_clear;

    mover->to_clear = false;
    if (held) {
        (void)spw_pool_move_end(mover->pool);
    }
    return held;
}

static void end_move(struct spw_mover *mover, enum spw_err err)
{
    note_outcome(mover, err);
    mover->to_clear = true;
    spw_pool_move_leave(mover->pool);
    if (mover->heat != NULL) {
        spw_heat_end_move(mover->heat, mover->places, mover->place_count);
    }
    mover->under_way = false;
}

enum spw_err spw_mover_begin(struct spw_mover *mover, const struct spw_move_wish *wish)
{
    enum spw_err err;

    (void)spw_mover_clear(mover);
    if (mover->skip > 0) {
        mover->skip--;
        return SPW_E_AGAIN;
    }
    err = spw_pool_move_begin(mover->pool, wish);
    if (err != SPW_OK) {
        return err;
    }
    mover->under_way = true;
    mover->place_count = spw_pool_move_places(mover->pool, mover->places);
    mover->bytes = mover->place_count * mover->granule_bytes;
    mover->submissions = spw_gate_submissions();
    if (mover->heat != NULL) {
        spw_heat_begin_move(mover->heat, mover->places, mover->place_count, mover->submissions);
    }
    if (mover->overlap) {
        err = spw_pool_move_copy(mover->pool, /* after_all */ true);
    }
    if (err != SPW_OK) {
        end_move(mover, err);
        (void)spw_mover_clear(mover);
    }
    return err;
}

bool spw_mover_is_ready(struct spw_mover *mover)
{
    return spw_pool_move_poll(mover->pool) != SPW_E_AGAIN;
}

enum spw_err spw_mover_finish(struct spw_mover *mover, uint64_t patience_ns, uint64_t *ret_bytes)
{
    uint64_t begin = now_ns();
    enum spw_err err = SPW_OK;

    *ret_bytes = 0;
    if (mover->overlap) {
        err = await(spw_pool_move_poll, mover->pool, patience_ns);
    }
    /* So that with the gate closed there is little left to wait for. */
    if (err == SPW_OK) {
        err = spw_pool_move_drain(mover->pool);
        mover->rested = err == SPW_OK;
    }
    if (err == SPW_E_AGAIN) {
        err = await(spw_pool_move_drain, mover->pool, patience_ns);
    }
    if (err == SPW_OK) {
        err = close_and_exchange(mover, ret_bytes);
    }
    end_move(mover, err);
    spw_counter_add(&mover->counters->stall_ns, now_ns() - begin);
    return err;
}

enum spw_err spw_mover_move(struct spw_mover *mover, const struct spw_move_wish *wish,
                            uint64_t patience_ns, uint64_t *ret_bytes)
{
    enum spw_err err = spw_mover_begin(mover, wish);

    *ret_bytes = 0;
    if (err == SPW_OK) {
        err = spw_mover_finish(mover, patience_ns, ret_bytes);
        (void)spw_mover_clear(mover);
    }
    return err;
}
