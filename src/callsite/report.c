#include "callsite/report.h"

#include "callsite/capture.h"
#include "callsite/facts.h"
#include "callsite/modules.h"
#include "callsite/symbols.h"
#include "system/room.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MOST = 1024 };

/* The lists in the file: one for device memory, one for page-locked host memory. */
enum { LISTS = 2, SYMBOLS_MOST = LISTS * SPW_CALLSITE_REPORT_MOST * SPW_CALLSITE_NATIVE };

/* A site on a device. Sites with the largest weights are listed. */
struct choice {
    uint32_t site;
    int device;
    uint64_t weight;
};

struct list {
    const char *key;
    struct spw_charges *charges;
    int devices;
    size_t count;
    struct choice choices[SPW_CALLSITE_REPORT_MOST]; /* the heaviest first */
};

struct report {
    struct list lists[LISTS];
    struct spw_symbol *symbols; /* NULL: there was no memory, so functions have no names */
    size_t symbol_count;
};

/* ---- choosing ---- */

/* The weight of a site: the bytes that it held at the device's peak, or that it holds now,
 * whichever is more. Sites without such bytes come after all others, in the order of their own
 * peaks. */
static uint64_t weight_of(const struct spw_charges *charges, uint32_t site)
{
    const struct spw_charge *charge = &charges->sites[site];
    uint64_t live = spw_counter_get(&charge->live);
    uint64_t at_peak = spw_pool_charge_at_peak(charges, charge);
    uint64_t weight = at_peak > live ? at_peak : live;

    return weight > 0 ? weight + (UINT64_C(1) << 62) : spw_counter_get(&charge->peak);
}

static void choose(struct list *list, struct choice choice)
{
    size_t at = list->count;

    if (at == SPW_CALLSITE_REPORT_MOST) {
        if (list->choices[--at].weight >= choice.weight) {
            return;
        }
    } else {
        list->count++;
    }
    for (; at > 0 && list->choices[at - 1].weight < choice.weight; at--) {
        list->choices[at] = list->choices[at - 1];
    }
    list->choices[at] = choice;
}

static void choose_all(struct list *list)
{
    uint32_t sites = spw_callsite_table_count(spw_callsite_known());

    for (int device = 0; device < list->devices; device++) {
        const struct spw_charges *charges = &list->charges[device];

        for (uint32_t site = 0; site <= spw_pool_charges_last(charges, sites); site++) {
            uint64_t weight = weight_of(charges, site);

            if (weight > 0) {
                choose(list, (struct choice){site, device, weight});
            }
        }
    }
}

/* ---- symbols ---- */

static void add_frames(struct report *report, const struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct spw_callsite *site =
            spw_callsite_table_get(spw_callsite_known(), list->choices[i].site);

        for (int j = 0; site != NULL && j < site->native_count; j++) {
            report->symbols[report->symbol_count++] =
                (struct spw_symbol){.address = spw_callsite_call(site->native[j])};
        }
    }
}

static void name_all(struct report *report)
{
    for (int i = 0; i < LISTS; i++) {
        add_frames(report, &report->lists[i]);
    }
    report->symbol_count = spw_callsite_symbols_sort(report->symbols, report->symbol_count);
    spw_callsite_symbols_name(report->symbols, report->symbol_count);
}

static void symbol_of(const struct report *report, uint64_t address, char *ret_name)
{
    const struct spw_symbol *symbol = spw_callsite_symbols_find(
        report->symbols, report->symbol_count, spw_callsite_call(address));

    ret_name[0] = '\0';
    if (symbol != NULL) {
        spw_callsite_symbol_text(symbol, ret_name, NAME_MOST);
    }
}

/* ---- writing ---- */

static const char *text_of(uint32_t number)
{
    return spw_callsite_strings_text(spw_callsite_texts(), number);
}

static void put_python(struct spw_writer *writer, const struct spw_callsite *site)
{
    spw_write(writer, ", \"python\": [");
    for (int i = 0; i < site->python_count; i++) {
        const struct spw_callsite_line *line = &spw_callsite_lines(site)[i];

        spw_write(writer, i == 0 ? "{\"file\": " : ", {\"file\": ");
        spw_write_string(writer, text_of(line->file));
        spw_write_text(writer, "function", text_of(line->function));
        spw_write_figure(writer, "line", line->line);
        spw_write(writer, "}");
    }
    spw_write(writer, "]");
}

