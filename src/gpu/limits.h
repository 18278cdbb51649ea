/* The limits of each compute capability. They are from the table of technical specifications in the
 * CUDA programming guide. The columns are the resident threads of a multiprocessor, its resident
 * blocks, the bytes of its shared memory, and the most bytes of shared memory that a block may opt
 * in to. profile.c expands the row of each GPU. */
#pragma once

#define SPW_GPU_LIMITS_6_0  2048, 32, 65536, 49152
#define SPW_GPU_LIMITS_6_1  2048, 32, 98304, 49152
#define SPW_GPU_LIMITS_7_0  2048, 32, 98304, 98304
#define SPW_GPU_LIMITS_7_5  1024, 16, 65536, 65536
#define SPW_GPU_LIMITS_8_0  2048, 32, 167936, 166912
#define SPW_GPU_LIMITS_8_6  1536, 16, 102400, 101376
#define SPW_GPU_LIMITS_8_7  1536, 16, 167936, 166912
#define SPW_GPU_LIMITS_8_9  1536, 24, 102400, 101376
#define SPW_GPU_LIMITS_9_0  2048, 32, 233472, 232448
#define SPW_GPU_LIMITS_10_0 2048, 32, 233472, 232448
#define SPW_GPU_LIMITS_10_3 2048, 32, 233472, 232448
#define SPW_GPU_LIMITS_11_0 1536, 24, 233472, 232448
#define SPW_GPU_LIMITS_12_0 1536, 24, 102400, 101376
#define SPW_GPU_LIMITS_12_1 1536, 24, 102400, 101376
