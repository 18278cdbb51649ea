#include "cli/usage/difference.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "common/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGE = SPW_SIZE_TEXT + 2 };

/* "+64 MiB", "-1.00 GiB", or "0". */
static const char *change_text(int64_t change, char text[CHANGE])
{
    uint64_t bytes = change < 0 ? (uint64_t)-change : (uint64_t)change;

    snprintf(text, CHANGE, "%s%s",
             change < 0   ? "-"
             : change > 0 ? "+"
                          : "",
             change == 0 ? "0" : spw_cli_size(bytes));
    return text;
}

/* A device of a run; NULL: the run did not use it. */
static const struct spw_cli_device_usage *device_of(const struct spw_cli_usage *usage, int ordinal)
{
    return ordinal < usage->device_count && usage->devices[ordinal].used ? &usage->devices[ordinal]
                                                                         : NULL;
}

static int devices_of(const struct spw_cli_usage *before, const struct spw_cli_usage *after)
{
    return before->device_count > after->device_count ? before->device_count : after->device_count;
}

/* ---- text ---- */

static void print_figure(const char *name, uint64_t before, uint64_t after)
{
    char change[CHANGE];

    printf("  %-16s  %12s  %12s  %13s\n", name, spw_cli_size(before), spw_cli_size(after),
           change_text((int64_t)(after - before), change));
}

static void print_figures(const struct spw_cli_device_usage *before,
                          const struct spw_cli_device_usage *after, bool with_categories)
{
    printf("  %-16s  %12s  %12s  %13s\n", "", "before", "after", "change");
    print_figure("peak", before->peak, after->peak);
    for (int i = 0; with_categories && i < SPW_CLI_CATEGORIES; i++) {
        if (before->at_peak[i] > 0 || after->at_peak[i] > 0 || i == SPW_CLI_UNKNOWN) {
            char name[32];

            snprintf(name, sizeof(name), "  %s", spw_cli_category_name((enum spw_cli_category)i));
            print_figure(name, before->at_peak[i], after->at_peak[i]);
        }
    }
    if (before->spilled > 0 || after->spilled > 0) {
        print_figure("spilled", before->spilled, after->spilled);
    }
    if (before->growth > 0 || after->growth > 0) {
        print_figure("growth a step", before->growth, after->growth);
    }
}

static void print_pair(const struct spw_cli_pair *pair)
{
    const char *what = pair->before == NULL || pair->before->at_peak == 0 ? "  (new)"
                       : pair->after == NULL || pair->after->at_peak == 0 ? "  (gone)"
                                                                          : "";
    char change[CHANGE];

    printf("  %13s  %12s  %12s  %s%s\n", change_text(spw_cli_pair_change(pair), change),
           spw_cli_size(pair->before != NULL ? pair->before->at_peak : 0),
           spw_cli_size(pair->after != NULL ? pair->after->at_peak : 0), spw_cli_pair_label(pair),
           what);
    if (spw_cli_pair_moved(pair) && strcmp(pair->before->label, pair->after->label) != 0) {
        printf("  %13s  %12s  %12s  was %s\n", "", "", "", pair->before->label);
    }
}

static void print_pairs(const struct spw_cli_pair *pairs, size_t count, size_t top)
{
    size_t changed = 0, same = 0;

    for (size_t i = 0; i < count; i++) {
        changed += spw_cli_pair_change(&pairs[i]) != 0;
    }
    same = count - changed;
    if (changed > 0) {
        printf("  %13s  %12s  %12s  %s\n", "change", "before", "after", "at the peak by");
    }
    for (size_t i = 0; i < changed && i < top; i++) {
        print_pair(&pairs[i]);
    }
    if (changed > top) {
        printf("  and %zu more that differ (--top %zu shows them)\n", changed - top, changed);
    }
    printf("  %zu call site%s held the same\n", same, same == 1 ? "" : "s");
}

static void print_run(const char *what, const struct spw_cli_usage *usage)
{
    spw_cli_print(stdout, "%s: %s (%s)%s%s%s%s\n", what, usage->path,
                  usage->is_recording ? "recording" : "statistics",
                  usage->gap[0] != '\0' ? ": " : "", usage->gap, usage->note[0] != '\0' ? ": " : "",
                  usage->note);
}

