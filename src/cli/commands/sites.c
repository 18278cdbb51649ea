#include "cli/commands/list.h"
#include "cli/console/messages.h"

#include "callsite/label.h"
#include "common/size.h"
#include "common/utf8.h"
#include "cli/reports/sites_file.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITE_TEXT = 64 * 1024, TOP = 20, TOP_MOST = 1000000 };

struct arguments {
    const char *path;
    bool json;
    bool full; /* the text of each site as well */
    size_t top;
};

/* ---- what a table is of ---- */

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
    const char *title;
    weight_of *weight;
} moments[] = {
    {"at_peak", "at the peak", at_peak},
    {"at_exit", "at exit", at_exit},
};

enum { MOMENTS = sizeof(moments) / sizeof(moments[0]) };

static uint64_t total_of(const struct spw_cli_sites_file *file, int device, weight_of *weight)
{
    uint64_t total = 0;

    for (size_t i = 0; i < file->count; i++) {
        total += file->entries[i].device == device ? weight(&file->entries[i]) : 0;
    }
    return total;
}

/* The entries of a device that hold something, the largest first, what is summed up last. */
static size_t rank(const struct spw_cli_sites_file *file, int device, weight_of *weight,
                   const struct spw_cli_sites_entry **ret_entries)
{
    size_t count = 0;

    for (size_t i = 0; i < file->count; i++) {
        const struct spw_cli_sites_entry *entry = &file->entries[i];
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

/* ---- in words ---- */

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

static void site_text(const struct spw_cli_sites_entry *entry, char *ret_text)
{
    struct spw_request_facts request = {.device = entry->device, .api = entry->api};

    (void)spw_callsite_print(&entry->facts, &request, ret_text, SITE_TEXT);
}

static void print_row(const struct spw_cli_sites_entry *entry, uint64_t bytes, uint64_t total,
                      const struct arguments *arguments)
{
    uint64_t permille = total > 0 ? bytes * 1000 / total : 0;
    static char text[SITE_TEXT];
    char size[SPW_SIZE_TEXT], label[SPW_CALLSITE_LABEL];

    label_of(entry, label);
    printf("  %12s  %3" PRIu64 ".%" PRIu64 " %%  %9" PRIu64 "  %s\n", spw_size_text(bytes, size),
           permille / 10, permille % 10, entry->allocs, label);
    if (arguments->full && entry->id != 0) {
        site_text(entry, text);
        printf("%39s%s\n", "", text);
    }
}

static void print_moment(const struct spw_cli_sites_file *file, int device,
                         const struct moment *moment, const struct arguments *arguments,
                         const struct spw_cli_sites_entry **entries)
{
    uint64_t total = total_of(file, device, moment->weight);
    size_t count = rank(file, device, moment->weight, entries);
    uint64_t shown = 0;
    char size[SPW_SIZE_TEXT];

    printf("\ndevice %d %s: %s\n", device, moment->title, spw_size_text(total, size));
    if (count > 0) {
        printf("  %12s  %7s  %9s  %s\n", "bytes", "share", "allocs", "site");
    }
    for (size_t i = 0; i < count && i < arguments->top; i++) {
        print_row(entries[i], moment->weight(entries[i]), total, arguments);
        shown += moment->weight(entries[i]);
    }
    if (count > arguments->top) {
        printf("  %12s  in %zu more (--top %zu shows them)\n", spw_size_text(total - shown, size),
               count - arguments->top, count);
    }
}

/* ---- tiers ---- */

static uint64_t figure(const cJSON *device, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(device, key);

    return cJSON_IsNumber(value) && value->valuedouble > 0 ? (uint64_t)value->valuedouble : 0;
}

static void print_tiers(const cJSON *device, int ordinal)
{
    char device_now[SPW_SIZE_TEXT], device_peak[SPW_SIZE_TEXT];
    char host_now[SPW_SIZE_TEXT], host_peak[SPW_SIZE_TEXT];

    printf("\ndevice %d by tier, free memory included: device %s at exit, %s at the peak; host %s "
           "at exit, %s at the peak\n",
           ordinal, spw_size_text(figure(device, "committed_bytes"), device_now),
           spw_size_text(figure(device, "committed_peak_bytes"), device_peak),
           spw_size_text(figure(device, "host_bytes"), host_now),
           spw_size_text(figure(device, "host_peak_bytes"), host_peak));
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
        cJSON_AddNumberToObject(row, "sites", (double)entry->rest);
    } else {
        cJSON_AddNumberToObject(row, "id", (double)entry->id);
    }
    cJSON_AddNumberToObject(row, "bytes", (double)bytes);
    cJSON_AddNumberToObject(row, "peak_bytes", (double)entry->peak_bytes);
    cJSON_AddNumberToObject(row, "allocs", (double)entry->allocs);
    cJSON_AddNumberToObject(row, "frees", (double)entry->frees);
    cJSON_AddStringToObject(row, "label", label);
    site_text(entry, text);
    cJSON_AddStringToObject(row, "site", entry->id != 0 ? text : "");
    return row;
}

static void add_moments(cJSON *device, const struct spw_cli_sites_file *file, int ordinal,
                        const struct arguments *arguments,
                        const struct spw_cli_sites_entry **entries)
{
    for (size_t i = 0; i < MOMENTS; i++) {
        size_t count = rank(file, ordinal, moments[i].weight, entries);
        cJSON *rows = cJSON_AddArrayToObject(device, moments[i].key);

        for (size_t j = 0; j < count && j < arguments->top; j++) {
            cJSON_AddItemToArray(rows, entry_json(entries[j], moments[i].weight(entries[j])));
        }
    }
}

static void add_tiers(cJSON *device, const cJSON *figures)
{
    cJSON *tiers = cJSON_AddObjectToObject(device, "tiers");

    cJSON_AddNumberToObject(
        tiers, "device_bytes",
        (double)(figure(figures, "live_bytes") - figure(figures, "host_bytes")));
    cJSON_AddNumberToObject(tiers, "host_bytes", (double)figure(figures, "host_bytes"));
    cJSON_AddNumberToObject(tiers, "host_peak_bytes", (double)figure(figures, "host_peak_bytes"));
}

/* ---- the command ---- */

static void show(const struct spw_cli_sites_file *file, const struct arguments *arguments)
{
    const struct spw_cli_sites_entry **entries = calloc(file->count + 1, sizeof(entries[0]));
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(file->json, "devices"), *figures;
    cJSON *root = arguments->json ? cJSON_CreateObject() : NULL;
    cJSON *list = arguments->json ? cJSON_AddArrayToObject(root, "devices") : NULL;
    int ordinal = 0;

    cJSON_ArrayForEach(figures, devices)
    {
        if (entries == NULL) {
            break;
        }
        if (arguments->json) {
            cJSON *device = cJSON_CreateObject();

            cJSON_AddNumberToObject(device, "ordinal", ordinal);
            cJSON_AddNumberToObject(device, "live_peak_bytes",
                                    (double)figure(figures, "live_peak_bytes"));
            add_tiers(device, figures);
            add_moments(device, file, ordinal, arguments, entries);
            cJSON_AddItemToArray(list, device);
        } else if (figure(figures, "live_peak_bytes") > 0) {
            for (size_t i = 0; i < MOMENTS; i++) {
                print_moment(file, ordinal, &moments[i], arguments, entries);
            }
            print_tiers(figures, ordinal);
        }
        ordinal++;
    }
    if (arguments->json) {
        char *text = cJSON_Print(root);

        if (text != NULL) {
            spw_utf8_plain(text, /* keep */ "\n\t");
        }
        puts(text != NULL ? text : "{}");
        cJSON_free(text);
        cJSON_Delete(root);
    }
    free(entries);
}

static void print_help(void)
{
    fputs("usage: spillway sites STATS [--json] [--top N] [--full]\n\n"
          "Who held the memory: the call sites in a statistics file (--stats FILE of spillway run\n"
          "and spillway sim), with what each held when the device held most, and at exit.\n\n"
          "--json   the same as one JSON object, with every site's whole text (SITE)\n"
          "--top N  as many sites a table (20)\n"
          "--full   the text of each site as well, for spillway policy explain --site\n",
          stdout);
}

static bool parse_top(const char *text, size_t *ret_top)
{
    char *end;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);

    if (text == NULL || *text < '0' || *text > '9' || *end != '\0' || value > TOP_MOST) {
        return false;
    }
    *ret_top = (size_t)value;
    return true;
}

