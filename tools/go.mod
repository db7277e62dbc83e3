// The programs of this module measure leakgate beside other programs; the product does not need them.
module github.com/leakgate/leakgate/tools

go 1.26.0

require github.com/leakgate/leakgate v0.0.0

replace github.com/leakgate/leakgate => ..
