#!/usr/bin/env python3
"""A gradient step with JAX, which takes three quarters of the device at its start."""
import jax
import jax.numpy as jnp


def loss(weights, inputs):
    return jnp.mean(jnp.tanh(inputs @ weights) ** 2)


def main():
    weights = jnp.ones((512, 512)) * 0.01
    inputs = jnp.ones((128, 512))
    step = jax.jit(jax.grad(loss))
    for _ in range(5):
        weights = weights - 0.1 * step(weights, inputs)
    value = float(loss(weights, inputs))
    print(f"figure: {jax.devices()[0]}, loss {value:.6f}")
    print(f"{'ok' if 0 < value < 1.0001 else 'wrong'}: the loss is a number that falls")


if __name__ == "__main__":
    main()
