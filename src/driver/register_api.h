/* Declarations of the functions that register device memory with another library: the rows
 * SPW_REGISTER of functions.def. The declarations are only complete enough for a call, because the
 * headers of those libraries may not be installed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

struct ncclComm;
struct ncclWindow_vidmem;

enum { SPW_NCCL_INVALID_USAGE = 5 };

/* NCCL. ncclResult_t is an int. */
int ncclCommRegister(const struct ncclComm *comm, void *buff, size_t size, void **handle);
int ncclCommWindowRegister(struct ncclComm *comm, void *buff, size_t size,
                           struct ncclWindow_vidmem **win, int winFlags);

struct ibv_pd;
struct ibv_mr;

/* The first members. Later versions have more members behind them. */
struct ibv_mr_init_attr {
    size_t length;
    int access;
    uint64_t comp_mask; /* a bit for each member below that is set */
    uint64_t iova;
    void *addr;
};

/* Returns the address that ibv_reg_mr_ex will register; NULL if it registers a file. */
static inline const void *spw_ibv_address(const struct ibv_mr_init_attr *attributes)
{
    enum { HAS_ADDRESS = 1 << 1 };

    return (attributes->comp_mask & HAS_ADDRESS) != 0 ? attributes->addr : NULL;
}

/* The verbs of rdma-core. */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access);
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr);
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                 int access);

/* CUfileError_t. */
struct spw_cufile_error {
    int err; /* CUfileOpError */
    CUresult cu_err;
};

#define SPW_CUFILE_NOT_INITIALIZED ((struct spw_cufile_error){5001, CUDA_SUCCESS})

/* cuFile. */
struct spw_cufile_error cuFileBufRegister(const void *bufPtr_base, size_t length, int flags);

struct gdr;
struct gdr_mh_s;

/* GDRCopy. */
int gdr_pin_buffer(struct gdr *g, unsigned long addr, size_t size, uint64_t p2p_token,
                   uint32_t va_space, struct gdr_mh_s *handle);
int gdr_pin_buffer_v2(struct gdr *g, unsigned long addr, size_t size, uint32_t flags,
                      struct gdr_mh_s *handle);
