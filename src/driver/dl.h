/* The real dlsym and dlvsym. libspillway.so exports functions with these names. Its own code must
 * therefore call the functions below.
 *
 * No locks. They may be called as soon as the process runs, even before any library is
 * initialised. */
#pragma once

#include <stdbool.h>

/* Calls the real dlsym. RTLD_NEXT searches the objects behind the one that contains this code. */
void *spw_driver_dl_symbol(void *handle, const char *name);

/* Calls the real dlvsym. It never finds spillway's CUDA functions, because they have no
 * versions. */
void *spw_driver_dl_symbol_version(void *handle, const char *name, const char *version);

/* Returns the function that a program without spillway would get for `name` of the driver, which is
 * loaded as `library`. This is the driver's own function, or that of an interposer behind this
 * object. Such an interposer returns its function from its own dlsym. If the program was linked
 * with the driver, the interposer exports the function. Runs the interposer's code. */
void *spw_driver_dl_symbol_behind(void *library, const char *name);

/* Returns the dlsym of an interposer behind this object; NULL if there is none. */
void *spw_driver_dl_hook(void);

/* Returns true if `code` belongs to an interposer behind this object that has replaced a function
 * of the driver. Such an interposer looks up functions in order to call them itself. */
bool spw_driver_dl_is_behind(const void *code);

/* Returns the file of an interposer behind this object; NULL if there is none. */
const char *spw_driver_dl_behind(void);

/* Returns the function `name`, in its current version, of the next object that has it. dlsym with
 * RTLD_NEXT cannot be used for this: with glibc before 2.36 (bug 14932; seen with 2.31) it returns
 * the oldest version. */
void *spw_driver_dl_symbol_next(const char *name);

/* Returns the function `name` of the first object of the process that has it; NULL if there is
 * none. It is for functions that older C libraries keep in another library. */
void *spw_driver_dl_symbol_anywhere(const char *name);

/* Return the addresses of the real dlsym and dlvsym. They are for a jump that keeps the caller's
 * return address. */
void *spw_driver_dl_symbol_address(void);
void *spw_driver_dl_symbol_version_address(void);

/* Looks up `name` in the object that contains the code address `caller`, and in the libraries that
 * this object was linked with. Returns NULL if there is no such symbol. May change the message of
 * dlerror. */
void *spw_driver_dl_symbol_for(const void *caller, const char *name);
