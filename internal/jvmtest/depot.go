package jvmtest

// DepotMain takes the kind of threads that it starts, one each iteration: DepotCourier are
// of a class of their own, DepotDelivery plain ones that run a task. Each holds 2 kB.
const (
	DepotMain     = "com.example.depot.Depot"
	DepotCourier  = "courier"
	DepotDelivery = "delivery"
)

// Depot starts threads that never end.
func Depot() Source { return read("Console.java", "Depot.java") }
