#include "common/host_bound.h"

static const struct {
    const char *key, *text;
} bounds[] = {
#define SPW_HOST_BOUND(name, key, text) {key, text},
#include "common/host_bound.def"
#undef SPW_HOST_BOUND
};

const char *spw_host_bound_key(uint64_t bound)
{
    return bounds[bound < SPW_HOST_BOUND_COUNT ? bound : SPW_HOST_BOUND_NONE].key;
}

const char *spw_host_bound_text(uint64_t bound)
{
    return bounds[bound < SPW_HOST_BOUND_COUNT ? bound : SPW_HOST_BOUND_NONE].text;
}