static bool parse_arguments(int argc, char **argv, struct arguments *ret_arguments)
{
    *ret_arguments = (struct arguments){.top = TOP};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            ret_arguments->json = true;
        } else if (strcmp(argv[i], "--full") == 0) {
            ret_arguments->full = true;
        } else if (strcmp(argv[i], "--top") == 0 || strncmp(argv[i], "--top=", 6) == 0) {
            const char *value = argv[i][5] == '=' ? argv[i] + 6 : argv[++i];

            if (!parse_top(value, &ret_arguments->top)) {
                spw_cli_complain(argv[0], "--top: expected a number of sites");
                return false;
            }
        } else if (argv[i][0] == '-' || ret_arguments->path != NULL) {
            spw_cli_complain(argv[0], "%s: not expected (spillway sites --help says more)",
                             argv[i]);
            return false;
        } else {
            ret_arguments->path = argv[i];
        }
    }
    if (ret_arguments->path == NULL) {
        spw_cli_complain(argv[0], "expected a statistics file (spillway sites --help says more)");
    }
    return ret_arguments->path != NULL;
}

int spw_cli_command_sites(int argc, char **argv)
{
    struct arguments arguments;
    struct spw_cli_sites_file file;

    if (argc > 1 && spw_cli_is_help(argv[1])) {
        print_help();
        return SPW_CLI_EXIT_OK;
    }
    if (!parse_arguments(argc, argv, &arguments)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (!spw_cli_sites_file_load(arguments.path, &file)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    show(&file, &arguments);
    spw_cli_sites_file_free(&file);
    return SPW_CLI_EXIT_OK;
}
