/* The beginning: cuInit of the program. */
#include "hook/entry.h"
#include "hook/hook.h"

CUresult spw_serve_cuInit(unsigned int Flags)
{
    CUresult result = spw_hook_driver()->cuInit(Flags);

    if (result == CUDA_SUCCESS && !spw_driver_inside()) {
        spw_hook_start();
    }
    return result;
}
