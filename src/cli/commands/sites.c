#include "cli/commands/list.h"
#include "cli/console/arguments.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"

#include "callsite/label.h"
#include "cli/usage/sites_file.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITE_TEXT = 64 * 1024, TOP = 20, OPERATOR = 128 };
enum { ROW_LABEL = 2 * SPW_CALLSITE_LABEL + 4 };

struct settings {
    const char *path;
    bool json;
    bool full;   /* show the Python frames of each site */
    bool native; /* show its native frames */
    bool text;   /* show its text, on one line */
    size_t top;
};

/* ---- the tables ---- */

typedef uint64_t weight_of(const struct spw_cli_sites_entry *entry);

static uint64_t at_peak(const struct spw_cli_sites_entry *entry)
{
    return entry->device_peak_bytes;
}

static uint64_t at_exit(const struct spw_cli_sites_entry *entry)
{
    return entry->live_bytes;
}

static const struct moment {
    const char *key;
    const char *title; /* after the device's number */
    weight_of *weight;
    bool pinned; /* page-locked host memory, which has a peak of its own */
} moments[] = {
    {"at_peak", " at the peak", at_peak, false},
    {"at_exit", " at exit", at_exit, false},
    {"pinned_at_peak", ", page-locked host memory at its peak", at_peak, true},
    {"pinned_at_exit", ", page-locked host memory at exit", at_exit, true},
};

enum { MOMENTS = sizeof(moments) / sizeof(moments[0]) };

static const struct spw_cli_sites_entry *list_of(const struct spw_cli_sites_file *file,
                                                 const struct moment *moment, size_t *ret_count)
{
    *ret_count = moment->pinned ? file->pinned_count : file->count;
    return moment->pinned ? file->pinned : file->entries;
}

static uint64_t total_of(const struct spw_cli_sites_file *file, int device,
                         const struct moment *moment)
{
    size_t most;
    const struct spw_cli_sites_entry *entries = list_of(file, moment, &most);
    uint64_t total = 0;

    for (size_t i = 0; i < most; i++) {
        total += entries[i].device == device ? moment->weight(&entries[i]) : 0;
    }
    return total;
}

/* Lists the entries of a device that hold memory. The largest entry comes first, and the sum of the
 * remaining sites comes last. */
static size_t rank(const struct spw_cli_sites_file *file, int device, const struct moment *moment,
                   const struct spw_cli_sites_entry **ret_entries)
{
    size_t most, count = 0;
    const struct spw_cli_sites_entry *entries = list_of(file, moment, &most);
    weight_of *weight = moment->weight;

    for (size_t i = 0; i < most; i++) {
        const struct spw_cli_sites_entry *entry = &entries[i];
        size_t at = count;

        if (entry->device != device || weight(entry) == 0) {
            continue;
        }
        for (; at > 0 && (ret_entries[at - 1]->rest > 0 ||
                          (entry->rest == 0 && weight(ret_entries[at - 1]) < weight(entry)));
             at--) {
            ret_entries[at] = ret_entries[at - 1];
        }
        ret_entries[at] = entry;
        count++;
    }
    return count;
}

/* ---- text ---- */

static void label_of(const struct spw_cli_sites_entry *entry, char ret_label[SPW_CALLSITE_LABEL])
{
    if (entry->rest > 0) {
        snprintf(ret_label, SPW_CALLSITE_LABEL, "%" PRIu64 " other sites", entry->rest);
    } else if (entry->id == 0) {
        snprintf(ret_label, SPW_CALLSITE_LABEL, "not known");
    } else {
        spw_callsite_label(&entry->facts, ret_label, SPW_CALLSITE_LABEL);
    }
    spw_utf8_plain(ret_label, /* keep */ "");
}

/* The label of a row. If other rows have the same label, adds the difference from the first such
 * row. */
static void row_label(const struct spw_cli_sites_entry *const *rows, size_t count, size_t row,
                      char ret_label[ROW_LABEL])
{
    char other[SPW_CALLSITE_LABEL], apart[SPW_CALLSITE_LABEL];
    size_t used;

    label_of(rows[row], ret_label);
    for (size_t i = 0; i < count; i++) {
        if (i == row || rows[i]->id == 0) {
            continue;
        }
        label_of(rows[i], other);
        if (strcmp(other, ret_label) == 0 &&
            spw_callsite_label_apart(&rows[row]->facts, &rows[i]->facts, apart, sizeof(apart))) {
            spw_utf8_plain(apart, /* keep */ "");
            used = strlen(ret_label);
            snprintf(ret_label + used, ROW_LABEL - used, " (%s)", apart);
            return;
        }
    }
}

