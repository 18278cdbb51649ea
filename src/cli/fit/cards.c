#include "cli/fit/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/console/messages.h"
#include "cli/verdict/cards.h"

static int by_memory(const void *a, const void *b)
{
    const struct spw_gpu_profile *left = *(const struct spw_gpu_profile *const *)a;
    const struct spw_gpu_profile *right = *(const struct spw_gpu_profile *const *)b;

    if (left->memory_mib != right->memory_mib) {
        return left->memory_mib < right->memory_mib ? -1 : 1;
    }
    return strcmp(left->id, right->id);
}

static void add(struct spw_cli_fit_cards *cards, const struct spw_gpu_profile *card)
{
    for (size_t i = 0; i < cards->count; i++) {
        if (cards->cards[i] == card) {
            return;
        }
    }
    if (cards->count < SPW_CLI_FIT_CARDS) {
        cards->cards[cards->count++] = card;
    }
}

static bool add_named(const char *command, const char *name, struct spw_cli_fit_cards *cards)
{
    const struct spw_gpu_profile *card = spw_gpu_profile_find(name);
    char expected[256];

    if (*name == '\0') {
        spw_cli_complain(command, "--gpus: a name is empty (expected NAME,NAME,...)");
        return false;
    }
    if (card == NULL) {
        spw_gpu_profile_expected(name, expected, sizeof(expected));
        spw_cli_complain(command, "--gpus: %s is not the name of a GPU (expected %s)", name,
                         expected);
        return false;
    }
    add(cards, card);
    return true;
}

static bool add_list(const char *command, const char *names, struct spw_cli_fit_cards *cards)
{
    char *text = strdup(names), *rest = text, *name;
    bool good = text != NULL;

    while (good && (name = strsep(&rest, ",")) != NULL) {
        good = add_named(command, name, cards);
    }
    free(text);
    return good;
}

bool spw_cli_fit_cards_read(const char *command, const char *names,
                            struct spw_cli_fit_cards *ret_cards)
{
    struct spw_cli_fit_cards cards = {.chosen = names != NULL};
    const struct spw_gpu_profile *card;

    if (names != NULL && !add_list(command, names, &cards)) {
        return false;
    }
    for (size_t i = 0; names == NULL && (card = spw_gpu_profile_at(i)) != NULL; i++) {
        add(&cards, card);
    }
    qsort(cards.cards, cards.count, sizeof(cards.cards[0]), by_memory);
    *ret_cards = cards;
    return true;
}

uint64_t spw_cli_fit_card_bytes(const struct spw_gpu_profile *card)
{
    return (uint64_t)card->memory_mib << 20;
}

uint64_t spw_cli_fit_card_room(const struct spw_gpu_profile *card)
{
    uint64_t bytes = spw_cli_fit_card_bytes(card);

    return bytes - spw_cli_cards_reserve(card, bytes);
}
