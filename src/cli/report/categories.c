#include "cli/report/categories.h"

#include "cli/report/growth.h"
#include "common/minmax.h"

#include <stdlib.h>
#include <string.h>

/* ---- sites ---- */

/* The properties of each call site's allocations. */
struct makers {
    struct spw_cli_maker *of; /* by site */
    uint32_t count;
};

enum { THREADS = 64 };

/* A thread, and the number of its allocations in Python code. */
struct thread {
    char name[64];
    uint64_t allocs;
};

static uint64_t allocs_of(const struct spw_cli_state *state, uint32_t site)
{
    uint64_t count = 0;

    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        const struct spw_cli_device *device = &state->devices[i];

        count += site < device->held_count ? device->held[site].allocs : 0;
    }
    return count;
}

static const char *name_of(const struct spw_callsite_facts *facts)
{
    return facts->thread != NULL ? facts->thread : "";
}

static void count_thread(struct thread *threads, const struct spw_callsite_facts *facts,
                         uint64_t allocs)
{
    for (int i = 0; i < THREADS; i++) {
        if (threads[i].name[0] == '\0') {
            strncpy(threads[i].name, name_of(facts), sizeof(threads[i].name) - 1);
        }
        if (strncmp(threads[i].name, name_of(facts), sizeof(threads[i].name) - 1) == 0) {
            threads[i].allocs += allocs;
            return;
        }
    }
}

/* The thread with the most allocations. The list has no threads of the autograd engine. */
static const struct thread *loop_of(const struct thread *threads)
{
    const struct thread *most = threads;

    for (int i = 1; i < THREADS; i++) {
        most = threads[i].allocs > most->allocs ? &threads[i] : most;
    }
    return most;
}

static bool describe_sites(const struct spw_cli_report *report, struct makers *ret_makers)
{
    static struct spw_callsite_words words;
    static struct thread threads[THREADS];
    uint32_t count = spw_cli_recorded_sites_count(report->state.sites) + 1;
    struct spw_cli_maker *makers = calloc(count, sizeof(*makers));
    const struct thread *loop;

    if (makers == NULL) {
        return false;
    }
    memset(threads, 0, sizeof(threads));
    for (uint32_t site = 1; site < count; site++) {
        if (spw_cli_recorded_sites_describe(site, &words)) {
            makers[site].role = spw_cli_role_of(&words.facts);
            makers[site].autograd = spw_cli_role_is_autograd(&words.facts);
            if (!makers[site].autograd && words.facts.python_count > 0) {
                count_thread(threads, &words.facts, allocs_of(&report->state, site));
            }
        }
    }
    loop = loop_of(threads);
    for (uint32_t site = 1; site < count; site++) {
        makers[site].loop = spw_cli_recorded_sites_describe(site, &words) &&
                            strncmp(loop->name, name_of(&words.facts), sizeof(loop->name) - 1) == 0;
    }
    *ret_makers = (struct makers){makers, count};
    return true;
}

/* ---- the lives of blocks ---- */

static void take_life(struct spw_cli_report *report, const struct spw_cli_event *event,
                      const struct spw_cli_block *freed, void *context)
{
    const struct makers *makers = context;
    struct spw_cli_lives *lives = &report->categories->lives;
    const struct spw_cli_block *block;

    if (freed != NULL) {
        spw_cli_lives_died(lives, freed->event, event->thread);
    }
    if (event->kind == SPW_RECORD_STEP) {
        spw_cli_lives_marked(lives, report->state.events);
    } else if (event->kind == SPW_RECORD_ALLOC) {
        block = spw_cli_state_block(&report->state, event->device, event->address);
        if (block != NULL && block->site < makers->count) {
            spw_cli_lives_born(lives, block->event, block->thread, &makers->of[block->site]);
        }
    }
}

enum spw_cli_category spw_cli_report_category(const struct spw_cli_report *report,
                                              const struct spw_cli_block *block)
{
    return report->categories->known
               ? spw_cli_lives_category(&report->categories->lives, block->event)
               : SPW_CLI_UNKNOWN;
}

