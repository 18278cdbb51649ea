"""Convolutional networks as their papers describe them, with the shapes of torchvision's models.

Written anew, because the tests have no torchvision. What matters for memory is kept: which
activations work in place, where a copy is made, and the order of the parameters.
"""
import torch
from torch import nn

NORM = dict(eps=1e-3, momentum=0.01)


def conv_norm(inputs, outputs, kernel=1, stride=1, groups=1, act=None, **norm):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups=groups,
                        bias=False), nn.BatchNorm2d(outputs, **norm)]
    return nn.Sequential(*layers, *([act(inplace=True)] if act else []))


def pooled(x):
    return torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)


class Pool(nn.Module):
    def forward(self, x):
        return pooled(x)


# ---- VGG ----

def vgg(repeats):
    layers, width = [], 3
    for outputs, times in zip((64, 128, 256, 512, 512), repeats):
        for _ in range(times):
            layers += [nn.Conv2d(width, outputs, 3, padding=1), nn.ReLU(inplace=True)]
            width = outputs
        layers.append(nn.MaxPool2d(2, 2))
    head = [nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *head)


# ---- ResNet ----

class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(conv_norm(inputs, width, act=nn.ReLU),
                                  conv_norm(width, width, 3, stride, act=nn.ReLU),
                                  conv_norm(width, 4 * width))
        self.side = None
        if stride != 1 or inputs != 4 * width:
            self.side = conv_norm(inputs, 4 * width, 1, stride)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.body(x)
        out += x if self.side is None else self.side(x)
        return self.act(out)


