#include "setup/sites.h"

#include "callsite/capture.h"
#include "callsite/report.h"
#include "common/options.h"
#include "stats/file.h"
#include "stats/shm.h"

void spw_setup_sites_charge(struct spw_device *device, int ordinal)
{
    struct spw_callsite_shm *sites = spw_devices.sites;

    device->charges = sites != NULL ? &sites->charges[ordinal] : NULL;
    device->pinned = sites != NULL ? &sites->pinned[ordinal] : NULL;
}

static void report_sites(struct spw_writer *writer)
{
    struct spw_callsite_shm *sites = spw_devices.sites;

    if (sites != NULL) {
        spw_callsite_report(writer, sites->charges, sites->pinned, (int)sites->devices);
    }
}

void spw_setup_sites(int devices)
{
    enum spw_sites mode = spw_option_get(SPW_OPT_SPILLWAY_SITES, NULL, 0).word;
    struct spw_callsite_shm *created;

    if (mode == SPW_SITES_OFF) {
        return;
    }
    spw_callsite_start(mode);
    created = spw_stats_shm_create(sizeof(*created), spw_process_stats()->sites);
    if (created == NULL || !spw_callsite_shm_init(created, (uint32_t)devices, spw_stats_shm_back)) {
        return;
    }
    spw_devices.sites = created;
    spw_callsite_publish(created);
    spw_stats_extend(report_sites);
}

bool spw_setup_sites_forget(void)
{
    struct spw_callsite_shm *sites = spw_devices.sites;
    uint32_t devices;

    if (sites == NULL) {
        return true;
    }
    devices = sites->devices;
    spw_callsite_publish(NULL);
    if (!spw_stats_shm_forget()) {
        return false;
    }
    (void)spw_callsite_shm_init(sites, devices, NULL);
    return true;
}