static void put_frame(struct spw_writer *writer, uint64_t address, const char *name)
{
    const struct spw_module *module = spw_callsite_module_of(spw_callsite_call(address));

    spw_write(writer, "{\"symbol\": ");
    if (name[0] != '\0') {
        spw_write_string(writer, name);
    } else {
        spw_write(writer, "null");
    }
    spw_write_text(writer, "library", module == NULL ? "" : module->path);
    spw_write_figure(writer, "offset", module == NULL ? address : address - module->base);
    spw_write(writer, "}");
}

/* Writes the native frames (up to the interpreter if there are Python frames) and the autograd
 * node. The node is the innermost node of all frames or, without one, the innermost step between
 * nodes. */
static void put_native(struct spw_writer *writer, const struct report *report,
                       const struct spw_callsite *site)
{
    char SPW_ROOM *name = spw_room_take(NAME_MOST);
    char node[128] = "", found[128];
    int first = spw_callsite_first_frame(site);
    bool ended = false, applied = false;

    spw_write(writer, ", \"native\": [");
    for (int i = first; name != NULL && i < site->native_count; i++) {
        symbol_of(report, site->native[i], name);
        ended |= site->python_count > 0 && spw_callsite_is_interpreter(name);
        if (!ended) {
            spw_write(writer, i == first ? "" : ", ");
            put_frame(writer, site->native[i], name);
        }
        if (!applied && spw_callsite_symbol_node(name, &applied, found, sizeof(found)) &&
            (applied || node[0] == '\0')) {
            memcpy(node, found, sizeof(node));
        }
    }
    spw_write(writer, "]");
    spw_write_key(writer, "node");
    if (node[0] != '\0') {
        spw_write_string(writer, node);
    } else {
        spw_write(writer, "null");
    }
}

struct figures {
    uint64_t live, peak, at_peak, total, allocs, frees;
};

static struct figures figures_of(const struct spw_charges *charges, uint32_t site)
{
    const struct spw_charge *charge = &charges->sites[site];

    return (struct figures){
        .live = spw_counter_get(&charge->live),
        .peak = spw_counter_get(&charge->peak),
        .at_peak = spw_pool_charge_at_peak(charges, charge),
        .total = spw_counter_get(&charge->total),
        .allocs = spw_counter_get(&charge->allocs),
        .frees = spw_counter_get(&charge->frees),
    };
}

static void put_figures(struct spw_writer *writer, const struct figures *figures)
{
    spw_write_figure(writer, "live_bytes", figures->live);
    spw_write_figure(writer, "peak_bytes", figures->peak);
    spw_write_figure(writer, "device_peak_bytes", figures->at_peak);
    spw_write_figure(writer, "total_bytes", figures->total);
    spw_write_figure(writer, "allocs", figures->allocs);
    spw_write_figure(writer, "frees", figures->frees);
}

static void put_site(struct spw_writer *writer, const struct report *report,
                     const struct list *list, struct choice choice)
{
    const struct spw_callsite *site = spw_callsite_table_get(spw_callsite_known(), choice.site);
    struct figures figures = figures_of(&list->charges[choice.device], choice.site);

    spw_write(writer, "{\"id\": ");
    spw_write_number(writer, choice.site);
    spw_write_figure(writer, "device", (uint64_t)choice.device);
    put_figures(writer, &figures);
    if (site != NULL) {
        spw_write_text(writer, "api", site->api);
        spw_write_text(writer, "thread", text_of(site->thread));
        if (site->tag != 0) {
            spw_write_text(writer, "tag", text_of(site->tag));
        }
        if (site->modules != 0) {
            spw_write_text(writer, "module", text_of(site->modules));
        }
        put_python(writer, site);
        put_native(writer, report, site);
    }
    spw_write(writer, "}");
}

