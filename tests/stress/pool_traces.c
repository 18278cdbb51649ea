/* The traces on the pool, over the device in plain memory.
 *
 *     pool_traces [--seeds N] [--report] FOLDER
 *
 * Each trace runs with and without streams, on one and on four of them, with work that completes at
 * once or after a random time. In all runs the invariants hold, the live peak is that of the trace,
 * and nothing is left after everything is freed and trimmed. Without delays and on one stream the
 * steady state is checked as well: from the sixth step on, with planned addresses where memory had
 * to be stolen, there is no memory call to the device, and in stream order no call at all. */
#include "fake_vm.h"
#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"

enum { STEPS = 8, STEADY_FROM = 5, CHECK_EVERY = 997 };

struct scenario {
    const char *name;
    const struct trace *trace;
    bool ordered; /* allocated and freed on streams */
    unsigned streams;
    uint32_t growth;
    uint64_t seed; /* 0: work completes at once */
};

struct replay {
    struct scenario scenario;
    struct fake_vm vm;
    struct spw_counters counters;
    struct spw_pool *pool;
    uint64_t *addresses;
    size_t chunk_calls, memory_calls, calls; /* in the steady state */
    size_t problems;
};

static bool report;

static void problem(struct replay *replay, const char *what)
{
    const struct scenario *s = &replay->scenario;

    replay->problems++;
    printf("%s, %s, %u streams, growth %u, seed %" PRIu64 ": %s\n", s->name,
           s->ordered ? "async" : "sync", s->streams, s->growth, s->seed, what);
}

static void check(struct replay *replay)
{
    const char *broken = spw_pool_check(replay->pool);

    if (broken != NULL) {
        problem(replay, broken);
    }
}

static void event(struct replay *replay, const struct trace_event *event)
{
    const struct scenario *s = &replay->scenario;
    struct spw_stream stream = {.id = 1 + event->buffer % s->streams};
    uint64_t *address = &replay->addresses[event->buffer];
    enum spw_err err;

    if (event->is_alloc) {
        const struct spw_request request = {.bytes = s->trace->sizes[event->buffer],
                                            .stream = s->ordered ? &stream : NULL};
        struct spw_result result = {.address = *address};

        err = spw_pool_alloc(replay->pool, &request, &result);
        *address = result.address;
    } else {
        err = spw_pool_free(replay->pool, *address, s->ordered ? &stream : NULL);
    }
    if (err != SPW_OK) {
        problem(replay, event->is_alloc ? "an allocation failed" : "a free failed");
    }
}

static void step(struct replay *replay)
{
    const struct trace *trace = replay->scenario.trace;

    for (size_t i = 0; i < trace->event_count && replay->problems == 0; i++) {
        event(replay, &trace->events[i]);
        if (i % CHECK_EVERY == 0) {
            check(replay);
        }
    }
}

/* The promises for a program whose steps are all alike. */
static void judge_steady_state(struct replay *replay)
{
    const struct scenario *s = &replay->scenario;

    if (s->seed != 0 || s->streams > 1) {
        return;
    }
    if (replay->chunk_calls != 0) {
        problem(replay, "a chunk was created or released in the steady state");
    }
    if (replay->memory_calls != 0) {
        problem(replay, "memory was mapped or unmapped in the steady state");
    }
    if (s->ordered && replay->calls != 0) {
        problem(replay, "the device was called in the steady state");
    }
}

static void finish(struct replay *replay)
{
    struct fake_vm *vm = &replay->vm;

    if (spw_counter_get(&replay->counters.live_peak_bytes) != replay->scenario.trace->peak_live) {
        problem(replay, "the live peak is not that of the trace");
    }
    check(replay);
    judge_steady_state(replay);
    vm->immediate = true;
    fake_vm_complete(vm);
    (void)spw_pool_trim(replay->pool, 0);
    check(replay);
    if (vm->chunks != 0) {
        problem(replay, "chunks are left after everything was freed and trimmed");
    }
    spw_pool_destroy(replay->pool);
    if (vm->violations != 0 || vm->live_fences != 0) {
        problem(replay, "a call to the device was wrong, or a fence was not given back");
    }
    fake_vm_fini(vm);
    free(replay->addresses);
}

static size_t run(const struct scenario *scenario)
{
    struct spw_pool_config config = {.granule_bytes = FAKE_GRANULE,
                                     .arena_bytes = 64ull << 30,
                                     .limit_bytes = 1ull << 40,
                                     .growth_permille = scenario->growth};
    struct replay replay = {.scenario = *scenario};

    fake_vm_init(&replay.vm);
    replay.vm.seed = scenario->seed;
    replay.vm.immediate = scenario->seed == 0;
    replay.addresses = calloc(scenario->trace->buffer_count, sizeof(uint64_t));
    if (spw_pool_create(&config, &replay.vm.seam, &replay.counters, &replay.pool) != SPW_OK) {
        problem(&replay, "the pool cannot be created");
        return 1;
    }
    for (int i = 0; i < STEPS; i++) {
        if (i == STEADY_FROM) {
            memset(replay.vm.calls, 0, sizeof(replay.vm.calls));
        }
        step(&replay);
    }
    replay.chunk_calls = replay.vm.calls[FAKE_CREATE] + replay.vm.calls[FAKE_RELEASE];
    replay.memory_calls = fake_vm_memory_calls(&replay.vm);
    replay.calls = fake_vm_calls(&replay.vm);
    if (report) {
        printf("%-10s %-5s streams %u growth %3u seed %2" PRIu64 ": efficiency %.3f, steady "
               "state: %zu chunk calls, %zu memory calls, %zu calls; host waits %" PRIu64 "\n",
               scenario->name, scenario->ordered ? "async" : "sync", scenario->streams,
               scenario->growth, scenario->seed,
               (double)spw_counter_get(&replay.counters.live_peak_bytes) /
                   (double)spw_counter_get(&replay.counters.committed_peak_bytes),
               replay.chunk_calls, replay.memory_calls, replay.calls,
               spw_counter_get(&replay.counters.host_waits));
    }
    finish(&replay);
    return replay.problems;
}

static size_t run_trace(const char *folder, const char *name, uint64_t seeds)
{
    struct trace trace;
    char path[4096];
    size_t problems = 0;

    snprintf(path, sizeof(path), "%s/%s.csv", folder, name);
    if (trace_read(path, &trace) != 0) {
        printf("%s cannot be read\n", path);
        return 1;
    }
    for (uint32_t growth = 100; growth <= 150; growth += 50) {
        for (unsigned streams = 1; streams <= 4; streams += 3) {
            for (uint64_t seed = 0; seed <= seeds; seed++) {
                struct scenario scenario = {name, &trace, true, streams, growth, seed};

                problems += run(&scenario);
                scenario.ordered = false;
                problems += streams == 1 ? run(&scenario) : 0;
            }
        }
    }
    trace_free(&trace);
    return problems;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 3;
    const char *folder = NULL;
    size_t problems = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--report") == 0) {
            report = true;
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            seeds = strtoull(argv[++i], NULL, 0);
        } else {
            folder = argv[i];
        }
    }
    if (folder == NULL) {
        fputs("usage: pool_traces [--seeds N] [--report] FOLDER\n", stderr);
        return 2;
    }
    problems += run_trace(folder, "pangu_2.6B", seeds);
    problems += run_trace(folder, "resnet50", seeds);
    problems += run_trace(folder, "S_1", seeds);
    return problems == 0 ? 0 : 1;
}
