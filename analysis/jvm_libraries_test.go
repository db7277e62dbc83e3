//go:build e2e

package analysis_test

import (
	"testing"

	"github.com/leakgate/leakgate/internal/jvmtest"
)

// Growth in RxJava, coroutines and Guava is named by the program's own field,
// or by its own class if no field leads there.
func TestLibraries(t *testing.T) {
	j := jvmtest.New(t)
	classPath := j.CompileLibraries(t)
	for _, s := range jvmtest.LibraryShapes() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			checkPlace(t, s, grownIn(t, j, classPath, jvmtest.LibrariesMain, s.Name))
		})
	}
}
