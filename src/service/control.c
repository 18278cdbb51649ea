#include "service/control.h"

#include "common/options.h"
#include "common/size.h"
#include "process/process.h"
#include "service/pause.h"
#include "service/state.h"
#include "service/thread.h"
#include "stats/stats.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/log.h"

#include <string.h>
#include <sys/prctl.h>

/* A held process goes on after this time without a request: the command that held it must have
 * ended. */
enum { NS_PER_MS = 1000000 };
static const uint64_t most_held_ns = UINT64_C(10000000000);

static struct spw_service_control *const service = &spw_service.control;

static struct spw_stats_control *control_of_process(void)
{
    return &spw_process_stats()->control;
}

/* Called by a thread of the program that begins to wait. Wakes our thread if the wait ends the
 * pause. */
static void note_arrival(void)
{
    struct spw_stats_control *control = control_of_process();

    if (!atomic_exchange(&service->arrived, true) &&
        atomic_load(&control->state) == SPW_CONTROL_PAUSED_ON_DEMAND) {
        atomic_fetch_add(&control->requests, 1);
        spw_futex_wake(&control->requests);
    }
}

/* ---- requests ---- */

static bool is_paused(const struct spw_stats_control *control)
{
    return atomic_load(&control->state) >= SPW_CONTROL_PAUSED;
}

static void store_result(struct spw_stats_control *control, const struct spw_pause_result *result)
{
    atomic_store(&control->outcome, result->outcome);
    atomic_store(&control->moved_bytes, result->moved_bytes);
    atomic_store(&control->left_bytes, result->left_bytes);
    atomic_store(&control->host_full, result->host_full);
    atomic_store(&control->error, (uint32_t)result->error);
}

/* False when the program stays paused. */
static bool resume_program(struct spw_stats_control *control, uint64_t wait_ns)
{
    static const struct spw_part all = {.kind = SPW_CONTROL_PART_ALL};
    struct spw_pause_result result =
        spw_service_pause_end(&all, wait_ns, /* held */ is_paused(control));

    store_result(control, &result);
    if (result.outcome == SPW_CONTROL_DONE) {
        atomic_store(&control->state, SPW_CONTROL_LISTENING);
    }
    return result.outcome == SPW_CONTROL_DONE;
}

static bool is_on_demand(const struct spw_stats_control *control)
{
    return atomic_load(&control->state) == SPW_CONTROL_PAUSED_ON_DEMAND &&
           atomic_load(&service->arrived);
}

/* Sets the state after an attempt. An attempt that failed halfway has brought back all memory, also
 * that of earlier pauses of parts. An attempt that was refused at once has changed nothing. */
static void enter_state(struct spw_stats_control *control, const struct spw_pause_result *result,
                        enum spw_control_state state)
{
    if (result->outcome == SPW_CONTROL_DONE) {
        atomic_store(&control->state, state);
    } else if (result->undone) {
        atomic_store(&control->state, SPW_CONTROL_LISTENING);
    }
}

static bool is_held(const struct spw_stats_control *control)
{
    return atomic_load(&control->state) == SPW_CONTROL_HELD;
}

static void leave_hold(struct spw_stats_control *control)
{
    if (is_held(control)) {
        atomic_store(&control->state, service->state_before);
    }
}

/* Waiting threads report their arrival again at each step. */
static void hold_program(struct spw_stats_control *control, bool step, uint64_t wait_ns)
{
    bool held;
    enum spw_control_outcome outcome;

    if (!is_held(control)) {
        service->state_before = (enum spw_control_state)atomic_load(&control->state);
    }
    if (step || !is_held(control)) {
        atomic_store(&service->arrived, false);
    }
    outcome = spw_service_pause_hold(
        &(struct spw_pause_request){.wait_ns = wait_ns, .arrived = note_arrival}, step, &held);
    store_result(control, &(struct spw_pause_result){.outcome = outcome});
    if (held) {
        atomic_store(&control->state, SPW_CONTROL_HELD);
        service->held_ns = spw_clock_ns();
    } else {
        leave_hold(control);
    }
}

static void let_program_go(struct spw_stats_control *control)
{
    spw_service_pause_let_go();
    leave_hold(control);
    store_result(control, &(struct spw_pause_result){.outcome = SPW_CONTROL_DONE});
}

static void pause_program(struct spw_stats_control *control, enum spw_control_state state,
                          uint64_t wait_ns)
{
    struct spw_pause_result result;
    char folder[SPW_STATS_PATH];

    memcpy(folder, control->folder, sizeof(folder)); /* another process may write it */
    folder[sizeof(folder) - 1] = '\0';
    if (!is_held(control)) {
        atomic_store(&service->arrived, false);
    }
    result = spw_service_pause_begin(&(struct spw_pause_request){
        .folder = folder[0] != '\0' ? folder : NULL, .wait_ns = wait_ns, .arrived = note_arrival});
    leave_hold(control);
    store_result(control, &result);
    enter_state(control, &result, state);
}

