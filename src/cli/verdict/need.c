#include "cli/verdict/need.h"

#include "common/minmax.h"
#include "gpu/communicator.h"

const char *spw_cli_need_term_name(enum spw_cli_term term)
{
    static const char *const names[SPW_CLI_TERMS] = {
        [SPW_CLI_TERM_PROGRAM] = "program",
        [SPW_CLI_TERM_CONTEXT] = "context",
        [SPW_CLI_TERM_NCCL] = "nccl",
        [SPW_CLI_TERM_HOST] = "host",
    };

    return names[term];
}

const char *spw_cli_need_basis_name(enum spw_cli_basis basis)
{
    static const char *const names[] = {
        [SPW_CLI_EXACT] = "exact",
        [SPW_CLI_CALIBRATED] = "calibrated",
        [SPW_CLI_MEASURED] = "measured",
        [SPW_CLI_GUESS] = "guess",
    };

    return names[basis];
}

/* If a device has less memory, the pool keeps less free memory. On the smallest devices that still
 * ran the training, at most 2 % of the pool was not live (benchmark `frag-torch`, capacity E). */
static uint64_t packed(const struct spw_cli_sim_device *device, uint64_t live)
{
    uint64_t others = device->program_peak_bytes > device->pool_peak_bytes
                          ? device->program_peak_bytes - device->pool_peak_bytes
                          : 0;

    return others + live / 98 * 100;
}

static struct spw_cli_need_term program_term(const struct spw_cli_sim_device *device)
{
    uint64_t taken = device->overhead_bytes > 0 ? device->nccl_bytes : 0; /* NCCL's live bytes */
    uint64_t live = device->live_peak_bytes > taken ? device->live_peak_bytes - taken : 0;
    uint64_t bytes = device->spilled ? live : device->program_peak_bytes, most = bytes;

    if (device->host_peak_bytes == 0 && device->pooled) {
        most = packed(device, live);
        bytes = spw_min(bytes, most);
    }
    return (struct spw_cli_need_term){bytes, most, SPW_CLI_EXACT};
}

/* Returns the greater of the published overhead and the driver's own memory in the simulation. */
static struct spw_cli_need_term context_term(const struct spw_cli_sim_device *device,
                                             const struct spw_gpu_profile *profile)
{
    struct spw_gpu_overhead overhead = spw_gpu_profile_overhead(profile);

    return (struct spw_cli_need_term){
        .bytes = spw_max((uint64_t)overhead.mib << 20, device->own_peak_bytes),
        .most = spw_max((uint64_t)overhead.most_mib << 20, device->own_peak_bytes),
        .basis = overhead.messages > 0 ? SPW_CLI_CALIBRATED : SPW_CLI_GUESS,
    };
}

static struct spw_cli_need_term nccl_term(const struct spw_cli_sim_device *device,
                                          const struct spw_gpu_profile *profile)
{
    return (struct spw_cli_need_term){
        .bytes = device->nccl_bytes,
        .most = spw_max(device->nccl_most_bytes, device->nccl_bytes),
        .basis = spw_gpu_channels_are_published(profile) ? SPW_CLI_CALIBRATED : SPW_CLI_GUESS,
    };
}

static struct spw_cli_need_term host_term(const struct spw_cli_sim_device *device,
                                          const struct spw_gpu_profile *profile)
{
    uint64_t bytes = spw_gpu_profile_sharing(profile).one_memory ? device->host_side_bytes : 0;

    return (struct spw_cli_need_term){bytes, bytes, bytes > 0 ? SPW_CLI_MEASURED : SPW_CLI_EXACT};
}

struct spw_cli_need spw_cli_need_of(const struct spw_cli_sim_device *device,
                                    const struct spw_gpu_profile *card)
{
    struct spw_cli_need need = {
        .terms = {[SPW_CLI_TERM_PROGRAM] = program_term(device),
                  [SPW_CLI_TERM_CONTEXT] = context_term(device, card),
                  [SPW_CLI_TERM_NCCL] = nccl_term(device, card),
                  [SPW_CLI_TERM_HOST] = host_term(device, card)},
        .without_spilling = device->spilled,
    };
    uint64_t taken = device->used_peak_bytes + (device->one_memory ? device->host_side_bytes : 0);

    need.spare = device->total_bytes > taken ? device->total_bytes - taken : 0;
    for (int i = 0; i < SPW_CLI_TERMS; i++) {
        need.in_all += need.terms[i].bytes;
        need.in_all_most += need.terms[i].most;
    }
    need.besides = need.in_all - need.terms[SPW_CLI_TERM_PROGRAM].bytes;
    need.besides_most = need.in_all_most - need.terms[SPW_CLI_TERM_PROGRAM].most;
    return need;
}

void spw_cli_need_cards_of(const struct spw_cli_sim_device *device, struct spw_cli_cards *ret_cards)
{
    *ret_cards = (struct spw_cli_cards){.count = 0};
    if (device->overhead_bytes == 0 && !device->spilled) {
        spw_cli_cards_of(device->memory_bytes, ret_cards);
    }
}