def resnet(depths):
    layers, inputs = [conv_norm(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(depths):
        for block in range(depth):
            width = 64 << stage
            layers.append(Bottleneck(inputs, width, 2 if stage and not block else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, Pool(), nn.Linear(2048, 1000))


# ---- MobileNet, MnasNet ----

class Inverted(nn.Module):
    """Expand, filter each channel, shrink; with squeeze and excitation if `squeeze`."""

    def __init__(self, inputs, outputs, middle, kernel, stride, act, squeeze=0, add=True, **norm):
        super().__init__()
        layers = [conv_norm(inputs, middle, act=act, **norm)] if middle != inputs else []
        layers.append(conv_norm(middle, middle, kernel, stride, middle, act, **norm))
        if squeeze:
            layers.append(Excite(middle, squeeze, nn.Hardsigmoid))
        self.body = nn.Sequential(*layers, conv_norm(middle, outputs, **norm))
        self.adds = stride == 1 and inputs == outputs
        self.in_place = add == "in place"

    def forward(self, x):
        if not self.adds:
            return self.body(x)
        if not self.in_place:
            return x + self.body(x)
        out = self.body(x)
        out += x
        return out


class Excite(nn.Module):
    def __init__(self, width, squeeze, gate):
        super().__init__()
        self.pool, self.act, self.gate = nn.AdaptiveAvgPool2d(1), nn.ReLU(), gate()
        self.down, self.up = nn.Conv2d(width, squeeze, 1), nn.Conv2d(squeeze, width, 1)

    def forward(self, x):
        scale = self.gate(self.up(self.act(self.down(self.pool(x)))))
        return scale * x


def mobilenet_v2():
    layers, inputs = [conv_norm(3, 32, 3, 2, act=nn.ReLU6)], 32
    for expand, outputs, times, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                           (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                           (6, 320, 1, 1)):
        for block in range(times):
            layers.append(Inverted(inputs, outputs, inputs * expand, 3,
                                   1 if block else stride, nn.ReLU6))
            inputs = outputs
    return nn.Sequential(*layers, conv_norm(320, 1280, act=nn.ReLU6), Pool(), nn.Dropout(0.2),
                         nn.Linear(1280, 1000))


def eighths(value):
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


# Inputs, kernel, expanded, outputs, squeezes, the activation, stride.
LARGE = [(16, 3, 16, 16, 0, "R", 1), (16, 3, 64, 24, 0, "R", 2), (24, 3, 72, 24, 0, "R", 1),
         (24, 5, 72, 40, 1, "R", 2), (40, 5, 120, 40, 1, "R", 1), (40, 5, 120, 40, 1, "R", 1),
         (40, 3, 240, 80, 0, "H", 2), (80, 3, 200, 80, 0, "H", 1), (80, 3, 184, 80, 0, "H", 1),
         (80, 3, 184, 80, 0, "H", 1), (80, 3, 480, 112, 1, "H", 1), (112, 3, 672, 112, 1, "H", 1),
         (112, 5, 672, 160, 1, "H", 2), (160, 5, 960, 160, 1, "H", 1),
         (160, 5, 960, 160, 1, "H", 1)]
SMALL = [(16, 3, 16, 16, 1, "R", 2), (16, 3, 72, 24, 0, "R", 2), (24, 3, 88, 24, 0, "R", 1),
         (24, 5, 96, 40, 1, "H", 2), (40, 5, 240, 40, 1, "H", 1), (40, 5, 240, 40, 1, "H", 1),
         (40, 5, 120, 48, 1, "H", 1), (48, 5, 144, 48, 1, "H", 1), (48, 5, 288, 96, 1, "H", 2),
         (96, 5, 576, 96, 1, "H", 1), (96, 5, 576, 96, 1, "H", 1)]


def mobilenet_v3(blocks, last, classes=10):
    layers = [conv_norm(3, 16, 3, 2, act=nn.Hardswish, **NORM)]
    for inputs, kernel, middle, outputs, squeezes, act, stride in blocks:
        layers.append(Inverted(inputs, outputs, middle, kernel, stride,
                               nn.ReLU if act == "R" else nn.Hardswish,
                               eighths(middle // 4) if squeezes else 0, "in place", **NORM))
    width = 6 * blocks[-1][3]
    return nn.Sequential(*layers, conv_norm(blocks[-1][3], width, act=nn.Hardswish, **NORM), Pool(),
                         nn.Linear(width, last), nn.Hardswish(inplace=True),
                         nn.Dropout(0.2, inplace=True), nn.Linear(last, classes))


class Mean(nn.Module):
    def forward(self, x):
        return x.mean([2, 3])


def mnasnet(classes=10):
    layers = [conv_norm(3, 32, 3, 2, act=nn.ReLU), conv_norm(32, 32, 3, 1, 32, nn.ReLU),
              conv_norm(32, 16)]
    inputs = 16
    for outputs, kernel, stride, expand, times in ((24, 3, 2, 3, 3), (40, 5, 2, 3, 3),
                                                   (80, 5, 2, 6, 3), (96, 3, 1, 6, 2),
                                                   (192, 5, 2, 6, 4), (320, 3, 1, 6, 1)):
        for block in range(times):
            layers.append(Inverted(inputs, outputs, inputs * expand, kernel,
                                   1 if block else stride, nn.ReLU))
            inputs = outputs
    return nn.Sequential(*layers, conv_norm(320, 1280, act=nn.ReLU), Mean(),
                         nn.Dropout(0.2, inplace=True), nn.Linear(1280, classes))


# ---- ConvNeXt ----

class Norm2d(nn.LayerNorm):
    def forward(self, x):
        x = nn.functional.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight,
                                     self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Next(nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.drop = drop
        self.scale = nn.Parameter(torch.ones(width, 1, 1) * 1e-6)
        self.filter = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.rest = nn.Sequential(nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 4 * width),
                                  nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        out = self.scale * self.rest(self.filter(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        if self.drop and self.training:
            keep = torch.empty([out.shape[0], 1, 1, 1], dtype=out.dtype, device=out.device)
            keep = keep.bernoulli_(1 - self.drop)
            if self.drop < 1:
                keep.div_(1 - self.drop)
            out = out * keep
        out += x
        return out


def convnext(depths, widths, drop):
    layers = [nn.Conv2d(3, widths[0], 4, 4), Norm2d(widths[0], eps=1e-6)]
    done, total = 0, sum(depths)
    for stage, (depth, width) in enumerate(zip(depths, widths)):
        for _ in range(depth):
            layers.append(Next(width, drop * done / (total - 1)))
            done += 1
        if stage + 1 < len(widths):
            layers += [Norm2d(width, eps=1e-6), nn.Conv2d(width, widths[stage + 1], 2, 2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), Norm2d(widths[-1], eps=1e-6),
                         nn.Flatten(1), nn.Linear(widths[-1], 1000))


# ---- RegNet ----

class Reg(nn.Module):
    def __init__(self, inputs, width, stride, group, squeeze):
        super().__init__()
        self.side = None
        if inputs != width or stride != 1:
            self.side = conv_norm(inputs, width, 1, stride)
        excite = [Excite(width, round(0.25 * inputs), nn.Sigmoid)] if squeeze else []
        self.body = nn.Sequential(conv_norm(inputs, width, act=nn.ReLU),
                                  conv_norm(width, width, 3, stride, width // group, nn.ReLU),
                                  *excite, conv_norm(width, width))
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        if self.side is not None:
            x = self.side(x) + self.body(x)
        else:
            x = x + self.body(x)
        return self.act(x)


def regnet(depths, widths, group, squeeze):
    layers, inputs = [conv_norm(3, 32, 3, 2, act=nn.ReLU)], 32
    for depth, width in zip(depths, widths):
        for block in range(depth):
            layers.append(Reg(inputs, width, 1 if block else 2, group, squeeze))
            inputs = width
    return nn.Sequential(*layers, Pool(), nn.Linear(inputs, 1000))


NETS = {
    "VGG16": lambda: vgg((2, 2, 3, 3, 3)),
    "VGG19": lambda: vgg((2, 2, 4, 4, 4)),
    "ResNet50": lambda: resnet((3, 4, 6, 3)),
    "ResNet101": lambda: resnet((3, 4, 23, 3)),
    "ResNet152": lambda: resnet((3, 8, 36, 3)),
    "MobileNetV2": mobilenet_v2,
    "MobeNetV3Small": lambda: mobilenet_v3(SMALL, 1024),
    "MobeNetV3Large": lambda: mobilenet_v3(LARGE, 1280),
    "MnasNet": mnasnet,
    "ConvNeXtTiny": lambda: convnext((3, 3, 9, 3), (96, 192, 384, 768), 0.1),
    "ConvNeXtBase": lambda: convnext((3, 3, 27, 3), (128, 256, 512, 1024), 0.5),
    "RegNetX400MF": lambda: regnet((1, 2, 7, 12), (32, 64, 160, 400), 16, False),
    "RegNetY400MF": lambda: regnet((1, 3, 6, 6), (48, 104, 208, 440), 8, True),
}
