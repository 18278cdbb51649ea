"""A kernel of Triton, which reads its source: where there is no Triton there is none."""
try:
    import triton
    import triton.language as tl
except ImportError:
    pass
else:
    @triton.jit
    def double(x, y, count, BLOCK: tl.constexpr):
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = places < count
        tl.store(y + places, tl.load(x + places, mask=mask) * 2, mask=mask)
