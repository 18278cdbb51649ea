/* The dynamic loader as it is behind us: spillway exports a dlsym and a dlvsym of its own, so
 * whoever wants the real ones asks here. No locks; safe from the first instruction of the process
 * on. */
#pragma once

/* The real dlsym. RTLD_NEXT means: what comes after the object this code is part of. */
void *spw_driver_dl_symbol(void *handle, const char *name);

/* The real dlvsym: only a definition that has the version is found, and so never one of ours. */
void *spw_driver_dl_symbol_version(void *handle, const char *name, const char *version);

/* The addresses of the real dlsym and dlvsym, for a jump that keeps the caller's return address. */
void *spw_driver_dl_symbol_address(void);
void *spw_driver_dl_symbol_version_address(void);

/* What `name` means inside the object that contains the code address `caller`: looked up among that
 * object and what it was linked with. NULL when there is nothing; leaves dlerror as it happens. */
void *spw_driver_dl_symbol_for(const void *caller, const char *name);
