"""A photograph, blurred by a Gaussian and searched for edges; at the borders the nearest pixel is repeated."""

import numpy as np
from _report import check, show, timed
from skimage import data

import cutile as ct


def pixels(image, row, col, channel):
    """float32 pixels at these coordinates, clamped to the border; bytes become 0 ... 1."""
    row = ct.minimum(ct.maximum(row, 0), image.shape[0] - 1)
    col = ct.minimum(ct.maximum(col, 0), image.shape[1] - 1)
    pixel = ct.gather(image, (row, col, channel))
    return pixel.astype(ct.float32) / 255 if image.dtype == ct.uint8 else pixel


@ct.kernel
def blur(image, weights, out, AXIS: ct.Constant[int], RADIUS: ct.Constant[int], ROWS: ct.Constant[int],
         COLS: ct.Constant[int]):
    """Along one axis: the sum of weights[d + RADIUS] * image, moved by d = -RADIUS ... RADIUS pixels."""
    i, j, channel = ct.bid(0), ct.bid(1), ct.bid(2)
    row = (i * ROWS + ct.arange(ROWS, dtype=ct.int32))[:, None]
    col = (j * COLS + ct.arange(COLS, dtype=ct.int32))[None, :]
    acc = ct.zeros((ROWS, COLS), ct.float32)
    for d in range(-RADIUS, RADIUS + 1):
        w = ct.gather(weights, d + RADIUS)
        if AXIS == 0:  # known when the kernel is compiled
            acc += w * pixels(image, row + d, col, channel)
        else:
            acc += w * pixels(image, row, col + d, channel)
    ct.store(out, index=(i, j, channel), tile=acc[:, :, None])


@ct.kernel
def sobel(image, out, ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    """The length of the brightness gradient; the weights 1 2 1 unroll when the kernel is compiled."""
    i, j, channel = ct.bid(0), ct.bid(1), ct.bid(2)
    row = (i * ROWS + ct.arange(ROWS, dtype=ct.int32))[:, None]
    col = (j * COLS + ct.arange(COLS, dtype=ct.int32))[None, :]
    down = ct.zeros((ROWS, COLS), ct.float32)
    right = ct.zeros((ROWS, COLS), ct.float32)
    for step, weight in ct.static_iter(((-1, 1), (0, 2), (1, 1))):
        down += weight * (pixels(image, row + 1, col + step, channel) - pixels(image, row - 1, col + step, channel))
        right += weight * (pixels(image, row + step, col + 1, channel) - pixels(image, row + step, col - 1, channel))
    ct.store(out, index=(i, j, channel), tile=ct.sqrt(down * down + right * right)[:, :, None])


def shifted(image, dr, dc):
    """The float64 image moved by (dr, dc), borders repeated."""
    row = np.clip(np.arange(image.shape[0]) + dr, 0, image.shape[0] - 1)
    col = np.clip(np.arange(image.shape[1]) + dc, 0, image.shape[1] - 1)
    return image[row][:, col].astype(np.float64) / 255


def gaussian_reference(image, weights):
    r = len(weights) // 2
    w = weights.astype(np.float64)
    return sum(w[dr + r] * w[dc + r] * shifted(image, dr, dc) for dr in range(-r, r + 1) for dc in range(-r, r + 1))


def sobel_reference(image):
    taps = ((-1, 1), (0, 2), (1, 1))
    down = sum(w * (shifted(image, 1, s) - shifted(image, -1, s)) for s, w in taps)
    right = sum(w * (shifted(image, s, 1) - shifted(image, s, -1)) for s, w in taps)
    return np.sqrt(down**2 + right**2)


def main():
    photo, tile, radius = data.coffee(), (64, 128), 3  # 400 x 600 pixels, three channels, uint8
    weights = np.exp(-0.25 * np.arange(-radius, radius + 1) ** 2)
    weights = (weights / weights.sum()).astype(np.float32)
    grid = (ct.cdiv(photo.shape[0], tile[0]), ct.cdiv(photo.shape[1], tile[1]), photo.shape[2])
    half, blurred, edges = np.empty((3, *photo.shape), np.float32)
    with timed() as watch:
        ct.launch(None, grid, blur, (photo, weights, half, 0, radius, *tile))
        ct.launch(None, grid, blur, (half, weights, blurred, 1, radius, *tile))
    # twice seven terms, rounded once each, in sums that are at most 1; and one division
    rows = [check("gaussian 7x7, photograph", grid, tile, watch,
                  (blurred, gaussian_reference(photo, weights), 16 * 2**-24))]
    with timed() as watch:
        ct.launch(None, grid, sobel, (photo, edges, *tile))
    rows.append(check("sobel, photograph", grid, tile, watch, (edges, sobel_reference(photo), 16 * 2**-23)))
    return rows


if __name__ == "__main__":
    show(main())
