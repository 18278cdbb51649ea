#include "cli/advise/plan.h"

#include "callsite/label.h"
#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOLDERS = 8 };

double spw_cli_advise_answer_ratio(uint64_t step_ns, uint64_t cost_ns)
{
    return step_ns > 0 ? (double)(step_ns + cost_ns) / (double)step_ns : 0;
}

/* ---- the recording ---- */

static void print_holders(const struct spw_cli_advise_history *history)
{
    const struct spw_cli_device *device = &history->report.state.devices[history->device];
    char label[SPW_CALLSITE_LABEL];
    struct spw_cli_ranked *ranked;
    size_t count;

    ranked = spw_cli_report_rank(device, spw_cli_state_at_peak, &count);
    for (size_t i = 0; ranked != NULL && i < count && i < HOLDERS; i++) {
        spw_cli_recorded_sites_label(ranked[i].site, label);
        printf("  %12s  %s\n", spw_cli_size(ranked[i].bytes), label);
    }
    free(ranked);
}

void spw_cli_advise_answer_head(const struct spw_cli_advise_history *history,
                                const struct spw_cli_advise_goal *goal, uint64_t live_bytes)
{
    printf("peak on device %d: %s; in a budget of %s, %s can be live\n", history->device,
           spw_cli_size(history->peak), spw_cli_size(goal->budget_bytes), spw_cli_size(live_bytes));
    if (history->several) {
        printf("other devices were used as well; the figures are of device %d alone\n",
               history->device);
    }
    print_holders(history);
    if (!history->has_uses) {
        puts("the recording has no uses (--record-uses on records them): each block is assumed "
             "to be written once and read once; a block that outlives a step, in each step");
    }
    if (history->steps <= 0) {
        puts("no repeating step was found: figures of a step are those of the second half of the "
             "run");
    }
}

/* ---- the plan ---- */

void spw_cli_advise_answer_curve(const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_point *points, size_t count)
{
    enum { ROWS = 12 };
    size_t rows = count < ROWS ? count : ROWS;

    printf("memory against time, if repeated blocks run again in backward:\n  %7s  %12s  %12s\n",
           "blocks", "peak", "a step takes");
    for (size_t i = 0; i < rows; i++) {
        const struct spw_cli_advise_point *point =
            &points[rows > 1 ? i * (count - 1) / (rows - 1) : 0];

        printf("  %7zu  %12s  %6.2f times\n", point->count, spw_cli_size(point->peak),
               spw_cli_advise_answer_ratio(goal->step_ns, point->cost_ns));
    }
}

/* Prints runs of neighbours as "layers.0 to layers.3". */
static void print_modules(const struct spw_cli_advise_history *history,
                          const struct spw_cli_advise_plan *plan)
{
    const char *separator = "";

    printf("%zu of %zu repeated blocks run again in backward (%.2f ms a step): ", plan->again_count,
           history->module_count, (double)plan->again_ns / 1e6);
    for (size_t i = 0; i < history->module_count; i++) {
        size_t last = i;

        if (!plan->again[i]) {
            continue;
        }
        while (last + 1 < history->module_count && plan->again[last + 1]) {
            last++;
        }
        spw_cli_print(stdout, "%s%s%s%s", separator, history->modules[i].name,
                      last > i ? " to " : "", last > i ? history->modules[last].name : "");
        separator = ", ";
        i = last;
    }
    puts("");
}

static bool places_memory(const struct spw_cli_advise_plan *plan)
{
    size_t i = 0;

    while (i < plan->group_count && plan->groups[i].percent == 0) {
        i++;
    }
    return i < plan->group_count;
}

static void print_groups(const struct spw_cli_advise_plan *plan)
{
    char label[SPW_CALLSITE_LABEL];

    printf("  %12s  %14s  %9s  placed on the host\n", "bytes", "link, a step", "ms");
    for (size_t i = 0; i < plan->group_count; i++) {
        const struct spw_cli_advise_group *group = &plan->groups[i];

        if (group->percent > 0) {
            spw_cli_recorded_sites_label(group->site, label);
            printf("  %12s  %14s  %9.2f  %s",
                   spw_cli_size(spw_cli_advise_group_part(group, group->highest)),
                   spw_cli_size(spw_cli_advise_group_part(group, (uint64_t)group->link_bytes)),
                   (double)spw_cli_advise_group_part(group, group->cost_ns) / 1e6, label);
            if (group->percent < 100) {
                printf(" (%u%% of each block)", group->percent);
            }
            puts("");
        }
    }
}

static void print_prediction(const struct spw_cli_advise_goal *goal,
                             const struct spw_cli_advise_plan *plan)
{
    printf("predicted: at most %s live on the device, %s on the host; ",
           spw_cli_size(plan->device_bytes), spw_cli_size(plan->host_bytes));
    if (plan->spilled_bytes > 0) {
        printf("%s do not fit and spill; %.2f ms a step", spw_cli_size(plan->spilled_bytes),
               (double)plan->cost_ns / 1e6);
    } else {
        printf("%s a step over the link, %.2f ms at %.0f GB/s",
               spw_cli_size((uint64_t)plan->link_bytes), (double)plan->cost_ns / 1e6, goal->link);
    }
    if (goal->step_ns > 0) {
        printf(": a step takes %.2f times as long",
               spw_cli_advise_answer_ratio(goal->step_ns, plan->cost_ns));
    }
    puts(plan->proven ? "" : " (the search was cut short: a better choice may exist)");
}

static void print_nearest(const struct spw_cli_advise_plan *plan,
                          const struct spw_cli_advise_goal *goal)
{
    if (plan->host_is_short) {
        printf("no rules fit in %s of host memory: the most that rules can place there leaves "
               "%s on the device\n",
               spw_cli_size(goal->host_bytes), spw_cli_size(plan->nearest_bytes));
        return;
    }
    printf("no rules make it fit: the most that rules can place on the host leaves %s on the "
           "device, %s too much\n",
           spw_cli_size(plan->nearest_bytes), spw_cli_size(plan->nearest_bytes - plan->live_bytes));
}

void spw_cli_advise_answer_print(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_goal *goal,
                                 const struct spw_cli_advise_plan *plan)
{
    switch (plan->answer) {
    case SPW_CLI_ADVISE_FITS:
        puts("it fits: no memory has to leave the device");
        break;
    case SPW_CLI_ADVISE_PLACED:
        if (plan->again_count > 0) {
            print_modules(history, plan);
        }
        if (places_memory(plan)) {
            print_groups(plan);
        }
        print_prediction(goal, plan);
        break;
    default:
        print_nearest(plan, goal);
        break;
    }
}