/* Moves a part of the memory, or brings it back; the program goes on. */
static void move_part(struct spw_stats_control *control, uint32_t action, uint64_t wait_ns)
{
    bool resumes = action == SPW_CONTROL_RESUME;
    struct spw_pause_result result;
    char name[SPW_STATS_PART];
    struct spw_part part;

    memcpy(name, control->name, sizeof(name)); /* another process may write it */
    name[sizeof(name) - 1] = '\0';
    part = (struct spw_part){(enum spw_control_part)atomic_load(&control->part), name};
    result = resumes ? spw_service_pause_end(&part, wait_ns, /* held */ false)
                     : spw_service_pause_begin(
                           &(struct spw_pause_request){.part = part, .wait_ns = wait_ns});
    store_result(control, &result);
    enter_state(control, &result,
                resumes && !result.goes_on ? SPW_CONTROL_LISTENING : SPW_CONTROL_PAUSED_IN_PART);
}

/* Answers a request about all memory. False when there is nothing to do. */
static bool answer_for_all(struct spw_stats_control *control, uint32_t action, uint64_t wait_ns)
{
    if (action == SPW_CONTROL_RESUME) {
        if (is_held(control)) {
            let_program_go(control);
            return true;
        }
        if (atomic_load(&control->state) >= SPW_CONTROL_PAUSED_IN_PART) {
            (void)resume_program(control, wait_ns);
            return true;
        }
        return false;
    }
    if (is_paused(control) || action > SPW_CONTROL_STEP) {
        return false;
    }
    if (action == SPW_CONTROL_HOLD || action == SPW_CONTROL_STEP) {
        hold_program(control, action == SPW_CONTROL_STEP, wait_ns);
    } else {
        pause_program(control,
                      action == SPW_CONTROL_PAUSE_ON_DEMAND ? SPW_CONTROL_PAUSED_ON_DEMAND
                                                            : SPW_CONTROL_PAUSED,
                      wait_ns);
    }
    return true;
}

/* Answers a request about a part of the memory. False when there is nothing to do. */
static bool answer_for_part(struct spw_stats_control *control, uint32_t action, uint64_t wait_ns)
{
    uint32_t state = atomic_load(&control->state);

    if (is_paused(control) && action == SPW_CONTROL_RESUME) {
        atomic_store(&control->outcome, SPW_CONTROL_WHOLE);
        return true;
    }
    if ((action == SPW_CONTROL_RESUME && state == SPW_CONTROL_PAUSED_IN_PART) ||
        (action == SPW_CONTROL_PAUSE && !is_paused(control) && state != SPW_CONTROL_HELD)) {
        move_part(control, action, wait_ns);
        return true;
    }
    return false;
}

/* Carries out the newest request, if there is one. */
static void answer(struct spw_stats_control *control)
{
    uint32_t action = atomic_exchange(&control->action, 0);
    uint64_t wait_ns = (uint64_t)atomic_load(&control->wait_ms) * NS_PER_MS;
    bool whole = atomic_load(&control->part) == SPW_CONTROL_PART_ALL;

    if (action != 0 && !(whole ? answer_for_all(control, action, wait_ns)
                               : answer_for_part(control, action, wait_ns))) {
        atomic_store(&control->outcome, SPW_CONTROL_ALREADY);
    }
}

static void say_that_it_waits(const struct spw_stats_control *control)
{
    bool unreadable = atomic_load(&control->outcome) == SPW_CONTROL_UNREADABLE;
    char left[SPW_SIZE_TEXT];

    spw_log_always("the program needs its memory, but %s %s: it waits",
                   spw_size_text(atomic_load(&control->left_bytes), left),
                   unreadable ? "cannot be read from the file of the pause"
                              : "in the file of the pause find no room on the devices or the host");
}

static void *run(void *unused)
{
    static const struct timespec second = {.tv_sec = 1};
    struct spw_stats_control *control = control_of_process();
    uint32_t seen = atomic_load(&control->answered), now;
    bool waits = false; /* the pause could not be ended when the program needed it */
    bool reported = false;

    (void)unused;
    (void)prctl(PR_SET_NAME, "spillway");
    atomic_store(&control->state, SPW_CONTROL_LISTENING);
    for (;;) {
        now = atomic_load(&control->requests);
        if (now == seen) {
            spw_futex_wait(&control->requests, seen, waits || is_held(control) ? &second : NULL);
        } else {
            answer(control);
            seen = now;
            atomic_store(&control->answered, seen);
            spw_futex_wake(&control->answered);
        }
        if (is_held(control) && spw_clock_ns() - service->held_ns > most_held_ns) {
            let_program_go(control);
        }
        /* Also ends a pause that the program reached before the pause was complete. */
        waits = is_on_demand(control) &&
                !resume_program(control, (uint64_t)atomic_load(&control->wait_ms) * NS_PER_MS);
        if (waits && !reported) {
            say_that_it_waits(control);
        }
        reported = waits;
    }
    return NULL;
}

/* ---- the thread ---- */

static bool is_wanted(void)
{
    switch (spw_option_get(SPW_OPT_SPILLWAY_CONTROL, NULL, 0).word) {
    case SPW_CONTROL_ON:
        return true;
    case SPW_CONTROL_OFF:
        return false;
    default:
        return spw_process_driver()->simulated == NULL;
    }
}

void spw_service_control_start(void)
{
    if (!atomic_exchange(&service->started, true) && spw_process_stats() != NULL && is_wanted()) {
        (void)spw_service_thread_start(run, NULL);
    }
}

void spw_service_control_forget(void)
{
    atomic_store(&service->started, false);
    spw_service_pause_forget();
}
