#include "cli/verdict/cards.h"

#include "cli/console/messages.h"
#include "common/minmax.h"
#include "common/options.h"
#include "common/reserve.h"
#include "gpu/rate.h"

#include <stdio.h>

/* Bounds on the memory of a card, as shares of the card's nominal size in GiB. If a card has less
 * than the lower bound, it belongs to the next smaller size. */
enum { SOLD_PERMILLE_LEAST = 909, SOLD_PERMILLE_MOST = 1005 };

/* A device stands for a named card only if it has at least this many times the overhead of the
 * card. */
enum { LEAST_TIMES_BESIDES = 4 };

const struct spw_gpu_profile *spw_cli_cards_profile(void)
{
    const struct spw_gpu_profile *profile =
        spw_gpu_profile_find(spw_option_get(SPW_OPT_SPILLWAY_SIM_PROFILE, NULL, 0).text);

    /* An unusable value stands for the default, as in the simulated driver. */
    return profile != NULL
               ? profile
               : spw_gpu_profile_find(spw_option_row(SPW_OPT_SPILLWAY_SIM_PROFILE)->fallback);
}

double spw_cli_cards_link_seconds(uint64_t in_bytes, uint64_t out_bytes)
{
    return spw_gpu_link_ns(spw_gpu_link_most(spw_cli_cards_profile()), in_bytes, out_bytes) * 1e-9;
}

static uint64_t memory_of(const struct spw_gpu_profile *card)
{
    return (uint64_t)card->memory_mib << 20;
}

static uint64_t besides_of(const struct spw_gpu_profile *card)
{
    return (uint64_t)spw_gpu_profile_overhead(card).most_mib << 20;
}

uint64_t spw_cli_cards_reserve(const struct spw_gpu_profile *card, uint64_t bytes)
{
    return spw_gpu_profile_sharing(card).one_memory ? spw_reserve_of(bytes) : 0;
}

static void add_sold_as(uint64_t bytes, struct spw_cli_cards *cards)
{
    const struct spw_gpu_profile *card;

    cards->by_size = true;
    for (size_t i = 0; (card = spw_gpu_profile_at(i)) != NULL && cards->count < SPW_CLI_CARDS;
         i++) {
        if (!spw_gpu_profile_sharing(card).one_memory && /* no card: its memory is the machine's */
            memory_of(card) >= bytes / 1000 * SOLD_PERMILLE_LEAST &&
            memory_of(card) <= bytes / 1000 * SOLD_PERMILLE_MOST) {
            cards->list[cards->count++] = card;
        }
    }
}

void spw_cli_cards_of(uint64_t bytes, struct spw_cli_cards *ret_cards)
{
    const struct spw_gpu_profile *profile = spw_cli_cards_profile();
    bool named = spw_option_get(SPW_OPT_SPILLWAY_SIM_PROFILE, NULL, 0).set;

    *ret_cards = (struct spw_cli_cards){.bytes = bytes};
    if (bytes == memory_of(profile) ||
        (named && bytes >= LEAST_TIMES_BESIDES * besides_of(profile))) {
        ret_cards->list[ret_cards->count++] = profile;
    } else if (!named) {
        add_sold_as(bytes, ret_cards);
    }
}

uint64_t spw_cli_cards_room(const struct spw_cli_cards *cards, size_t index)
{
    uint64_t bytes = memory_of(cards->list[index]);
    uint64_t most = cards->by_size && bytes < cards->bytes ? bytes : cards->bytes;

    return most - spw_cli_cards_reserve(cards->list[index], most);
}

void spw_cli_cards_name(struct spw_cli_line *line, const struct spw_cli_cards *cards)
{
    if (cards->by_size && cards->count > 0) {
        spw_cli_line_add(line, "a card of about %s", spw_cli_size(cards->bytes));
    } else {
        spw_cli_line_add(line, "a real %s", spw_cli_cards_profile()->id);
    }
}

static void add_range(struct spw_cli_line *line, uint64_t least, uint64_t most)
{
    spw_cli_line_add(line, "%s", spw_cli_size(least));
    if (most > least) {
        spw_cli_line_add(line, " to %s", spw_cli_size(most));
    }
}

void spw_cli_cards_describe(struct spw_cli_line *line, const struct spw_cli_cards *cards)
{
    uint64_t least = UINT64_MAX, most = 0, least_besides = UINT64_MAX, most_besides = 0;

    for (size_t i = 0; i < cards->count; i++) {
        uint64_t bytes = memory_of(cards->list[i]);
        uint64_t besides = (uint64_t)spw_gpu_profile_overhead(cards->list[i]).mib << 20;

        least = spw_min(least, bytes);
        most = spw_max(most, bytes);
        least_besides = spw_min(least_besides, besides);
        most_besides = spw_max(most_besides, besides_of(cards->list[i]));
    }
    spw_cli_line_add(line, "have ");
    add_range(line, least, most);
    spw_cli_line_add(line, " and hold ");
    add_range(line, least_besides, most_besides);
    spw_cli_line_add(line, " besides");
}

/* ---- all ---- */

/* Returns bytes per second, counting both edges of the memory clock. */
static double memory_rate(const struct spw_gpu_profile *profile)
{
    return 2e3 * profile->memory_clock_khz * profile->memory_bus_bits / 8;
}

static void print_row(const struct spw_gpu_profile *profile)
{
    struct spw_gpu_overhead overhead = spw_gpu_profile_overhead(profile);
    struct spw_gpu_link speed = spw_gpu_link_most(profile);
    char capability[16], link[32];

    snprintf(capability, sizeof(capability), "%d.%d", profile->major, profile->minor);
    if (speed.in == speed.out) {
        snprintf(link, sizeof(link), "%.0f", speed.in);
    } else {
        snprintf(link, sizeof(link), "%.0f/%.0f", speed.in, speed.out);
    }
    printf("%-22s %10s %5s %4d %6.0f %7s %5u-%-5u%s %s\n", profile->id,
           spw_cli_size((uint64_t)profile->memory_mib << 20), capability, profile->multiprocessors,
           memory_rate(profile) / 1e9, link, overhead.mib, overhead.most_mib,
           overhead.messages > 0 ? " " : "~", profile->name);
}

void spw_cli_cards_print(void)
{
    const struct spw_gpu_profile *profile;

    printf("%-22s %10s %5s %4s %6s %7s %12s %s\n", "profile", "memory", "sm", "SMs", "GB/s", "link",
           "besides, MiB", "GPU");
    for (size_t i = 0; (profile = spw_gpu_profile_at(i)) != NULL; i++) {
        print_row(profile);
    }
    puts("\nGB/s: bandwidth of its memory. link: specified GB/s to the host; for GH200, GB200 and\n"
         "GB300 the highest measured GB/s, to the card/from it. besides: memory that\n"
         "the card needs in addition to the program (CUDA context, code, libraries), as estimate\n"
         "and upper bound; ~: from the number of SMs, others from published figures");
}
