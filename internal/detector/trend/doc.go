// Package trend fits straight lines to short series and finds their floors.
//
// It contains the detector's arithmetic: a least-squares line with its evidence
// ([Fit]), quantiles and floors of blocks of time ([Quantile], [Floors]),
// Student's t distribution ([StudentCDF], [StudentQuantile]) and the last
// points of series that are measured together ([Window], [Column]). The
// functions that run once per sample do not allocate. X is time in seconds, Y
// any unit; both must be finite.
package trend
