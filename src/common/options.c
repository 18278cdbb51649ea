#include "common/options.h"

#include "common/nearest.h"
#include "common/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

#define PREFIX          "SPILLWAY_"

enum { PREFIX_LENGTH = sizeof(PREFIX) - 1, LONGEST_NAME = 64, MOST_WORDS = 5 };

static const struct spw_option_row rows[SPW_OPT_COUNT] = {
#define SPW_OPTION(name, type, fallback, scope, help)                                              \
    {#name, SPW_TYPE_##type, fallback, SPW_SCOPE_##scope, help},
#include "common/options.def"
};

static const char *const names[SPW_OPT_COUNT] = {
#define SPW_OPTION(name, type, fallback, scope, help) #name,
#include "common/options.def"
};

static const struct {
    uint64_t least;
    uint64_t most; /* 0: every number is valid */
} ranges[SPW_OPT_COUNT] = {
#define SPW_OPTION_RANGE(name, least, most) [SPW_OPT_##name] = {least, most},
#include "common/options.def"
};

/* Variables that spillway sets for its own children; not for users. */
static const char *const internal_names[] = {"SPILLWAY_CUDNN_SOCKET", "SPILLWAY_RUN_DIR"};

static const char *const words[SPW_TYPE_COUNT_OF_TYPES][MOST_WORDS + 1] = {
    [SPW_TYPE_LOG] = {"error", "info", "debug"},
#define SPW_WORDS(TYPE, type, words) [SPW_TYPE_##TYPE] = {words},
#define SPW_WORD(TYPE, name, text)   text,
#include "common/option_words.def"
};

static size_t word_count(enum spw_option_type type)
{
    size_t count = 0;

    while (count < MOST_WORDS && words[type][count] != NULL) {
        count++;
    }
    return count;
}

const char *const *spw_option_words(enum spw_option_type type)
{
    return words[type][0] != NULL ? words[type] : NULL;
}

const char *spw_option_environment(const char *name)
{
    return secure_getenv(name);
}

const struct spw_option_row *spw_option_row(enum spw_option option)
{
    return &rows[option];
}

enum spw_option spw_option_find(const char *name)
{
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return (enum spw_option)i;
        }
    }
    return SPW_OPT_COUNT;
}

const char *spw_option_nearest(const char *name)
{
    return spw_nearest(name, PREFIX_LENGTH, names, SPW_OPT_COUNT);
}

static bool parse_size(const char *text, struct spw_option_value *value)
{
    uint64_t number;

    if (!spw_size_parse(text, &number, &value->percent)) {
        return false;
    }
    if (!value->percent) {
        value->bytes = number;
        return true;
    }
    value->permille = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    return true;
}

static bool parse_count(const char *text, struct spw_option_value *value)
{
    bool percent;

    return text[strspn(text, "0123456789")] == '\0' &&
           spw_size_parse(text, &value->bytes, &percent);
}

static bool parse_switch(const char *text, struct spw_option_value *value)
{
    static const char *const on[] = {"on", "1", "yes", "true"};
    static const char *const off[] = {"off", "0", "no", "false"};

    for (size_t i = 0; i < COUNT_OF(on); i++) {
        if (strcasecmp(text, on[i]) == 0 || strcasecmp(text, off[i]) == 0) {
            value->on = strcasecmp(text, on[i]) == 0;
            return true;
        }
    }
    return false;
}

/* Finds the word that equals the first `length` bytes of `text`. */
static bool parse_word(enum spw_option_type type, const char *text, size_t length,
                       struct spw_option_value *value)
{
    for (size_t i = 0; i < word_count(type); i++) {
        if (strlen(words[type][i]) == length && strncasecmp(words[type][i], text, length) == 0) {
            value->word = (int)i;
            return true;
        }
    }
    return false;
}

/* Finds the word of a list. With `on` or `off` in the list, the other words of a switch are
 * synonyms. */
static bool parse_listed(enum spw_option_type type, const char *text,
                         struct spw_option_value *value)
{
    struct spw_option_value as_switch;
    const char *word;

    if (parse_word(type, text, strlen(text), value)) {
        return true;
    }
    if (!parse_switch(text, &as_switch)) {
        return false;
    }
    word = as_switch.on ? "on" : "off";
    return parse_word(type, word, strlen(word), value);
}

static bool parse_log(const char *text, struct spw_option_value *value)
{
    size_t length = strcspn(text, ":");

    if (text[length] == ':') {
        value->text = text + length + 1;
        if (*value->text == '\0') {
            return false;
        }
    }
    return parse_word(SPW_TYPE_LOG, text, length, value);
}

static bool parse(enum spw_option_type type, const char *text, struct spw_option_value *value)
{
    switch (type) {
    case SPW_TYPE_SIZE:
        return parse_size(text, value);
    case SPW_TYPE_PERCENT:
        return parse_size(text, value) && value->percent;
    case SPW_TYPE_COUNT:
        return parse_count(text, value);
    case SPW_TYPE_SWITCH:
        return parse_switch(text, value);
    case SPW_TYPE_TEXT:
    case SPW_TYPE_PATH:
        value->text = text;
        return *text != '\0';
    case SPW_TYPE_LOG:
        return parse_log(text, value);
    default:
        return parse_listed(type, text, value);
    }
}

