#include "service/pause.h"

#include "device/device.h"
#include "device/lease.h"
#include "device/spill.h"
#include "migrate/move/barrier.h"
#include "pool/pool.h"
#include "service/state.h"
#include "system/backoff.h"
#include "system/lock.h"

#include <pthread.h>

static struct spw_service_pause *const pausing = &spw_service.pause;

/* Memory of a device that the pool holds, charges of others included. */
static uint64_t committed(const struct spw_device *device)
{
    return spw_counter_get(&device->counters->committed_bytes);
}

static void count_left(struct spw_pause_result *result, bool on_host)
{
    result->left_bytes = 0;
    for (int i = 0; i < spw_device_count(); i++) {
        const struct spw_device *device = spw_device_at(i);

        result->left_bytes +=
            on_host ? spw_counter_get(&device->counters->host_used_bytes) : committed(device);
    }
}

/* Moves the memory of one device. */
static enum spw_err evict(struct spw_device *device, const struct spw_block_filter *only, bool held,
                          uint64_t wait_ns, struct spw_pause_result *result)
{
    struct spw_migrate *tier = atomic_load(&device->tier);
    struct spw_pool *pool = spw_device_opened(device);
    uint64_t bytes = 0;
    enum spw_err err;

    if (pool == NULL || committed(device) == 0) {
        return SPW_OK;
    }
    if (tier == NULL) {
        return SPW_E_UNSUPPORTED;
    }
    err = spw_migrate_evict_all(tier, only, held, wait_ns, &bytes);
    result->moved_bytes += bytes;
    spw_counter_add(&device->counters->paused_bytes, bytes);
    result->host_full |= err == SPW_E_NO_MEMORY;
    (void)spw_pool_trim(pool, 0);
    return err == SPW_E_NO_MEMORY ? SPW_OK : err;
}

/* Brings back the blocks of `only`, while the pause goes on for others; NULL: brings back all
 * blocks. */
static uint64_t bring_back(const struct spw_block_filter *only, uint64_t wait_ns)
{
    uint64_t sum = 0, bytes;

    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);
        struct spw_migrate *tier = atomic_load(&device->tier);
        struct spw_pool *pool = spw_device_opened(device);

        if (tier != NULL && pool != NULL) {
            if (only != NULL) {
                spw_migrate_return_some(tier, only, wait_ns, &bytes);
            } else {
                spw_migrate_return_all(tier, wait_ns, &bytes);
            }
            (void)spw_pool_trim_host(pool);
            sum += bytes;
        }
    }
    return sum;
}

static enum spw_control_outcome evict_each(const struct spw_pause_request *request,
                                           const struct spw_block_filter *only,
                                           struct spw_pause_result *result)
{
    bool held = request->arrived != NULL;
    enum spw_err err = SPW_OK;

    for (int i = 0; i < spw_device_count() && err == SPW_OK; i++) {
        err = evict(spw_device_at(i), only, held, request->wait_ns, result);
    }
    return err == SPW_OK              ? SPW_CONTROL_DONE
           : err == SPW_E_UNSUPPORTED ? SPW_CONTROL_IMPOSSIBLE
                                      : SPW_CONTROL_BUSY;
}

/* ---- to a file ---- */

/* The tier of a device with an open pool; NULL: it has none. */
static struct spw_migrate *swapping_tier(struct spw_device *device)
{
    return spw_device_opened(device) != NULL ? atomic_load(&device->tier) : NULL;
}

/* Waits until every device is idle. The devices stay idle, as the program is held. */
static bool all_idle(uint64_t wait_ns)
{
    bool idle = true;

    for (int i = 0; i < spw_device_count() && idle; i++) {
        struct spw_migrate *tier = swapping_tier(spw_device_at(i));

        idle = tier == NULL || spw_migrate_swap_prepare(tier, wait_ns) == SPW_OK;
    }
    return idle;
}

static enum spw_control_outcome swap_out_each(const struct spw_pause_request *request,
                                              struct spw_pause_result *result)
{
    if (!all_idle(request->wait_ns)) {
        return SPW_CONTROL_BUSY;
    }
    result->error = spw_migrate_swap_file_open(request->folder, &pausing->file);
    if (result->error != 0) {
        return SPW_CONTROL_NO_FILE;
    }
    for (int i = 0; i < spw_device_count() && result->error == 0; i++) {
        /* Another thread may close the pool now, but the pool exists until the lease ends. */
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));
        struct spw_migrate *tier = atomic_load(&spw_device_at(i)->tier);

        if (pool != NULL && tier != NULL) {
            struct spw_swap_result swapped = spw_migrate_swap_out_all(tier, &pausing->file);

            result->moved_bytes += swapped.bytes;
            result->error = swapped.error;
            (void)spw_pool_trim(pool, 0);
        }
    }
    return SPW_CONTROL_DONE;
}

