package analysis

import (
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/growth"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// The parts of a Report that are read from runtime objects and Android objects.
type (
	Metadata        = android.Metadata
	Screen          = android.Screen
	Bitmaps         = android.Bitmaps
	Bitmap          = android.Bitmap
	DuplicateBitmap = android.DuplicateBitmap
	Owner           = android.Owner
	Components      = android.Components
	ComponentGroup  = android.ComponentGroup
	Component       = android.Component
	Databases       = android.Databases
	Database        = android.Database
	Exhaustion      = android.Exhaustion
	ExhaustionCause = android.ExhaustionCause
	ThreadGroup     = android.ThreadGroup
	OpenFiles       = android.OpenFiles
	LargeArray      = android.LargeArray
	Finalizers      = android.Finalizers
	FinalizerClass  = android.FinalizerClass
	Strings         = android.Strings
	RepeatedString  = android.RepeatedString
	Thread          = android.Thread
	ThreadLocals    = android.ThreadLocals
	LargestLocal    = android.LargestLocal
)

// The types of the parts of a Growth.
type (
	GrowingPlace = growth.Place
	GrowthStep   = growth.PathEdge
	GrowingChild = growth.Child
)

// ID identifies an object of a dump: its address at the time of the dump.
type ID = hprof.ID

// DamageError holds the offset and the record at which a dump becomes
// unreadable.
type DamageError = hprof.DamageError

// MemoryError is the error for a dump that needs more memory than
// Options.Memory allows.
type MemoryError = heap.MemoryError
