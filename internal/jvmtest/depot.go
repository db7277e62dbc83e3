package jvmtest

// DepotMain takes as argument the kind of threads that it starts, one per
// iteration: a DepotCourier has a class of its own, a DepotDelivery is a plain
// thread that runs a task. Each holds 2 kB.
const (
	DepotMain     = "com.example.depot.Depot"
	DepotCourier  = "courier"
	DepotDelivery = "delivery"
)

// Depot starts threads that never end.
func Depot() Files { return read("Console.java", "Depot.java") }
