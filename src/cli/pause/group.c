#include "cli/pause/group.h"

#include "common/minmax.h"
#include "system/clock.h"

#include <time.h>

/* Held processes continue after 10 s without a request. */
enum {
    TRIES = 4,           /* attempts to hold several processes */
    MOMENT_MS = 20,      /* between two attempts */
    STEP_MS = 2,         /* the first wait for a process that steps (passes one call) */
    STEP_MOST_MS = 4000, /* the longest wait for such a process */
    NS_PER_MS = 1000000
};

/* A held process lets its program continue within this time. */
enum { LET_GO_MS = 1000 };

static void send(const struct spw_cli_group *group, struct spw_cli_asked *asked,
                 enum spw_control_action action, uint64_t wait_ms)
{
    struct spw_cli_request request = group->request;

    request.action = action;
    request.wait_ms = (uint32_t)wait_ms;
    spw_cli_control_send(&asked->control, &request);
}

/* Waits for the answer without a limit, because moves may take longer than `wait_ms`. */
static void await(struct spw_cli_asked *asked)
{
    asked->answered =
        spw_cli_control_await(&asked->control, &asked->watched, UINT32_MAX / 2, &asked->answer);
}

static bool is_outcome(const struct spw_cli_asked *asked, enum spw_control_outcome outcome)
{
    return asked->answered && asked->answer.outcome == outcome;
}

static bool is_done(const struct spw_cli_asked *asked)
{
    return is_outcome(asked, SPW_CONTROL_DONE);
}

static size_t count_outcome(const struct spw_cli_group *group, enum spw_control_outcome outcome)
{
    size_t count = 0;

    for (size_t i = 0; i < group->count; i++) {
        count += is_outcome(&group->asked[i], outcome);
    }
    return count;
}

static void ask_each(struct spw_cli_group *group, enum spw_control_action action, uint64_t wait_ms)
{
    for (size_t i = 0; i < group->count; i++) {
        send(group, &group->asked[i], action, wait_ms);
        group->asked[i].undone = false;
    }
    for (size_t i = 0; i < group->count; i++) {
        await(&group->asked[i]);
    }
}

/* Sends the request to one process after the other. While memory of one process moves, the other
 * processes continue. */
static void ask_in_turn(struct spw_cli_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        send(group, &group->asked[i], group->request.action, group->request.wait_ms);
        await(&group->asked[i]);
    }
}

/* Resumes the processes that were paused, so that no job is paused only in part. */
static void undo(struct spw_cli_group *group)
{
    struct spw_cli_answer paused;

    for (size_t i = 0; i < group->count; i++) {
        struct spw_cli_asked *asked = &group->asked[i];

        if (is_done(asked) && !asked->undone) {
            paused = asked->answer;
            send(group, asked, SPW_CONTROL_RESUME, group->request.wait_ms);
            await(asked);
            asked->undone = is_done(asked);
            if (asked->undone) {
                asked->answer = paused;
            }
        }
    }
}

/* ---- all processes at one moment ---- */

/* Lets the idle processes step. If no process is idle, lets all processes step. Waits for the
 * answers of all processes. Returns true if a process that stepped is not idle again within
 * `wait_ms`. */
static bool step(struct spw_cli_group *group, uint64_t wait_ms)
{
    bool none_idle = count_outcome(group, SPW_CONTROL_DONE) == 0;
    bool works = false;

    for (size_t i = 0; i < group->count; i++) {
        struct spw_cli_asked *asked = &group->asked[i];

        asked->steps = none_idle || is_done(asked);
        if (asked->steps) {
            send(group, asked, SPW_CONTROL_STEP, wait_ms);
        } else {
            send(group, asked, SPW_CONTROL_HOLD, STEP_MS);
        }
    }
    for (size_t i = 0; i < group->count; i++) {
        await(&group->asked[i]);
        works |= group->asked[i].steps && !is_done(&group->asked[i]);
    }
    return works;
}

static bool are_held(const struct spw_cli_group *group)
{
    return count_outcome(group, SPW_CONTROL_DONE) + count_outcome(group, SPW_CONTROL_BUSY) ==
           group->count;
}

/* Holds all processes, and waits until all of them are idle. A busy process may wait for work that
 * another process has not submitted yet, for instance for a collective. Therefore idle processes
 * step while any process is busy. If a process that stepped stays busy, the wait is doubled,
 * because kernels may run long. Returns false if a process cannot be held, or if a process is still
 * busy at `end`. */
static bool hold_all(struct spw_cli_group *group, uint64_t end, uint64_t *wait_ms)
{
    ask_each(group, SPW_CONTROL_HOLD, *wait_ms);
    while (are_held(group) && count_outcome(group, SPW_CONTROL_BUSY) > 0) {
        uint64_t now = spw_clock_ns();

        if (now >= end) {
            return false;
        }
        if (step(group, spw_min(*wait_ms, (end - now) / NS_PER_MS + 1))) {
            *wait_ms = spw_min(2 * *wait_ms, STEP_MOST_MS);
        }
    }
    return are_held(group);
}

/* Releases all held processes and marks them undone. If all processes could be held, the busy
 * processes caused the release and are not marked. */
static void let_go(struct spw_cli_group *group)
{
    bool busy_is_reason = are_held(group);
    struct spw_cli_answer answer;

    for (size_t i = 0; i < group->count; i++) {
        struct spw_cli_asked *asked = &group->asked[i];
        bool busy = is_outcome(asked, SPW_CONTROL_BUSY);

        if (busy || is_done(asked)) {
            send(group, asked, SPW_CONTROL_RESUME, LET_GO_MS);
            (void)spw_cli_control_await(&asked->control, &asked->watched, UINT32_MAX / 2, &answer);
            asked->undone = !busy || !busy_is_reason;
        }
    }
}

/* Pauses all processes at one moment. A busy process may need memory that must be moved first, so
 * steps of the other processes may not be enough to make it idle. In this case, all processes are
 * released for a moment and held again. */
static void pause_all(struct spw_cli_group *group)
{
    static const struct timespec moment = {.tv_nsec = (long)MOMENT_MS * NS_PER_MS};
    uint64_t wait_ms = group->request.wait_ms, step_ms = STEP_MS;
    uint64_t end = spw_clock_ns() + wait_ms * NS_PER_MS;
    uint64_t try_ns = wait_ms * NS_PER_MS / (group->count > 1 ? TRIES : 1);

    while (!hold_all(group, spw_clock_ns() + try_ns, &step_ms)) {
        let_go(group);
        if (!are_held(group) || spw_clock_ns() >= end) {
            return;
        }
        (void)nanosleep(&moment, NULL);
    }
    ask_each(group, group->request.action, wait_ms);
}

void spw_cli_group_ask(struct spw_cli_group *group)
{
    bool done = true;

    if (group->request.part != SPW_CONTROL_PART_ALL) {
        ask_in_turn(group);
    } else if (group->request.action == SPW_CONTROL_RESUME) {
        ask_each(group, group->request.action, group->request.wait_ms);
    } else {
        pause_all(group);
    }
    for (size_t i = 0; i < group->count; i++) {
        done &= is_done(&group->asked[i]);
    }
    if (!done && group->request.action != SPW_CONTROL_RESUME) {
        undo(group);
    }
}