bool spw_cli_difference_print(const struct spw_cli_usage *before, const struct spw_cli_usage *after,
                              size_t top)
{
    static const struct spw_cli_device_usage nothing;
    bool with_categories = before->has_categories && after->has_categories;
    struct spw_cli_pair *pairs;
    size_t count;

    print_run("before", before);
    print_run("after", after);
    for (int i = 0; i < devices_of(before, after); i++) {
        const struct spw_cli_device_usage *from = device_of(before, i), *to = device_of(after, i);

        if (from == NULL && to == NULL) {
            continue;
        }
        if (!spw_cli_pair_lines(from, to, &pairs, &count)) {
            return false;
        }
        printf("\ndevice %d\n", i);
        print_figures(from != NULL ? from : &nothing, to != NULL ? to : &nothing, with_categories);
        print_pairs(pairs, count, top);
        free(pairs);
    }
    return true;
}

/* ---- JSON ---- */

static cJSON *figures_json(const struct spw_cli_device_usage *device, bool with_categories)
{
    cJSON *json = cJSON_CreateObject(), *categories;

    cJSON_AddNumberToObject(json, "peak_bytes", device != NULL ? (double)device->peak : 0);
    cJSON_AddNumberToObject(json, "spilled_bytes", device != NULL ? (double)device->spilled : 0);
    cJSON_AddNumberToObject(json, "growth_bytes_per_step",
                            device != NULL ? (double)device->growth : 0);
    if (with_categories) {
        categories = cJSON_AddObjectToObject(json, "categories_at_peak");
        for (int i = 0; i < SPW_CLI_CATEGORIES; i++) {
            cJSON_AddNumberToObject(categories, spw_cli_category_key((enum spw_cli_category)i),
                                    device != NULL ? (double)device->at_peak[i] : 0);
        }
    }
    return json;
}

static void add_side(cJSON *row, const char *key, const struct spw_cli_usage_line *line)
{
    cJSON *side;

    if (line == NULL) {
        cJSON_AddNullToObject(row, key);
        return;
    }
    side = cJSON_AddObjectToObject(row, key);
    cJSON_AddStringToObject(side, "label", line->label);
    spw_cli_json_add(side, "bytes", line->at_peak);
    spw_cli_json_add(side, "allocs", line->allocs);
    cJSON_AddStringToObject(side, "site", line->text);
}

static bool add_device(cJSON *list, int ordinal, const struct spw_cli_usage *before,
                       const struct spw_cli_usage *after)
{
    const struct spw_cli_device_usage *from = device_of(before, ordinal);
    const struct spw_cli_device_usage *to = device_of(after, ordinal);
    struct spw_cli_pair *pairs;
    cJSON *device, *sites;
    size_t count;

    if (from == NULL && to == NULL) {
        return true;
    }
    if (!spw_cli_pair_lines(from, to, &pairs, &count)) {
        return false;
    }
    device = cJSON_CreateObject();
    cJSON_AddNumberToObject(device, "ordinal", ordinal);
    cJSON_AddItemToObject(device, "before", figures_json(from, before->has_categories));
    cJSON_AddItemToObject(device, "after", figures_json(to, after->has_categories));
    sites = cJSON_AddArrayToObject(device, "sites");
    for (size_t i = 0; i < count; i++) {
        cJSON *row = cJSON_CreateObject();

        cJSON_AddNumberToObject(row, "change_bytes", (double)spw_cli_pair_change(&pairs[i]));
        cJSON_AddBoolToObject(row, "moved", spw_cli_pair_moved(&pairs[i]));
        add_side(row, "before", pairs[i].before);
        add_side(row, "after", pairs[i].after);
        cJSON_AddItemToArray(sites, row);
    }
    free(pairs);
    cJSON_AddItemToArray(list, device);
    return true;
}

bool spw_cli_difference_print_json(const struct spw_cli_usage *before,
                                   const struct spw_cli_usage *after)
{
    cJSON *root = cJSON_CreateObject(), *devices;
    bool good = true;

    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "before", before->path);
    cJSON_AddStringToObject(root, "after", after->path);
    devices = cJSON_AddArrayToObject(root, "devices");
    for (int i = 0; good && i < devices_of(before, after); i++) {
        good = add_device(devices, i, before, after);
    }
    if (!good) {
        cJSON_Delete(root);
        return false;
    }
    spw_cli_json_print(root, /* one_line */ false);
    return true;
}
