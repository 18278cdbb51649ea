/* The types of values that hold no object. */
#include "policy/reader.h"

#include "common/nearest.h"
#include "common/size.h"
#include "system/room.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A double, which cJSON uses for numbers, holds whole numbers exactly up to this one. */
#define MOST_NUMBER 9007199254740992.0

enum { NUMBER_DIGITS = 18 };

static bool wrong(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                  struct spw_policy_node node, const char *why)
{
    spw_policy_complain_value(reader, row, node, why, NULL);
    return false;
}

static bool is_whole(struct spw_policy_node node)
{
    double number = node.json->valuedouble;

    return spw_policy_json_is(node.json, cJSON_Number) && number >= -MOST_NUMBER &&
           number <= MOST_NUMBER && number == (double)(int64_t)number;
}

static char *copy(struct spw_policy_reader *reader, const char *text)
{
    size_t length = strlen(text) + 1;
    char *result = spw_policy_allocate(reader, length);

    return result != NULL ? memcpy(result, text, length) : NULL;
}

static size_t characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return count;
}

static bool read_line(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                      struct spw_policy_node node, void *item)
{
    if (!spw_policy_json_is(node.json, cJSON_String)) {
        return wrong(reader, row, node, NULL);
    }
    if (characters(node.json->valuestring) > (size_t)row->high) {
        return wrong(reader, row, node, "too long");
    }
    *(const char **)item = copy(reader, node.json->valuestring);
    return true;
}

static bool read_name(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                      struct spw_policy_node node, void *member)
{
    const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    if (!spw_policy_json_is(node.json, cJSON_String) ||
        strlen(node.json->valuestring) < (size_t)row->low ||
        strlen(node.json->valuestring) > (size_t)row->high ||
        node.json->valuestring[strspn(node.json->valuestring, letters)] != '\0') {
        return wrong(reader, row, node, NULL);
    }
    *(const char **)member = copy(reader, node.json->valuestring);
    return true;
}

static bool read_number(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                        struct spw_policy_node node, void *member)
{
    if (!is_whole(node) || node.json->valuedouble < (double)row->low ||
        node.json->valuedouble > (double)row->high) {
        return wrong(reader, row, node, NULL);
    }
    *(struct spw_policy_number *)member =
        (struct spw_policy_number){.set = true, .value = (int64_t)node.json->valuedouble};
    return true;
}

static bool read_amount(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                        struct spw_policy_node node, void *member)
{
    struct spw_policy_amount amount = {.set = true};
    uint64_t number;

    if (spw_policy_json_is(node.json, cJSON_Number) && row->type != SPW_POLICY_PERCENT) {
        if (node.json->valuedouble > MOST_NUMBER) {
            return wrong(reader, row, node, "too large for a number in JSON");
        }
        if (!is_whole(node) || node.json->valuedouble < 0) {
            return wrong(reader, row, node, NULL);
        }
        number = (uint64_t)node.json->valuedouble;
    } else if (!spw_policy_json_is(node.json, cJSON_String) ||
               !spw_size_parse(node.json->valuestring, &number, &amount.percent)) {
        return wrong(reader, row, node, NULL);
    }
    if (amount.percent ? row->type == SPW_POLICY_SIZE : row->type == SPW_POLICY_PERCENT) {
        return wrong(reader, row, node, NULL);
    }
    if (amount.percent && number > 1000) {
        return wrong(reader, row, node, "more than the whole");
    }
    amount.bytes = amount.percent ? 0 : number;
    amount.permille = amount.percent ? (uint32_t)number : 0;
    *(struct spw_policy_amount *)member = amount;
    return true;
}

static bool read_word(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                      struct spw_policy_node node, void *member)
{
    const char *words[8];
    size_t count = 0;

    for (size_t i = 0; i < spw_policy_word_count; i++) {
        const struct spw_policy_word_row *word = &spw_policy_word_rows[i];

        if ((int)word->list != row->of) {
            continue;
        }
        words[count++] = word->text;
        if (spw_policy_json_is(node.json, cJSON_String) &&
            strcmp(word->text, node.json->valuestring) == 0) {
            *(int *)member = word->value;
            return true;
        }
    }
    spw_policy_complain_value(reader, row, node, NULL,
                              spw_policy_json_is(node.json, cJSON_String)
                                  ? spw_nearest(node.json->valuestring, 0, words, count)
                                  : NULL);
    return false;
}

static bool read_switch(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                        struct spw_policy_node node, void *member)
{
    if (!spw_policy_json_is(node.json, cJSON_True) && !spw_policy_json_is(node.json, cJSON_False)) {
        return wrong(reader, row, node, NULL);
    }
    *(int *)member = spw_policy_json_is(node.json, cJSON_True) ? SPW_SWITCH_ON : SPW_SWITCH_OFF;
    return true;
}

static bool knows_api(const struct spw_glob *glob)
{
    for (size_t i = 0; i < spw_policy_api_count; i++) {
        if (spw_policy_glob_match(glob, spw_policy_apis[i])) {
            return true;
        }
    }
    return false;
}

