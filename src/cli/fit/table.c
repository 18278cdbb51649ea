#include "cli/fit/fit.h"

#include <stdio.h>
#include <string.h>

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/launch/child.h"
#include "cli/verdict/need.h"
#include "gpu/rate.h"

static const char *const verdict_names[] = {
    [SPW_CLI_FIT_FITS] = "fits",       [SPW_CLI_FIT_TIGHT] = "fits too tightly",
    [SPW_CLI_FIT_SPILLS] = "spills",   [SPW_CLI_FIT_TOO_SMALL] = "does not fit",
    [SPW_CLI_FIT_FAILED] = "failed",   [SPW_CLI_FIT_UNUSED] = "unused",
    [SPW_CLI_FIT_UNKNOWN] = "unknown",
};

/* ---- the table ---- */

static void add_placed(struct spw_cli_line *line, const struct spw_cli_fit_answer *answer)
{
    if (answer->placed > 0) {
        spw_cli_line_add(line, ", with %s placed on the host by the policy",
                         spw_cli_size(answer->placed));
    }
}

/* Adds the part of a memory that device and host share which no program may use. */
static void add_reserve(struct spw_cli_line *line, const struct spw_gpu_profile *card)
{
    uint64_t kept = spw_cli_fit_card_bytes(card) - spw_cli_fit_card_room(card);

    if (kept > 0) {
        spw_cli_line_add(line, "; %s stay free for the system", spw_cli_size(kept));
    }
}

static void add_spill(struct spw_cli_line *line, const struct spw_gpu_profile *card,
                      const struct spw_cli_fit_answer *answer)
{
    spw_cli_line_add(line, "runs by spilling %s%s", answer->was_run ? "" : "about ",
                     spw_cli_size(answer->spilled));
    add_placed(line, answer);
    if (answer->was_run) {
        spw_cli_line_add(line, "; at least %.2g s on the link in the whole run",
                         spw_gpu_link_ns(spw_gpu_link_most(card), answer->from_host_bytes,
                                         answer->to_host_bytes) *
                             1e-9);
    }
}

static void add_step(struct spw_cli_line *line, const struct spw_cli_fit_answer *answer)
{
    bool runs = answer->verdict == SPW_CLI_FIT_FITS || answer->verdict == SPW_CLI_FIT_TIGHT ||
                answer->verdict == SPW_CLI_FIT_SPILLS;

    if (runs && answer->step.most > 0) {
        spw_cli_line_add(line, "; a step: %s", spw_cli_step_time_text(answer->step));
    }
    if (runs && answer->slowdown.most > 0) {
        spw_cli_line_add(line, ", by spilling %s", spw_cli_step_slowdown_text(answer->slowdown));
    }
}

static void add_verdict(struct spw_cli_line *line, const struct spw_gpu_profile *card,
                        const struct spw_cli_fit_answer *answer)
{
    uint64_t bytes = spw_cli_fit_card_room(card);

    switch (answer->verdict) {
    case SPW_CLI_FIT_FITS:
        spw_cli_line_add(line, "fits, %s to spare", spw_cli_size(bytes - answer->need));
        add_reserve(line, card);
        add_placed(line, answer);
        break;
    case SPW_CLI_FIT_TIGHT:
        spw_cli_line_add(line, "fits too tightly: in the upper bound %s are missing",
                         spw_cli_size(answer->need_most - bytes));
        add_placed(line, answer);
        break;
    case SPW_CLI_FIT_SPILLS:
        add_spill(line, card, answer);
        break;
    case SPW_CLI_FIT_TOO_SMALL:
        spw_cli_line_add(line, "does not fit");
        break;
    case SPW_CLI_FIT_FAILED:
        spw_cli_line_add(line, "the command fails there (exit code %d)%s", answer->code,
                         card->major < 8 ? "; it may have no code for this GPU" : "");
        break;
    case SPW_CLI_FIT_UNUSED:
        spw_cli_line_add(line, "the command used no device%s%s",
                         *spw_cli_launch_lack() != '\0' ? ": " : "", spw_cli_launch_lack());
        break;
    case SPW_CLI_FIT_UNKNOWN:
        spw_cli_line_add(line, "not known");
        break;
    }
}

void spw_cli_fit_verdict_add(struct spw_cli_line *line, const struct spw_cli_fit_row *row)
{
    add_verdict(line, row->card, &row->answer);
}

static void print_need(const struct spw_cli_fit_answer *answer)
{
    if (answer->need == 0 || answer->verdict == SPW_CLI_FIT_FAILED) {
        printf("  %-23s", "");
        return;
    }
    printf("  %10s - %-10s", spw_cli_size(answer->need), spw_cli_size(answer->need_most));
}

