//go:build e2e

package analysis_test

import (
	"testing"

	"github.com/leakgate/leakgate/internal/jvmtest"
)

// Growth in RxJava, coroutines and Guava is named after a field of the program
// or, if none leads there, after a class of the program.
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