/* ---- sums ---- */

static void end_step(struct spw_cli_report *report)
{
    struct spw_cli_categories *categories = report->categories;
    size_t step = categories->next_end++;
    size_t first = categories->steps->count - categories->row_count;

    for (int i = 0; i < SPW_DEVICES_MAX && step >= first; i++) {
        if (categories->rows[i] != NULL) {
            categories->rows[i][step - first] =
                (struct spw_cli_step_row){step + 1, report->state.time, categories->now[i]};
        }
    }
    spw_cli_growth_step(categories->growth, &report->state, step + 1);
}

static void add(struct spw_cli_report *report, const struct spw_cli_block *block)
{
    struct spw_cli_categories *categories = report->categories;
    struct spw_cli_amounts *now = &categories->now[block->device];
    struct spw_cli_amounts *most = &categories->most[block->device];
    enum spw_cli_category category = spw_cli_report_category(report, block);

    now->live += block->counted;
    now->by[category] += block->counted;
    most->live = spw_max(most->live, now->live);
    most->by[category] = spw_max(most->by[category], now->by[category]);
}

static void take_sum(struct spw_cli_report *report, const struct spw_cli_event *event,
                     const struct spw_cli_block *freed, void *context)
{
    struct spw_cli_categories *categories = report->categories;
    const struct spw_cli_ends *steps = categories->steps;
    struct spw_cli_amounts *now = &categories->now[event->device];
    const uint64_t *peaks = context;
    const struct spw_cli_block *block = NULL;

    while (categories->next_end < steps->count &&
           steps->events[categories->next_end] <= report->state.events) {
        end_step(report);
    }
    if (freed != NULL) {
        now->live -= freed->counted;
        now->by[spw_cli_report_category(report, freed)] -= freed->counted;
    }
    if (event->kind == SPW_RECORD_ALLOC) {
        block = spw_cli_state_block(&report->state, event->device, event->address);
    }
    if (block != NULL) {
        add(report, block);
    }
    if (peaks[event->device] == report->state.events) {
        categories->at_peak[event->device] = *now;
    }
    if (freed != NULL || block != NULL) {
        spw_cli_growth_change(categories->growth, &report->state, event->device,
                              freed != NULL ? freed->site : block->site);
    }
}

static bool sum(struct spw_cli_report *report)
{
    struct spw_cli_categories *categories = report->categories;
    uint64_t peaks[SPW_DEVICES_MAX];

    categories->steps = spw_cli_lives_steps(&categories->lives, &categories->steps_kind);
    categories->row_count = spw_min(categories->steps->count, SPW_CLI_STEP_ROWS);
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        peaks[i] = report->state.devices[i].peak_event;
        if (report->state.devices[i].held != NULL && categories->row_count > 0) {
            categories->rows[i] = calloc(categories->row_count, sizeof(*categories->rows[i]));
            if (categories->rows[i] == NULL) {
                return false;
            }
        }
    }
    categories->growth = spw_cli_growth_create(
        categories->steps->count, spw_cli_recorded_sites_count(report->state.sites) + 1,
        &report->state);
    if (categories->growth == NULL) {
        return false;
    }
    spw_cli_report_each(report, take_sum, peaks);
    return true;
}

bool spw_cli_report_categorise(struct spw_cli_report *report)
{
    struct makers makers;
    bool made;

    report->categories = calloc(1, sizeof(*report->categories));
    if (report->categories == NULL || !describe_sites(report, &makers)) {
        return false;
    }
    report->categories->known = strcmp(report->state.about[1], "tensor") == 0;
    spw_cli_report_each(report, take_life, &makers);
    spw_cli_lives_end(&report->categories->lives);
    made = !report->categories->lives.out_of_memory && sum(report);
    free(makers.of);
    return made;
}

void spw_cli_categories_free(struct spw_cli_categories *categories)
{
    if (categories == NULL) {
        return;
    }
    spw_cli_lives_fini(&categories->lives);
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        free(categories->rows[i]);
    }
    spw_cli_growth_free(categories->growth);
    free(categories);
}
