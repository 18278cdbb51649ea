#include "cli/advise/plan.h"

#include "callsite/label.h"
#include "cli/console/messages.h"
#include "cli/recording/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 5, LEAST_PERCENT = 3 }; /* LEAST_PERCENT of the peak: smaller changes get no line */

/* The bytes of a kind that a change may save. */
typedef uint64_t figure(const struct spw_cli_advise_kind *kind);

static bool is_of_optimizer(uint32_t number)
{
    static struct spw_callsite_words words;

    return spw_cli_recorded_sites_describe(number, &words) && words.facts.python_count > 0 &&
           words.facts.python[0].file != NULL &&
           strstr(words.facts.python[0].file, "/optim/") != NULL;
}

static uint64_t of_forward(const struct spw_cli_advise_kind *kind)
{
    return kind->saved;
}

static uint64_t of_optimizer(const struct spw_cli_advise_kind *kind)
{
    return kind->kept > 0 && is_of_optimizer(kind->site) ? kind->kept : 0;
}

/* Returns true for scratch memory of a library, such as cuBLAS on a thread of the backward pass. */
static bool is_workspace(uint32_t number)
{
    static struct spw_callsite_words words;

    return spw_cli_recorded_sites_describe(number, &words) &&
           spw_cli_role_of(&words.facts) == SPW_CLI_ROLE_WORKSPACE;
}

static uint64_t of_gradients(const struct spw_cli_advise_kind *kind)
{
    return kind->by_backward && kind->kept > 0 && !is_workspace(kind->site) ? kind->kept : 0;
}

static uint64_t of_short(const struct spw_cli_advise_kind *kind)
{
    return kind->at_peak - kind->kept;
}

static uint64_t sum(const struct spw_cli_advise_history *history, figure *of)
{
    uint64_t bytes = 0;

    for (size_t i = 1; i < history->kind_count; i++) {
        bytes += of(&history->kinds[i]);
    }
    return bytes;
}

static bool is_worth(const struct spw_cli_advise_history *history, uint64_t bytes)
{
    return bytes > 0 && bytes >= history->peak / 100 * LEAST_PERCENT;
}

/* ---- by call site ---- */

struct row {
    uint32_t site;
    uint64_t bytes;
};

static int compare(const void *left, const void *right)
{
    const struct row *a = left, *b = right;

    return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
}

static void print_sites(const struct spw_cli_advise_history *history, figure *of)
{
    uint32_t sites = spw_cli_recorded_sites_count(history->report.state.sites) + 1;
    struct row *rows = calloc(sites, sizeof(*rows));
    char label[SPW_CALLSITE_LABEL];

    for (uint32_t i = 0; rows != NULL && i < sites; i++) {
        rows[i].site = i;
    }
    for (size_t i = 1; rows != NULL && i < history->kind_count; i++) {
        rows[history->kinds[i].site].bytes += of(&history->kinds[i]);
    }
    if (rows != NULL) {
        qsort(rows, sites, sizeof(*rows), compare);
    }
    for (uint32_t i = 0; rows != NULL && i < TOP && i < sites && rows[i].bytes > 0; i++) {
        spw_cli_recorded_sites_label(rows[i].site, label);
        printf("  %14s  %s\n", spw_cli_size(rows[i].bytes), label);
    }
    free(rows);
}

/* ---- the changes ---- */

static void print_largest(const struct spw_cli_advise_history *history)
{
    const struct spw_cli_advise_kind *largest = NULL;
    char label[SPW_CALLSITE_LABEL];

    for (size_t i = 1; i < history->kind_count; i++) {
        const struct spw_cli_advise_kind *kind = &history->kinds[i];

        if (kind->at_peak > 0 && (largest == NULL || kind->bytes > largest->bytes)) {
            largest = kind;
        }
    }
    if (largest != NULL && is_worth(history, largest->bytes)) {
        spw_cli_recorded_sites_label(largest->site, label);
        printf("- the largest tensor at the peak has %s: %s. If it holds the logits, a loss "
               "that is computed in parts needs less\n",
               spw_cli_size(largest->bytes), label);
    }
}

static void print_forward(const struct spw_cli_advise_history *history)
{
    uint64_t bytes = sum(history, of_forward);

    if (is_worth(history, bytes)) {
        printf("- activation checkpointing: %s of the peak were allocated before the backward "
               "pass and freed by it; repeated layers can be recomputed instead:\n",
               spw_cli_size(bytes));
        print_sites(history, of_forward);
    }
}

static void print_gradients(const struct spw_cli_advise_history *history)
{
    uint64_t bytes = sum(history, of_gradients);

    if (is_worth(history, bytes)) {
        printf("- gradients: %s of the peak were allocated by the backward pass and outlive a "
               "step: zero_grad(set_to_none=True) after each step frees them, unless they are "
               "accumulated\n",
               spw_cli_size(bytes));
    }
}

static void print_optimizer(const struct spw_cli_advise_history *history)
{
    uint64_t bytes = sum(history, of_optimizer);

    if (is_worth(history, bytes)) {
        printf("- optimizer state: %s of the peak; an optimizer with state of 8 bits keeps a "
               "quarter of 32-bit state\n",
               spw_cli_size(bytes));
    }
}

/* The figure is an upper bound. Memory that outlives a step does not depend on the batch; all
 * other memory may depend on it. */
static void print_batch(const struct spw_cli_advise_history *history)
{
    uint64_t bytes = sum(history, of_short);

    if (history->steps > 0 && !history->marked && is_worth(history, bytes)) {
        printf("- a smaller batch: at most %s of the peak can shrink, because the rest outlives "
               "a step (spillway fit --vary measures how much shrinks)\n",
               spw_cli_size(bytes));
    }
}

void spw_cli_advise_changes_print(const struct spw_cli_advise_history *history)
{
    puts("memory that changes of the script could save, judging by lifetimes:");
    print_forward(history);
    print_largest(history);
    print_batch(history);
    print_optimizer(history);
    print_gradients(history);
}