static void take_more(struct spw_cli_need *need, const struct spw_cli_need *other)
{
    need->besides = spw_max(need->besides, other->besides);
    need->besides_most = spw_max(need->besides_most, other->besides_most);
    need->in_all = spw_max(need->in_all, other->in_all);
    need->in_all_most = spw_max(need->in_all_most, other->in_all_most);
    for (int i = 0; i < SPW_CLI_TERMS; i++) {
        struct spw_cli_need_term *term = &need->terms[i];

        term->bytes = spw_max(term->bytes, other->terms[i].bytes);
        term->most = spw_max(term->most, other->terms[i].most);
        term->basis = other->terms[i].basis > term->basis ? other->terms[i].basis : term->basis;
    }
}

struct spw_cli_need spw_cli_need_here(const struct spw_cli_sim_device *device)
{
    struct spw_cli_cards cards;
    struct spw_cli_need need;

    spw_cli_need_cards_of(device, &cards);
    if (cards.count == 0) {
        return spw_cli_need_of(device, spw_cli_cards_profile());
    }
    need = spw_cli_need_of(device, cards.list[0]);
    for (size_t i = 0; i < cards.count; i++) {
        struct spw_cli_need other = spw_cli_need_of(device, cards.list[i]);
        uint64_t room = spw_cli_cards_room(&cards, i);

        take_more(&need, &other);
        need.spare = spw_min(need.spare, room > other.in_all ? room - other.in_all : 0);
    }
    return need;
}

void spw_cli_need_cards(const struct spw_cli_sim_result *result, struct spw_cli_cards *ret_cards)
{
    *ret_cards = (struct spw_cli_cards){.count = 0};
    for (size_t i = 0; i < result->count && ret_cards->count == 0; i++) {
        for (int k = 0; k < result->processes[i].device_count && ret_cards->count == 0; k++) {
            if (result->processes[i].devices[k].used) {
                spw_cli_need_cards_of(&result->processes[i].devices[k], ret_cards);
            }
        }
    }
}

/* ---- several processes ---- */

/* `card`: NULL for all cards that the device stands for. */
static struct spw_cli_need need_of_sharers(const struct spw_cli_sim_result *result, int index,
                                           const struct spw_gpu_profile *card)
{
    const struct spw_cli_sim_device *device = NULL;
    uint64_t bytes = result->shared_peaks[index];
    struct spw_cli_need sum = {.terms = {{bytes, bytes, SPW_CLI_EXACT}}};

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        struct spw_cli_need need;

        if (device->index == index && device->shared_peak_bytes > 0) {
            need = card != NULL ? spw_cli_need_of(device, card) : spw_cli_need_here(device);
            sum.besides += need.besides;
            sum.besides_most += need.besides_most;
            sum.without_spilling |= need.without_spilling;
        }
    }
    sum.in_all = bytes + sum.besides;
    sum.in_all_most = bytes + sum.besides_most;
    return sum;
}

struct spw_cli_need spw_cli_need_of_sharers(const struct spw_cli_sim_result *result, int index)
{
    return need_of_sharers(result, index, NULL);
}

/* ---- fitting ---- */

const struct spw_cli_sim_device *spw_cli_need_tightest(const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL;
    const struct spw_cli_sim_device *least = NULL;
    uint64_t least_spare = 0;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        uint64_t spare = device->used ? spw_cli_need_here(device).spare : 0;

        if (device->used &&
            (least == NULL || spare < least_spare ||
             (spare == least_spare && device->host_peak_bytes > least->host_peak_bytes))) {
            least = device;
            least_spare = spare;
        }
    }
    return least;
}

static bool fits_unplaced(const struct spw_cli_sim_device *device)
{
    uint64_t bytes = packed(device, device->live_peak_bytes);
    struct spw_cli_cards cards;

    spw_cli_need_cards_of(device, &cards);
    for (size_t i = 0; i < cards.count; i++) {
        if (bytes + spw_cli_need_of(device, cards.list[i]).besides_most >
            spw_cli_cards_room(&cards, i)) {
            return false;
        }
    }
    return bytes <= device->total_bytes;
}

bool spw_cli_need_fits_unplaced(const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL;
    bool fits = true;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        fits &= fits_unplaced(device);
    }
    return fits;
}

/* Returns true if the device fits on the card. A shared device must fit with all its processes. */
static bool fits_on(const struct spw_cli_sim_result *result,
                    const struct spw_cli_sim_device *device, const struct spw_gpu_profile *card,
                    uint64_t room)
{
    return spw_cli_need_of(device, card).in_all_most <= room &&
           (spw_cli_sim_result_sharers(result, device->index) < 2 ||
            need_of_sharers(result, device->index, card).in_all_most <= room);
}

size_t spw_cli_need_fitting(const struct spw_cli_sim_result *result,
                            const struct spw_cli_cards *cards)
{
    size_t fitting = 0;

    for (size_t card = 0; card < cards->count; card++) {
        uint64_t room = spw_cli_cards_room(cards, card);
        bool fits = true;

        for (size_t i = 0; i < result->count; i++) {
            for (int k = 0; k < result->processes[i].device_count; k++) {
                const struct spw_cli_sim_device *device = &result->processes[i].devices[k];

                fits &= !device->used || fits_on(result, device, cards->list[card], room);
            }
        }
        fitting += fits;
    }
    return fitting;
}

bool spw_cli_need_fits(const struct spw_cli_sim_result *result)
{
    struct spw_cli_cards cards;

    spw_cli_need_cards(result, &cards);
    return spw_cli_need_fitting(result, &cards) == cards.count;
}
