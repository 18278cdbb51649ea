/* The settings of `spillway advise`, and functions that its answers for recordings and for commands
 * share. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/advise/plan.h"
#include "cli/advise/replay.h"

struct spw_cli_advise_settings {
    const char *path;
    struct spw_cli_advise_goal goal;
    uint64_t budget_permille; /* the budget as a share of the peak; 0: not given */
    double slowdown, step_ms; /* 0: not given */
    const char *output, *json;
    const char *report;                  /* of the page, absolute; NULL: none */
    struct spw_cli_advise_point *points; /* memory against time; owned; NULL: not known */
    size_t point_count;
    bool shipped;                           /* also tries the installed policies */
    const struct spw_cli_advise_run *ample; /* of COMMAND, recorded; NULL: a FILE */
};

/* Writes the policy of a plan. Returns the exit code. */
int spw_cli_advise_write_policy(const struct spw_cli_advise_settings *settings,
                                struct spw_cli_advise_plan *plan);

/* Warns and returns true if even the fastest way is slow. `ratio` is the time of a step as a
 * multiple of its time with ample memory; 0: not known. */
bool spw_cli_advise_warn_if_slow(double ratio);

/* Returns true, and writes a line, if a step takes longer than --slowdown allows. */
bool spw_cli_advise_is_too_slow(const struct spw_cli_advise_settings *settings, double ratio);

/* Returns true if a policy with this ratio may be written. A slow policy is written only if the
 * user sets --slowdown. */
bool spw_cli_advise_may_write(const struct spw_cli_advise_settings *settings, double ratio);

/* Prints the curve of memory against time for recomputed modules, and stores it in
 * settings->points, which the caller frees. If there is no budget, sets the budget to the least
 * memory that --slowdown allows. On failure, writes a line and returns false. */
bool spw_cli_advise_take_curve(struct spw_cli_advise_settings *settings,
                               const struct spw_cli_advise_history *history);

/* Makes a plan for the budget. If memory runs out, writes a line and returns false. Otherwise the
 * caller calls spw_cli_advise_plan_fini. */
bool spw_cli_advise_make_plan(struct spw_cli_advise_settings *settings,
                              const struct spw_cli_advise_history *history,
                              struct spw_cli_advise_plan *ret_plan);

/* Opens the history whose modules make the program fit at the least cost. The modules are repeated
 * blocks, or blocks inside of them, such as the layers of a stage. Without a budget, takes blocks
 * of a middle depth. */
bool spw_cli_advise_open_best(struct spw_cli_advise_settings *settings, const char *path,
                              struct spw_cli_advise_history *history);
