package android_test

import (
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
)

// TestIsPlatform checks that the apps of a vendor do not count as libraries of
// that vendor.
func TestIsPlatform(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]bool{
		"java.util.ArrayList": true, "androidx.lifecycle.ViewModelStore": true,
		"com.android.internal.policy.DecorView": true, "com.google.android.gms.common.api.Api": true,
		"com.google.android.material.snackbar.SnackbarManager": true, "com.squareup.picasso.Picasso": true,
		"io.reactivex.internal.util.OpenHashSet": true,
		"com.android.dialer.MainActivity":        false, "com.google.android.apps.maps.MapsActivity": false,
		"com.google.samples.apps.sunflower.Garden": false, "com.squareup.cash.Cart": false,
		"com.example.Cart": false, "javafx.scene.Node": false, "javaslang.List": false, "a.b": false, "": false,
	} {
		if got := android.IsPlatform(class); got != want {
			t.Errorf("%q: %v", class, got)
		}
		if !android.IsContainer(class + "[]") {
			t.Errorf("IsContainer(%s[]) = false, want true", class)
		}
	}
}
