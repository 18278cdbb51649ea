/* The language of policy files as tables, which are expanded from keys.def. The parser, the schema
 * and the documentation use them. Constants only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spw_policy_object {
#define SPW_POLICY_OBJECT(name, title) SPW_POLICY_OBJECT_##name,
#include "policy/keys.def"
    SPW_POLICY_OBJECT_COUNT
};

enum spw_policy_key {
#define SPW_POLICY_KEY(object, member, key, type, of, need, low, high, help)                       \
    SPW_POLICY_KEY_##object##_##member,
#include "policy/keys.def"
    SPW_POLICY_KEY_COUNT
};

enum spw_policy_type {
    SPW_POLICY_TEXT,
    SPW_POLICY_NAME,
    SPW_POLICY_VERSION,
    SPW_POLICY_OBJECT,
    SPW_POLICY_OBJECTS,
    SPW_POLICY_LIST,
    SPW_POLICY_GLOBS,
    SPW_POLICY_RANGES,
    SPW_POLICY_SIZE,
    SPW_POLICY_SHARE,
    SPW_POLICY_PERCENT,
    SPW_POLICY_WORD,
    SPW_POLICY_SWITCH,
    SPW_POLICY_NUMBER,
    SPW_POLICY_TYPE_COUNT
};

enum spw_policy_need { SPW_POLICY_OPTIONAL, SPW_POLICY_REQUIRED };

enum spw_policy_words {
    SPW_WORDS_FRAME,
    SPW_WORDS_PLACEMENT,
    SPW_WORDS_THEN,
    SPW_WORDS_COMMIT,
    SPW_WORDS_COUNT
};

/* The words of the lists, numbered from 1. 0 means that the key is not in the file. */
enum spw_policy_frame_word { SPW_FRAME_ANY = 1, SPW_FRAME_TOP };
enum spw_policy_placement { SPW_PLACEMENT_DEVICE = 1, SPW_PLACEMENT_HOST, SPW_PLACEMENT_AUTO };
enum spw_policy_then { SPW_THEN_SPILL = 1, SPW_THEN_FAIL, SPW_THEN_WARN };
enum spw_policy_commit { SPW_COMMIT_EAGER = 1, SPW_COMMIT_LAZY };
enum spw_policy_switch { SPW_SWITCH_OFF = 1, SPW_SWITCH_ON };

enum { SPW_POLICY_EXPECTED = 256 }; /* enough for every text of spw_policy_expected */

/* One row of the table of keys. */
struct spw_policy_row {
    enum spw_policy_object object;
    const char *key;
    enum spw_policy_type type;
    int of;
    enum spw_policy_need need;
    int64_t low;
    int64_t high;
    const char *help;
    size_t offset; /* offset of the member in the object's struct */
};

/* One word of a list. */
struct spw_policy_word_row {
    enum spw_policy_words list;
    int value; /* 1 for the first word of its list */
    const char *text;
    const char *help;
};

extern const struct spw_policy_row spw_policy_rows[SPW_POLICY_KEY_COUNT];
extern const struct spw_policy_word_row spw_policy_word_rows[];
extern const size_t spw_policy_word_count;
extern const char *const spw_policy_apis[];
extern const size_t spw_policy_api_count;
extern const char *const spw_policy_titles[SPW_POLICY_OBJECT_COUNT];
extern const size_t spw_policy_object_sizes[SPW_POLICY_OBJECT_COUNT];

/* Describes a valid value of this row, such as "a size such as "16MiB" or a number of bytes".
 * Returns `text` or a static string. */
const char *spw_policy_expected(const struct spw_policy_row *row, char text[SPW_POLICY_EXPECTED]);

/* Returns true if the file sets this key of `object`, which is the struct of the row's object. */
bool spw_policy_is_set(const struct spw_policy_row *row, const void *object);

/* Returns true if the file sets any key of `object`. */
bool spw_policy_any_set(enum spw_policy_object kind, const void *object);

/* Returns the word of a list that has this value; "" if there is none. */
const char *spw_policy_word(enum spw_policy_words list, int value);