static void site_text(const struct spw_cli_sites_entry *entry, char *ret_text)
{
    struct spw_request_facts request = {.device = entry->device, .api = entry->api};

    (void)spw_callsite_print(&entry->facts, &request, ret_text, SITE_TEXT);
}

static void print_below(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void print_below(const char *format, ...)
{
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    spw_utf8_plain(line, /* keep */ "");
    printf("%39s%s\n", "", line);
}

static const char *or_unknown(const char *text)
{
    return text != NULL ? text : "?";
}

/* One frame a line, the innermost first. */
static void print_frames(const struct spw_cli_sites_entry *entry, bool native)
{
    const struct spw_callsite_facts *facts = &entry->facts;
    char operator[OPERATOR];

    for (size_t i = 0; i < facts->python_count; i++) {
        print_below("%s:%" PRIu32 " %s", or_unknown(facts->python[i].file), facts->python[i].line,
                    or_unknown(facts->python[i].function));
    }
    for (size_t i = 0; native && i < facts->native_count; i++) {
        print_below("%s in %s", or_unknown(facts->native[i].symbol),
                    or_unknown(facts->native[i].library));
    }
    if (facts->node != NULL) {
        print_below("in the backward pass: %s", facts->node);
    }
    if (spw_callsite_operator(facts, operator, sizeof(operator))) {
        print_below("operator %s", operator);
    }
    if (facts->modules != NULL) {
        print_below("modules %s", facts->modules);
    }
    if (facts->tag != NULL) {
        print_below("tag %s", facts->tag);
    }
    print_below("by %s on thread %s", or_unknown(entry->api), or_unknown(facts->thread));
}

static void print_row(const struct spw_cli_sites_entry *entry, const char *label, uint64_t bytes,
                      uint64_t total, const struct settings *settings)
{
    static char text[SITE_TEXT];

    printf("  %12s  %s  %9" PRIu64 "  %s\n", spw_cli_size(bytes), spw_cli_share(bytes, total),
           entry->allocs, label);
    if ((settings->full || settings->native) && entry->id != 0) {
        print_frames(entry, settings->native);
    }
    if (settings->text && entry->id != 0) {
        site_text(entry, text);
        printf("%39s%s\n", "", text);
    }
}

static void print_moment(const struct spw_cli_sites_file *file, int device,
                         const struct moment *moment, const struct settings *settings,
                         const struct spw_cli_sites_entry **entries)
{
    uint64_t total = total_of(file, device, moment);
    size_t count = rank(file, device, moment, entries);
    size_t most = count < settings->top ? count : settings->top;
    uint64_t shown = 0;
    char label[ROW_LABEL];

    if (moment->pinned && total == 0) {
        return;
    }
    printf("\ndevice %d%s: %s\n", device, moment->title, spw_cli_size(total));
    if (count > 0) {
        printf("  %12s  %7s  %9s  %s\n", "bytes", "share", "allocs", "site");
    }
    for (size_t i = 0; i < most; i++) {
        row_label(entries, most, i, label);
        print_row(entries[i], label, moment->weight(entries[i]), total, settings);
        shown += moment->weight(entries[i]);
    }
    if (count > settings->top) {
        printf("  %12s  in %zu more (--top %zu shows them)\n", spw_cli_size(total - shown),
               count - settings->top, count);
    }
}

/* ---- tiers ---- */

static void print_tiers(const cJSON *device, int ordinal)
{
    printf("\ndevice %d by tier, free memory included: device %s at exit, %s at the peak; host %s "
           "at exit, %s at the peak\n",
           ordinal, spw_cli_size(spw_cli_json_number(device, "committed_bytes")),
           spw_cli_size(spw_cli_json_number(device, "committed_peak_bytes")),
           spw_cli_size(spw_cli_json_number(device, "host_bytes")),
           spw_cli_size(spw_cli_json_number(device, "host_peak_bytes")));
}

/* ---- JSON ---- */

static cJSON *entry_json(const struct spw_cli_sites_entry *entry, uint64_t bytes)
{
    static char text[SITE_TEXT];
    cJSON *row = cJSON_CreateObject();
    char label[SPW_CALLSITE_LABEL];

    label_of(entry, label);
    if (entry->rest > 0) {
        cJSON_AddNullToObject(row, "id");
        spw_cli_json_add(row, "sites", entry->rest);
    } else {
        spw_cli_json_add(row, "id", entry->id);
    }
    spw_cli_json_add(row, "bytes", bytes);
    spw_cli_json_add(row, "peak_bytes", entry->peak_bytes);
    spw_cli_json_add(row, "allocs", entry->allocs);
    spw_cli_json_add(row, "frees", entry->frees);
    cJSON_AddStringToObject(row, "label", label);
    site_text(entry, text);
    cJSON_AddStringToObject(row, "site", entry->id != 0 ? text : "");
    return row;
}

static void add_moments(cJSON *device, const struct spw_cli_sites_file *file, int ordinal,
                        const struct settings *settings, const struct spw_cli_sites_entry **entries)
{
    for (size_t i = 0; i < MOMENTS; i++) {
        size_t count = rank(file, ordinal, &moments[i], entries);
        cJSON *rows = cJSON_AddArrayToObject(device, moments[i].key);

        for (size_t j = 0; j < count && j < settings->top; j++) {
            cJSON_AddItemToArray(rows, entry_json(entries[j], moments[i].weight(entries[j])));
        }
    }
}

static void add_tiers(cJSON *device, const cJSON *figures)
{
    cJSON *tiers = cJSON_AddObjectToObject(device, "tiers");

    spw_cli_json_add(tiers, "device_bytes",
                     spw_cli_json_number(figures, "live_bytes") -
                         spw_cli_json_number(figures, "host_bytes"));
    spw_cli_json_add(tiers, "host_bytes", spw_cli_json_number(figures, "host_bytes"));
    spw_cli_json_add(tiers, "host_peak_bytes", spw_cli_json_number(figures, "host_peak_bytes"));
}

/* ---- the command ---- */

static void show(const struct spw_cli_sites_file *file, const struct settings *settings)
{
    const struct spw_cli_sites_entry **entries =
        calloc(file->count + file->pinned_count + 1, sizeof(entries[0]));
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(file->json, "devices"), *figures;
    cJSON *root = settings->json ? cJSON_CreateObject() : NULL;
    cJSON *list = settings->json ? cJSON_AddArrayToObject(root, "devices") : NULL;
    int ordinal = 0;

    cJSON_ArrayForEach(figures, devices)
    {
        if (entries == NULL) {
            break;
        }
        if (settings->json) {
            cJSON *device = cJSON_CreateObject();

            cJSON_AddNumberToObject(device, "ordinal", ordinal);
            spw_cli_json_add(device, "live_peak_bytes",
                             spw_cli_json_number(figures, "live_peak_bytes"));
            add_tiers(device, figures);
            add_moments(device, file, ordinal, settings, entries);
            cJSON_AddItemToArray(list, device);
        } else if (spw_cli_json_number(figures, "live_peak_bytes") > 0 ||
                   spw_cli_json_number(figures, "pinned_peak_bytes") > 0) {
            for (size_t i = 0; i < MOMENTS; i++) {
                print_moment(file, ordinal, &moments[i], settings, entries);
            }
            print_tiers(figures, ordinal);
        }
        ordinal++;
    }
    if (settings->json) {
        spw_cli_json_print(root, /* one_line */ false);
    }
    free(entries);
}

static const char help[] =
    "usage: spillway sites STATS [--json] [--top N] [--full] [--native] [--text]\n\n"
    "Shows which call sites held device memory, at the peak and at exit, and which held\n"
    "page-locked host memory. STATS is a statistics file, which spillway run --stats FILE\n"
    "writes (and spillway sim).\n\n"
    "  --top N  show N sites per table [20]\n"
    "  --full   show the Python frames of each site too, one a line, the innermost first\n"
    "  --native show the native frames as well\n"
    "  --text   show each site as one line of text, which spillway policy explain --site "
    "takes\n"
    "  --json   print one JSON object, with the full text of every site\n";

static bool take_path(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    if (settings->path != NULL) {
        spw_cli_complain(from->command,
                         "%s: unexpected argument: sites shows one file (spillway diff compares "
                         "two runs, spillway ranks the ranks of a job)",
                         from->value);
        return false;
    }
    settings->path = from->value;
    return true;
}

int spw_cli_command_sites(int argc, char **argv)
{
    struct settings settings = {.top = TOP};
    const struct spw_cli_option options[] = {
        {"", .take = take_path},
        {"json", .given = &settings.json},
        {"top", .number = &settings.top},
        {"full", .given = &settings.full},
        {"native", .given = &settings.native},
        {"text", .given = &settings.text},
        {0},
    };
    int code = spw_cli_arguments_read(argc, argv, options, help, &settings);
    struct spw_cli_sites_file file;

    if (code >= 0) {
        return code;
    }
    if (settings.path == NULL) {
        return spw_cli_bad_usage(argv[0], "expected a statistics file");
    }
    if (!spw_cli_sites_file_load(argv[0], settings.path, /* need_sites */ true, &file)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    show(&file, &settings);
    spw_cli_sites_file_free(&file);
    return SPW_CLI_EXIT_OK;
}
