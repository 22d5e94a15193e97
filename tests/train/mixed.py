"""Trains cases whole and in parts in mixed precision; prints by how much weights differ, by case and parts.

Run as `python -m tests.train.mixed POLICY CASE…`, in a process of its own: oneDNN's fastest 16-bit products
have ended one by a signal.
"""

import json
import sys

ALLOWED: dict[str, dict[str, str]] = {
    "mixed_float16": {},
    "mixed_bfloat16": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
}
"""By policy, the environment that such a process needs."""


def differences(policy: str, names: list[str]) -> dict[str, dict[str, float]]:
    """Return the largest difference of any weight after 21 updates, relative to the largest of its array."""
    import keras

    from tests.train.cases import CASES

    keras.config.set_dtype_policy(policy)
    return {case.name: _of(case) for case in CASES if case.name in names}


def _of(case: object) -> dict[str, float]:
    from tests.train.update_laws import PARTS, Trained, largest_relative_difference

    trained = Trained(case)  # type: ignore[arg-type]
    many = len(trained.model.variables)
    whole = trained.after("auto")[0][:many]
    splits = {str(parts): trained.after(micro)[0][:many] for parts, micro in PARTS.items()}
    return {parts: largest_relative_difference(split, whole) for parts, split in splits.items()}


if __name__ == "__main__":
    json.dump(differences(sys.argv[1], sys.argv[2:]), sys.stdout)
