#!/bin/sh
# A program compiled by NVIDIA's own compiler runs on the simulated GPU, with the legacy and with
# the per-thread default stream; its code is not compressed, or by each of the two ways there are.
#
#     test_runtime_nvcc.sh SIM_DIR PROGRAM.cu WORK_DIR
#
# Exit status 77 (skipped) without nvcc 13 or the host compiler it needs.
set -eu

sim=$1 program=$2 work=$3
nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=/usr/local/cuda/bin/nvcc
if ! [ -x "$nvcc" ] || ! "$nvcc" --version | grep -q 'release 13\.'; then
    echo "nvcc 13 not found"
    exit 77
fi
if ! command -v g++ >/dev/null; then
    echo "g++ not found"
    exit 77
fi

mkdir -p "$work"
while read -r stream mode; do
    echo "default stream: $stream; compressed for $mode"
    "$nvcc" -cudart shared --default-stream="$stream" -Xfatbin -compress-all \
        -compress-mode="$mode" -o "$work/program" "$program"
    env LD_LIBRARY_PATH="$sim" "$work/program"
done <<END
legacy none
legacy speed
per-thread size
END

echo "runtime linked in: it refuses the simulated driver, which says so"
"$nvcc" -o "$work/static" "$program"
env LD_LIBRARY_PATH="$sim" LD_PRELOAD="$sim/libcuda.so.1" "$work/static" 2>&1 >/dev/null |
    grep -q "NVIDIA's CUDA runtime in .*static works only with NVIDIA's driver"