/* "not one of auto, off (did you mean off?)"; LOG's words may be followed by a path. */
static void complain_word(enum spw_option_type type, const char *text, char *complaint,
                          size_t capacity)
{
    const char *suffix = type == SPW_TYPE_LOG ? ", with an optional :PATH" : "";
    char word[LONGEST_NAME];
    const char *nearest;
    size_t used;

    used = (size_t)snprintf(complaint, capacity, "not one of");
    for (size_t i = 0; i < word_count(type) && used < capacity; i++) {
        used += (size_t)snprintf(complaint + used, capacity - used, "%s %s", i > 0 ? "," : "",
                                 words[type][i]);
    }
    snprintf(word, sizeof(word), "%.*s", type == SPW_TYPE_LOG ? (int)strcspn(text, ":") : 63, text);
    nearest = spw_nearest(word, 0, words[type], word_count(type));
    if (used < capacity && nearest != NULL && strcasecmp(nearest, word) != 0) {
        snprintf(complaint + used, capacity - used, "%s (did you mean %s?)", suffix, nearest);
    } else if (used < capacity) {
        snprintf(complaint + used, capacity - used, "%s", suffix);
    }
}

static bool is_in_range(enum spw_option option, uint64_t number)
{
    return ranges[option].most == 0 ||
           (number >= ranges[option].least && number <= ranges[option].most);
}

static void complain(enum spw_option_type type, const char *text, char *complaint, size_t capacity)
{
    switch (type) {
    case SPW_TYPE_SIZE:
        snprintf(complaint, capacity, "not a size (expected 8GiB, 512MiB, 80%% or bytes)");
        break;
    case SPW_TYPE_PERCENT:
        snprintf(complaint, capacity, "not a percentage (expected 15%%)");
        break;
    case SPW_TYPE_COUNT:
        snprintf(complaint, capacity, "not a whole number (expected 0, 1, 2, ...)");
        break;
    case SPW_TYPE_SWITCH:
        snprintf(complaint, capacity, "neither on nor off");
        break;
    case SPW_TYPE_TEXT:
    case SPW_TYPE_PATH:
        snprintf(complaint, capacity, "empty");
        break;
    default:
        complain_word(type, text, complaint, capacity);
        break;
    }
}

bool spw_option_parse(enum spw_option option, const char *text, struct spw_option_value *ret_value,
                      char *complaint, size_t capacity)
{
    struct spw_option_value value = {0};

    if (!parse(rows[option].type, text, &value)) {
        if (complaint != NULL) {
            complain(rows[option].type, text, complaint, capacity);
        }
        return false;
    }
    if (!is_in_range(option, value.bytes)) {
        if (complaint != NULL) {
            snprintf(complaint, capacity, "out of range (expected %" PRIu64 " to %" PRIu64 ")",
                     ranges[option].least, ranges[option].most);
        }
        return false;
    }
    if (complaint != NULL) {
        complaint[0] = '\0';
    }
    *ret_value = value;
    return true;
}

struct spw_option_value spw_option_default(enum spw_option option)
{
    struct spw_option_value value = {0};

    if (*rows[option].fallback != '\0') {
        parse(rows[option].type, rows[option].fallback, &value);
    }
    return value;
}

struct spw_option_value spw_option_get(enum spw_option option, char *complaint, size_t capacity)
{
    const struct spw_option_row *row = &rows[option];
    const char *text = spw_option_environment(row->name);
    struct spw_option_value value = {0};
    char reason[SPW_COMPLAINT_TEXT];

    if (complaint != NULL) {
        complaint[0] = '\0';
    }
    if (text != NULL && *text != '\0') {
        if (spw_option_parse(option, text, &value, reason, sizeof(reason))) {
            value.set = true;
            return value;
        }
        if (complaint != NULL) {
            snprintf(complaint, capacity, "%s=%.128s: %s; using the default", row->name, text,
                     reason);
        }
    }
    return spw_option_default(option);
}

uint64_t spw_option_bytes(const struct spw_option_value *value, uint64_t whole)
{
    if (!value->percent) {
        return value->bytes;
    }
    return whole / 1000 * value->permille + whole % 1000 * value->permille / 1000;
}

static bool is_internal(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(internal_names); i++) {
        if (strcmp(internal_names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void spw_option_each_unknown(void (*visit)(const char *name, void *context), void *context)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        char name[LONGEST_NAME];

        if (strncmp(*entry, PREFIX, PREFIX_LENGTH) != 0) {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        if (spw_option_find(name) == SPW_OPT_COUNT && !is_internal(name)) {
            visit(name, context);
        }
    }
}

void spw_option_unknown(const char *name, char *complaint, size_t capacity)
{
    const char *nearest = spw_option_nearest(name);

    if (nearest != NULL) {
        snprintf(complaint, capacity, "%s is not an option (did you mean %s?)", name, nearest);
    } else {
        snprintf(complaint, capacity, "%s is not an option (spillway options lists them)", name);
    }
}
