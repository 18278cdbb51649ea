/* Call sites, reachable from a program or an interpreter that loads this object. Stacks do not
 * contain the object's own frames, as with libspillway.so. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE __attribute__((visibility("default")))

/* Begins to capture; `mode` is an enum spw_sites. */
PROBE void probe_start(int mode);

/* The site of the caller. */
PROBE uint32_t probe_capture(void);

/* The site of the caller, for a call of the function `api`, a name in static storage. */
PROBE uint32_t probe_capture_as(const char *api);

/* Tags the thread. Returns false if the name is not valid. */
PROBE bool probe_tag(const char *name);

/* Captures `count` times and returns the mean time in ns; *ret_site is the last site. */
PROBE double probe_repeat(int count, uint32_t *ret_site);

/* How many stacks could not be recognised and were walked, on this thread. */
PROBE unsigned probe_walks(void);

/* The native frames of a site: their number. */
PROBE int probe_native(uint32_t site, uint64_t *ret_addresses);

/* The Python frames of a site, innermost first: "file:function:line" lines. Returns how many. */
PROBE int probe_python(uint32_t site, char *ret_text, size_t capacity);

/* Stacks that found no room in the table. */
PROBE uint64_t probe_refused(void);

/* The classes of the modules of a site. */
PROBE const char *probe_modules(uint32_t site);

/* The name of the site's thread. */
PROBE const char *probe_thread(uint32_t site);
