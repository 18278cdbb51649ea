#include "cli/report/page_parts.h"

#include "callsite/label.h"
#include "cli/report/categories.h"
#include "cli/report/growth.h"

#include <stdlib.h>

/* The ends of steps that a page shows, shared by its devices, and the sites of a device. */
enum { ENDS_OF_ALL = 2000, ENDS_MOST = 500, ENDS_LEAST = 20, GROWING = 10 };

/* Writes the live bytes at the ends of steps. If there are too many steps, leaves out some between
 * the others, and never the last. */
static void write_ends(const struct spw_cli_report *report, int ordinal, size_t most,
                       struct spw_writer *out)
{
    const struct spw_cli_categories *categories = report->categories;
    const struct spw_cli_step_row *rows = categories->rows[ordinal];
    size_t count = rows != NULL ? categories->row_count : 0;
    size_t every = (count + most - 1) / most;
    bool first = true;

    spw_write(out, ", \"step_ends\": [");
    for (size_t i = 0; i < count; i++) {
        if ((count - 1 - i) % every == 0) {
            spw_write(out, first ? "[" : ",[");
            first = false;
            spw_write_number(out, rows[i].number);
            spw_write(out, ",");
            spw_write_number(out, rows[i].time / SPW_CLI_PAGE_UNITS_IN_US);
            spw_write(out, ",");
            spw_write_number(out, rows[i].held.live);
            spw_write(out, "]");
        }
    }
    spw_write(out, "]");
}

static int compare(const void *left, const void *right)
{
    const struct spw_cli_ranked *a = left, *b = right;

    return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
}

static void write_sites(const struct spw_cli_report *report, int ordinal, struct spw_writer *out)
{
    uint32_t count = spw_cli_recorded_sites_count(report->state.sites) + 1;
    struct spw_cli_ranked *ranked = calloc(count, sizeof(*ranked));
    char label[SPW_CALLSITE_LABEL];
    size_t growing = 0;

    for (uint32_t site = 0; ranked != NULL && site < count; site++) {
        uint64_t bytes = spw_cli_growth_of_site(report->categories->growth, ordinal, site);

        if (bytes > 0) {
            ranked[growing++] = (struct spw_cli_ranked){site, bytes};
        }
    }
    if (ranked != NULL) {
        qsort(ranked, growing, sizeof(*ranked), compare);
    }
    spw_write(out, ", \"growing\": [");
    for (size_t i = 0; i < growing && i < GROWING; i++) {
        spw_cli_recorded_sites_label(ranked[i].site, label);
        spw_write(out, i == 0 ? "[" : ",[");
        spw_write_number(out, ranked[i].bytes);
        spw_write(out, ",");
        spw_cli_page_string(out, label);
        spw_write(out, "]");
    }
    spw_write(out, "]");
    free(ranked);
}

void spw_cli_page_growth_write(struct spw_cli_report *report, int ordinal, unsigned devices)
{
    size_t most = spw_cli_page_share(ENDS_OF_ALL, devices, ENDS_LEAST, ENDS_MOST);

    spw_write_figure(&report->out, "growth",
                     spw_cli_growth_of_device(report->categories->growth, ordinal));
    write_sites(report, ordinal, &report->out);
    write_ends(report, ordinal, most, &report->out);
}
