#!/bin/sh
# The scenario of leakgate.yaml: the same steps four times, with a heap dump after each loop. The first loop is a warm-up.
# --wait returns when the app has settled and its heap is dumped.
set -eu
for i in 1 2 3 4; do
  adb shell am start -W -n com.shop/.CheckoutActivity
  adb shell input keyevent BACK
  leakgate mark --run "$LEAKGATE_RUN" --wait "loop $i"
done
