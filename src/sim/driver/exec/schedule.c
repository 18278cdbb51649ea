#include "sim/driver/exec/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/driver/core/calls.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/exec/callback.h"
#include "sim/driver/exec/meter.h"
#include "sim/driver/exec/work_context.h"

/* If a stream has more pending items than this, a submission advances the clock. On a real device,
 * the host waits after about a thousand launches. */
#define STREAM_DEPTH 256

/* The interval between two reads of memory that queued work waits for, while the host waits. */
#define POLL_NS 200000L

static struct {
    uint64_t random; /* state of the generator */
    bool seeded;
    struct sim_stream *first; /* streams with pending items, in the order they became active */
    struct sim_stream *last;
} schedule;

/* SplitMix64. */
static uint64_t draw(void)
{
    uint64_t x;

    if (!schedule.seeded) {
        schedule.seeded = true;
        schedule.random = sim_options()->seed;
    }
    schedule.random += 0x9e3779b97f4a7c15ULL;
    x = schedule.random;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* A delay in nanoseconds: none for half of all items, less than eight steps for most others, less
 * than sixty-four steps for a few. */
static uint64_t draw_delay(void)
{
    uint64_t x;

    if (sim_options()->seed == 0) {
        return 0;
    }
    x = draw();
    if ((x & 1) != 0) {
        return 0;
    }
    return (((x >> 1) & 7) != 0 ? (x >> 4) % 8 : (x >> 4) % 64) * SIM_STEP_NS;
}

static void activate(struct sim_stream *stream)
{
    sim_stream_ref(stream);
    stream->active_next = NULL;
    stream->active_prev = schedule.last;
    if (schedule.last != NULL) {
        schedule.last->active_next = stream;
    } else {
        schedule.first = stream;
    }
    schedule.last = stream;
}

static void deactivate(struct sim_stream *stream)
{
    if (stream->active_prev != NULL) {
        stream->active_prev->active_next = stream->active_next;
    } else {
        schedule.first = stream->active_next;
    }
    if (stream->active_next != NULL) {
        stream->active_next->active_prev = stream->active_prev;
    } else {
        schedule.last = stream->active_prev;
    }
    stream->active_next = NULL;
    stream->active_prev = NULL;
    sim_stream_settle(stream);
    sim_stream_unref(stream);
}

static void item_free(struct sim_item *item)
{
    if (item->state != NULL) {
        item->op->class->release(item);
    }
    sim_fences_fini(&item->after);
    sim_op_unref(item->op);
    free(item);
}

static void log_item(const struct sim_item *item, const char *remark)
{
    const struct sim_timing *timing = &item->timing;
    char line[320];
    int length;

    if (!sim_calls_logged()) {
        return;
    }
    length = snprintf(line, sizeof(line), "  ran %llu.%llu %s%s%.64s%s", item->stream->id,
                      (unsigned long long)item->number, item->op->class->name,
                      item->op->label != NULL ? " " : "",
                      item->op->label != NULL ? item->op->label : "", remark);
    if (sim_clock_is_on()) {
        snprintf(line + length, sizeof(line) - (size_t)length,
                 " t=%" PRIu64 "..%" PRIu64 " device=%" PRIu64 " in=%" PRIu64 " out=%" PRIu64,
                 timing->begin, sim_clock_now(), timing->traffic.device_bytes,
                 timing->traffic.in_bytes, timing->traffic.out_bytes);
    }
    sim_calls_log(line);
}

/* Records the end of work, and the work's use of host memory, for the launcher. */
static void note_time(const struct sim_item *item)
{
    const struct sim_traffic *traffic = &item->timing.traffic;

    if (sim_clock_is_on()) {
        sim_run_record_ran(item->op->device,
                           item->op->class->node_type == CU_GRAPH_NODE_TYPE_KERNEL, sim_clock_now(),
                           traffic->in_bytes, traffic->out_bytes);
    }
}

/* Removes the first item, which is complete. */
static void complete_first(struct sim_stream *stream)
{
    struct sim_item *item = stream->first;

    stream->first = item->next;
    if (stream->first == NULL) {
        stream->last = NULL;
    }
    stream->completed = item->number;
    item_free(item);
}

static bool item_is_due(struct sim_item *item, bool failed)
{
    if (!item->started) {
        if (!sim_fences_prune(&item->after) && !failed) {
            return false;
        }
        item->started = true;
        item->timing = sim_timing_start(item->op, sim_clock_now() + item->delay);
    }
    return failed || sim_clock_now() >= item->timing.end;
}

/* Runs the first item of a stream if it may run. True if it is complete. */
static bool run_first(struct sim_stream *stream)
{
    struct sim_item *item = stream->first;
    const struct sim_op_class *class = item->op->class;
    bool failed = stream->ctx->sticky != CUDA_SUCCESS;
    enum sim_outcome outcome = SIM_DONE;

    if (!item_is_due(item, failed)) {
        return false;
    }
    if (failed) {
        outcome = class->always ? class->run(item->op, item) : SIM_DONE;
    } else if (sim_op_check(item->op) != CUDA_SUCCESS) {
        outcome = SIM_FAULT;
    } else if (class->run != NULL) {
        outcome = class->run(item->op, item);
    }
    if (outcome == SIM_BLOCKED) {
        return false;
    }
    if (outcome == SIM_FAULT) {
        log_item(item, ": illegal address");
        sim_ctx_fail(stream->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
    } else {
        log_item(item, failed ? ": skipped" : "");
        note_time(item);
    }
    complete_first(stream);
    return true;
}

/* Runs items until no more can run at this time. True if any ran. */
static bool run(void)
{
    bool any = false;
    bool progress;

    do {
        progress = false;
        for (struct sim_stream *stream = schedule.first, *next; stream != NULL; stream = next) {
            next = stream->active_next;
            while (stream->first != NULL && run_first(stream)) {
                progress = true;
            }
            if (stream->first == NULL) {
                deactivate(stream);
            }
        }
        any = any || progress;
    } while (progress);
    return any;
}

void sim_schedule_run(void)
{
    (void)run();
}

/* The time when the next item becomes due; UINT64_MAX if no item becomes due by time alone. */
static uint64_t next_due(void)
{
    uint64_t next = UINT64_MAX;

    for (const struct sim_stream *stream = schedule.first; stream; stream = stream->active_next) {
        const struct sim_item *item = stream->first;

        if (item->started && item->timing.end > sim_clock_now() && item->timing.end < next) {
            next = item->timing.end;
        }
    }
    return next;
}

/* Runs the items that can run. If no item can run, sets the clock to the time when the next item
 * becomes due. False if all pending items wait for a host function, another thread, or a change of
 * memory. */
static bool advance(void)
{
    uint64_t next;

    if (run()) {
        return true;
    }
    next = next_due();
    if (next == UINT64_MAX) {
        return false;
    }
    sim_clock_set(next);
    (void)run();
    return true;
}

static bool any_polls(void)
{
    for (const struct sim_stream *stream = schedule.first; stream; stream = stream->active_next) {
        if (stream->first->polls) {
            return true;
        }
    }
    return false;
}

/* One round of a wait. Polled page-locked memory is read again after a pause, because a thread may
 * write it without a call. */
static void wait_round(void)
{
    if (advance()) {
        sim_notify_progress();
    } else if (any_polls()) {
        sim_unlock();
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
        sim_lock();
    } else {
        sim_wait_progress();
    }
}

void sim_schedule_wait(const struct sim_fence *fence)
{
    while (!sim_fence_is_done(fence)) {
        wait_round();
    }
}

void sim_schedule_wait_all(const struct sim_fences *fences)
{
    for (size_t i = 0; i < fences->count; i++) {
        sim_schedule_wait(&fences->list[i]);
    }
}

void sim_schedule_expect(const struct sim_fence *fence)
{
    while (!sim_fence_is_done(fence) && advance()) {
    }
}

void sim_schedule_expect_next(void)
{
    (void)advance();
}

/* Items that become due during the step run at the times when they become due, so that dependent
 * items begin at these times. */
void sim_schedule_step(uint64_t ns)
{
    uint64_t target = sim_clock_now() + ns;
    uint64_t next;

    sim_callback_settle();
    (void)run();
    while ((next = next_due()) <= target) {
        sim_clock_set(next);
        (void)run();
    }
    /* The lock may have been released, and another thread may have advanced the clock further. */
    if (sim_clock_now() < target) {
        sim_clock_set(target);
    }
    (void)run();
}

/* Adds the fences that a new item of the stream waits for by the rules of the legacy stream and by
 * cuCtxWaitEvent. */
static CUresult add_implicit_fences(struct sim_stream *stream, struct sim_fences *fences)
{
    struct sim_work_context *work = stream->ctx->work;

    if (stream->role == SIM_STREAM_LEGACY) {
        for (struct sim_stream *other = work->streams; other != NULL; other = other->next) {
            CUresult result;

            if (!sim_stream_is_blocking(other)) {
                continue;
            }
            result = sim_fences_add(fences, other, other->submitted);
            if (result != CUDA_SUCCESS) {
                return result;
            }
        }
    } else if (sim_stream_is_blocking(stream) && work->legacy != NULL) {
        CUresult result = sim_fences_add(fences, work->legacy, work->legacy->submitted);

        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    sim_fences_prune(&work->waits);
    return sim_fences_add_all(fences, &work->waits);
}

static CUresult item_new(struct sim_stream *stream, struct sim_op *op,
                         const struct sim_fences *after, struct sim_item **ret_item)
{
    struct sim_item *item = calloc(1, sizeof(*item));
    CUresult result;

    if (item == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    item->op = sim_op_ref(op);
    item->stream = stream;
    result = add_implicit_fences(stream, &item->after);
    if (result == CUDA_SUCCESS && after != NULL) {
        result = sim_fences_add_all(&item->after, after);
    }
    if (result != CUDA_SUCCESS) {
        item_free(item);
        return result;
    }
    item->delay = draw_delay();
    *ret_item = item;
    return CUDA_SUCCESS;
}

CUresult sim_schedule_submit(struct sim_stream *stream, struct sim_op *op,
                             const struct sim_fences *after)
{
    struct sim_item *item;
    CUresult result = item_new(stream, op, after, &item);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    item->number = ++stream->submitted;
    if (stream->last != NULL) {
        stream->last->next = item;
        stream->last = item;
    } else {
        stream->first = item;
        stream->last = item;
        activate(stream);
    }
    sim_meter_submitted(stream, op);
    (void)run();
    while (stream->submitted - stream->completed > STREAM_DEPTH && advance()) {
    }
    return CUDA_SUCCESS;
}

const struct sim_op *sim_schedule_user(CUdeviceptr address, size_t size)
{
    for (const struct sim_stream *stream = schedule.first; stream; stream = stream->active_next) {
        for (const struct sim_item *item = stream->first; item != NULL; item = item->next) {
            if (sim_op_uses(item->op, address, size)) {
                return item->op;
            }
        }
    }
    return NULL;
}

static bool is_pending_in(const struct sim_stream *stream, CUcontext ctx,
                          const struct sim_device *device)
{
    return ctx != NULL ? stream->ctx == ctx : stream->ctx->device == device;
}

/* Adds the fences of the pending work of a context or, if `ctx` is NULL, of a device. */
static CUresult add_pending(CUcontext ctx, const struct sim_device *device,
                            struct sim_fences *fences)
{
    for (struct sim_stream *stream = schedule.first; stream; stream = stream->active_next) {
        CUresult result;

        if (!is_pending_in(stream, ctx, device)) {
            continue;
        }
        result = sim_fences_add(fences, stream, stream->submitted);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_schedule_pending_of_context(CUcontext ctx, struct sim_fences *fences)
{
    return add_pending(ctx, NULL, fences);
}

CUresult sim_schedule_pending_of_device(const struct sim_device *device, struct sim_fences *fences)
{
    return add_pending(NULL, device, fences);
}

static struct sim_stream *first_active_of(CUcontext ctx)
{
    for (struct sim_stream *stream = schedule.first; stream; stream = stream->active_next) {
        if (stream->ctx == ctx) {
            return stream;
        }
    }
    return NULL;
}

void sim_schedule_drop_context(CUcontext ctx)
{
    struct sim_stream *stream;

    while (first_active_of(ctx) != NULL) {
        if (advance()) {
            continue;
        }
        if (!sim_callback_is_pending()) {
            break;
        }
        wait_round();
    }
    /* The remaining items wait for events that can no longer happen. */
    while ((stream = first_active_of(ctx)) != NULL) {
        while (stream->first != NULL) {
            const struct sim_op_class *class = stream->first->op->class;

            if (class->always) {
                (void)class->run(stream->first->op, stream->first);
            }
            complete_first(stream);
        }
        deactivate(stream);
    }
    sim_notify_progress();
}
