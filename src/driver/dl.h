/* The real dlsym and dlvsym. libspillway.so exports functions of these names, so its own code calls
 * the functions below.
 *
 * No locks. They may be called as soon as the process runs, before any library is initialised. */
#pragma once

#include <stdbool.h>

/* Calls the real dlsym. RTLD_NEXT searches the objects after the one that this code is part of. */
void *spw_driver_dl_symbol(void *handle, const char *name);

/* Calls the real dlvsym. It never finds spillway's CUDA functions, since they have no versions. */
void *spw_driver_dl_symbol_version(void *handle, const char *name, const char *version);

/* The function that a program without spillway would get for `name` of the driver, which is loaded
 * as `library`. It is the driver's own function, or that of an interposer behind this object. Such
 * an interposer returns the function from its own dlsym or, if the program was linked with the
 * driver, exports it. Runs the interposer's code. */
void *spw_driver_dl_symbol_behind(void *library, const char *name);

/* The dlsym of an interposer behind this object; NULL if there is none. */
void *spw_driver_dl_hook(void);

/* True if `code` belongs to an interposer behind this object that replaced a function of the
 * driver. Such an interposer looks functions up in order to call them itself. */
bool spw_driver_dl_is_behind(const void *code);

/* The file of an interposer behind this object; NULL if there is none. */
const char *spw_driver_dl_behind(void);

/* The function `name`, in its current version, of the next object that has it. With glibc before
 * 2.36 (bug 14932; seen with 2.31), dlsym with RTLD_NEXT returns the oldest version. */
void *spw_driver_dl_symbol_next(const char *name);

/* The function `name` of the first object of the process that has it, for functions that older C
 * libraries keep in another library. NULL if there is none. */
void *spw_driver_dl_symbol_anywhere(const char *name);

/* The addresses of the real dlsym and dlvsym, for a jump that keeps the caller's return address. */
void *spw_driver_dl_symbol_address(void);
void *spw_driver_dl_symbol_version_address(void);

/* Looks up `name` in the object that contains the code address `caller`, and in the libraries that
 * it was linked with. NULL if there is no such symbol. May change the message of dlerror. */
void *spw_driver_dl_symbol_for(const void *caller, const char *name);
