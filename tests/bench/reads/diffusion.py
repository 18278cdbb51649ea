#!/usr/bin/env python3
"""A small diffusion model of diffusers: training on noise, then drawing samples."""
import diffusers
import torch
from torch import nn

SIDE = 16


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = diffusers.UNet2DModel(
        sample_size=SIDE, in_channels=1, out_channels=1, layers_per_block=1,
        block_out_channels=(32, 32), norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D")).to(device)
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(4):
        images = torch.randn(4, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(step))
        images = images.to(device)
        noise = torch.randn_like(images)
        times = torch.randint(100, (4,), device=device)
        found = model(scheduler.add_noise(images, noise, times), times).sample
        loss = nn.functional.mse_loss(found, noise)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(step, f"{loss.item():.4f}")
    scheduler.set_timesteps(4, device=device)
    sample = torch.randn(2, 1, SIDE, SIDE, device=device)
    with torch.no_grad():
        for time in scheduler.timesteps:
            sample = scheduler.step(model(sample, time).sample, time, sample).prev_sample
    print(tuple(sample.shape), bool(torch.isfinite(sample).all()))


if __name__ == "__main__":
    main()
