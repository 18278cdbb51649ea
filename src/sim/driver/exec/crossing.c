#include "sim/driver/exec/crossing.h"

#include "sim/driver/core/sim_options.h"
#include "sim/driver/memory/content.h"

static bool crosses(const struct sim_op *op)
{
    uint64_t device, host;

    for (size_t i = 0; i < op->span_count; i++) {
        sim_mem_locate(op->spans[i].address, op->spans[i].size, &device, &host);
        if (device > 0 && host > 0) {
            return true;
        }
    }
    return false;
}

CUresult sim_crossing_check(const struct sim_op *op)
{
    return sim_options()->crossing == SPW_CROSSING_REFUSED && crosses(op) ? CUDA_ERROR_INVALID_VALUE
                                                                          : CUDA_SUCCESS;
}

void sim_crossing_spoil(const struct sim_op *op, CUdeviceptr last)
{
    unsigned char byte;

    if (sim_options()->crossing == SPW_CROSSING_WRONG && crosses(op)) {
        sim_mem_read(&byte, last, sizeof(byte));
        byte ^= 0x5a;
        sim_mem_write(last, &byte, sizeof(byte));
    }
}
