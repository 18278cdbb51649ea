/* Options: environment variables SPILLWAY_*, one table (options.def).
 *
 * This is the only place of the preload object that reads the environment (but for the two names
 * of PyTorch that hook/ answers); it reads `environ` itself, never by getenv, which the object
 * interposes. Values are parsed when asked for, into caller-owned structs; the text of a value
 * stays the environment's. A variable that is set to nothing counts as not set. Problems are
 * handed to the caller, who decides when and how to report them. Nothing here locks or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spw_option {
#define SPW_OPTION(name, type, fallback, scope, help) SPW_OPT_##name,
#include "common/options.def"
#undef SPW_OPTION
    SPW_OPT_COUNT
};

enum spw_option_type {
    SPW_TYPE_SIZE,
    SPW_TYPE_PERCENT,
    SPW_TYPE_COUNT,
    SPW_TYPE_SWITCH,
    SPW_TYPE_TEXT,
    SPW_TYPE_PATH,
    SPW_TYPE_MODE,
    SPW_TYPE_SPILL,
    SPW_TYPE_OVERLAP,
    SPW_TYPE_SITES,
    SPW_TYPE_LOG,
    SPW_TYPE_PER,
    SPW_TYPE_SAFETY,
    SPW_TYPE_COUNT_OF_TYPES
};

enum spw_option_scope {
    SPW_SCOPE_POOL,
    SPW_SCOPE_SIM,
    SPW_SCOPE_COMMAND,
};

/* The words of the list types, in the order of their names in options.c. */
enum spw_mode { SPW_MODE_AUTO, SPW_MODE_TENSOR, SPW_MODE_SEGMENT, SPW_MODE_OBSERVE };
enum spw_spill { SPW_SPILL_AUTO, SPW_SPILL_OFF };
enum spw_overlap {
    SPW_OVERLAP_ON,
    SPW_OVERLAP_CAREFUL,
    SPW_OVERLAP_TRUST,
    SPW_OVERLAP_OFF,
};
enum spw_sites { SPW_SITES_OFF, SPW_SITES_NATIVE, SPW_SITES_PYTHON, SPW_SITES_BOTH };
enum spw_per { SPW_PER_RANGE, SPW_PER_CHUNK };
enum spw_safety { SPW_SAFETY_UNSAFE, SPW_SAFETY_SAFE };

enum { SPW_COMPLAINT_TEXT = 512 }; /* enough for every sentence written here; longer ones are cut */

/* One row of the table. */
struct spw_option_row {
    const char *name;
    enum spw_option_type type;
    const char *fallback;
    enum spw_option_scope scope;
    const char *help;
};

/* A parsed value. Which member counts follows from the type: SIZE uses bytes or, when `percent` is
 * set, permille; PERCENT uses permille; COUNT uses bytes as the number; SWITCH uses on; word lists
 * use word (an index into the list); TEXT, PATH and LOG's path use text (NULL when empty). */
struct spw_option_value {
    bool set; /* given by the environment, and usable */
    bool percent;
    uint64_t bytes;
    uint32_t permille;
    bool on;
    int word;
    const char *text;
};

/* The row of an option; static storage. */
const struct spw_option_row *spw_option_row(enum spw_option option);

/* Reads one option from the environment. When the value cannot be used, the fallback is returned
 * and, if `complaint` is not NULL, one sentence without newline is written there: the name, the
 * value, what was expected. `complaint[0]` is 0 when all is well. */
struct spw_option_value spw_option_get(enum spw_option option, char *complaint, size_t capacity);

/* Parses `text` as the option's type, as the environment or a flag would give it. False, with what
 * is wrong and what was expected in `complaint` (without the name and the value, which a flag and
 * a variable spell differently), when it cannot be used. */
bool spw_option_parse(enum spw_option option, const char *text, struct spw_option_value *ret_value,
                      char *complaint, size_t capacity);

/* A size in bytes: resolves a percentage against `whole`. */
uint64_t spw_option_bytes(const struct spw_option_value *value, uint64_t whole);

/* Looks up a variable name; SPW_OPT_COUNT when unknown. */
enum spw_option spw_option_find(const char *name);

/* The known name nearest to `name` by edit distance, or NULL when none is near. */
const char *spw_option_nearest(const char *name);

/* Visits every variable of the environment that begins with SPILLWAY_ and is not in the table;
 * internal ones (SPILLWAY_RUN_DIR) are known and not visited. `name` lasts for the call. */
void spw_options_each_unknown(void (*visit)(const char *name, void *context), void *context);

/* Writes the sentence about an unknown variable to `complaint`, with the nearest known name. */
void spw_option_unknown(const char *name, char *complaint, size_t capacity);

/* Any variable of the environment, or NULL: for names that are not options (RANK). */
const char *spw_environment(const char *name);
