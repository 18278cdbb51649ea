#include "policy/table.h"

#include "policy/glob.h"
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>

const struct spw_policy_row spw_policy_rows[SPW_POLICY_KEY_COUNT] = {
#define SPW_POLICY_KEY(object, member, key, type, of, need, low, high, help)                       \
    {SPW_POLICY_OBJECT_##object,                                                                   \
     key,                                                                                          \
     SPW_POLICY_##type,                                                                            \
     of,                                                                                           \
     SPW_POLICY_##need,                                                                            \
     low,                                                                                          \
     high,                                                                                         \
     help,                                                                                         \
     offsetof(struct spw_policy_##object, member)},
#include "policy/keys.def"
};

const struct spw_policy_word_row spw_policy_word_rows[] = {
#define SPW_POLICY_WORD(list, name, text, help) {SPW_WORDS_##list, SPW_##list##_##name, text, help},
#include "policy/keys.def"
};
const size_t spw_policy_word_count = sizeof(spw_policy_word_rows) / sizeof(*spw_policy_word_rows);

const char *const spw_policy_apis[] = {
#define SPW_POLICY_API(name) #name,
#include "policy/keys.def"
};
const size_t spw_policy_api_count = sizeof(spw_policy_apis) / sizeof(*spw_policy_apis);

const char *const spw_policy_titles[SPW_POLICY_OBJECT_COUNT] = {
#define SPW_POLICY_OBJECT(name, title) title,
#include "policy/keys.def"
};

const size_t spw_policy_object_sizes[SPW_POLICY_OBJECT_COUNT] = {
#define SPW_POLICY_OBJECT(name, title) sizeof(struct spw_policy_##name),
#include "policy/keys.def"
};

/* "\"spill\", \"fail\" or \"warn\"" */
static const char *expected_word(enum spw_policy_words list, char text[SPW_POLICY_EXPECTED])
{
    size_t used = 0;

    for (size_t i = 0; i < spw_policy_word_count; i++) {
        const struct spw_policy_word_row *row = &spw_policy_word_rows[i];
        bool last = i + 1 == spw_policy_word_count || spw_policy_word_rows[i + 1].list != list;

        if (row->list == list && used < SPW_POLICY_EXPECTED) {
            const char *before = row->value == 1 ? "" : last ? " or " : ", ";

            used += (size_t)snprintf(text + used, SPW_POLICY_EXPECTED - used, "%s\"%s\"", before,
                                     row->text);
        }
    }
    return text;
}

static const char *expected_numbers(const struct spw_policy_row *row,
                                    char text[SPW_POLICY_EXPECTED])
{
    const char *form = "a number from %" PRId64 ", a range such as \"%" PRId64 "-20\" or \"10-\", "
                       "or a list of these";

    if (row->type == SPW_POLICY_NUMBER) {
        snprintf(text, SPW_POLICY_EXPECTED, "a whole number from %" PRId64 " to %" PRId64, row->low,
                 row->high);
    } else if (row->type == SPW_POLICY_PERCENT) {
        snprintf(text, SPW_POLICY_EXPECTED,
                 "a percentage such as \"25%%\", from %" PRId64 "%% to %" PRId64 "%%", row->low,
                 row->high);
    } else {
        snprintf(text, SPW_POLICY_EXPECTED, form, row->low, row->low);
    }
    return text;
}

const char *spw_policy_expected(const struct spw_policy_row *row, char text[SPW_POLICY_EXPECTED])
{
    switch (row->type) {
    case SPW_POLICY_TEXT:
        return "a string or a list of strings";
    case SPW_POLICY_NAME:
        snprintf(text, SPW_POLICY_EXPECTED,
                 "a name of %" PRId64 " to %" PRId64 " letters, digits and - _ .", row->low,
                 row->high);
        return text;
    case SPW_POLICY_VERSION:
        snprintf(text, SPW_POLICY_EXPECTED, "%" PRId64, row->low);
        return text;
    case SPW_POLICY_OBJECT:
        return "an object";
    case SPW_POLICY_OBJECTS:
        return "an object or a list of objects";
    case SPW_POLICY_LIST:
        snprintf(text, SPW_POLICY_EXPECTED, "a list of at most %" PRId64 " objects", row->high);
        return text;
    case SPW_POLICY_GLOBS:
        return row->of == SPW_GLOB_API
                   ? "a pattern of a function such as \"cuMemAllocAsync\", or a list of patterns"
                   : "a pattern or a list of patterns";
    case SPW_POLICY_SIZE:
        return "a size such as \"16MiB\" or a number of bytes";
    case SPW_POLICY_SHARE:
        return "a size such as \"16MiB\", a percentage such as \"50%\" or a number of bytes";
    case SPW_POLICY_WORD:
        return expected_word((enum spw_policy_words)row->of, text);
    case SPW_POLICY_SWITCH:
        return "true or false";
    case SPW_POLICY_RANGES:
    case SPW_POLICY_PERCENT:
    case SPW_POLICY_NUMBER:
        return expected_numbers(row, text);
    case SPW_POLICY_TYPE_COUNT:
        break;
    }
    return "";
}

const char *spw_policy_word(enum spw_policy_words list, int value)
{
    for (size_t i = 0; i < spw_policy_word_count; i++) {
        if (spw_policy_word_rows[i].list == list && spw_policy_word_rows[i].value == value) {
            return spw_policy_word_rows[i].text;
        }
    }
    return "";
}

bool spw_policy_is_set(const struct spw_policy_row *row, const void *object)
{
    const void *member = (const char *)object + row->offset;

    switch (row->type) {
    case SPW_POLICY_NAME:
        return *(const char *const *)member != NULL;
    case SPW_POLICY_VERSION:
    case SPW_POLICY_NUMBER:
        return ((const struct spw_policy_number *)member)->set;
    case SPW_POLICY_TEXT:
    case SPW_POLICY_OBJECTS:
    case SPW_POLICY_LIST:
        return ((const struct spw_policy_list *)member)->count > 0;
    case SPW_POLICY_GLOBS:
        return ((const struct spw_policy_globs *)member)->count > 0;
    case SPW_POLICY_RANGES:
        return ((const struct spw_policy_ranges *)member)->count > 0;
    case SPW_POLICY_SIZE:
    case SPW_POLICY_SHARE:
    case SPW_POLICY_PERCENT:
        return ((const struct spw_policy_amount *)member)->set;
    case SPW_POLICY_WORD:
    case SPW_POLICY_SWITCH:
        return *(const int *)member != 0;
    case SPW_POLICY_OBJECT:
        return spw_policy_any_set((enum spw_policy_object)row->of, member);
    case SPW_POLICY_TYPE_COUNT:
        break;
    }
    return false;
}

bool spw_policy_any_set(enum spw_policy_object kind, const void *object)
{
    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        if (spw_policy_rows[i].object == kind && spw_policy_is_set(&spw_policy_rows[i], object)) {
            return true;
        }
    }
    return false;
}
