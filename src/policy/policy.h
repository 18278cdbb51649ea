/* Policies: JSON files with rules for the memory of call sites, and the one in force. It does not
 * know devices.
 *
 *   check      checks that involve several keys or rules
 *   complain   messages about a policy, each with its place in the file
 *   decision   the rule that matches an allocation, and the placement it requests
 *   find       the paths of installed policies
 *   glob       matches names with patterns
 *   json       cJSON's functions, linked or loaded
 *   keys       the keys of the language, one row for each
 *   load       reads and destroys policies
 *   match      the conditions of rules on a site and on one allocation
 *   modules    the rules about modules, as text for the Python companion
 *   open       reads the policy file of this process, once
 *   parse      reads the objects of a file by the table of keys
 *   policy     the rules as structs, and the functions that match them
 *   reader     the functions that the parts of the parser share
 *   scan       a strict syntax check, which records the place of every value
 *   state      the policy in force
 *   table      the keys as tables, for the parser, the schema and the documents
 *   values     reads values: numbers, sizes, words, lists
 *
 * The language is defined by keys.def and explained in policies/README.md.
 *
 * A policy is loaded as a whole or not at all. A loaded policy never changes, so any number of
 * threads may use it without a lock, and using it allocates nothing. Conditions on a site (frames,
 * thread, process) are evaluated once, by spw_policy_candidates, and the caller stores the result
 * with the site. Conditions on one allocation (size, device, API, count) are evaluated by
 * spw_policy_decide.
 *
 * Pure: no environment, no CUDA. The caller passes cJSON as a table of functions (json.h), because
 * the preloaded object is not linked with cJSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/text.h"
#include "policy/glob.h"
#include "policy/json.h"
#include "policy/table.h"

enum {
    SPW_POLICY_RULES = 64,               /* most rules; a set of candidates has one bit for each */
    SPW_POLICY_LIST_ITEMS = 64,          /* most items of any other list */
    SPW_POLICY_FILE_BYTES = 1024 * 1024, /* size of the largest file */
    SPW_POLICY_NO_RULE = -1
};

/* Patterns of a key. At least one pattern must match. If count is 0, the key is not in the file. */
struct spw_policy_globs {
    const struct spw_glob *items;
    size_t count;
};

struct spw_policy_range {
    int64_t first;
    int64_t last; /* INT64_MAX: no end */
};

struct spw_policy_ranges {
    const struct spw_policy_range *items;
    size_t count;
};

/* Objects of a key. At least one object must match. The key determines their type. */
struct spw_policy_list {
    const void *items;
    size_t count;
};

/* A size in bytes. If `percent` is set, a share in permille instead. */
struct spw_policy_amount {
    bool set;
    bool percent;
    uint64_t bytes;
    uint32_t permille;
};

struct spw_policy_number {
    bool set;
    int64_t value;
};

/* The objects of a file. A row of keys.def connects a key with the member that holds its value.
 * Words and switches are 0 if the key is not in the file. */
struct spw_policy_python {
    struct spw_policy_globs file;
    struct spw_policy_globs function;
    struct spw_policy_ranges lines;
    int frame; /* enum spw_policy_frame_word */
};

struct spw_policy_native {
    struct spw_policy_globs symbol;
    struct spw_policy_globs library;
    int frame;
};

struct spw_policy_size {
    struct spw_policy_amount min;
    struct spw_policy_amount max;
};

struct spw_policy_match {
    struct spw_policy_list python; /* struct spw_policy_python */
    struct spw_policy_list native; /* struct spw_policy_native */
    struct spw_policy_globs thread;
    struct spw_policy_globs tag;
    struct spw_policy_globs node;
    struct spw_policy_globs module_class;
    struct spw_policy_globs module;
    struct spw_policy_list size; /* struct spw_policy_size */
    struct spw_policy_ranges device;
    struct spw_policy_globs api;
    struct spw_policy_globs process;
    struct spw_policy_ranges rank;
    struct spw_policy_ranges nth;
    struct spw_policy_ranges nth_in_step;
};

struct spw_policy_limit {
    struct spw_policy_amount max; /* not set: no limit */
    int then;                     /* enum spw_policy_then */
};

