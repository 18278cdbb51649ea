#include "callsite/top_sites.h"

#include "common/write.h"
#include "callsite/capture.h"
#include "callsite/facts.h"

#include <stdio.h>
#include <string.h>

/* Sites that are looked at for a rule. */
enum { LOOKED_AT = 200, NAME_MOST = 256 };

static const char unknown[] = "not known";

/* The sites that hold something, the largest first. */
struct heap {
    int count;
    uint32_t sites[LOOKED_AT];
    uint64_t bytes[LOOKED_AT];
};

/* ---- choosing ---- */

static void choose(struct heap *heap, uint32_t site, uint64_t bytes)
{
    int at = heap->count;

    if (at == LOOKED_AT) {
        if (heap->bytes[--at] >= bytes) {
            return;
        }
    } else {
        heap->count++;
    }
    for (; at > 0 && heap->bytes[at - 1] < bytes; at--) {
        heap->sites[at] = heap->sites[at - 1];
        heap->bytes[at] = heap->bytes[at - 1];
    }
    heap->sites[at] = site;
    heap->bytes[at] = bytes;
}

static void choose_all(const struct spw_charges *charges, struct heap *heap,
                       struct spw_callsite_holding *holding)
{
    uint32_t count = spw_callsite_table_count(spw_callsite_known());

    for (uint32_t site = 0; site <= spw_pool_charges_last(charges, count); site++) {
        uint64_t bytes = spw_counter_get(&charges->sites[site].live);

        if (bytes > 0) {
            holding->sites++;
            holding->bytes += bytes;
            choose(heap, site, bytes);
        }
    }
}

/* Puts a site into words; those of native functions only where they are needed. False for 0. */
static bool describe(uint32_t number, struct spw_callsite_words *ret_words)
{
    const struct spw_callsite *site = spw_callsite_table_get(spw_callsite_known(), number);

    if (site != NULL) {
        spw_callsite_describe(site, /* native */ site->python_count == 0, ret_words);
    }
    return site != NULL;
}

static void list(const struct spw_charges *charges, const struct heap *heap,
                 struct spw_callsite_holding *holding)
{
    for (int i = 0; i < heap->count && i < SPW_CALLSITE_HOLDERS; i++) {
        struct spw_callsite_holder *holder = &holding->holders[holding->count++];
        const struct spw_charge *charge = &charges->sites[heap->sites[i]];

        holder->site = heap->sites[i];
        holder->bytes = heap->bytes[i];
        holder->blocks = spw_counter_get(&charge->allocs) - spw_counter_get(&charge->frees);
        spw_callsite_label_of(holder->site, holder->label, sizeof(holder->label));
    }
}

/* ---- a rule ---- */

