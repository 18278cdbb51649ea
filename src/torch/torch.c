#include "torch/torch.h"

#include "process/process.h"
#include "setup/mode.h"
#include "torch/functions.h"
#include "torch/place.h"
#include "torch/reports.h"
#include "torch/state.h"

#include <stdio.h>

/* Returns true if PYTORCH_NO_CUDA_MEMORY_CACHING is set. PyTorch then caches nothing. */
static bool is_uncached(void)
{
    return spw_option_environment("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL;
}

/* Returns true if the mode lets the pool serve tensors. */
static bool is_wanted(void)
{
    int mode = spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word;

    return !spw_process_off() && (mode == SPW_MODE_AUTO || mode == SPW_MODE_TENSOR);
}

/* Returns true if the mode lets the pool serve only the segments of PyTorch's cache. */
static bool in_segments(void)
{
    return !spw_process_off() &&
           spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word == SPW_MODE_SEGMENT;
}

static void put_in_place(const struct spw_torch_library *library, bool tensors)
{
    spw_torch.library = *library;
    spw_torch_reports_begin();
    spw_torch_functions_fill(spw_torch_place_copy(&spw_torch.library), tensors);
    spw_torch_place_put(&spw_torch.library);
}

/* Returns the reason why the pool cannot serve tensors; NULL if it can. */
static const char *obstacle(const struct spw_torch_library *library, enum spw_torch_found found)
{
    if (is_uncached()) {
        return "PYTORCH_NO_CUDA_MEMORY_CACHING is set";
    }
    if (found == SPW_TORCH_UNKNOWN) {
        return library->row == NULL ? "this version is not known"
                                    : "this is not known on this processor";
    }
    return found == SPW_TORCH_DIFFERENT ? "its allocator is not as this version's should be" : NULL;
}

/* The state is set before functions of spillway can run. */
static void decide(const struct spw_torch_library *library, enum spw_torch_found found)
{
    struct spw_process_torch *torch = &spw_process.torch;
    bool wanted = is_wanted();

    (void)snprintf(torch->version, sizeof(torch->version), "%s", library->version);
    if (found == SPW_TORCH_OTHER) {
        atomic_store(&torch->state, SPW_TORCH_FOREIGN);
    } else if (found == SPW_TORCH_ASYNC_BACKEND) {
        atomic_store(&torch->state, SPW_TORCH_ASYNC);
    } else {
        torch->why = wanted ? obstacle(library, found) : NULL;
        wanted = wanted && torch->why == NULL;
        atomic_store(&torch->state, wanted ? SPW_TORCH_TENSORS : SPW_TORCH_SEGMENTS);
        if (found == SPW_TORCH_FOUND && (wanted || in_segments())) {
            put_in_place(library, wanted);
        }
    }
    spw_setup_mode_note();
}

void spw_torch_look(void)
{
    struct spw_torch_library library;
    enum spw_torch_found found;

    if (atomic_load(&spw_process.torch.state) != SPW_TORCH_UNSEEN ||
        atomic_flag_test_and_set(&spw_torch.looking)) {
        return;
    }
    found = spw_torch_library_find(&library);
    if (found != SPW_TORCH_ABSENT) {
        decide(&library, found);
    }
    atomic_flag_clear(&spw_torch.looking);
}