static void print_row(const struct spw_cli_fit_session *session, const struct spw_cli_fit_row *row)
{
    struct spw_cli_line line = {""};

    printf("%-22s %10s", row->card->id, spw_cli_size(spw_cli_fit_card_bytes(row->card)));
    if (session->variation.name != NULL) {
        spw_cli_print(stdout, "  %8s",
                      row->has_value ? session->variation.values[row->value] : "none");
    }
    print_need(&row->answer);
    add_verdict(&line, row->card, &row->answer);
    add_step(&line, &row->answer);
    if (row->has_value && row->has_too_large) {
        spw_cli_line_add(&line, row->too_large_failed ? "; with %s it fails" : "; %s does not fit",
                         session->variation.values[row->too_large]);
    }
    printf("  %s\n", line.text);
}

static void print_curve(const struct spw_cli_fit_session *session)
{
    puts("\nwhat each value that was run needs, without a limit:");
    spw_cli_print(stdout, "%-10s %-22s  %s\n", session->variation.name, "GPU", "needs, at most");
    for (size_t value = 0; value < session->variation.count; value++) {
        for (size_t i = 0; i < session->run_count; i++) {
            const struct spw_cli_fit_run *run = &session->runs[i];
            struct spw_cli_fit_answer answer;

            if (run->value != value || run->cudnn != NULL) {
                continue;
            }
            answer = spw_cli_fit_measured(run);
            spw_cli_print(stdout, "%-10s %-22s", session->variation.values[value], run->card->id);
            print_need(&answer);
            if (answer.verdict == SPW_CLI_FIT_FAILED) {
                printf("  the command fails (exit code %d)%s", run->code,
                       spw_cli_fit_failure(session, value));
            }
            puts("");
        }
    }
}

/* Names the smallest card on which the command fits. The rows begin with the smallest memory. */
static void print_smallest(const struct spw_cli_fit_row *rows, size_t count)
{
    const struct spw_gpu_profile *smallest = NULL;
    size_t fitting = 0, known = 0;

    for (size_t i = 0; i < count; i++) {
        bool fits = rows[i].answer.verdict == SPW_CLI_FIT_FITS;

        smallest = fits && smallest == NULL ? rows[i].card : smallest;
        fitting += fits;
        known += rows[i].answer.verdict != SPW_CLI_FIT_UNKNOWN &&
                 rows[i].answer.verdict != SPW_CLI_FIT_UNUSED;
    }
    if (count > 1 && known == count) {
        printf("\nit fits on %zu of %zu GPUs%s%s\n", fitting, count,
               smallest != NULL ? "; the one with the least memory is " : "",
               smallest != NULL ? smallest->id : "");
    }
}

void spw_cli_fit_table_print(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count)
{
    printf("%-22s %10s", "GPU", "memory");
    if (session->variation.name != NULL) {
        spw_cli_print(stdout, "  %8s", session->variation.name);
    }
    printf("  %-23s  %s\n", "needs, at most", "verdict");
    for (size_t i = 0; i < count; i++) {
        print_row(session, &rows[i]);
    }
    if (session->variation.name != NULL) {
        print_curve(session);
    } else {
        print_smallest(rows, count);
    }
    fflush(stdout);
}

/* ---- JSON ---- */

cJSON *spw_cli_fit_row_json(const struct spw_cli_fit_session *session,
                            const struct spw_cli_fit_row *row)
{
    const struct spw_cli_fit_answer *answer = &row->answer;
    uint64_t bytes = spw_cli_fit_card_bytes(row->card);
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "gpu", row->card->id);
    spw_cli_json_add(object, "total_bytes", bytes);
    cJSON_AddStringToObject(object, "verdict", verdict_names[answer->verdict]);
    spw_cli_json_add(object, "need_bytes", answer->need);
    spw_cli_json_add(object, "need_most_bytes", answer->need_most);
    spw_cli_json_add(object, "placed_bytes", answer->placed);
    spw_cli_json_add(object, "spilled_bytes", answer->spilled);
    if (answer->step.most > 0) {
        spw_cli_step_json(object, "step_ms", answer->step, 1e-6);
    }
    if (answer->slowdown.most > 0) {
        spw_cli_step_json(object, "times_as_long_by_spilling", answer->slowdown, 1);
    }
    cJSON_AddBoolToObject(object, "was_run", answer->was_run);
    cJSON_AddNumberToObject(object, "exit_code", answer->code);
    if (session->variation.name != NULL && row->has_value) {
        cJSON_AddStringToObject(object, "value", session->variation.values[row->value]);
    } else if (session->variation.name != NULL) {
        cJSON_AddNullToObject(object, "value");
    }
    return object;
}

bool spw_cli_fit_table_write(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count, cJSON *upgrade,
                             const char *path)
{
    cJSON *object = cJSON_CreateObject();
    cJSON *list;

    cJSON_AddNumberToObject(object, "runs", session->trials.runs);
    if (session->variation.name != NULL) {
        cJSON_AddStringToObject(object, "varied", session->variation.name);
    }
    list = cJSON_AddArrayToObject(object, "gpus");
    for (size_t i = 0; i < count; i++) {
        cJSON_AddItemToArray(list, spw_cli_fit_row_json(session, &rows[i]));
    }
    if (upgrade != NULL) {
        cJSON_AddItemToObject(object, "cudnn", upgrade);
    }
    return spw_cli_json_save(session->command, object, path);
}
