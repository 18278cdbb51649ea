/* Modules and libraries of code: when one is unloaded, its kernels' parameter layouts are
 * forgotten, since the driver may give their handles to other kernels. Before the call, so that
 * another thread that gets such a handle finds no layout; and after it, for what was asked about
 * meanwhile. */
#include "serve/handlers.h"
#include "track/arguments.h"

CUresult spw_serve_cuModuleUnload(CUmodule hmod)
{
    CUresult result;

    spw_track_arguments_forget_layouts();
    result = spw_track_driver()->cuModuleUnload(hmod);
    spw_track_arguments_forget_layouts();
    return result;
}

CUresult spw_serve_cuLibraryUnload(CUlibrary library)
{
    CUresult result;

    spw_track_arguments_forget_layouts();
    result = spw_track_driver()->cuLibraryUnload(library);
    spw_track_arguments_forget_layouts();
    return result;
}