/* Brings all memory back from the file and closes the file, or sets how many bytes are left in
 * it. */
static void swap_in_each(struct spw_pause_result *result)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_migrate *tier = swapping_tier(spw_device_at(i));

        if (tier != NULL) {
            struct spw_swap_result swapped = spw_migrate_swap_in_all(tier, &pausing->file);

            result->moved_bytes += swapped.bytes;
            result->left_bytes += swapped.left;
            result->error = swapped.error != 0 ? swapped.error : result->error;
        }
    }
    if (result->left_bytes > 0) {
        result->outcome = result->error != 0 ? SPW_CONTROL_UNREADABLE : SPW_CONTROL_NO_ROOM;
    } else {
        spw_migrate_swap_file_close(&pausing->file);
    }
}

/* ---- the pause ---- */

/* The outcome as it is known before an attempt; DONE when memory may be able to move. */
static enum spw_control_outcome expected_outcome(void)
{
    enum spw_control_outcome outcome = SPW_CONTROL_UNUSED;

    for (int i = 0; i < spw_device_count(); i++) {
        const struct spw_device *device = spw_device_at(i);

        if (committed(device) > 0) {
            if (atomic_load(&device->tier) == NULL) {
                return SPW_CONTROL_IMPOSSIBLE;
            }
            outcome = SPW_CONTROL_DONE;
        }
    }
    if (outcome == SPW_CONTROL_DONE && spw_process_is_leaving()) {
        return SPW_CONTROL_BUSY; /* no call of CUDA while the process ends */
    }
    return outcome == SPW_CONTROL_DONE && !spw_device_may_move() ? SPW_CONTROL_CAPTURING : outcome;
}

static enum spw_control_outcome move_out(const struct spw_pause_request *request,
                                         const struct spw_block_filter *only,
                                         struct spw_pause_result *result)
{
    /* A capture may have begun before the barrier was closed. */
    if (!spw_device_may_move()) {
        return SPW_CONTROL_CAPTURING;
    }
    return request->folder != NULL ? swap_out_each(request, result)
                                   : evict_each(request, only, result);
}

/* A thread cannot be cancelled until its turn ends, since all others would wait for it forever. */
static void take_turn(void)
{
    struct spw_backoff backoff = {.limit_ns = UINT64_MAX};
    unsigned ticket;
    int cancel;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    ticket = atomic_fetch_add(&pausing->next_ticket, 1);
    while (atomic_load(&pausing->served_ticket) != ticket) {
        (void)spw_backoff_pause(&backoff);
    }
    spw_lock(&spw_locks.pausing);
    pausing->cancel_before = cancel;
}

static void end_turn(void)
{
    int cancel = pausing->cancel_before;

    spw_unlock(&spw_locks.pausing);
    atomic_fetch_add(&pausing->served_ticket, 1);
    (void)pthread_setcancelstate(cancel, NULL);
}

/* Lets one thread at a time begin or end a pause. Waits first for the end of a pause that holds the
 * program, unless the caller is its holder, or is inside a call that submits. */
static void enter_pausing(bool holder)
{
    take_turn();
    while (!holder && !spw_migrate_barrier_inside() && spw_migrate_barrier_is_held()) {
        end_turn();
        spw_migrate_barrier_await_end();
        take_turn();
    }
}

static void let_go(void)
{
    if (pausing->holding) {
        spw_migrate_barrier_release_hold();
        pausing->holding = false;
    }
}

static bool hold_program(const struct spw_pause_request *request)
{
    if (!pausing->holding) {
        pausing->holding = spw_migrate_barrier_hold(request->wait_ns, request->arrived);
    }
    return pausing->holding;
}

/* Waits until no call is under way and all devices are idle. */
static bool is_at_rest(uint64_t wait_ns)
{
    bool idle = false;

    if (spw_migrate_barrier_await_quiet(wait_ns)) {
        spw_device_lease_enter();
        idle = all_idle(wait_ns);
        spw_device_lease_leave();
    }
    return idle;
}

