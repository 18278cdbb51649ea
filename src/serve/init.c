/* cuInit: spillway starts when the program initialises CUDA. */
#include "process/process.h"
#include "serve/handlers.h"

CUresult spw_serve_cuInit(unsigned int Flags)
{
    CUresult result = spw_process_driver()->cuInit(Flags);

    if (result == CUDA_SUCCESS && !spw_driver_inside()) {
        spw_process_start();
        spw_process_ops.look();
    }
    return result;
}
