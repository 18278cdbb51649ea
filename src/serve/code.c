/* Modules and libraries of code. When one is unloaded, its kernels' parameter layouts are
 * forgotten, since the driver may give their handles to other kernels. This is done before the
 * call, so that another thread that gets such a handle finds no layout, and after it, for layouts
 * that were read during the call. */
#include "serve/handlers.h"
#include "submit/arguments.h"

CUresult spw_serve_cuModuleUnload(CUmodule hmod)
{
    CUresult result;

    spw_submit_arguments_forget_layouts();
    result = spw_process_driver()->cuModuleUnload(hmod);
    spw_submit_arguments_forget_layouts();
    return result;
}

CUresult spw_serve_cuLibraryUnload(CUlibrary library)
{
    CUresult result;

    spw_submit_arguments_forget_layouts();
    result = spw_process_driver()->cuLibraryUnload(library);
    spw_submit_arguments_forget_layouts();
    return result;
}
