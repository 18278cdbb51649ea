#include "cli/report/growth.h"

#include "cli/report/report.h"
#include "common/minmax.h"

#include <stdlib.h>

enum { PARTS = 3 };

struct spw_cli_growth {
    size_t steps;
    uint32_t sites;
    size_t begin[PARTS + 1]; /* steps before the parts' beginnings; last: the end */
    int part;                /* current; -1: before the first, PARTS: after the last */
    /* The least values in each part. */
    uint64_t least[SPW_DEVICES_MAX][PARTS]; /* live bytes */
    uint64_t *by_site[SPW_DEVICES_MAX];     /* live bytes, by site and part; NULL: unused device */
};

struct spw_cli_growth *spw_cli_growth_create(size_t steps, uint32_t sites,
                                             const struct spw_cli_state *state)
{
    struct spw_cli_growth *growth = calloc(1, sizeof(*growth));

    if (growth == NULL) {
        return NULL;
    }
    growth->steps = steps;
    growth->sites = sites;
    growth->part = -1;
    for (size_t part = 0; steps >= SPW_CLI_GROWTH_STEPS && part <= PARTS; part++) {
        growth->begin[part] =
            SPW_CLI_GROWTH_WARM_UP + (steps - SPW_CLI_GROWTH_WARM_UP) * part / PARTS;
    }
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        if (state->devices[i].held != NULL) {
            growth->by_site[i] = calloc((size_t)sites * PARTS, sizeof(*growth->by_site[i]));
            if (growth->by_site[i] == NULL) {
                spw_cli_growth_free(growth);
                return NULL;
            }
        }
    }
    return growth;
}

void spw_cli_growth_free(struct spw_cli_growth *growth)
{
    if (growth != NULL) {
        for (int i = 0; i < SPW_DEVICES_MAX; i++) {
            free(growth->by_site[i]);
        }
        free(growth);
    }
}

static void begin_part(struct spw_cli_growth *growth, const struct spw_cli_state *state)
{
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        growth->least[i][growth->part] = state->devices[i].live;
        for (uint32_t site = 0; growth->by_site[i] != NULL && site < growth->sites; site++) {
            growth->by_site[i][site * PARTS + (uint32_t)growth->part] =
                spw_cli_report_live(&state->devices[i], site);
        }
    }
}

void spw_cli_growth_step(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                         size_t number)
{
    if (growth->steps < SPW_CLI_GROWTH_STEPS) {
        return;
    }
    if (growth->part < PARTS && number == growth->begin[growth->part + 1]) {
        growth->part++;
        if (growth->part < PARTS) {
            begin_part(growth, state);
        }
    }
}

void spw_cli_growth_change(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                           int device, uint32_t site)
{
    const struct spw_cli_device *from = &state->devices[device];
    uint64_t *least;

    if (growth->part < 0 || growth->part >= PARTS) {
        return;
    }
    least = &growth->least[device][growth->part];
    *least = spw_min(*least, from->live);
    if (growth->by_site[device] != NULL && site < growth->sites) {
        least = &growth->by_site[device][site * PARTS + (uint32_t)growth->part];
        *least = spw_min(*least, spw_cli_report_live(from, site));
    }
}

/* The smaller of the two rises between the three parts, in bytes per step. */
static uint64_t rise(const struct spw_cli_growth *growth, const uint64_t *least)
{
    uint64_t smaller = UINT64_MAX;

    if (growth->steps < SPW_CLI_GROWTH_STEPS) {
        return 0;
    }
    for (int part = 0; part + 1 < PARTS; part++) {
        uint64_t steps = growth->begin[part + 1] - growth->begin[part];
        uint64_t by = least[part + 1] > least[part] ? least[part + 1] - least[part] : 0;

        smaller = (by + steps / 2) / steps < smaller ? (by + steps / 2) / steps : smaller;
    }
    return smaller;
}

uint64_t spw_cli_growth_of_device(const struct spw_cli_growth *growth, int device)
{
    return rise(growth, growth->least[device]);
}

uint64_t spw_cli_growth_of_site(const struct spw_cli_growth *growth, int device, uint32_t site)
{
    return growth->by_site[device] != NULL && site < growth->sites
               ? rise(growth, &growth->by_site[device][(size_t)site * PARTS])
               : 0;
}
