#include "process/describe.h"

#include "callsite/capture.h"
#include "callsite/top_sites.h"
#include "common/path.h"
#include "process/process.h"

#include <dlfcn.h>
#include <stdio.h>

/* The file name of the library that called the runtime in the call under way; NULL: not known. */
static const char *caller_library(void)
{
    Dl_info info;

    if (spw_process_outer.fn == SPW_FN_COUNT || dladdr(spw_process_outer.caller, &info) == 0 ||
        info.dli_fname == NULL) {
        return NULL;
    }
    return spw_path_name(info.dli_fname);
}

void spw_process_describe(uint32_t site, char *text, size_t capacity)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);
    const char *api = spw_process_outer.fn != SPW_FN_COUNT ? spw_driver_symbol(spw_process_outer.fn)
                                                           : "driver API";
    const char *library = caller_library();
    char label[SPW_CALLSITE_LABEL];

    if (known != NULL) {
        spw_callsite_label_of(site, label, sizeof(label));
        (void)snprintf(text, capacity, "%s, %s", label, known->api);
    } else {
        (void)snprintf(text, capacity, "%s%s%s", api, library != NULL ? ", " : "",
                       library != NULL ? library : "");
    }
}
