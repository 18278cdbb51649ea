#include "torch/row.h"

/* The first columns are numbers of functions. The last seven columns are not. */
#define SPW_TORCH_VERSION(major, minor, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12,     \
                          f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, functions, by_pool,    \
                          active_bytes, requested_bytes, device_allocs, device_frees,              \
                          private_pools)                                                           \
    {major,                                                                                        \
     minor,                                                                                        \
     {f0,  f1,  f2,  f3,  f4,  f5,  f6,  f7,  f8,  f9,  f10, f11,                                  \
      f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22},                                      \
     functions,                                                                                    \
     by_pool,                                                                                      \
     active_bytes,                                                                                 \
     requested_bytes,                                                                              \
     device_allocs,                                                                                \
     device_frees,                                                                                 \
     private_pools},

static const struct spw_torch_row rows[] = {
#include "torch/versions.def"
};

const struct spw_torch_row *spw_torch_row_of(int major, int minor)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].major == major && rows[i].minor == minor) {
            return &rows[i];
        }
    }
    return NULL;
}
