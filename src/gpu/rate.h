/* Rates of cards, from their clocks and the facts in rates.def. No locking. */
#pragma once

#include "gpu/profile.h"

/* Types of numbers, by the units that multiply them. */
enum spw_gpu_type {
    SPW_GPU_F64,
    SPW_GPU_F32,
    SPW_GPU_TF32,   /* float32 numbers, rounded to 19 bits */
    SPW_GPU_BITS16, /* float16 and bfloat16 */
    SPW_GPU_BITS8,  /* float8 and int8 */
    SPW_GPU_TYPES,
};

/* Returns the operations a nanosecond that a card sustains in large products of this type. */
double spw_gpu_rate(const struct spw_gpu_profile *profile, enum spw_gpu_type type);

/* Returns the bandwidth of a card's memory, in bytes a nanosecond: the specified one, or the part
 * of it that a large copy reaches, if it is known to reach less. */
double spw_gpu_memory_rate(const struct spw_gpu_profile *profile);

/* The speeds of a card's link to the host, in bytes a nanosecond. */
struct spw_gpu_link {
    double in;  /* to the card */
    double out; /* from the card */
};

/* Returns the speeds that no copy exceeds. */
struct spw_gpu_link spw_gpu_link_most(const struct spw_gpu_profile *profile);

/* Returns the speeds that large copies reach. */
struct spw_gpu_link spw_gpu_link_reached(const struct spw_gpu_profile *profile);

/* Returns the nanoseconds that copies in both directions take, which run at the same time. */
double spw_gpu_link_ns(struct spw_gpu_link link, uint64_t in_bytes, uint64_t out_bytes);
