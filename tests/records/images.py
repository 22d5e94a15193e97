"""Pictures with the spectrum of photographs and some edges, and shards of them as files."""

import numpy as np

import anybatch as ab


def photo(height, width, *, seed=0):
    """Return RGB pixels: frequencies and colours as strong as in photographs, and discs with sharp edges."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    across, down = np.meshgrid(np.fft.rfftfreq(width), np.fft.fftfreq(height))
    strength = 1 / np.maximum(np.hypot(across, down), 1 / max(height, width))
    phases = np.exp(2j * np.pi * rng.random((4, *strength.shape)))
    brightness, *colours = np.fft.irfft2(strength * phases, (height, width))
    picture = brightness[..., None] + 0.3 * np.stack(colours, axis=-1)
    picture = 128 + 45 * (picture - picture.mean()) / (picture.std() + 1e-9)
    for _ in range(6):
        radius = rng.uniform(0.05, 0.2) * max(height, width)
        inside = np.hypot(y - rng.integers(height), x - rng.integers(width)) < radius
        picture[inside] = picture[inside] * 0.5 + rng.uniform(0, 128, 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


def shard_of(path, files):
    """Write image files as records, numbered; return the path."""
    ab.write(path, [{"image": file, "number": n} for n, file in enumerate(files)], overwrite=True)
    return str(path)


def pixels_of(path, feature):
    """Return all images of a shard."""
    return np.concatenate([batch["image"] for batch in ab.read(path, {"image": feature}).batch(16)])