static bool read_glob(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                      struct spw_policy_node node, void *item)
{
    struct spw_glob_token SPW_ROOM *tokens = spw_room_take(SPW_GLOB_MAX * sizeof(*tokens));
    struct spw_glob glob = {.kind = (enum spw_glob_kind)row->of, .tokens = tokens};
    struct spw_glob_token *kept;
    const char *problem;

    if (!spw_policy_json_is(node.json, cJSON_String)) {
        return wrong(reader, row, node, NULL);
    }
    glob.count = spw_policy_glob_compile(node.json->valuestring, tokens, &problem);
    if (glob.count == 0) {
        return wrong(reader, row, node, problem);
    }
    if (glob.kind == SPW_GLOB_API && !knows_api(&glob)) {
        spw_policy_complain_value(
            reader, row, node, "no function that allocates",
            spw_nearest(node.json->valuestring, 0, spw_policy_apis, spw_policy_api_count));
        return false;
    }
    kept = spw_policy_allocate(reader, glob.count * sizeof(*tokens));
    if (kept != NULL) {
        memcpy(kept, tokens, glob.count * sizeof(*tokens));
    }
    glob.tokens = kept;
    glob.text = copy(reader, node.json->valuestring);
    *(struct spw_glob *)item = glob;
    return true;
}

/* Reads the digits at *text, and moves *text behind them. False when there are none, or more than
 * NUMBER_DIGITS. */
static bool take_digits(const char **text, int64_t *ret_number)
{
    size_t digits = strspn(*text, "0123456789");

    if (digits == 0 || digits > NUMBER_DIGITS) {
        return false;
    }
    *ret_number = strtoll(*text, NULL, 10);
    *text += digits;
    return true;
}

/* "7", "7-9" or "7-". */
static bool parse_range(const char *text, struct spw_policy_range *range)
{
    if (!take_digits(&text, &range->first)) {
        return false;
    }
    range->last = range->first;
    if (*text == '-') {
        text++;
        range->last = INT64_MAX;
        if (*text != '\0' && !take_digits(&text, &range->last)) {
            return false;
        }
    }
    return *text == '\0';
}

static bool read_range(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                       struct spw_policy_node node, void *item)
{
    struct spw_policy_range range;

    if (is_whole(node)) {
        range.first = (int64_t)node.json->valuedouble;
        range.last = range.first;
    } else if (!spw_policy_json_is(node.json, cJSON_String) ||
               !parse_range(node.json->valuestring, &range)) {
        return wrong(reader, row, node, NULL);
    }
    if (range.first < row->low || (range.last > row->high && range.last != INT64_MAX)) {
        return wrong(reader, row, node, "out of range");
    }
    if (range.last < range.first) {
        return wrong(reader, row, node, "a range that runs backwards");
    }
    *(struct spw_policy_range *)item = range;
    return true;
}

/* Reads one item or a list of items. The member has the layout of a struct spw_policy_list. */
static bool read_any_of(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                        struct spw_policy_node node, void *member, size_t item_bytes,
                        bool (*read_item)(struct spw_policy_reader *, const struct spw_policy_row *,
                                          struct spw_policy_node, void *))
{
    bool list = spw_policy_json_is(node.json, cJSON_Array);
    size_t count = list ? spw_policy_json_count(node.json) : 1;
    struct spw_policy_node item = list ? spw_policy_first(reader, node) : node;
    char *items;

    if (count == 0) {
        return wrong(reader, row, node, NULL);
    }
    if (count > SPW_POLICY_LIST_ITEMS) {
        return wrong(reader, row, node, "with more than 64 items");
    }
    items = spw_policy_allocate(reader, count * item_bytes);
    if (items == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        read_item(reader, row, item, items + i * item_bytes);
        item = spw_policy_next(reader, item);
    }
    *(struct spw_policy_list *)member = (struct spw_policy_list){items, count};
    return true;
}

void spw_policy_read_value(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                           struct spw_policy_node node, void *member)
{
    switch (row->type) {
    case SPW_POLICY_TEXT:
        read_any_of(reader, row, node, member, sizeof(char *), read_line);
        break;
    case SPW_POLICY_NAME:
        read_name(reader, row, node, member);
        break;
    case SPW_POLICY_VERSION:
    case SPW_POLICY_NUMBER:
        read_number(reader, row, node, member);
        break;
    case SPW_POLICY_SIZE:
    case SPW_POLICY_SHARE:
    case SPW_POLICY_PERCENT:
        read_amount(reader, row, node, member);
        break;
    case SPW_POLICY_WORD:
        read_word(reader, row, node, member);
        break;
    case SPW_POLICY_SWITCH:
        read_switch(reader, row, node, member);
        break;
    case SPW_POLICY_GLOBS:
        read_any_of(reader, row, node, member, sizeof(struct spw_glob), read_glob);
        break;
    case SPW_POLICY_RANGES:
        read_any_of(reader, row, node, member, sizeof(struct spw_policy_range), read_range);
        break;
    default:
        break;
    }
}
