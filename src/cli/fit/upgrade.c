#include "cli/fit/fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "callsite/label.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/usage/sites_file.h"

enum { SHOWN = 5 }; /* lines of the program for each run */

/* A line of the program. The bytes are the sum of the peaks of its call sites, with the program's
 * own cuDNN and with the other. */
struct line {
    char label[SPW_CALLSITE_LABEL];
    uint64_t own, other;
};

struct lines {
    struct line *lines;
    size_t count;
};

/* A run with the other library, and the run with the program's own. */
struct pair {
    const struct spw_cli_fit_run *own, *other;
};

static const char *change_text(uint64_t from, uint64_t to)
{
    static char text[32];

    (void)snprintf(text, sizeof(text), "%s%s",
                   to > from   ? "+"
                   : to < from ? "-"
                               : "",
                   to == from ? "0" : spw_cli_size(to > from ? to - from : from - to));
    return text;
}

/* ---- runs ---- */

/* Finds the run with the program's own library that has the same card and value. */
static struct pair pair_of(const struct spw_cli_fit_session *session,
                           const struct spw_cli_fit_run *other)
{
    for (size_t i = 0; i < session->run_count; i++) {
        const struct spw_cli_fit_run *own = &session->runs[i];

        if (own->cudnn == NULL && own->card == other->card && own->value == other->value) {
            return (struct pair){own, other};
        }
    }
    return (struct pair){NULL, other};
}

static bool was_run(const struct spw_cli_fit_session *session, const struct spw_cli_fit_row *row)
{
    for (size_t i = 0; i < session->run_count; i++) {
        const struct spw_cli_fit_run *run = &session->runs[i];

        if (run->cudnn != NULL && run->card == row->card && run->value == row->value) {
            return true;
        }
    }
    return false;
}

/* ---- lines of the program ---- */

/* The ordinal of the device with the highest peak. */
static int largest_device(const cJSON *json)
{
    const cJSON *devices = spw_cli_json_list(json, "devices"), *device;
    uint64_t most = 0;
    int ordinal = 0, largest = 0;

    cJSON_ArrayForEach(device, devices)
    {
        if (spw_cli_json_number(device, "live_peak_bytes") > most) {
            most = spw_cli_json_number(device, "live_peak_bytes");
            largest = ordinal;
        }
        ordinal++;
    }
    return largest;
}

/* Finds the line of a call site, or adds it. There is room for all lines. */
static struct line *line_of(struct lines *lines, const struct spw_cli_sites_entry *entry)
{
    char label[SPW_CALLSITE_LABEL];

    if (entry->rest > 0) {
        (void)snprintf(label, sizeof(label), "other call sites");
    } else {
        spw_callsite_label(&entry->facts, label, sizeof(label));
    }
    for (size_t i = 0; i < lines->count; i++) {
        if (strcmp(lines->lines[i].label, label) == 0) {
            return &lines->lines[i];
        }
    }
    memcpy(lines->lines[lines->count].label, label, sizeof(label));
    return &lines->lines[lines->count++];
}

/* Adds the peaks of a run's call sites to their lines. A convolution is several call sites: its
 * result, its workspace, copies. */
static void collect(const struct spw_cli_sites_file *file, bool other, struct lines *lines)
{
    int device = largest_device(file->json);

    for (size_t i = 0; i < file->count; i++) {
        if (file->entries[i].device == device) {
            struct line *line = line_of(lines, &file->entries[i]);

            *(other ? &line->other : &line->own) += file->entries[i].peak_bytes;
        }
    }
}

static uint64_t change_of(const struct line *line)
{
    return line->own > line->other ? line->own - line->other : line->other - line->own;
}

static int by_change(const void *left, const void *right)
{
    const struct line *a = left, *b = right;

    return change_of(a) < change_of(b)   ? 1
           : change_of(a) > change_of(b) ? -1
                                         : strcmp(a->label, b->label);
}

/* Collects the lines whose memory differs, the largest change first. The caller frees the list. */
static struct lines compare(const struct spw_cli_sites_file *own,
                            const struct spw_cli_sites_file *other)
{
    struct lines lines = {calloc(own->count + other->count + 1, sizeof(*lines.lines)), 0};

    if (lines.lines != NULL) {
        collect(own, /* other */ false, &lines);
        collect(other, /* other */ true, &lines);
        qsort(lines.lines, lines.count, sizeof(*lines.lines), by_change);
        while (lines.count > 0 && change_of(&lines.lines[lines.count - 1]) == 0) {
            lines.count--;
        }
    }
    return lines;
}

