#!/usr/bin/env bash
# Fuzz every parser: rust/fuzz/run.sh [SECONDS per target] [TARGET …]
# Needs stable Rust and a C++ compiler, nothing else. A crash, a hang of 25 s or an allocation out of
# proportion ends the run with the input saved under rust/fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-600}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(framing index sidecar example sequence_example image inflate)

export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
triple=$(rustc -vV | sed -n 's/^host: //p')
echo "==> Building the fuzzers"
cargo build --release --quiet --target "$triple"

for target in "${targets[@]}"; do
  mkdir -p "corpus/$target" "artifacts/$target"
  echo "==> Fuzzing $target for $seconds s"
  "target/$triple/release/$target" "corpus/$target" "../core/tests/corpus/$target" \
    -max_total_time="$seconds" -timeout=25 -rss_limit_mb=1024 -malloc_limit_mb=300 -max_len=4096 \
    -print_final_stats=1 -artifact_prefix="artifacts/$target/" 2>&1 |
    grep -E 'ERROR|panicked|assert|stat::|DONE|SUMMARY|Test unit|BINGO' || true
  [ -z "$(ls -A "artifacts/$target")" ] || { echo "==> $target failed, see rust/fuzz/artifacts/$target"; exit 1; }
done
echo "==> All fuzzers are content"
