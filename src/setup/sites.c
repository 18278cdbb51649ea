#include "setup/sites.h"

#include "callsite/capture.h"
#include "callsite/report.h"
#include "common/options.h"
#include "stats/file.h"
#include "stats/shm.h"

void spw_setup_sites_charge(struct spw_device *device, int ordinal)
{
    struct spw_callsite_shm *sites = spw_process.sites;

    device->charges = sites != NULL ? &sites->charges[ordinal] : NULL;
    device->pinned = sites != NULL ? &sites->pinned[ordinal] : NULL;
}

static void report_sites(struct spw_writer *writer)
{
    struct spw_callsite_shm *sites = spw_process.sites;

    if (sites != NULL) {
        spw_callsite_report(writer, sites->charges, sites->pinned, (int)sites->devices);
    }
}

void spw_setup_sites(int devices)
{
    enum spw_sites mode = spw_option_get(SPW_OPT_SPILLWAY_SITES, NULL, 0).word;
    struct spw_callsite_shm *sites;

    if (mode == SPW_SITES_OFF) {
        return;
    }
    spw_callsite_start(mode);
    sites = spw_stats_shm_create(sizeof(*sites), spw_process.stats->sites);
    if (sites == NULL || !spw_callsite_shm_init(sites, (uint32_t)devices, spw_stats_shm_back)) {
        return;
    }
    spw_process.sites = sites;
    spw_callsite_publish(sites);
    spw_stats_extend(report_sites);
}

bool spw_setup_sites_forget(void)
{
    uint32_t devices;

    if (spw_process.sites == NULL) {
        return true;
    }
    devices = spw_process.sites->devices;
    spw_callsite_publish(NULL);
    if (!spw_stats_shm_forget()) {
        return false;
    }
    (void)spw_callsite_shm_init(spw_process.sites, devices, NULL);
    return true;
}
