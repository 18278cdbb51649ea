/* cuInit: spillway starts when the program initialises CUDA. */
#include "serve/handlers.h"
#include "track/process.h"

CUresult spw_serve_cuInit(unsigned int Flags)
{
    CUresult result = spw_track_driver()->cuInit(Flags);

    if (result == CUDA_SUCCESS && !spw_driver_inside()) {
        spw_track_start();
        spw_track_ops.look();
    }
    return result;
}