/* The condition of a rule on a call site. Exactly one member is not NULL. */
struct condition {
    struct spw_python_frame python;
    const char *node;
    char symbol[NAME_MOST];
    const char *library;
    char words[SPW_CALLSITE_NODE]; /* the node; the other names stay */
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static bool is_equal(const char *one, const char *other)
{
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* A native function as patterns match it: without its parameters. False for names that are more
 * than a name. */
static bool take_symbol(const char *readable, char ret_symbol[NAME_MOST])
{
    size_t length = readable == NULL ? 0 : strcspn(readable, "(");

    if (length == 0 || length >= NAME_MOST || strcspn(readable, " <") < length) {
        return false;
    }
    memcpy(ret_symbol, readable, length);
    ret_symbol[length] = '\0';
    return true;
}

/* Finds the condition that identifies a site best. Returns false when there is none. */
static bool condition_of(const struct spw_callsite_facts *facts, struct condition *ret_condition)
{
    const struct spw_python_frame *own = spw_callsite_own_frame(facts);
    const struct spw_native_frame *named = spw_callsite_named_frame(facts);

    *ret_condition = (struct condition){.node = facts->node};
    if (own != NULL && own->file != NULL && own->function != NULL) {
        ret_condition->node = NULL;
        ret_condition->python = *own;
        ret_condition->python.file = last_part(own->file);
        return true;
    }
    if (facts->node == NULL && named != NULL && take_symbol(named->symbol, ret_condition->symbol)) {
        ret_condition->library = last_part(named->library);
        return true;
    }
    return facts->node != NULL;
}

static bool is_met(const struct condition *condition, const struct spw_callsite_facts *facts)
{
    char symbol[NAME_MOST];

    for (size_t i = 0; condition->python.file != NULL && i < facts->python_count; i++) {
        const struct spw_python_frame *frame = &facts->python[i];

        if (frame->line == condition->python.line && frame->file != NULL &&
            strcmp(last_part(frame->file), condition->python.file) == 0 &&
            is_equal(frame->function, condition->python.function)) {
            return true;
        }
    }
    for (size_t i = 0; condition->library != NULL && i < facts->native_count; i++) {
        if (facts->native[i].library != NULL &&
            strcmp(last_part(facts->native[i].library), condition->library) == 0 &&
            take_symbol(facts->native[i].symbol, symbol) &&
            strcmp(symbol, condition->symbol) == 0) {
            return true;
        }
    }
    return condition->node != NULL && is_equal(facts->node, condition->node);
}

/* A name as a pattern that matches nothing else. */
static void put_pattern(struct spw_writer *writer, const char *key, const char *name)
{
    char pattern[2 * NAME_MOST];
    size_t used = 0;

    for (; *name != '\0' && used + 2 < sizeof(pattern); name++) {
        if (strchr("\\*?[", *name) != NULL) {
            pattern[used++] = '\\';
        }
        pattern[used++] = *name;
    }
    pattern[used] = '\0';
    spw_write_string(writer, key);
    spw_write(writer, ": ");
    spw_write_string(writer, pattern);
}

/* The rule as JSON; "" when it is too long. */
static void put_rule(const struct condition *condition, char ret_rule[SPW_CALLSITE_RULE])
{
    struct spw_writer writer = {.fd = -1}; /* a rule is far shorter than its buffer */

    spw_write(&writer, "{\"name\": \"to-host\", \"match\": {");
    if (condition->python.file != NULL) {
        spw_write(&writer, "\"python\": {");
        put_pattern(&writer, "file", condition->python.file);
        spw_write(&writer, ", ");
        put_pattern(&writer, "function", condition->python.function);
        if (condition->python.line != 0) {
            spw_write_key(&writer, "lines");
            spw_write_number(&writer, condition->python.line);
        }
        spw_write(&writer, "}");
    } else if (condition->node != NULL) {
        put_pattern(&writer, "node", condition->node);
    } else {
        spw_write(&writer, "\"native\": {");
        put_pattern(&writer, "symbol", condition->symbol);
        spw_write(&writer, ", ");
        put_pattern(&writer, "library", condition->library);
        spw_write(&writer, "}");
    }
    spw_write(&writer, "}, \"action\": {\"placement\": \"host\"}}");
    ret_rule[0] = '\0';
    if (!writer.failed && writer.used < SPW_CALLSITE_RULE) {
        memcpy(ret_rule, writer.buffer, writer.used);
        ret_rule[writer.used] = '\0';
    }
}

static bool find_condition(const struct heap *heap, struct condition *ret_condition)
{
    struct spw_callsite_words words;

    for (int i = 0; i < heap->count; i++) {
        if (describe(heap->sites[i], &words) && condition_of(&words.facts, ret_condition)) {
            if (ret_condition->node != NULL) {
                memcpy(ret_condition->words, words.node, sizeof(words.node));
                ret_condition->node = ret_condition->words;
            }
            return true;
        }
    }
    return false;
}

static void propose(const struct heap *heap, struct spw_callsite_holding *holding)
{
    struct condition condition;
    struct spw_callsite_words words;

    if (!find_condition(heap, &condition)) {
        return;
    }
    put_rule(&condition, holding->rule);
    for (int i = 0; i < heap->count; i++) {
        if (describe(heap->sites[i], &words) && is_met(&condition, &words.facts)) {
            holding->rule_bytes += heap->bytes[i];
        }
    }
}

/* ---- whole ---- */

void spw_callsite_holding(const struct spw_charges *charges,
                          struct spw_callsite_holding *ret_holding)
{
    struct heap heap = {.count = 0};

    memset(ret_holding, 0, sizeof(*ret_holding));
    choose_all(charges, &heap, ret_holding);
    list(charges, &heap, ret_holding);
    propose(&heap, ret_holding);
}

void spw_callsite_label_of(uint32_t site, char *ret_label, size_t capacity)
{
    struct spw_callsite_words words;

    if (describe(site, &words)) {
        spw_callsite_label(&words.facts, ret_label, capacity);
    } else {
        (void)snprintf(ret_label, capacity, "%s", unknown);
    }
}
