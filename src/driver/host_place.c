#include "driver/host_place.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "common/options.h"
#include "driver/host_nodes.h"
#include "system/child.h"

enum { PLACES = 5 /* tried at most */ };

static const uint64_t limit_ns = UINT64_C(10) * 1000 * 1000 * 1000;

const char *spw_driver_host_root(bool simulated)
{
    return simulated ? spw_option_get(SPW_OPT_SPILLWAY_SIM_ROOT, NULL, 0).text : "";
}

const char *spw_driver_host_text(CUmemLocation place, char *buffer, size_t capacity)
{
    if (place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
        (void)snprintf(buffer, capacity, "NUMA node %d of the host", place.id);
    } else {
        (void)snprintf(buffer, capacity, "the host");
    }
    return buffer;
}

static enum spw_host_answer answer_of(const struct spw_child_result *result)
{
    switch (result->end) {
    case SPW_CHILD_EXITED:
        return result->code >= SPW_HOST_WORKS && result->code < SPW_HOST_UNTRIED
                   ? (enum spw_host_answer)result->code
                   : SPW_HOST_UNTRIED;
    case SPW_CHILD_KILLED:
        return SPW_HOST_CRASHED;
    case SPW_CHILD_TIMED_OUT:
        return SPW_HOST_NO_ANSWER;
    default:
        return SPW_HOST_UNTRIED;
    }
}

static enum spw_host_answer try_place(const struct spw_host_question *question, CUmemLocation place)
{
    struct spw_child_result result;
    enum spw_host_answer answer;
    char ordinal[16], type[16], id[16];
    const char *arguments[] = {
        question->command, "_host-chunks", question->library, ordinal, type, id, NULL};

    (void)snprintf(ordinal, sizeof(ordinal), "%d", question->ordinal);
    (void)snprintf(type, sizeof(type), "%d", (int)place.type);
    (void)snprintf(id, sizeof(id), "%d", place.id);
    spw_child_run(arguments, limit_ns, &result);
    answer = answer_of(&result);
    if (question->tell != NULL) {
        question->tell(question->context, place, answer, result.said);
    }
    return answer;
}

/* The nodes to try, as bits. */
static uint64_t usable_nodes(const struct spw_host_question *question)
{
    const char *root = spw_driver_host_root(question->simulated);

    if (!question->nodes) {
        return 0;
    }
    return root != NULL
               ? spw_driver_host_nodes(root)
               : (UINT64_C(1) << spw_option_get(SPW_OPT_SPILLWAY_SIM_HOST_NODES, NULL, 0).bytes) -
                     1;
}

/* The places to try, the best first. Returns how many there are. */
static size_t list_places(const struct spw_host_question *question, CUmemLocation places[PLACES])
{
    uint64_t nodes = usable_nodes(question);
    int own = question->own_node;
    size_t count = 0;

    if (own >= 0 && own < SPW_HOST_NODES && (nodes >> own & 1) != 0) {
        places[count++] = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = own};
        nodes &= ~(UINT64_C(1) << own);
    }
    for (; nodes != 0 && count < PLACES - 1; nodes &= nodes - 1) {
        places[count++] =
            (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = __builtin_ctzll(nodes)};
    }
    if (question->plain) {
        places[count++] = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    }
    return count;
}

bool spw_driver_host_place_find(const struct spw_host_question *question, CUmemLocation *ret_place,
                                bool *ret_certain)
{
    CUmemLocation places[PLACES];
    size_t count = list_places(question, places);
    bool certain = true;

    *ret_certain = false;
    if (question->command == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        enum spw_host_answer answer = try_place(question, places[i]);

        if (answer == SPW_HOST_WORKS || answer == SPW_HOST_MADE) {
            *ret_place = places[i];
            *ret_certain = certain;
            return true;
        }
        certain &= answer == SPW_HOST_REFUSED || answer == SPW_HOST_CRASHED;
    }
    *ret_certain = certain;
    return false;
}

const char *spw_driver_host_command(const char *folder, char *buffer, size_t capacity)
{
    /* In a build folder or a bundle the command is beside the object. In an installation the
     * command is in bin/, and the object in lib/ or a folder below it. */
    static const char *const folders[] = {".", "../bin", "../../bin", "../../../bin"};

    for (size_t i = 0; folder != NULL && i < sizeof(folders) / sizeof(*folders); i++) {
        int length = snprintf(buffer, capacity, "%s/%s/spillway", folder, folders[i]);

        if (length > 0 && (size_t)length < capacity && access(buffer, X_OK) == 0) {
            return buffer;
        }
    }
    return NULL;
}
