#include "torch/place.h"

#include "process/process.h"
#include "setup/mode.h"
#include "torch/state.h"

#include <string.h>

static struct spw_torch_copy *const ours = &spw_torch.copy;

spw_torch_code **spw_torch_place_copy(const struct spw_torch_library *library)
{
    memcpy(ours->type, library->table - 2, sizeof(ours->type));
    memcpy(ours->functions, library->table,
           (size_t)library->row->functions * sizeof(ours->functions[0]));
    return ours->functions;
}

static void put(const struct spw_torch_library *library, spw_torch_code *const *table)
{
    _Atomic(spw_torch_code *const *) *place = (void *)&library->native->table;

    atomic_store(place, table);
}

void spw_torch_place_put(const struct spw_torch_library *library)
{
    put(library, ours->functions);
}

void spw_torch_place_take_out(const struct spw_torch_library *library)
{
    if (atomic_flag_test_and_set(&spw_torch.taken_out)) {
        return;
    }
    put(library, library->table);
    spw_process.torch.why = "its allocator does not answer as this version's should";
    atomic_store(&spw_process.torch.state, SPW_TORCH_SEGMENTS);
    spw_setup_mode_note();
}
