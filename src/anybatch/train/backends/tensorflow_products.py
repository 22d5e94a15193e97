"""Matrix products that do not fail in silence, as far as TensorFlow still lets itself be told."""

import os
import warnings

from tensorflow.python.util import _pywrap_util_port

from anybatch.errors import AnybatchWarning
from anybatch.memory import ONEDNN_VARIABLE, loud_environment

_ON = (
    "this process can be refused memory (ulimit -v, ulimit -d or vm.overcommit_memory=2), and then products "
    "by oneDNN may be wrong without a word: training stops where that cannot be ruled out. Set "
    f"{ONEDNN_VARIABLE}=0 before TensorFlow is imported, or start the script with `anybatch run`"
)


def have_failures_told() -> None:
    """Where allocations may fail, choose the products that say so if one does; before the first product.

    Whether oneDNN is on was settled when TensorFlow was imported: where it is off, that is written down.
    """
    chosen = loud_environment()
    if chosen and _pywrap_util_port.IsMklEnabled():
        del chosen[ONEDNN_VARIABLE]
        warnings.warn(_ON, AnybatchWarning, stacklevel=2)
    for name, value in chosen.items():
        os.environ.setdefault(name, value)