/* The action of a rule. */
struct spw_policy_action {
    int placement; /* enum spw_policy_placement */
    int movable;   /* enum spw_policy_switch */
    struct spw_policy_number priority;
    struct spw_policy_limit limit;
    struct spw_policy_amount host_share; /* a percentage */
    const char *region;                  /* NULL: the region that all such blocks share */
    int commit;                          /* enum spw_policy_commit */
    int log;                             /* enum spw_policy_switch */
    int recompute;                       /* enum spw_policy_switch; set: the rule applies to
                                          * modules, and not to allocations */
    struct spw_policy_number every;
    struct spw_policy_amount share; /* a percentage */
};

struct spw_policy_rule {
    const char *name;
    struct spw_policy_list comment; /* const char *, one for each line */
    struct spw_policy_match match;
    struct spw_policy_action action;
    size_t line; /* line of the rule in the file */
};

struct spw_policy_file {
    struct spw_policy_list schema; /* const char * */
    struct spw_policy_number version;
    struct spw_policy_list comment; /* const char *, one for each line */
    struct spw_policy_list rules;   /* struct spw_policy_rule */
};

struct spw_policy_memory;

/* A loaded policy. */
struct spw_policy {
    struct spw_policy_file file;
    const struct spw_policy_rule *rules;
    size_t rule_count;
    uint64_t certain;    /* bit i is set if rule i has no condition on single allocations */
    uint64_t recomputes; /* bit i is set if rule i is about modules (action recompute) */
    bool uses_python;    /* a rule needs Python frames, because it has a condition on them or on
                            modules */
    bool uses_native;    /* a rule needs native frames, because it has a condition on them or on the
                            node */
    bool uses_tags;      /* a rule has a condition on tags */
    struct spw_policy_memory *memory;
};

/* An error in a file. */
struct spw_policy_complaint {
    size_t offset; /* offset in bytes */
    size_t line;   /* from 1; line 1, column 1 if the error has no position */
    size_t column; /* number of the character, from 1 */
    char *text;    /* one line: the problem, the expected value, the most similar key */
};

/* All errors of a file, in the order of the text. */
struct spw_policy_complaints {
    struct spw_policy_complaint *items;
    size_t count;
};

/* Parses the text of a policy. If the text is not valid, returns NULL and writes every error to
 * *ret_complaints. If there is no memory, returns NULL without complaints. The caller must free the
 * policy and the complaints. The text is not kept. */
struct spw_policy *spw_policy_parse(const char *text, size_t length, const struct spw_json *json,
                                    struct spw_policy_complaints *ret_complaints);

/* Like spw_policy_parse, for the text of a file. */
struct spw_policy *spw_policy_load(const char *path, const struct spw_json *json,
                                   struct spw_policy_complaints *ret_complaints);

/* Frees a policy. Takes NULL. */
void spw_policy_destroy(struct spw_policy *policy);

/* Frees complaints. */
void spw_policy_complaints_fini(struct spw_policy_complaints *complaints);

/* Returns the rules that can match allocations of this site: bit i for rule i; 0 if no rule can.
 * The caller stores the result with the site. */
uint64_t spw_policy_candidates(const struct spw_policy *policy,
                               const struct spw_callsite_facts *site);

/* Returns true if the candidates depend on native frames or the node. `site` may be without these,
 * so that the caller can avoid looking up symbols. */
bool spw_policy_needs_native(const struct spw_policy *policy,
                             const struct spw_callsite_facts *site);

/* Returns the index of the first matching rule, or SPW_POLICY_NO_RULE. `candidates` is the result
 * of spw_policy_candidates for the allocation's site. */
int spw_policy_decide(const struct spw_policy *policy, uint64_t candidates,
                      const struct spw_request_facts *request);

/* Returns the first key of a rule's `match`, in the order of keys.def, that the allocation does not
 * satisfy. Returns NULL if the rule matches. */
const struct spw_policy_row *spw_policy_mismatch(const struct spw_policy_rule *rule,
                                                 const struct spw_callsite_facts *site,
                                                 const struct spw_request_facts *request);
