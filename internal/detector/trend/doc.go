// Package trend fits straight lines to short series and finds their floors.
//
// It holds what the detector calculates with: a least-squares line with its
// evidence ([Fit]), quantiles and floors of blocks of time ([Quantile],
// [Floors]), Student's t distribution ([StudentCDF], [StudentQuantile]) and the last
// points of series that are measured together ([Window], [Column]). It is plain
// arithmetic on []float64: it knows nothing of memory, processes or states, decides
// nothing, and the functions that run once a sample do not allocate. X is time in
// seconds, Y any unit; both are expected to be finite.
package trend