static void say_lines(const struct spw_cli_fit_session *session, const struct pair *pair,
                      const struct lines *lines, cJSON *list)
{
    if (lines->count > 0) {
        spw_cli_print(stdout, "\nwhat the call sites of a line hold at most, on %s%s%s%s%s:\n",
                      pair->own->card->id, session->variation.name != NULL ? ", " : "",
                      session->variation.name != NULL ? session->variation.name : "",
                      session->variation.name != NULL ? " " : "",
                      session->variation.name != NULL ? session->variation.values[pair->own->value]
                                                      : "");
    }
    for (size_t i = 0; i < lines->count; i++) {
        const struct line *line = &lines->lines[i];
        cJSON *object = cJSON_CreateObject();

        if (i < SHOWN) {
            printf("  %12s  ", change_text(line->own, line->other));
            spw_cli_print(stdout, "%s (%s, not %s)\n", line->label, spw_cli_size(line->other),
                          spw_cli_size(line->own));
        }
        cJSON_AddStringToObject(object, "gpu", pair->own->card->id);
        if (session->variation.name != NULL) {
            cJSON_AddStringToObject(object, "value", session->variation.values[pair->own->value]);
        }
        cJSON_AddStringToObject(object, "line", line->label);
        spw_cli_json_add(object, "bytes", line->other);
        spw_cli_json_add(object, "own_bytes", line->own);
        cJSON_AddItemToArray(list, object);
    }
    if (lines->count > SHOWN) {
        printf("  and %zu more\n", lines->count - SHOWN);
    }
}

/* A program that uses no device writes no file. */
static bool is_there(const char *path)
{
    return path != NULL && access(path, R_OK) == 0;
}

static void compare_lines(const struct spw_cli_fit_session *session, const struct pair *pair,
                          cJSON *list)
{
    struct spw_cli_sites_file own, other;
    struct lines lines;

    if (pair->own == NULL || !is_there(pair->own->usage) || !is_there(pair->other->usage) ||
        !spw_cli_sites_file_load(session->command, pair->own->usage, false, &own)) {
        return;
    }
    if (spw_cli_sites_file_load(session->command, pair->other->usage, false, &other)) {
        lines = compare(&own, &other);
        say_lines(session, pair, &lines, list);
        free(lines.lines);
        spw_cli_sites_file_free(&other);
    }
    spw_cli_sites_file_free(&own);
}

/* ---- cards ---- */

static bool differs(const struct spw_cli_fit_row *own, const struct spw_cli_fit_row *other)
{
    return own->answer.verdict != other->answer.verdict || own->has_value != other->has_value ||
           own->value != other->value;
}

static void print_row(const struct spw_cli_fit_session *session, const struct spw_cli_fit_row *own,
                      const struct spw_cli_fit_row *other)
{
    struct spw_cli_line line = {""};

    printf("%-22s", other->card->id);
    if (session->variation.name != NULL) {
        spw_cli_print(stdout, "  %8s",
                      other->has_value ? session->variation.values[other->value] : "none");
    }
    printf("  %10s - %-10s  %12s", spw_cli_size(other->answer.need),
           spw_cli_size(other->answer.need_most),
           own->value == other->value ? change_text(own->answer.need, other->answer.need) : "");
    spw_cli_fit_verdict_add(&line, other);
    printf("  %s\n", line.text);
}

/* Says how far the other library has answered. */
static void say_answers(const struct spw_cli_fit_session *session,
                        const struct spw_cli_cudnn_choice *choice)
{
    uint64_t asked = 0, guessed = 0;

    for (size_t i = 0; i < session->run_count; i++) {
        const struct spw_cli_sim_device *device = NULL;

        while (session->runs[i].cudnn != NULL &&
               (device = spw_cli_sim_next(&session->runs[i].result, device)) != NULL) {
            asked += device->engines_asked;
            guessed += device->engines_guessed;
        }
    }
    if (asked + guessed == 0) {
        puts("the program uses no graph of cuDNN, so that no workspace depends on its version");
    } else if (guessed > 0) {
        printf("cuDNN %s gave no answer for %" PRIu64 " of %" PRIu64
               " graphs, whose workspaces are guessed\n",
               choice->version, guessed, asked + guessed);
    }
}

cJSON *spw_cli_fit_upgrade_print(const struct spw_cli_fit_session *session,
                                 const struct spw_cli_cudnn_choice *choice,
                                 const struct spw_cli_fit_row *rows,
                                 const struct spw_cli_fit_row *others, size_t count)
{
    cJSON *object = cJSON_CreateObject(), *list;

    cJSON_AddStringToObject(object, "version", choice->version);
    cJSON_AddStringToObject(object, "path", choice->path);
    list = cJSON_AddArrayToObject(object, "gpus");
    printf("\nwith cuDNN %s in place of the program's:\n%-22s", choice->version, "GPU");
    if (session->variation.name != NULL) {
        spw_cli_print(stdout, "  %8s", session->variation.name);
    }
    printf("  %-23s  %12s  %s\n", "needs, at most", "change", "verdict");
    for (size_t i = 0; i < count; i++) {
        cJSON_AddItemToArray(list, spw_cli_fit_row_json(session, &others[i]));
        if ((others[i].answer.need > 0 && was_run(session, &others[i])) ||
            differs(&rows[i], &others[i])) {
            print_row(session, &rows[i], &others[i]);
        }
    }
    say_answers(session, choice);
    list = cJSON_AddArrayToObject(object, "lines");
    for (size_t i = 0; i < session->run_count; i++) {
        if (session->runs[i].cudnn != NULL) {
            struct pair pair = pair_of(session, &session->runs[i]);

            compare_lines(session, &pair, list);
        }
    }
    fflush(stdout);
    return object;
}
