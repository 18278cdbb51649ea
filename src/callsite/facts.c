#include "callsite/facts.h"

#include "callsite/capture.h"
#include "callsite/modules.h"
#include "callsite/symbols.h"

#include <string.h>

static bool is_allocator(const struct spw_module *module)
{
    static const char *const names[] = {"libspillway", "libcuda.", "libcudart", "libc10_cuda"};
    const char *slash = module == NULL ? NULL : strrchr(module->path, '/');

    for (size_t i = 0; slash != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(slash + 1, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

int spw_callsite_first_frame(const struct spw_callsite *site)
{
    int first = 0;

    while (first < site->native_count &&
           is_allocator(spw_callsite_module_of(spw_callsite_call(site->native[first])))) {
        first++;
    }
    return first < site->native_count ? first : 0;
}

bool spw_callsite_is_interpreter(const char *symbol)
{
    static const char interpreter[] = "_PyEval_EvalFrame";

    return strncmp(symbol, interpreter, sizeof(interpreter) - 1) == 0;
}

/* The text of a number; NULL for the empty text. */
static const char *text_of(uint32_t number)
{
    return number != 0 ? spw_callsite_strings_text(spw_callsite_texts(), number) : NULL;
}

static void describe_python(const struct spw_callsite *site, struct spw_callsite_words *words)
{
    for (int i = 0; i < site->python_count; i++) {
        const struct spw_callsite_line *line = &spw_callsite_lines(site)[i];

        words->python[i] = (struct spw_python_frame){
            .file = text_of(line->file), .function = text_of(line->function), .line = line->line};
    }
    words->facts.python = words->python;
    words->facts.python_count = site->python_count;
}

/* The autograd node is the innermost node or, without nodes, the innermost step between nodes. */
static void describe_native(const struct spw_callsite *site, struct spw_callsite_words *words)
{
    struct spw_name *names = words->names;
    bool ended = false, applied = false;
    char found[SPW_CALLSITE_NODE];

    spw_callsite_names_of(site->native, site->native_count, names);
    for (int i = spw_callsite_first_frame(site); i < site->native_count; i++) {
        const char *mangled = names[i].mangled != NULL ? names[i].mangled : "";

        ended |= site->python_count > 0 && spw_callsite_is_interpreter(mangled);
        if (!ended) {
            words->native[words->facts.native_count++] =
                (struct spw_native_frame){.library = names[i].library, .symbol = names[i].readable};
        }
        if (!applied && spw_callsite_symbol_node(mangled, &applied, found, sizeof(found)) &&
            (applied || words->node[0] == '\0')) {
            memcpy(words->node, found, sizeof(words->node));
        }
    }
    words->facts.native = words->native;
    words->facts.node = words->node[0] != '\0' ? words->node : NULL;
}

void spw_callsite_describe(const struct spw_callsite *site, bool native,
                           struct spw_callsite_words *ret_words)
{
    ret_words->facts = (struct spw_callsite_facts){.thread = text_of(site->thread),
                                                   .tag = text_of(site->tag),
                                                   .rank = -1,
                                                   .modules = text_of(site->modules)};
    ret_words->node[0] = '\0';
    describe_python(site, ret_words);
    if (native) {
        describe_native(site, ret_words);
    }
}
