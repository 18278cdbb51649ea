"""Figures that may differ from a plain run, each with the reason: PyTorch does not define them, or
they follow from what spillway is. What is not here must be equal."""
import fnmatch

# (feature, figure, modes, reason): the first three are patterns of the shell.
UNDEFINED = [
]


def reason(feature, figure, mode):
    """Why this figure may differ in this mode, or None."""
    for features, figures, modes, why in UNDEFINED:
        if (fnmatch.fnmatch(feature, features) and fnmatch.fnmatch(figure, figures)
                and fnmatch.fnmatch(mode, modes)):
            return why
    return None