/* Sums up the sites of a device that are not listed. Returns false when there are none. */
static bool sum_rest(const struct list *list, int device, uint64_t *ret_sites,
                     struct figures *ret_sum)
{
    uint32_t sites = spw_callsite_table_count(spw_callsite_known());
    const struct spw_charges *charges = &list->charges[device];
    uint64_t least = list->choices[list->count - 1].weight;
    struct figures sum = {0};
    uint64_t count = 0;

    for (uint32_t site = 0; site <= spw_pool_charges_last(charges, sites); site++) {
        struct figures figures = figures_of(charges, site);
        bool chosen = false;

        if (figures.allocs == 0 || weight_of(charges, site) > least) {
            continue;
        }
        for (size_t i = list->count; i-- > 0 && list->choices[i].weight <= least && !chosen;) {
            chosen = list->choices[i].site == site && list->choices[i].device == device;
        }
        if (!chosen) {
            count++;
            sum.live += figures.live;
            sum.peak = figures.peak > sum.peak ? figures.peak : sum.peak;
            sum.at_peak += figures.at_peak;
            sum.total += figures.total;
            sum.allocs += figures.allocs;
            sum.frees += figures.frees;
        }
    }
    *ret_sites = count;
    *ret_sum = sum;
    return count > 0;
}

static void put_rest(struct spw_writer *writer, const struct list *list)
{
    for (int device = 0; device < list->devices && list->count > 0; device++) {
        struct figures sum;
        uint64_t sites;

        if (sum_rest(list, device, &sites, &sum)) {
            spw_write(writer, ",\n  {\"id\": null, \"device\": ");
            spw_write_number(writer, (uint64_t)device);
            spw_write_figure(writer, "sites", sites);
            put_figures(writer, &sum);
            spw_write(writer, "}");
        }
    }
}

/* Writes the build ID of every object that a frame lies in, so that symbols can be looked up
 * later. */
static void put_modules(struct spw_writer *writer, const struct report *report)
{
    const struct spw_module *last = NULL;
    char id[2 * SPW_MODULE_ID + 1];

    spw_write(writer, ", \"modules\": [");
    for (size_t i = 0; i < report->symbol_count; i++) {
        const struct spw_module *module = report->symbols[i].module;

        if (module == NULL || module == last) {
            continue;
        }
        id[0] = '\0';
        for (int j = 0; j < module->id_bytes; j++) {
            snprintf(id + 2 * j, sizeof(id) - 2 * (size_t)j, "%02x", module->id[j]);
        }
        spw_write(writer, last == NULL ? "\n  {\"path\": " : ",\n  {\"path\": ");
        spw_write_string(writer, module->path);
        spw_write_text(writer, "build_id", id);
        spw_write(writer, "}");
        last = module;
    }
    spw_write(writer, "\n]");
}

static void put_list(struct spw_writer *writer, const struct report *report,
                     const struct list *list)
{
    spw_write_key(writer, list->key);
    spw_write(writer, "[");
    for (size_t i = 0; i < list->count; i++) {
        spw_write(writer, i == 0 ? "\n  " : ",\n  ");
        put_site(writer, report, list, list->choices[i]);
    }
    put_rest(writer, list);
    spw_write(writer, "\n]");
}

void spw_callsite_report(struct spw_writer *writer, struct spw_charges *charges,
                         struct spw_charges *pinned, int devices)
{
    struct spw_symbol SPW_ROOM *symbols = spw_room_take(SYMBOLS_MOST * sizeof(*symbols));
    struct report SPW_ROOM *report = spw_room_take(sizeof(*report));

    if (report == NULL) {
        return;
    }
    report->lists[0].key = "sites";
    report->lists[0].charges = charges;
    report->lists[1].key = "pinned_sites";
    report->lists[1].charges = pinned;
    report->symbols = symbols;

    for (int i = 0; i < LISTS; i++) {
        report->lists[i].devices = devices;
        choose_all(&report->lists[i]);
    }
    if (symbols != NULL) {
        name_all(report);
    }
    for (int i = 0; i < LISTS; i++) {
        put_list(writer, report, &report->lists[i]);
    }
    put_modules(writer, report);
}