enum spw_control_outcome spw_service_pause_hold(const struct spw_pause_request *request, bool step,
                                                bool *ret_held)
{
    enum spw_control_outcome outcome;

    enter_pausing(/* holder */ true);
    outcome = expected_outcome();
    if (outcome == SPW_CONTROL_DONE) {
        if (step && pausing->holding) {
            spw_migrate_barrier_step(request->wait_ns);
        }
        outcome = hold_program(request) && is_at_rest(request->wait_ns) ? SPW_CONTROL_DONE
                                                                        : SPW_CONTROL_BUSY;
    } else {
        let_go();
    }
    *ret_held = pausing->holding;
    end_turn();
    return outcome;
}

void spw_service_pause_let_go(void)
{
    enter_pausing(/* holder */ true);
    let_go();
    end_turn();
}

static struct spw_pause_result move(const struct spw_pause_request *request,
                                    const struct spw_block_filter *only)
{
    struct spw_pause_result result = {.outcome = SPW_CONTROL_DONE};

    spw_device_lease_enter();
    result.outcome = move_out(request, only, &result);
    if (result.outcome == SPW_CONTROL_DONE) {
        spw_service_part_begin(&request->part);
    } else {
        (void)bring_back(/* only */ NULL, request->wait_ns);
        spw_service_part_end_all();
        result.undone = true;
    }
    spw_device_lease_leave();
    count_left(&result, /* on_host */ false);
    return result;
}

static struct spw_pause_result begin(const struct spw_pause_request *request)
{
    struct spw_pause_result result = {.outcome = SPW_CONTROL_NO_PART};
    struct spw_part_blocks *blocks = &pausing->blocks;
    bool held = request->arrived != NULL;

    if (spw_service_part_find(&request->part, blocks)) {
        result.outcome = expected_outcome();
    }
    if (result.outcome == SPW_CONTROL_DONE && held &&
        !(hold_program(request) && spw_migrate_barrier_claim(request->wait_ns))) {
        result.outcome = SPW_CONTROL_BUSY;
    }
    if (result.outcome == SPW_CONTROL_DONE) {
        result = move(request, &blocks->filter);
    }
    if (result.outcome != SPW_CONTROL_DONE && held) {
        let_go();
    }
    return result;
}

struct spw_pause_result spw_service_pause_begin(const struct spw_pause_request *request)
{
    struct spw_pause_result result;

    enter_pausing(/* holder */ request->arrived != NULL);
    result = begin(request);
    end_turn();
    return result;
}

static struct spw_pause_result end(const struct spw_part *part, uint64_t wait_ns, bool held)
{
    struct spw_pause_result result = {.outcome = SPW_CONTROL_DONE};
    struct spw_part_blocks *blocks = &pausing->blocks;

    if (!spw_service_part_find(part, blocks)) {
        result.outcome = SPW_CONTROL_NO_PART;
        return result;
    }
    result.goes_on = part->kind != SPW_CONTROL_PART_ALL && spw_service_part_end(part) > 0;
    spw_device_lease_enter();
    if (pausing->file.buffer != NULL) {
        swap_in_each(&result);
    }
    if (result.outcome == SPW_CONTROL_DONE) {
        result.moved_bytes += bring_back(result.goes_on ? &blocks->filter : NULL, wait_ns);
    }
    spw_device_lease_leave();
    if (result.outcome != SPW_CONTROL_DONE) {
        return result;
    }
    if (!result.goes_on) {
        spw_service_part_end_all();
    }
    if (held) {
        let_go();
    }
    count_left(&result, /* on_host */ true);
    return result;
}

struct spw_pause_result spw_service_pause_end(const struct spw_part *part, uint64_t wait_ns,
                                              bool held)
{
    struct spw_pause_result result;

    enter_pausing(/* holder */ held);
    result = end(part, wait_ns, held);
    end_turn();
    return result;
}

/* The parent keeps the file. The child closes its descriptor, and has no threads with tickets. */
void spw_service_pause_forget(void)
{
    atomic_store(&pausing->served_ticket, atomic_load(&pausing->next_ticket));
    pausing->holding = false;
    if (pausing->file.buffer != NULL) {
        spw_migrate_swap_file_close(&pausing->file);
    }
    spw_service_part_end_all();
}
