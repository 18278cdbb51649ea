/* Options: the environment variables SPILLWAY_*, in one table (options.def).
 *
 * No other file of the preloaded object reads the environment. A value is parsed each time it is
 * requested. Its text still belongs to the environment. A variable that is set to the empty string
 * counts as not set. Problems are returned to the caller, who reports them. No locking, no
 * allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bounds.h"

enum spw_option {
#define SPW_OPTION(name, type, fallback, scope, help) SPW_OPT_##name,
#include "common/options.def"
    SPW_OPT_COUNT
};

enum spw_option_type {
    SPW_TYPE_SIZE,
    SPW_TYPE_PERCENT,
    SPW_TYPE_COUNT,
    SPW_TYPE_SWITCH,
    SPW_TYPE_TEXT,
    SPW_TYPE_PATH,
    SPW_TYPE_LOG,
#define SPW_WORDS(TYPE, type, words) SPW_TYPE_##TYPE,
#include "common/option_words.def"
    SPW_TYPE_COUNT_OF_TYPES
};

enum spw_option_scope {
    SPW_SCOPE_POOL,
    SPW_SCOPE_SIM,
    SPW_SCOPE_COMMAND,
};

#define SPW_WORDS(TYPE, type, words) enum spw_##type{words};
#define SPW_WORD(TYPE, name, text)   SPW_##TYPE##_##name,
#include "common/option_words.def"

enum { SPW_COMPLAINT_TEXT = 512 }; /* enough for every message of this module */

/* One row of the table. */
struct spw_option_row {
    const char *name;
    enum spw_option_type type;
    const char *fallback;
    enum spw_option_scope scope;
    const char *help;
};

/* A parsed value. The type determines the valid members:
 *
 *   SIZE            permille if `percent` is set, bytes otherwise
 *   PERCENT         permille
 *   COUNT           bytes, as a plain number
 *   SWITCH          on
 *   TEXT, PATH      text
 *   LOG             word, and text for the path (NULL: none)
 *   other types     word, the index in the list of words */
struct spw_option_value {
    bool set; /* false: the value is the default */
    bool percent;
    uint64_t bytes;
    uint32_t permille;
    bool on;
    int word;
    const char *text;
};

/* Returns the row of an option; static storage. */
const struct spw_option_row *spw_option_row(enum spw_option option);

/* Reads an option from the environment. Returns the default if the variable is not set, or if its
 * value is not valid. For a value that is not valid, writes one sentence without newline (name,
 * value, valid values) to `complaint`; otherwise sets `complaint` to "". `complaint` may be
 * NULL. */
struct spw_option_value spw_option_get(enum spw_option option, char *complaint, size_t capacity);

/* Returns the parsed default of an option. All members are zero if the default is decided at run
 * time. */
struct spw_option_value spw_option_default(enum spw_option option);

/* Parses `text` as the option's type, and checks its range. If the text is not valid, returns false
 * and writes the error and the valid values to `complaint`; the caller adds name and value. On
 * success, sets `complaint` to "". `complaint` may be NULL. */
bool spw_option_parse(enum spw_option option, const char *text, struct spw_option_value *ret_value,
                      char *complaint, size_t capacity);

/* Returns a SIZE or PERCENT in bytes. A percentage is of `whole` bytes. */
uint64_t spw_option_bytes(const struct spw_option_value *value, uint64_t whole);

/* Returns the words that an option of this type takes, with NULL at the end; NULL for a type
 * without words. After a word of LOG, a path may follow. */
const char *const *spw_option_words(enum spw_option_type type);

/* Finds an option by the name of its variable. Returns SPW_OPT_COUNT if there is none. */
enum spw_option spw_option_find(const char *name);

/* Returns the known name that is most similar to `name` by edit distance; NULL if none is
 * similar. */
const char *spw_option_nearest(const char *name);

/* Calls `visit` for every environment variable that begins with SPILLWAY_ and is not an option.
 * Omits variables that spillway sets for itself, such as SPILLWAY_RUN_DIR. `name` is valid only
 * during the call. */
void spw_option_each_unknown(void (*visit)(const char *name, void *context), void *context);

/* Writes one sentence about an unknown variable to `complaint`, with the most similar known
 * name. */
void spw_option_unknown(const char *name, char *complaint, size_t capacity);

/* Reads any environment variable, for names that are not options (RANK). Returns NULL if it is not
 * set. If the program runs with more privileges than its user has (AT_SECURE of getauxval(3)),
 * every variable counts as not set, because variables name files that the program writes. */
const char *spw_option_environment(const char *name);
