#include "sim/pytorch/computation.h"

#include <stdlib.h>
#include <string.h>

#include "sim/pytorch/kind.h"
#include "system/demangle.h"

static const struct sim_kernel_kind *const groups[] = {sim_elementwise_kinds, sim_reduce_kinds,
                                                       sim_cub_kinds,         sim_indexing_kinds,
                                                       sim_sorting_kinds,     sim_tensor_kinds};

static const struct sim_kernel_kind *find_kind(struct sim_cxx_text name)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (const struct sim_kernel_kind *kind = groups[i]; kind->name != NULL; kind++) {
            if (sim_cxx_is(name, kind->name)) {
                return kind;
            }
        }
    }
    return NULL;
}

/* Removes the result type from the beginning of a function template's demangled name. */
static struct sim_cxx_text without_result(const char *name)
{
    static const char result[] = "void ";

    return sim_cxx_text(strncmp(name, result, strlen(result)) == 0 ? name + strlen(result) : name);
}

struct sim_computation *sim_computation_read(const char *name)
{
    struct sim_computation computation = {.kind = NULL}, *found = NULL;
    char *text = spw_demangle(name);
    struct sim_cxx_entity kernel;

    if (text == NULL) {
        return NULL;
    }
    if (sim_cxx_read(without_result(text), &kernel)) {
        computation.kind = find_kind(kernel.name);
    }
    if (computation.kind != NULL && computation.kind->read(&kernel, &computation)) {
        found = malloc(sizeof(*found));
        if (found != NULL) {
            *found = computation;
        }
    }
    free(text);
    return found;
}

enum sim_outcome_of_call sim_computation_run(const struct sim_computation *computation,
                                             const struct sim_call *call)
{
    return computation->kind->run(computation, call);
}

uint64_t sim_computation_bytes(const struct sim_computation *computation,
                               const struct sim_call *call, bool *ret_gaps)
{
    return computation->kind->bytes != NULL ? computation->kind->bytes(computation, call, ret_gaps)
                                            : 0;
}
