/* A library that memory is registered with: prints the request and returns a value that depends on
 * it. Built once as each of the libraries that spillway knows. */
#include <stdio.h>

#include "driver/register_api.h"

#define VISIBLE __attribute__((visibility("default")))

/* Distinct return values. */
static void *told(const char *name, const void *address, size_t bytes, long rest)
{
    printf("%s: %p %zu %ld\n", name, address, bytes, rest);
    return (void *)((uintptr_t)address + bytes + (uintptr_t)rest);
}

#ifdef FAKE_NCCL
VISIBLE int ncclCommRegister(const struct ncclComm *comm, void *buff, size_t size, void **handle)
{
    *handle = told("ncclCommRegister", buff, size, 1);
    return (int)(uintptr_t)comm;
}

VISIBLE int ncclCommWindowRegister(struct ncclComm *comm, void *buff, size_t size,
                                   struct ncclWindow_vidmem **win, int winFlags)
{
    *win = told("ncclCommWindowRegister", buff, size, winFlags);
    return (int)(uintptr_t)comm;
}
#endif

#ifdef FAKE_IBVERBS
/* As in the real library: the first version is another function. */
VISIBLE struct ibv_mr *first_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
VISIBLE struct ibv_mr *current_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
__asm__(".symver first_reg_mr, ibv_reg_mr@IBVERBS_1.0, remove");
__asm__(".symver current_reg_mr, ibv_reg_mr@@IBVERBS_1.1, remove");

struct ibv_mr *first_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return told("ibv_reg_mr of 1.0", addr, length, access);
}

struct ibv_mr *current_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return told("ibv_reg_mr of 1.1", addr, length, access);
}

VISIBLE struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                       int access)
{
    return told("ibv_reg_mr_iova", addr, length, (long)iova + access);
}

VISIBLE struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                        unsigned int access)
{
    return told("ibv_reg_mr_iova2", addr, length, (long)iova + access);
}

VISIBLE struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr)
{
    return told("ibv_reg_mr_ex", (mr_init_attr->comp_mask & 2) != 0 ? mr_init_attr->addr : NULL,
                mr_init_attr->length, mr_init_attr->access);
}

VISIBLE int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                         int access)
{
    (void)told("ibv_rereg_mr", addr, length, access);
    return flags;
}
#endif

#ifdef FAKE_CUFILE
VISIBLE struct spw_cufile_error cuFileBufRegister(const void *bufPtr_base, size_t length, int flags)
{
    (void)told("cuFileBufRegister", bufPtr_base, length, flags);
    return (struct spw_cufile_error){flags, (CUresult)1};
}
#endif

#ifdef FAKE_GDRAPI
VISIBLE int gdr_pin_buffer(struct gdr *g, unsigned long addr, size_t size, uint64_t p2p_token,
                           uint32_t va_space, struct gdr_mh_s *handle)
{
    (void)told("gdr_pin_buffer", (void *)addr, size, (long)p2p_token + va_space);
    return 5;
}

VISIBLE int gdr_pin_buffer_v2(struct gdr *g, unsigned long addr, size_t size, uint32_t flags,
                              struct gdr_mh_s *handle)
{
    (void)told("gdr_pin_buffer_v2", (void *)addr, size, flags);
    return 6;
}
#endif
