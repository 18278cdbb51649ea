#include "cli/launch/torch_groups.h"

#include "common/options.h"

#include <stddef.h>
#include <stdlib.h>

void spw_cli_torch_groups_select(void)
{
    int mode = spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word;

    if (mode == SPW_MODE_AUTO || mode == SPW_MODE_TENSOR) {
        setenv("TORCH_DIST_USE_NCCL2", "0", /* overwrite */ 0);
    }
}
