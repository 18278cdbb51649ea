/* All call sites of a recording as a table. */
#include "cli/report/report.h"

#include "callsite/label.h"
#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_row(struct spw_cli_report *report, const struct spw_cli_device *device,
                    uint32_t site)
{
    char label[SPW_CALLSITE_LABEL];

    spw_cli_recorded_sites_label(site, label);
    spw_cli_report_put(report, "  %12s  %12s  %12s  %9" PRIu64 "  %s\n",
                       spw_cli_size(spw_cli_state_at_peak(device, site)),
                       spw_cli_size(spw_cli_report_live(device, site)),
                       spw_cli_size(spw_cli_report_total(device, site)),
                       (uint64_t)device->held[site].allocs, label);
}

/* Writes the sites that held memory at the peak, then the other sites by the sum of their
 * allocations. */
static void put_device(struct spw_cli_report *report, int ordinal)
{
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    static spw_cli_weight *const weights[] = {spw_cli_state_at_peak, spw_cli_report_total};

    for (int part = 0; part < 2; part++) {
        size_t count;
        struct spw_cli_ranked *ranked = spw_cli_report_rank(device, weights[part], &count);

        if (part == 0 && ranked != NULL) {
            spw_cli_report_put(report, "device %d\n  %12s  %12s  %12s  %9s  %s\n", ordinal,
                               "at the peak", "at the end", "in all", "allocs", "site");
        }
        for (size_t i = 0; ranked != NULL && i < count; i++) {
            if (part == 0 || spw_cli_state_at_peak(device, ranked[i].site) == 0) {
                put_row(report, device, ranked[i].site);
            }
        }
        free(ranked);
    }
}

void spw_cli_report_site_table(struct spw_cli_report *report)
{
    for (int i = 0; i < spw_cli_state_devices(&report->state); i++) {
        put_device(report, i);
    }
}
